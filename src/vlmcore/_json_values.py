"""JSON values that nobody can change."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from vlmcore._arguments import shown
from vlmcore.errors import ContractError
from vlmcore.limits import DocumentLimits, require_at_most

__all__ = ["JSON_INTEGERS", "frozen_object"]

_LIMITS = DocumentLimits()
_AROUND = 2  # how deep the documents are that such an object is written in: read back, it fits
# What 64 bits hold, signed or not. Ask it for plain numbers: for one of a class of its own, as an
# IntEnum, a range is searched from end to end.
JSON_INTEGERS = range(-(1 << 63), 1 << 64)


def frozen_object(value: Any, *, field: str) -> Mapping[str, Any]:
    """
    Copy a JSON object so that it cannot be changed: mappings are read-only and lists are tuples.

    Raises:
        ContractError: If there is something in it that JSON does not know: NaN, infinity, keys
            other than text, text that cannot be encoded, an array, any other object.
        LimitExceededError: If it is deeper or larger than `vlmcore.limits.DocumentLimits` allows.
    """
    if not isinstance(value, Mapping):
        raise ContractError(field, f"got {type(value).__name__}, expected an object")
    frozen: Mapping[str, Any] = _Freezer().freeze(value, field, _AROUND)
    return frozen


class _Freezer:
    """Copies one object; what contains itself ends at the limit of depth or of size."""

    def __init__(self) -> None:
        self.nodes = 0

    def freeze(self, value: Any, path: str, depth: int) -> Any:
        require_at_most("max_depth", depth, _LIMITS.max_depth)
        self.nodes += 1
        require_at_most("max_nodes", self.nodes, _LIMITS.max_nodes)
        if isinstance(value, Mapping):
            return MappingProxyType(
                {
                    _text(key, path): self.freeze(each, f"{path}.{key}", depth + 1)
                    for key, each in value.items()
                }
            )
        if isinstance(value, (list, tuple)):
            return tuple(
                self.freeze(each, f"{path}[{i}]", depth + 1) for i, each in enumerate(value)
            )
        return _scalar(value, path)


def _scalar(value: Any, path: str) -> Any:
    match value:
        case None | bool():
            return value
        case str():
            return _text(value, path)
        case int() if int(value) in JSON_INTEGERS:
            return int(value)
        case float() if math.isfinite(value):
            return float(value)
        case _:
            raise ContractError(
                path, f"got {type(value).__name__} {shown(value)}, expected a JSON value"
            )


def _text(value: Any, path: str) -> str:
    if not isinstance(value, str):
        raise ContractError(path, f"got the key {shown(value)}, expected text")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ContractError(path, "got a lone surrogate, expected characters") from None
    return str(value)
