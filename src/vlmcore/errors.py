"""
Every error that vlmcore raises on purpose; anything else is a bug of ours, please report it.

::

    VlmcoreError
    ├─ ContractError (ValueError)             a value breaks the contract of its field
    │  ├─ AmbiguousResponseError              an answer of a policy has more than one reading
    │  ├─ DocumentError                       a document has faults, each with its place
    │  └─ LimitExceededError                  a size is over a declared limit
    ├─ EndpointError (ValueError)             an address that may not be dialled
    ├─ EpisodeError (ValueError)              a file of an episode cannot be written or read
    ├─ MediaError (ValueError)                an image or video cannot be read
    │  └─ MediaLimitError                     it is larger than the limits allow
    ├─ MissingDependencyError (ImportError)   an optional package is not installed
    ├─ ModelError                             a model cannot be used
    │  ├─ ModelAccessError                    not found, gated, or the hub is out of reach
    │  ├─ UnsupportedModelError               found, but not of a kind that we can run
    │  ├─ ModelMemoryError (MemoryError)      it does not fit into memory
    │  └─ GenerationError                     it failed while generating
    ├─ PolicyError                            a policy cannot be used
    │  ├─ PolicyUnavailableError (ConnectionError)  it cannot be reached
    │  ├─ PolicyTimeoutError (TimeoutError)   it was reached, and then silent for too long
    │  ├─ PolicyProtocolError                 one side broke the protocol
    │  └─ PolicyRefusedError                  it answered with an error of its own
    └─ UnsafeActionError                      actions are not safe to execute

Arguments are data: each error keeps them as attributes and in ``args``, so errors can be pickled
(they cross process boundaries in data loaders and job engines) and read without parsing text.
"""

from __future__ import annotations

__all__ = [
    "AmbiguousResponseError",
    "ContractError",
    "DocumentError",
    "EndpointError",
    "EpisodeError",
    "GenerationError",
    "LimitExceededError",
    "MediaError",
    "MediaLimitError",
    "MissingDependencyError",
    "ModelAccessError",
    "ModelError",
    "ModelMemoryError",
    "PolicyError",
    "PolicyProtocolError",
    "PolicyRefusedError",
    "PolicyTimeoutError",
    "PolicyUnavailableError",
    "UnsafeActionError",
    "UnsupportedModelError",
    "VlmcoreError",
]


class VlmcoreError(Exception):
    """The base of every error that vlmcore raises on purpose."""


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
        super().__init__(limit, f"got {actual}, limit is {allowed}")
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
    An image or a video cannot be read.

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
    An image or a video is larger than the limits allow; it was refused before decoding.

    Attributes:
        limit: The name of the limit, a field of `vlmcore.limits.ImageLimits`.
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


class ModelError(VlmcoreError):
    """
    A model cannot be used.

    Attributes:
        model: The model as the caller named it.
        problem: What is wrong and what to do.
    """

    def __init__(self, model: str, problem: str) -> None:
        super().__init__(model, problem)
        self.model = model
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.model}: {self.problem}"


class ModelAccessError(ModelError):
    """A model was not found, is gated, or its hub is out of reach."""


class UnsupportedModelError(ModelError):
    """A model was found, but is not of a kind that can be run here."""


class ModelMemoryError(ModelError, MemoryError):
    """
    A model does not fit into the memory that is free.

    Attributes:
        needed_bytes: What it needs, estimated from its weights; ``None`` where unknown.
        available_bytes: What was free when it was asked for; ``None`` where unknown.
    """

    def __init__(
        self,
        model: str,
        problem: str,
        needed_bytes: int | None = None,
        available_bytes: int | None = None,
    ) -> None:
        super().__init__(model, problem)
        self.args = (model, problem, needed_bytes, available_bytes)
        self.needed_bytes = needed_bytes
        self.available_bytes = available_bytes


class GenerationError(ModelError):
    """A model failed while it was generating."""


class PolicyError(VlmcoreError):
    """
    A policy cannot be used.

    Attributes:
        policy: The policy as the caller named it.
        problem: What is wrong and what to do.
    """

    def __init__(self, policy: str, problem: str) -> None:
        super().__init__(policy, problem)
        self.policy = policy
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.policy}: {self.problem}"


class PolicyUnavailableError(PolicyError, ConnectionError):
    """A policy cannot be reached; nothing was asked yet, so trying again is sensible."""

    errno = strerror = None  # OSError takes two arguments for these


class PolicyTimeoutError(PolicyError, TimeoutError):
    """
    A policy was reached, and then silent for too long.

    Attributes:
        wait: What was waited for, as ``"reply"``.
        waited_s: For how long.
    """

    errno = strerror = None

    def __init__(self, policy: str, wait: str, waited_s: float) -> None:
        super().__init__(policy, f"no {wait} within {waited_s:.3g} s")
        self.args = (policy, wait, waited_s)
        self.wait = wait
        self.waited_s = waited_s


class PolicyProtocolError(PolicyError):
    """
    One side broke the protocol.

    Attributes:
        side: Whose fault it is: ``"ours"`` if the caller broke it, ``"theirs"`` if the peer did.
    """

    def __init__(self, policy: str, problem: str, side: str) -> None:
        super().__init__(policy, problem)
        self.args = (policy, problem, side)
        self.side = side


class PolicyRefusedError(PolicyError):
    """A policy answered with an error of its own; the problem is its words, cut."""


class UnsafeActionError(VlmcoreError):
    """
    Actions are not safe to execute, and nothing that was allowed makes them so.

    Attributes:
        report: What was found, a `vlmcore.safety.SafetyReport`.
        reason: Why nothing passed, a value of `vlmcore.safety.RefusalReason`.
        problem: What came and what was expected, where the report does not say it; else empty.
    """

    def __init__(self, report: object, reason: str, problem: str = "") -> None:
        super().__init__(report, reason)
        self.args = (report, reason, problem)
        self.report = report
        self.reason = reason
        self.problem = problem

    def __str__(self) -> str:
        said = f"{self.problem}; " if self.problem else ""
        return f"{self.reason}: {said}{self.report}"
