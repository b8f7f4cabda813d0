"""Fields of what a server says: of the kind that is expected, or as if they were not there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["items", "number", "part", "text"]

_SHOWN = 200  # characters of a name or an id that are kept
_BITS = 53  # of a number that may be a count


def part(fields: Any, name: str) -> Mapping[str, Any]:
    """Take an object."""
    value = fields.get(name) if isinstance(fields, dict) else None
    return value if isinstance(value, dict) else {}


def items(fields: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """Take a list of objects; what else is in it is left out."""
    value = fields.get(name)
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def text(fields: Mapping[str, Any], name: str, *, is_name: bool = False) -> str:
    """Take text."""
    value = fields.get(name)
    if not isinstance(value, str):
        return ""
    # A name with half a character in it could not be written anywhere.
    return value[:_SHOWN].encode(errors="replace").decode() if is_name else value


def number(fields: Mapping[str, Any], name: str) -> int | None:
    """Take a count."""
    value = fields.get(name)
    return value if type(value) is int and value >= 0 and value.bit_length() <= _BITS else None
