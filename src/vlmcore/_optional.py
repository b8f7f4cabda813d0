"""The one way in which an optional package is asked for: at a door, by the extra that brings it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from vlmcore.errors import MissingDependencyError

__all__ = ["optional_dependency"]


@contextmanager
def optional_dependency(extra: str, *roots: str) -> Iterator[None]:
    """
    Turn the absence of one of *roots* into an error that says how to install it.

    Only a `ModuleNotFoundError` for one of *roots* itself is translated. A package that is
    installed but broken keeps its own traceback: telling its owner to install it would be wrong.

    Args:
        extra: The extra of vlmcore that brings the packages.
        roots: Import names of the packages that the body imports.

    Raises:
        MissingDependencyError: If one of *roots* is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name not in roots:
            raise
        raise MissingDependencyError(error.name, extra) from error
