"""Whose memory a model lives in, and who has to leave when it is full."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import attrs

from vlmcore._arrays import require_count
from vlmcore._host_memory import in_gib
from vlmcore.errors import ContractError, ModelMemoryError
from vlmcore.vlm._resident_models import Residency, ResidentModel

__all__ = ["PROCESS", "ProcessResidency", "Residency", "ResidentModel"]

# How long a load waits for models that others are freeing. What runs while a model is freed may
# itself wait for who waits here: the two must not wait for each other for ever.
_PATIENCE_S = 30.0


@attrs.define(eq=False)
class _Seat:
    """One key: its model while that is resident, and who wants it."""

    key: Hashable
    load: Callable[[], ResidentModel]
    nbytes: int
    model: ResidentModel | None = None
    loading: bool = False
    holders: int = 0
    users: int = 0
    last_used: int = 0

    @property
    def counts(self) -> bool:
        """Whether it takes up memory, or is about to."""
        return self.loading or self.model is not None

    @property
    def can_leave(self) -> bool:
        """Whether its model may be freed now to make room."""
        return self.model is not None and self.users == 0 and not self.loading


@attrs.define(eq=False)
class _Leaving:
    """A model that has left its seat; its memory counts until it is freed."""

    key: Hashable
    nbytes: int
    model: ResidentModel | None


class ProcessResidency:
    """
    The process's own memory: one copy a key, the least recently used leave when it is full.

    Safe for threads. While one model is being loaded the others can be used, and two threads that
    ask for the same model wait for one load. Models are freed while nothing is locked, so that
    whatever runs then may use the residency, in other threads too.

    Args:
        budget_bytes: What all models together may hold. ``None`` sets no budget: then nothing has
            to leave, and models are freed when they are released.

    Example:
        >>> residency = ProcessResidency(budget_bytes=8 << 30)
        >>> residency.resident_keys
        ()
    """

    def __init__(self, budget_bytes: int | None = None) -> None:
        if budget_bytes is not None:
            require_count(budget_bytes=budget_bytes)
        self._budget_bytes = budget_bytes
        self._changed = threading.Condition(threading.RLock())
        self._seats: dict[Hashable, _Seat] = {}
        self._leaving: list[_Leaving] = []
        self._clock = 0

    @property
    def budget_bytes(self) -> int | None:
        """What all models together may hold."""
        return self._budget_bytes

    @property
    def resident_bytes(self) -> int:
        """What the models that are resident hold together."""
        with self._changed:
            return sum(seat.nbytes for seat in self._seats.values() if seat.model is not None)

    @property
    def resident_keys(self) -> tuple[Hashable, ...]:
        """The keys of the models that are resident, least recently used first."""
        with self._changed:
            return tuple(seat.key for seat in self._by_age() if seat.model is not None)

    def hold(self, key: Hashable, load: Callable[[], ResidentModel], needed_bytes: int, /) -> None:
        """
        Load the model of *key*, unless it is there, and keep it until `release`.

        Raises:
            ModelMemoryError: If it is larger than the budget, or does not fit beside the models
                that are in use.
        """
        with self._changed:
            seat = self._seats.get(key)
            if seat is None:
                seat = self._seats[key] = _Seat(key, load, needed_bytes)
            seat.users += 1
        with self._in_use(seat), self._changed:
            seat.holders += 1

    @contextmanager
    def using(self, key: Hashable, /) -> Iterator[Any]:
        """
        Give the model of *key*; it stays while the ``with`` block runs.

        Raises:
            ContractError: If nobody holds *key*.
            ModelMemoryError: If it had to leave and does not fit any more.
        """
        with self._changed:
            seat = self._held(key)
            seat.users += 1  # from here on it cannot leave, and cannot be released away
        with self._in_use(seat):
            yield seat.model

    def release(self, key: Hashable, /) -> None:
        """
        Take back one `hold`; with the last, the model is freed, once nobody uses it.

        Raises:
            ContractError: If nobody holds *key*.
        """
        with self._changed:
            seat = self._held(key)
            seat.holders -= 1
            leaving = self._leave_if_unwanted(seat)
        self._free(leaving)

    def leave(self, key: Hashable, /) -> bool:
        """
        Free the model of *key*, unless it is in use; it is loaded again when it is used next.

        For a host that wants the memory: who holds the model notices nothing but the time.

        Returns:
            Whether it is gone: also where it was not there.
        """
        with self._changed:
            seat = self._seats.get(key)
            if seat is None or seat.model is None:
                return seat is None or not seat.loading
            if not seat.can_leave:
                return False
            leaving = self._leave(seat)
        self._free(leaving)
        return True

    def _held(self, key: Hashable) -> _Seat:
        seat = self._seats.get(key)
        if seat is None or seat.holders == 0:
            raise ContractError("key", f"got {key!r}, expected the key of a model that is held")
        return seat

    @contextmanager
    def _in_use(self, seat: _Seat) -> Iterator[None]:
        """Load the model of *seat* where needed; at the end of the block, its user is gone."""
        try:
            self._seat_model(seat)
            yield
        finally:
            with self._changed:
                seat.users -= 1
                self._touch(seat)
                leaving = self._leave_if_unwanted(seat)
            self._free(leaving)

    def _seat_model(self, seat: _Seat) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not seat.loading)
            self._touch(seat)
            if seat.model is not None:
                return
            leaving = self._make_room(seat)
            seat.loading = True  # counts from here on
        model: ResidentModel | None = None
        try:
            self._free(leaving)
            self._await_room(seat)
            model = seat.load()  # without the lock: others can be used meanwhile
            self._settle(seat, model)
        except BaseException:
            with self._changed:
                seat.loading, seat.model = False, model
                leaving = self._leave(seat)
                self._changed.notify_all()
            self._free(leaving)
            raise

    def _settle(self, seat: _Seat, model: ResidentModel) -> None:
        """Count what the model really holds, which may be more than was estimated."""
        nbytes = model.nbytes
        with self._changed:
            seat.nbytes = nbytes
            leaving = self._make_room(seat)
        self._free(leaving)
        with self._changed:
            seat.loading, seat.model = False, model
            self._changed.notify_all()

    def _make_room(self, seat: _Seat) -> list[_Leaving]:
        """Have the least recently used leave until *seat* fits; the caller frees what is given."""
        budget = self._budget_bytes
        if budget is None:
            return []
        if seat.nbytes > budget:
            problem = (
                f"it holds {in_gib(seat.nbytes)}, more than the whole budget, {in_gib(budget)}"
            )
            raise ModelMemoryError(_name(seat.key), problem, seat.nbytes, budget)
        others = [other for other in self._by_age() if other is not seat and other.counts]
        staying = sum(other.nbytes for other in others if not other.can_leave)
        if staying + seat.nbytes > budget:
            left = max(budget - staying, 0)
            problem = (
                f"it needs {in_gib(seat.nbytes)}, and models in use leave {in_gib(left)} of the "
                f"budget, {in_gib(budget)}"
            )
            raise ModelMemoryError(_name(seat.key), problem, seat.nbytes, left)
        held = sum(other.nbytes for other in others)
        leaving: list[_Leaving] = []
        for other in others:
            if held + seat.nbytes <= budget:
                break
            if other.can_leave:
                held -= other.nbytes
                leaving += self._leave(other)
        return leaving

    def _await_room(self, seat: _Seat) -> None:
        """Wait until what other threads are freeing is gone: a copy of *seat*, or too much."""
        with self._changed:
            if self._changed.wait_for(lambda: self._has_room(seat), _PATIENCE_S):
                return
            held = sum(copy.nbytes for copy in self._leaving)
        problem = f"models that are still being freed hold {in_gib(held)}"
        left = max((self._budget_bytes or 0) - held, 0)
        raise ModelMemoryError(_name(seat.key), problem, seat.nbytes, left)

    def _has_room(self, seat: _Seat) -> bool:
        if any(copy.key == seat.key for copy in self._leaving):
            return False
        if self._budget_bytes is None or not self._leaving:
            return True
        seated = sum(other.nbytes for other in self._seats.values() if other.counts)
        return seated + sum(copy.nbytes for copy in self._leaving) <= self._budget_bytes

    def _leave_if_unwanted(self, seat: _Seat) -> list[_Leaving]:
        if seat.holders or seat.users:
            return []
        del self._seats[seat.key]
        return self._leave(seat)

    def _leave(self, seat: _Seat) -> list[_Leaving]:
        """Take the model out of its seat, for the caller to free once nothing is locked."""
        if seat.model is None:
            return []
        copy = _Leaving(seat.key, seat.nbytes, seat.model)
        seat.model = None
        self._leaving.append(copy)
        return [copy]

    def _free(self, leaving: Sequence[_Leaving]) -> None:
        """Free all of them, also where one fails. Never while the lock is held."""
        with ExitStack() as stack:
            for copy in reversed(leaving):
                stack.callback(self._free_one, copy)

    def _free_one(self, copy: _Leaving) -> None:
        model, copy.model = copy.model, None
        try:
            if model is not None:
                model.free()
        finally:
            del model  # it may be the last reference: what goes with it runs before the lock
            with self._changed:
                self._leaving.remove(copy)
                self._changed.notify_all()

    def _touch(self, seat: _Seat) -> None:
        self._clock += 1
        seat.last_used = self._clock

    def _by_age(self) -> list[_Seat]:
        return sorted(self._seats.values(), key=lambda seat: seat.last_used)


def _name(key: Hashable) -> str:
    """Name a model by its key; those of local models begin with where it is from."""
    return str(key[0]) if isinstance(key, tuple) and key else str(key)


PROCESS = ProcessResidency()
"""The residency that is used where none is given: no budget, shared by the whole process."""
