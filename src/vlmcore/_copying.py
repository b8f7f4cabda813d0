"""How contracts are pickled and copied."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import attrs

__all__ = ["rebuild", "thawed", "through_constructor"]


def through_constructor(contract: Any) -> tuple[Any, ...]:
    """
    Pickle and copy *contract* by its fields; for use as ``__reduce__``.

    What arrives in another process is built anew: it is checked, and its arrays cannot be written
    to, which NumPy's own pickling would forget.
    """
    fields = attrs.fields(type(contract))
    values = {field.name: thawed(getattr(contract, field.name)) for field in fields if field.init}
    return rebuild, (type(contract), values)


def rebuild(contract: type, fields: dict[str, Any]) -> Any:
    """Build a contract from its fields."""
    return contract(**fields)


def thawed(value: Any) -> Any:
    """Turn read-only mappings into plain dicts, and the tuples in them into lists."""
    if not isinstance(value, MappingProxyType):
        return value
    return {key: _plain(each) for key, each in value.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return value
