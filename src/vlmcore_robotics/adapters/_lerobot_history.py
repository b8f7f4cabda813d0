"""Which of the observations that were shown stand for the steps that a policy looks back on."""

from __future__ import annotations

from typing import Generic, TypeVar

__all__ = ["History"]

_Shown = TypeVar("_Shown")


class History(Generic[_Shown]):
    """
    Keeps what was shown, by its time.

    A policy that looks back was trained on observations that are one control step apart. What was
    shown half a step or more beside the time of a step does not stand for it: a policy that is
    asked once a chunk would take the change of a whole chunk for that of one step. Where nothing
    was shown at a step, the step after it is repeated, as LeRobot does at the start of an episode.

    Args:
        count: How many steps the policy looks at, that of now included.
        step_s: How long a step is, in seconds.
    """

    def __init__(self, *, count: int, step_s: float) -> None:
        self._count = count
        self._step_s = step_s
        self._shown: list[tuple[float, _Shown]] = []  # oldest first

    def add(self, shown: _Shown, *, at_s: float) -> None:
        """Keep what was shown at *at_s*; what was kept of that time or later is forgotten."""
        oldest_s = at_s - (self._count - 0.5) * self._step_s
        self._shown = [each for each in self._shown if oldest_s < each[0] < at_s]
        self._shown.append((at_s, shown))

    def window(self) -> list[_Shown]:
        """Say what stands for each step up to now, oldest first."""
        now_s, newest = self._shown[-1]
        steps = [newest]
        for back in range(1, self._count):
            wanted_s = now_s - back * self._step_s
            off_s, nearest = min(
                ((abs(at_s - wanted_s), i) for i, (at_s, _) in enumerate(self._shown)),
            )
            steps.append(self._shown[nearest][1] if off_s < self._step_s / 2 else steps[-1])
        return steps[::-1]

    def clear(self) -> None:
        """Forget all of it."""
        self._shown.clear()
