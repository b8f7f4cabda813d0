"""JSON text, read strictly and within limits, and written so that it can be read back exactly."""

from __future__ import annotations

import json
import math
from typing import Any

from vlmcore._arguments import shown
from vlmcore._json_values import JSON_INTEGERS
from vlmcore.errors import ContractError
from vlmcore.limits import DocumentLimits, require_at_most

__all__ = ["read_json", "write_json"]

_DIGITS = 20  # of the largest 64-bit number; Python itself takes thousands, in quadratic time


def read_json(text: Any, *, limits: DocumentLimits | None = None, allow_nan: bool = False) -> Any:
    """
    Read JSON text, and nothing that only looks like it.

    Args:
        text: The text, as ``str`` or as UTF-8 ``bytes``.
        limits: How much is read.
        allow_nan: Whether ``NaN``, ``Infinity`` and ``-Infinity`` are read as numbers, as Python's
            own writer spells them; for a reader that looks for them.

    Returns:
        The value, in Python's plain types. Numbers with a point or an exponent are ``float``.

    Raises:
        ContractError: If it is not JSON: NaN, Infinity, a key that is there twice, a number that
            64 bits cannot hold, anything that the grammar does not know.
        LimitExceededError: If it is larger than *limits* allow.

    Example:
        >>> read_json('{"x": [1, 2.5]}')
        {'x': [1, 2.5]}
    """
    limits = limits or DocumentLimits()
    decoded = _decoded(text, limits)
    _check_nodes(decoded, limits)
    try:
        value = json.loads(
            decoded,
            object_pairs_hook=_object,
            parse_int=_integer,
            parse_float=_float,
            parse_constant=float if allow_nan else _constant,
        )
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise ContractError("JSON", f"got {error.msg} at {where}, expected JSON") from None
    except RecursionError:
        raise _too_deep(limits) from None
    if _depth(value) > limits.max_depth:
        raise _too_deep(limits)
    return value


def write_json(value: Any, *, indent: int | None = 2, limits: DocumentLimits | None = None) -> str:
    """
    Write a value as JSON text; `read_json` gives it back exactly, within the same limits.

    Args:
        value: The value, in Python's plain types.
        indent: By how many spaces; ``None`` for all on one line.
        limits: How much can be read again.

    Raises:
        ContractError: If there is a number in it that JSON does not know, or another object.
        LimitExceededError: If it is larger than *limits* allow.
    """
    limits = limits or DocumentLimits()
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)
    except (TypeError, ValueError) as error:
        raise ContractError("JSON", f"got something that JSON cannot hold: {error}") from None
    _decoded(text, limits)
    _check_nodes(text, limits)
    if _depth(value) > limits.max_depth:
        raise _too_deep(limits)
    return text


def _check_nodes(text: str, limits: DocumentLimits) -> None:
    # Each value but the first has a comma or a bracket before it: an upper bound, since texts may
    # hold them too, that costs nothing. Empty lists take 30 times the memory of their text.
    nodes = 1 + sum(text.count(mark) for mark in ",[{")
    require_at_most("max_nodes", nodes, limits.max_nodes)


def _decoded(text: Any, limits: DocumentLimits) -> str:
    if not isinstance(text, (str, bytes)):
        raise ContractError("JSON", f"got {type(text).__name__}, expected text or UTF-8 bytes")
    require_at_most("max_document_bytes", len(text), limits.max_document_bytes)
    try:
        decoded = text.decode() if isinstance(text, bytes) else text
        if not decoded.isascii():
            size = len(decoded.encode())
            require_at_most("max_document_bytes", size, limits.max_document_bytes)
    except UnicodeError:
        raise ContractError("JSON", "got text that is not UTF-8, expected UTF-8") from None
    return decoded


def _too_deep(limits: DocumentLimits) -> ContractError:
    return ContractError(
        "JSON", f"got values nested more than {limits.max_depth} deep, expected fewer"
    )


def _depth(value: Any) -> int:
    """Count how deep lists and objects are in each other, without recursion."""
    depth, level = 0, [value]
    while level:
        inner = [each for each in level if isinstance(each, (list, tuple, dict))]
        depth += bool(inner)
        level = []
        for each in inner:
            level.extend(each.values() if isinstance(each, dict) else each)
    return depth


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ContractError("JSON", f"got the key {shown(twice)} twice, expected each key once")
    return found


def _integer(digits: str) -> int:
    if len(digits) > _DIGITS or int(digits) not in JSON_INTEGERS:
        raise ContractError("JSON", f"got {digits:.24}, expected numbers of 64 bits")
    return int(digits)


def _float(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ContractError("JSON", f"got {digits:.24}, expected numbers that float64 can hold")
    return number


def _constant(name: str) -> float:
    raise ContractError("JSON", f"got {name}, expected numbers: JSON does not know it")
