"""Noticing that nothing is sent to a robot any more."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from types import TracebackType

from vlmcore._arguments import shown
from vlmcore._arrays import plain_float, require_positive
from vlmcore.errors import ContractError
from vlmcore.rollout._checks import require_sink
from vlmcore.rollout.handoff import ActionSink
from vlmcore.safety.vetted import VettedChunk

__all__ = ["Watchdog"]

_log = logging.getLogger(__name__)


class Watchdog:
    """
    Stands before a sink, and knows how long ago the last command went through.

    It is a sink itself: hand vetted actions to it. The bridge to a controller asks `is_alive` or
    `last_command_age_s` in its own cycle. Where it has none, `start` runs a thread that calls
    *on_silence*; ``with`` starts and stops it. Silence counts from the first command on, since
    nothing moves before; the end of a run is a silence too. Safe for threads.

    It lives in the same process as the loop, and ends with it: what stops a robot whose program is
    gone is its controller.

    Args:
        sink: Where the actions go.
        limit_s: How long nothing may be sent.
        on_silence: Is called once in each silence that is longer, without arguments, by the
            thread or by `check`. What it raises in the thread is logged.
        clock: A monotonic clock, in seconds.

    Raises:
        ContractError: If an argument is not as described.

    Example:
        >>> from vlmcore.contracts.embodiment import ActionDim, ActionSpace
        >>> from vlmcore.rollout.holding import hold_still
        >>> from vlmcore.safety.gate import SafetyGate
        >>> class Arm:
        ...     def accept(self, vetted):
        ...         print("moving to", vetted.values.tolist())
        >>> slide = ActionDim(name="x", unit="m", low=-1.0, high=1.0, max_step=0.1)
        >>> gate = SafetyGate(space=ActionSpace(dims=(slide,), rate_hz=20))
        >>> now_s = 7.0
        >>> dog = Watchdog(Arm(), limit_s=0.5, clock=lambda: now_s)
        >>> dog.accept(hold_still(gate, last_command=[0.2], now_s=now_s))
        moving to [[0.2]]
        >>> now_s = 7.75
        >>> dog.is_alive(), dog.last_command_age_s()
        (False, 0.75)
    """

    def __init__(
        self,
        sink: ActionSink,
        *,
        limit_s: float,
        on_silence: Callable[[], object] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        require_sink(sink)
        limit_s = plain_float(limit_s)
        require_positive(limit_s=limit_s)
        if not (on_silence is None or callable(on_silence)):
            raise ContractError("on_silence", f"got {shown(on_silence)}, expected a function")
        self._sink = sink
        self._limit_s = limit_s
        self._on_silence = on_silence
        self._clock = clock
        self._lock = threading.Lock()  # of the two below
        self._sent_at_s = -math.inf
        self._is_told = True  # of the silence that is now; nothing was sent yet
        self._ends = threading.Event()
        self._thread: threading.Thread | None = None

    def accept(self, vetted: VettedChunk, /) -> None:
        """Hand *vetted* on, and note when that was done; what the sink raises is raised."""
        self._sink.accept(vetted)
        with self._lock:
            self._sent_at_s, self._is_told = self._clock(), False

    def last_command_age_s(self) -> float:
        """Say how long ago the last command went through; infinity if there was none."""
        return self._clock() - self._sent_at_s

    def is_alive(self) -> bool:
        """Say whether a command went through within the limit."""
        return self.last_command_age_s() <= self._limit_s

    def check(self) -> bool:
        """Call *on_silence*, if the silence is too long and was not told of; say `is_alive`."""
        with self._lock:
            is_alive = self.is_alive()
            is_news = not is_alive and not self._is_told
            self._is_told = self._is_told or is_news
        if is_news and self._on_silence is not None:
            self._on_silence()
        return is_alive

    def start(self) -> None:
        """
        Check from a thread, four times within the limit, until `stop`.

        Raises:
            ContractError: If it runs already, or there is nothing to call.
        """
        if self._on_silence is None:
            raise ContractError("on_silence", "got None, expected a function for a thread to call")
        if self._thread is not None:
            raise ContractError("start", "got a second call, expected stop() before it")
        self._ends.clear()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread; a second time does nothing."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        self._ends.set()
        if thread is not threading.current_thread():  # on_silence may stop it
            thread.join()

    def __enter__(self) -> Watchdog:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _watch(self) -> None:
        while not self._ends.wait(self._limit_s / 4):
            self._check_and_log()

    def _check_and_log(self) -> None:
        try:
            self.check()
        except Exception:  # noqa: BLE001 - the next silence is to be noticed all the same
            _log.exception("what a watchdog calls in silence failed")
