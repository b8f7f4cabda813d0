"""Jobs over many images that cannot begin, or cannot go on."""

from __future__ import annotations

from vlmcore.errors._base import VlmcoreError

__all__ = [
    "JobError",
    "JobJournalError",
    "JobRunningError",
    "JobSinkError",
    "JobSourceError",
]


class JobError(VlmcoreError):
    """
    A job over many images cannot begin, or cannot go on; what it has done is kept.

    Attributes:
        where: The folder, file or record that it is about, as the caller named it.
        problem: What is wrong with it, and what to do.
    """

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(where, problem)
        self.where = where
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.where}: {self.problem}"


class JobSourceError(JobError, ValueError):
    """What names the images of a job cannot be read."""


class JobSinkError(JobError):
    """What a job makes cannot be written where it is to go."""


class JobJournalError(JobError):
    """The journal of a job cannot be read or written, or is of another job."""


class JobRunningError(JobError):
    """Another job is at work in the same place."""
