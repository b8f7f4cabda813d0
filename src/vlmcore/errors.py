"""
Every error that vlmcore raises on purpose; anything else is a bug of ours, please report it.

::

    VlmcoreError
    ├─ ContractError (ValueError)             a value breaks the contract of its field
    │  └─ LimitExceededError                  a size is over a declared limit
    ├─ MediaError (ValueError)                an image or video cannot be read
    │  └─ MediaLimitError                     it is larger than the limits allow
    ├─ MissingDependencyError (ImportError)   an optional package is not installed
    └─ ModelError                             a model cannot be used
       ├─ ModelAccessError                    not found, gated, or the hub is out of reach
       ├─ UnsupportedModelError               found, but not of a kind that we can run
       ├─ ModelMemoryError (MemoryError)      it does not fit into memory
       └─ GenerationError                     it failed while generating

Arguments are data: each error keeps them as attributes and in ``args``, so errors can be pickled
(they cross process boundaries in data loaders and job engines) and read without parsing text.
"""

from __future__ import annotations

__all__ = [
    "ContractError",
    "GenerationError",
    "LimitExceededError",
    "MediaError",
    "MediaLimitError",
    "MissingDependencyError",
    "ModelAccessError",
    "ModelError",
    "ModelMemoryError",
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
