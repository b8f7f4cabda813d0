"""Measurements that cannot be made, kept or compared."""

from __future__ import annotations

from vlmcore.errors._base import VlmcoreError

__all__ = [
    "ArtifactError",
    "ArtifactTamperedError",
    "InputMismatchError",
    "LabError",
    "SuiteError",
]


class LabError(VlmcoreError):
    """
    A measurement cannot be made, kept or compared.

    Attributes:
        subject: What it is about, as the path of a file.
        problem: What is wrong with it.
    """

    def __init__(self, subject: str, problem: str) -> None:
        super().__init__(subject, problem)
        self.subject = subject
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.subject}: {self.problem}"


class SuiteError(LabError, ValueError):
    """
    A suite cannot be read; nothing was asked of any model.

    Attributes:
        faults: The path of each fault, as ``"$.cases[3].expected"``, and what is wrong there; empty
            if the file as a whole cannot be read.
    """

    def __init__(
        self, subject: str, problem: str, faults: tuple[tuple[str, str], ...] = ()
    ) -> None:
        super().__init__(subject, problem)
        self.args = (subject, problem, faults)
        self.faults = faults


class InputMismatchError(LabError, ValueError):
    """
    Two runs were not given the same, so that their speeds say nothing about each other.

    Attributes:
        what: What differs, as ``"pixels"``; the subject.
        got: What the run had that was to be compared.
        expected: What the baseline had.
    """

    def __init__(self, what: str, got: str, expected: str) -> None:
        super().__init__(what, f"got {got}, expected that of the baseline, {expected}")
        self.args = (what, got, expected)
        self.what = what
        self.got = got
        self.expected = expected


class ArtifactError(LabError, ValueError):
    """The evidence of a run cannot be written or read."""


class ArtifactTamperedError(ArtifactError):
    """
    The evidence of a run is not what was written.

    Attributes:
        edits: The place of each edit, as ``"$.samples[3]"``, and what is wrong there.
    """

    def __init__(self, subject: str, edits: tuple[tuple[str, str], ...]) -> None:
        super().__init__(subject, "; ".join(f"{place}: {problem}" for place, problem in edits))
        self.args = (subject, edits)
        self.edits = edits
