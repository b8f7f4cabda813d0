"""How a captioning job is told of while it runs, and when it has ended."""

from __future__ import annotations

import time
from typing import Any

from vlmcore._closing import Closing
from vlmcore.cli._status_line import StatusLine
from vlmcore.cli._terminal import Terminal
from vlmcore.jobs.reports import JobProgress, JobReport, Result

__all__ = ["CaptionProgress", "duration", "report_document", "summary"]

_LOG_EVERY_S = 60.0  # where nobody watches, and lines are kept
_UNITS = (("d", 24 * 3600), ("h", 3600), ("min", 60), ("s", 1))
_WORDS = {
    Result.CAPTIONED: "captioned",
    Result.REUSED: "with the pixels of another",
    Result.DONE: "done before",
    Result.KEPT: "had a caption",
    Result.DUPLICATE: "like another",
    Result.FAILED: "failed",
}


def duration(seconds: float) -> str:
    """
    Write a time as a person reads it.

    Example:
        >>> duration(7.2), duration(3_900)
        ('7 s', '1 h 5 min')
    """
    left, parts = round(seconds), []
    for unit, size in _UNITS:
        if left >= size:
            parts.append(f"{left // size} {unit}")
            left %= size
    return " ".join(parts[:2]) or "0 s"


class CaptionProgress(Closing):
    """
    A line that is written over where a person watches, and a line a minute in a log.

    Args:
        terminal: Where the lines of a log go.
        quiet: Whether nothing is told.
    """

    def __init__(self, terminal: Terminal, *, quiet: bool) -> None:
        self._terminal = terminal
        self._line = StatusLine(quiet=quiet)
        self._logged_at_s = time.monotonic()

    def __call__(self, progress: JobProgress) -> None:
        """Tell how far the job is."""
        if self._line.is_shown:
            self._line.write(_told(progress))
        elif progress.elapsed_s and time.monotonic() - self._logged_at_s >= _LOG_EVERY_S:
            self._logged_at_s = time.monotonic()
            self._terminal.note(_told(progress))

    def close(self) -> None:
        """Take the line away."""
        self._line.close()


def _told(progress: JobProgress) -> str:
    text = f"captioning: {progress.done:,}"
    if progress.total is not None:
        text += f" of {progress.total:,}, {100 * progress.done // max(progress.total, 1)}%"
    if progress.rate_hz is not None:
        text += f", {progress.rate_hz:.1f}/s"
    if progress.remaining_s is not None:
        text += f", {duration(progress.remaining_s)} left"
    if failed := progress.counts[Result.FAILED]:
        text += f", {failed:,} failed"
    return f"{text}; waiting for {progress.waiting_for}" if progress.waiting_for else text


def summary(report: JobReport) -> str:
    """Say in one line how a job ended."""
    counts = [
        f"{report.counts[result]:,} {words}"
        for result, words in _WORDS.items()
        if report.counts[result]
    ]
    images = "1 image" if report.total == 1 else f"{report.total:,} images"
    text = f"{images} in {duration(report.elapsed_s)}: {', '.join(counts) or 'nothing to do'}"
    if report.cut:
        text += f"; {report.cut:,} cut at --max-new-tokens"
    return text


def report_document(report: JobReport) -> dict[str, Any]:
    """Say how a job ended as a JSON object."""
    return {
        "images": report.total,
        **{result.value: report.counts[result] for result in Result},
        "cut": report.cut,
        "elapsed_s": report.elapsed_s,
        "was_stopped": report.was_stopped,
        "model": report.model,
        "failures": [{"key": each.key, "problem": each.problem} for each in report.failures],
    }
