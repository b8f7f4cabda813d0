"""Arguments that are text, a switch, a path, or an object of one class; and how one is shown."""

from __future__ import annotations

import os
from typing import Any

from vlmcore.errors import ContractError

__all__ = ["require_characters", "require_kind", "require_path", "require_switch", "shown"]


def require_characters(field: str, text: str) -> None:
    """
    Require text that can be written to a file: half of a pair of surrogates is no character.

    Raises:
        ContractError: If it has such a half.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ContractError(field, "got a lone surrogate, expected characters") from None


def require_kind(field: str, value: Any, kind: type) -> None:
    """
    Require an argument of one class. What came is not shown: it may be a token.

    Raises:
        ContractError: If it is of another.
    """
    if not isinstance(value, kind):
        raise ContractError(field, f"got {type(value).__name__}, expected {kind.__name__}")


def require_path(field: str, path: str | os.PathLike[str]) -> str:
    """
    Return how a path is written. What came instead of one is not shown.

    Raises:
        ContractError: If it is no path, or one of bytes.
    """
    text = os.fspath(path) if isinstance(path, (str, os.PathLike)) else path
    if not isinstance(text, str):
        raise ContractError(field, f"got {type(path).__name__}, expected a path")
    return text


def require_switch(**switches: bool) -> None:
    """
    Require True or False: ``"no"`` is true, too, and must not open what was to stay shut.

    Raises:
        ContractError: If a value is neither.
    """
    for field, value in switches.items():
        if not isinstance(value, bool):
            raise ContractError(field, f"got {shown(value)}, expected True or False")


def shown(value: object, most_characters: int = 80) -> str:
    """
    Show a value in an error, shortly and on one line, whatever it is.

    Python refuses to write out huge whole numbers, also inside of others.
    """
    try:
        text = repr(value)
    except ValueError:
        return f"a huge {type(value).__name__}"
    if "\n" in text:  # as arrays are written
        text = " ".join(text.split())
    return text[:most_characters]
