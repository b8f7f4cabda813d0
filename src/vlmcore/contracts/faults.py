"""Collects the faults of a document, so that a person mends them all at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

from vlmcore.errors import ContractError, DocumentError
from vlmcore.limits import DocumentLimits

__all__ = ["Faults"]

_Made = TypeVar("_Made")
_FIELD = re.compile(r"(\w*)(.*)", re.DOTALL)


class Faults:
    """
    The faults of one document, each with its path.

    Args:
        document: What is read, as ``"robot-embodiment"``.

    Example:
        >>> faults = Faults("robot")
        >>> with faults.at("$", rate_hz="$.control_hz"):
        ...     raise ContractError("rate_hz", "got 0, expected more")
        >>> faults.add("$.name", "is missing")
        >>> faults.raise_any()
        Traceback (most recent call last):
        ...
        vlmcore.errors.DocumentError: robot: 2 faults
          $.control_hz: got 0, expected more
          $.name: is missing
    """

    def __init__(self, document: str) -> None:
        self._document = document
        self._found: list[tuple[str, str]] = []

    def __bool__(self) -> bool:
        return bool(self._found)

    def add(self, path: str, problem: str) -> None:
        """Note one fault."""
        self._found.append((path, problem))

    @contextmanager
    def at(self, path: str, **fields: str) -> Iterator[None]:
        """
        Note what breaks a contract in the block, and go on after it.

        Args:
            path: Where the value stands that is made in the block.
            fields: Where its fields come from, where that is another place.
        """
        try:
            yield
        except ContractError as error:
            self._note(error, path, fields)

    def finish(self, make: Callable[[], _Made], path: str = "$", **fields: str) -> _Made:
        """
        Make the value, if nothing was found before and nothing is found now.

        Args:
            make: Makes it.
            path: Where the value stands.
            fields: Where its fields come from, where that is another place.

        Raises:
            DocumentError: If anything was found.
        """
        self.raise_any()
        try:
            return make()
        except ContractError as error:
            self._note(error, path, fields)
            raise self._error() from None

    def _note(self, error: ContractError, path: str, fields: Mapping[str, str]) -> None:
        field = _FIELD.match(error.field)
        name, rest = field.groups() if field else ("", "")
        self.add(fields[name] + rest if name in fields else path, error.problem)

    def raise_any(self) -> None:
        """
        Raise what was found.

        Raises:
            DocumentError: If anything was.
        """
        if self._found:
            raise self._error()

    def _error(self) -> DocumentError:
        return DocumentError(self._document, tuple(self._found[: DocumentLimits().max_faults]))
