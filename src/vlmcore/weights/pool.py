"""Memory for weights that come when they are needed and go when others need the room."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from itertools import islice
from typing import Any

from vlmcore._arrays import require_count
from vlmcore._host_memory import in_gib
from vlmcore.errors import VlmcoreError, WeightsBudgetError, WeightsError
from vlmcore.weights._order import SeenOrder
from vlmcore.weights._parts import Part

__all__ = ["WeightPool"]

_SHARE_AHEAD = 4  # of the budget, what is read ahead takes at most one part in so many
_STEPS_AHEAD = 8  # modules that are looked ahead


class WeightPool:
    """
    A budget that the weights of one model or of several share.

    Weights are read when they are asked for. Those that were asked for next, the last time, are
    read ahead meanwhile. When the budget is used up, those leave that will be needed last as far as
    the order seen tells, and of those it tells nothing of, those that were used longest ago.

    What a computation still uses when it leaves goes once that is done, so that each thread may
    hold the weights of one module more. Safe for threads.

    Args:
        budget_bytes: What all weights in memory may take together.
        reads_ahead: Whether to read ahead, in a thread of the pool's own.

    Example:
        >>> pool = WeightPool(8 << 30)
        >>> pool.resident_bytes
        0
    """

    def __init__(self, budget_bytes: int, *, reads_ahead: bool = True) -> None:
        require_count(budget_bytes=budget_bytes)
        self._budget_bytes = budget_bytes
        self._reads_ahead = reads_ahead
        self._changed = threading.Condition()
        self._parts: dict[Part, None] = {}
        self._taken_bytes = 0
        self._reserved_bytes = 0
        self._peak_bytes = 0
        self._loaded_bytes = 0
        self._present = 0
        self._order = SeenOrder[Part]()
        self._ahead: list[Part] = []
        self._is_reading_ahead = False

    @property
    def budget_bytes(self) -> int:
        """What all weights in memory may take together."""
        return self._budget_bytes

    @property
    def resident_bytes(self) -> int:
        """What those take that are in memory now, or are being read."""
        return self._taken_bytes

    @property
    def peak_bytes(self) -> int:
        """The most that was in memory at once."""
        return self._peak_bytes

    @property
    def loaded_bytes(self) -> int:
        """How much was read so far; what came twice counts twice."""
        return self._loaded_bytes

    def evict(self) -> int:
        """
        Let all weights leave that nobody wrote to; they are read again when they are needed.

        Returns:
            How many bytes left.
        """
        with self._changed:
            leaving = [part for part in self._parts if _can_leave(part)]
            for part in leaving:
                self._drop(part)
            return sum(part.nbytes for part in leaving)

    def reserve(self, path: str, nbytes: int) -> None:
        """
        Take *nbytes* out of the budget for weights that stay.

        Raises:
            WeightsBudgetError: If they do not fit beside what stays already.
        """
        with self._changed:
            if not self._make_room(nbytes, self._leaving_order()):
                raise self._too_small(path, nbytes)
            self._take(nbytes)
            self._reserved_bytes += nbytes

    def release(self, nbytes: int) -> None:
        """Give *nbytes* back that were reserved."""
        with self._changed:
            self._taken_bytes -= nbytes
            self._reserved_bytes -= nbytes
            self._changed.notify_all()

    def add(self, part: Part) -> None:
        """
        Let *part* be asked for.

        Raises:
            WeightsBudgetError: If it is larger than the budget.
        """
        with self._changed:
            if part.nbytes > self._budget_bytes - self._reserved_bytes:
                raise self._too_small(part.path, part.nbytes)
            self._parts[part] = None

    def remove(self, part: Part) -> None:
        """Let *part* leave for ever; it cannot be asked for any more."""
        with self._changed:
            part.is_closed = True
            self._order.forget(part)
            while part.is_loading:
                self._changed.wait()
            self._parts.pop(part, None)
            if part.value is not None:
                self._drop(part)

    def get(self, part: Part) -> Any:
        """
        Return what *part* loads, which is read now if it is not in memory.

        Raises:
            WeightsError: If it was removed, or cannot be read.
            WeightsBudgetError: If there is no room, because weights that were written to stay.
        """
        with self._changed:
            while part.value is None:
                if part.is_closed:
                    raise WeightsError(part.path, "is closed, and its weights are needed")
                if not part.is_loading and self._claim(part):
                    break
                self._changed.wait()
            else:
                self._note(part)
                return part.value
        value = self._read(part)
        with self._changed:
            self._note(part)
        return value

    def _claim(self, part: Part) -> bool:
        """Take the room for *part*, or say that it has to wait for what others are reading."""
        if not self._make_room(part.nbytes, self._leaving_order()):
            if any(each.is_loading for each in self._parts):
                return False
            raise self._too_small(part.path, part.nbytes)
        self._take(part.nbytes)
        part.is_loading = True
        return True

    def _read(self, part: Part) -> Any:
        value = None
        try:
            value = part.load()
        finally:
            with self._changed:
                part.is_loading = False
                part.value = value
                if value is None:
                    self._taken_bytes -= part.nbytes
                else:
                    self._loaded_bytes += part.nbytes
                    self._present += 1
                self._changed.notify_all()
        return value

    def _take(self, nbytes: int) -> None:
        self._taken_bytes += nbytes
        self._peak_bytes = max(self._peak_bytes, self._taken_bytes)

    def _make_room(self, nbytes: int, leaving: Iterator[Part]) -> bool:
        while self._taken_bytes + nbytes > self._budget_bytes:
            part = next(leaving, None)
            if part is None:
                return False
            self._drop(part)
        return True

    def _drop(self, part: Part) -> None:
        part.value = None
        self._present -= 1
        self._taken_bytes -= part.nbytes
        self._changed.notify_all()

    def _leaving_order(self, until: Part | None = None) -> Iterator[Part]:
        """Go through what may leave, what is needed last first; not what comes before *until*."""
        soon = list(self._order.following())
        known = set(soon)
        kept = set(soon[: soon.index(until)]) if until in known else set[Part]()
        unknown = [part for part in self._order.longest_ago() if part not in known]
        yield from (part for part in unknown if _can_leave(part))
        yield from (part for part in reversed(soon) if part not in kept and _can_leave(part))

    def _note(self, part: Part) -> None:
        """Remember that *part* is needed now, and read ahead what comes after it."""
        self._order.note(part)
        if self._reads_ahead and self._present < len(self._parts):
            self._plan_ahead()

    def _plan_ahead(self) -> None:
        room = self._budget_bytes // _SHARE_AHEAD
        self._ahead.clear()
        for part in islice(self._order.following(), _STEPS_AHEAD):
            if part.value is None and not part.is_loading:
                room -= part.nbytes
                if room < 0:
                    break
                self._ahead.append(part)
        if self._ahead and not self._is_reading_ahead:
            self._is_reading_ahead = True
            name = "vlmcore-weights-ahead"
            threading.Thread(target=self._read_ahead, name=name, daemon=True).start()

    def _read_ahead(self) -> None:
        while (part := self._next_ahead()) is not None:
            with contextlib.suppress(VlmcoreError, OSError, RuntimeError, MemoryError):
                self._read(part)  # who needs it reads it again, and is told

    def _next_ahead(self) -> Part | None:
        with self._changed:
            while self._ahead:
                part = self._ahead.pop(0)
                if part.value is not None or part.is_loading or part.is_closed:
                    continue
                if self._make_room(part.nbytes, self._leaving_order(until=part)):
                    self._take(part.nbytes)
                    part.is_loading = True
                    return part
            self._is_reading_ahead = False
            return None

    def _too_small(self, path: str, nbytes: int) -> WeightsBudgetError:
        stays = sum(part.nbytes for part in self._parts if part.value is not None)
        stays = self._reserved_bytes + stays
        problem = (
            f"one module of it needs {in_gib(nbytes)}, and the budget is "
            f"{in_gib(self._budget_bytes)}, of which {in_gib(stays)} have to stay"
        )
        return WeightsBudgetError(path, problem, nbytes, self._budget_bytes - stays)


def _can_leave(part: Part) -> bool:
    return part.value is not None and not part.is_loading and not part.is_changed(part.value)
