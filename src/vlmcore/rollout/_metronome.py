"""The beat of a control loop."""

from __future__ import annotations

import math
from collections.abc import Callable

__all__ = ["Metronome"]


class Metronome:
    """
    Waits for one tick after the other, and keeps what is sent in them apart.

    Ticks are counted from the first, so that nothing adds up. After a tick that is late the beat
    starts anew, and what was missed is not caught up with.

    Within its tick a command is sent sooner or later. Two of them are never less than a period
    apart: a robot moves by so much a step, and is faster where steps come faster.

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
        self._may_send_at_s = -math.inf

    def wait(self) -> bool:
        """Wait for the next tick, the first of which is now; say whether it is late."""
        due_s = self._started_at_s + self._ticks * self._period_s
        is_late = self._clock() > due_s and self._ticks > 0
        if is_late:
            due_s = self._may_send_at_s
        now_s = self._sleep_until(due_s)
        if is_late or now_s - due_s >= self._period_s:  # it may also have been slept through
            is_late, self._started_at_s, self._ticks = True, now_s, 0
        self._ticks += 1
        return is_late

    def wait_to_send(self) -> None:
        """Wait until a period has passed since this returned last."""
        self._may_send_at_s = self._sleep_until(self._may_send_at_s) + self._period_s

    def _sleep_until(self, due_s: float) -> float:
        """Sleep until then, and say what time it is."""
        now_s = self._clock()
        while now_s < due_s:
            self._sleep(due_s - now_s)
            now_s = self._clock()
        return now_s
