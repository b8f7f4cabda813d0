"""How far a job is, and how it ended."""

from __future__ import annotations

import enum
import time
from collections import Counter, deque
from collections.abc import Callable

import attrs

__all__ = ["Failure", "JobProgress", "JobReport", "Result", "Tally"]

_EVERY_S = 0.1
_RATE_OVER_S = 30.0


class Result(enum.Enum):
    """What one run did about an image."""

    CAPTIONED = "captioned"  # it was asked about, and has a caption
    REUSED = "reused"  # it has the answers of an image with the same pixels
    DONE = "done"  # it had been captioned by an earlier run
    KEPT = "kept"  # it has a caption file that is not the job's
    DUPLICATE = "duplicate"  # it is like another image, and was skipped for that
    FAILED = "failed"  # now, or earlier and not tried again


@attrs.frozen(kw_only=True)
class Failure:
    """
    An image without a caption.

    Attributes:
        key: The image.
        problem: Why.
    """

    key: str
    problem: str


@attrs.frozen(kw_only=True)
class JobProgress:
    """
    How far a run is.

    Attributes:
        total: How many images there are; ``None`` where that is known only at the end.
        counts: What was done about images, for each result.
        elapsed_s: Since the run began, in seconds.
        rate_hz: Images a second of late that a model was asked about; ``None`` at first.
        waiting_for: What the run waits for, as a server that is away; empty if it works.
    """

    total: int | None
    counts: dict[Result, int]
    elapsed_s: float
    rate_hz: float | None
    waiting_for: str = ""

    @property
    def done(self) -> int:
        """How many images are done with, in whatever way."""
        return sum(self.counts.values())

    @property
    def remaining_s(self) -> float | None:
        """How long the rest takes at the rate of late; ``None`` where that is not known."""
        if self.total is None or not self.rate_hz:
            return None
        return max(0, self.total - self.done) / self.rate_hz


@attrs.frozen(kw_only=True)
class JobReport:
    """
    How a run ended.

    Attributes:
        counts: What was done about images, for each result.
        cut: How many of the captions of this run were cut at ``max_new_tokens``.
        failures: The first failures of the run, in the order in which they came.
        elapsed_s: How long it took, in seconds.
        was_stopped: Whether it was stopped before its end; the next run goes on.
        model: The model, as the journal keeps it.
    """

    counts: dict[Result, int]
    cut: int
    failures: tuple[Failure, ...]
    elapsed_s: float
    was_stopped: bool
    model: str

    @property
    def failed(self) -> int:
        """How many images have no caption because something went wrong."""
        return self.counts[Result.FAILED]

    @property
    def total(self) -> int:
        """How many images were looked at."""
        return sum(self.counts.values())


class Tally:
    """
    Counts what a run does, and tells of it now and then.

    Args:
        tell: Is told how far the run is, ten times a second at most.
        most_failures: How many failures are kept.
        clock: The time, in seconds.
    """

    def __init__(
        self,
        tell: Callable[[JobProgress], None],
        *,
        most_failures: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.total: int | None = None
        self.waiting_for = ""
        self.cut = 0
        self._tell = tell
        self._clock = clock
        self._began_s = self._told_s = clock()
        self._counts: Counter[Result] = Counter()
        self._failures: deque[Failure] = deque()
        self._most_failures = most_failures
        self._lately: deque[float] = deque(maxlen=1000)

    def count(self, key: str, result: Result, problem: str = "") -> None:
        """Count an image."""
        self._counts[result] += 1
        if result is Result.CAPTIONED:
            self._lately.append(self._clock())
        if result is Result.FAILED and len(self._failures) < self._most_failures:
            self._failures.append(Failure(key=key, problem=problem))

    def show(self, *, at_once: bool = False) -> None:
        """Tell how far the run is, unless that was told just now."""
        now_s = self._clock()
        if not at_once and now_s - self._told_s < _EVERY_S:
            return
        self._told_s = now_s
        self._tell(
            JobProgress(
                total=self.total,
                counts=self._all_counts(),
                elapsed_s=now_s - self._began_s,
                rate_hz=self._rate_hz(now_s),
                waiting_for=self.waiting_for,
            )
        )

    def report(self, *, was_stopped: bool, model: str) -> JobReport:
        """Say how the run ended."""
        return JobReport(
            counts=self._all_counts(),
            cut=self.cut,
            failures=tuple(self._failures),
            elapsed_s=self._clock() - self._began_s,
            was_stopped=was_stopped,
            model=model,
        )

    def _all_counts(self) -> dict[Result, int]:
        return {result: self._counts[result] for result in Result}

    def _rate_hz(self, now_s: float) -> float | None:
        while self._lately and self._lately[0] < now_s - _RATE_OVER_S:
            self._lately.popleft()
        if len(self._lately) < 2:
            return None
        return (len(self._lately) - 1) / max(now_s - self._lately[0], 1e-9)
