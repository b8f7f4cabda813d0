"""What was seen in the steps before, for policies that look back."""

from __future__ import annotations

import math
import threading
from collections import deque

from vlmcore.contracts.observation import Observation

__all__ = ["History"]

_A_STEP = 4  # observations that are kept of each step, at most
_NEAR = 0.75  # of a step: a loop is not on time to the millisecond


class History:
    """
    Keeps observations, and finds the one of each step before by its time. Safe for threads.

    Args:
        rate_hz: How many steps a second has.
        most_steps: How far back anybody may look.
    """

    def __init__(self, *, rate_hz: float, most_steps: int) -> None:
        self._step_s = 1.0 / rate_hz
        self._lock = threading.Lock()
        self._seen: deque[Observation] = deque(maxlen=_A_STEP * (most_steps + 1))
        self._steps = most_steps

    @property
    def steps(self) -> int:
        """How far back anybody looks."""
        return self._steps

    def look_back(self, steps: int) -> None:
        """Keep what is seen in so many steps, and no longer."""
        with self._lock:
            self._steps = steps
            if steps == 0:
                self._seen.clear()

    def add(self, observation: Observation) -> None:
        """
        Keep an observation, and let go of those that nobody looks back to any more.

        What was kept of its time or later is forgotten: a simulator counts its time anew in an
        episode, and those of the last one are no past of this one.
        """
        with self._lock:
            if self._steps == 0:
                return
            while self._seen and self._seen[-1].captured_at_s >= observation.captured_at_s:
                self._seen.pop()
            self._seen.append(observation)
            oldest_s = observation.captured_at_s - (self._steps + 1) * self._step_s
            while self._seen[0].captured_at_s < oldest_s:
                self._seen.popleft()

    def before(self, observation: Observation) -> list[Observation]:
        """
        Take what was seen in the steps before *observation*, oldest first, one a step.

        In each step it is what was seen nearest to its time, if that is near: where nothing was,
        the history begins after it, so that no gap is taken for a step.
        """
        with self._lock:
            seen = tuple(self._seen)
        found: list[Observation] = []
        for back in range(1, self._steps + 1):
            at_s = observation.captured_at_s - back * self._step_s
            away_s, near = min(
                ((abs(each.captured_at_s - at_s), i) for i, each in enumerate(seen)),
                default=(math.inf, 0),
            )
            if away_s > _NEAR * self._step_s:
                break
            found.append(seen[near])
        return found[::-1]

    def clear(self) -> None:
        """Forget all of it."""
        with self._lock:
            self._seen.clear()
