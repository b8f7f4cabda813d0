"""Weights that cannot be read, written, checked or given to a model."""

from __future__ import annotations

from vlmcore.errors._base import VlmcoreError

__all__ = [
    "CorruptWeightsError",
    "WeightChecksumError",
    "WeightMismatchError",
    "WeightsBudgetError",
    "WeightsCancelledError",
    "WeightsChangedError",
    "WeightsError",
    "WeightsLimitError",
]


class WeightsError(VlmcoreError):
    """
    A file of weights cannot be read or written.

    Attributes:
        path: The path of the file, or of the folder, as the caller named it.
        problem: What is wrong with it.
    """

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(path, problem)
        self.path = path
        self.problem = problem

    def __str__(self) -> str:
        return f"{_on_one_line(self.path)}: {self.problem}"


class CorruptWeightsError(WeightsError, ValueError):
    """What a file says about its weights cannot be true; none of them was read."""


class WeightChecksumError(CorruptWeightsError):
    """
    Weights are not those that the manifest was written for.

    Attributes:
        tensors: The names of the tensors that differ; empty where it is none of them, but what
            lies between them.
    """

    def __init__(self, path: str, tensors: tuple[str, ...]) -> None:
        which = ", ".join(f"{name!a:.80}" for name in tensors[:5]) or "bytes outside of tensors"
        more = f" and {len(tensors) - 5} more" if len(tensors) > 5 else ""
        super().__init__(path, f"got other bytes than the manifest's in {which}{more}")
        self.args = (path, tensors)
        self.tensors = tensors


class WeightsChangedError(WeightsError):
    """A file shrank, grew or was written to after it was opened."""


class WeightsLimitError(WeightsError, ValueError):
    """
    A file is larger than the limits allow; it was refused before memory was spent on it.

    Attributes:
        limit: The name of the limit, a field of `vlmcore.limits.WeightLimits`.
        actual: The size that the file has or declares.
        allowed: The largest size that the limit allows.
    """

    def __init__(self, path: str, limit: str, actual: int, allowed: int) -> None:
        super().__init__(path, f"{limit}: got {actual}, limit is {allowed}")
        self.args = (path, limit, actual, allowed)
        self.limit = limit
        self.actual = actual
        self.allowed = allowed


class WeightsCancelledError(WeightsError):
    """
    The caller stopped a load.

    Attributes:
        done_bytes: The bytes that were loaded by then; they are let go of.
        total_bytes: Those that were asked for.
    """

    def __init__(self, path: str, done_bytes: int, total_bytes: int) -> None:
        super().__init__(path, f"cancelled after {done_bytes} of {total_bytes} bytes")
        self.args = (path, done_bytes, total_bytes)
        self.done_bytes = done_bytes
        self.total_bytes = total_bytes


class WeightMismatchError(WeightsError):
    """
    Weights are not those of the model; nothing was assigned.

    Attributes:
        missing: Names that the model has and the file does not.
        unused: Names that the file has and the model does not.
        mismatched: Names that both have, and how they differ, as ``("head.weight", "got shape
            [2, 3], expected [3, 2]")``.
    """

    def __init__(
        self,
        path: str,
        missing: tuple[str, ...] = (),
        unused: tuple[str, ...] = (),
        mismatched: tuple[tuple[str, str], ...] = (),
    ) -> None:
        parts = [
            *_listed("missing", missing),
            *_listed("not of the model", unused),
            *_listed("different", tuple(f"{name}: {how}" for name, how in mismatched)),
        ]
        super().__init__(path, "; ".join(parts))
        self.args = (path, missing, unused, mismatched)
        self.missing = missing
        self.unused = unused
        self.mismatched = mismatched


class WeightsBudgetError(WeightsError, MemoryError):
    """
    Weights need more memory than they may take; nothing was allocated.

    Attributes:
        needed_bytes: What they need.
        available_bytes: What they may take.
    """

    def __init__(self, path: str, problem: str, needed_bytes: int, available_bytes: int) -> None:
        super().__init__(path, problem)
        self.args = (path, problem, needed_bytes, available_bytes)
        self.needed_bytes = needed_bytes
        self.available_bytes = available_bytes


def _on_one_line(path: str) -> str:
    """Name a path that somebody else may have chosen, without what controls a terminal."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in path) or "''"


def _listed(what: str, names: tuple[str, ...]) -> list[str]:
    if not names:
        return []
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return [f"{len(names)} {what}: {', '.join(f'{name!a:.120}' for name in names[:5])}{more}"]
