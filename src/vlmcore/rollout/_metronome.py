"""The beat of a control loop."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Metronome"]


class Metronome:
    """
    Waits for one tick after the other.

    Ticks are counted from the first, so that nothing adds up. Two are never less than a period
    apart: a robot moves by so much a step, and is faster where steps come faster. After a tick that
    is late the beat starts anew, and what was missed is not caught up with.

    Args:
        period_s: From one tick to the next.
        clock: A monotonic clock, in seconds.
        sleep: What waits for so many seconds; it may wake early.
    """

    def __init__(
        self, period_s: float, *, clock: Callable[[], float], sleep: Callable[[float], object]
    ) -> None:
        self._period_s = period_s
        self._clock, self._sleep = clock, sleep
        self._started_at_s = clock()
        self._ticks = 0

    def wait(self) -> bool:
        """Wait for the next tick, the first of which is now; say whether it is late."""
        due_s = self._started_at_s + self._ticks * self._period_s
        now_s = self._clock()
        is_late = now_s > due_s and self._ticks > 0
        while now_s < due_s:
            self._sleep(due_s - now_s)
            now_s = self._clock()
        if is_late or now_s - due_s >= self._period_s:  # it may also have been slept through
            is_late, self._started_at_s, self._ticks = True, now_s, 0
        self._ticks += 1
        return is_late
