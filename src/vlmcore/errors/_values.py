"""Values, files and packages that are not as they must be."""

from __future__ import annotations

from vlmcore.errors._base import VlmcoreError

__all__ = [
    "AmbiguousResponseError",
    "ContractError",
    "DocumentError",
    "EndpointError",
    "EpisodeError",
    "LimitExceededError",
    "MediaError",
    "MediaLimitError",
    "MissingDependencyError",
]

_WRITTEN_BITS = 1000  # of whole numbers that are written out


class ContractError(VlmcoreError, ValueError):
    """
    A value breaks the contract of the field it was given to.

    Attributes:
        field: The name of the field or argument, as the caller wrote it.
        problem: What came and what was expected.
    """

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(field, problem)
        self.field = field
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.field}: {self.problem}"


class LimitExceededError(ContractError):
    """
    A size is over a declared limit; nothing of that size was allocated.

    Attributes:
        limit: The name of the limit.
        actual: The size that was asked for.
        allowed: The largest size that the limit allows.
    """

    def __init__(self, limit: str, actual: int, allowed: int) -> None:
        # Python refuses to write out huge whole numbers.
        came = str(actual) if actual.bit_length() < _WRITTEN_BITS else "a huge number"
        super().__init__(limit, f"got {came}, limit is {allowed}")
        self.args = (limit, actual, allowed)
        self.limit = limit
        self.actual = actual
        self.allowed = allowed


class AmbiguousResponseError(ContractError):
    """
    What a policy answered can be read in more than one way; none was chosen.

    Attributes:
        readings: The ways in which it can be read.
    """

    def __init__(self, field: str, readings: tuple[str, ...], remedy: str) -> None:
        super().__init__(field, f"got what may be {' or '.join(readings)}, expected one: {remedy}")
        self.args = (field, readings, remedy)
        self.readings = readings


class DocumentError(ContractError):
    """
    A document has faults; all of them are listed.

    Attributes:
        document: What was read, as ``"robot-embodiment"``.
        faults: The path of each fault, as ``"$.action_min[3]"``, and what is wrong there.
    """

    def __init__(self, document: str, faults: tuple[tuple[str, str], ...]) -> None:
        listed = [f"{path}: {problem}" for path, problem in faults]
        lines = listed if len(listed) == 1 else [f"{len(listed)} faults", *listed]
        super().__init__(document, "\n  ".join(lines))
        self.args = (document, faults)
        self.document = document
        self.faults = faults


class EndpointError(VlmcoreError, ValueError):
    """
    An address may not be dialled, or is none.

    Attributes:
        endpoint: The address as far as it may be shown: scheme, host and port.
        rule: What came and what was expected.
    """

    def __init__(self, endpoint: str, rule: str) -> None:
        super().__init__(endpoint, rule)
        self.endpoint = endpoint
        self.rule = rule

    def __str__(self) -> str:
        return f"{self.endpoint}: {self.rule}"


class EpisodeError(VlmcoreError, ValueError):
    """
    The file of an episode cannot be written or read.

    Attributes:
        path: The path of the file.
        line: Which line of it, from 1; ``None`` if it is no single one.
        problem: What is wrong with it.
    """

    def __init__(self, path: str, line: int | None, problem: str) -> None:
        super().__init__(path, line, problem)
        self.path = path
        self.line = line
        self.problem = problem

    def __str__(self) -> str:
        where = "" if self.line is None else f", line {self.line}"
        return f"{self.path}{where}: {self.problem}"


class MediaError(VlmcoreError, ValueError):
    """
    An image, a video or audio cannot be read.

    Attributes:
        source: What was being read, in words a person recognises (a path, ``"data URL"``, ...).
        problem: What is wrong with it.
    """

    def __init__(self, source: str, problem: str) -> None:
        super().__init__(source, problem)
        self.source = source
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.source}: {self.problem}"


class MediaLimitError(MediaError):
    """
    An image, a video or audio is larger than the limits allow; it was refused before decoding.

    Attributes:
        limit: The name of the limit, a field of `vlmcore.limits.ImageLimits`,
            `vlmcore.limits.VideoLimits` or `vlmcore.limits.MusicLimits`.
        actual: The size that its header declares.
        allowed: The largest size that the limit allows.
    """

    def __init__(self, source: str, limit: str, actual: int, allowed: int) -> None:
        super().__init__(source, f"{limit}: got {actual}, limit is {allowed}")
        self.args = (source, limit, actual, allowed)
        self.limit = limit
        self.actual = actual
        self.allowed = allowed


class MissingDependencyError(VlmcoreError, ImportError):
    """
    An optional package is needed and is not installed.

    Attributes:
        package: The import name of the missing package.
        extra: The extra of vlmcore that brings it.
    """

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(package, extra)
        self.name = package
        self.package = package
        self.extra = extra

    def __str__(self) -> str:
        return (
            f"{self.package!r} is needed here and is not installed: "
            f'pip install "vlmcore[{self.extra}]"'
        )
