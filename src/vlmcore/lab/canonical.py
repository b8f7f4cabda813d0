"""
JSON in the one spelling that RFC 8785 gives each value, so that its bytes can be digested.

Keys are in order, numbers are spelled as ECMAScript spells them, and there is no space: whoever
writes the same values writes the same bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from vlmcore._json_values import JSON_INTEGERS
from vlmcore.errors import ContractError

__all__ = ["EXACT", "canonical_bytes", "digest_of"]

#: The largest whole number that RFC 8785 is sure of; larger ones must be those of float64.
EXACT = 0x1F_FFFF_FFFF_FFFF


def canonical_bytes(value: Any) -> bytes:
    """
    Write a value as canonical JSON.

    Args:
        value: The value, in Python's plain types.

    Returns:
        UTF-8, without a newline at the end.

    Raises:
        ContractError: If JSON or RFC 8785 does not know something in it: NaN, infinity, a whole
            number that float64 cannot hold, text that cannot be encoded, keys other than text, any
            other object; or if it is nested too deep.
        MissingDependencyError: If rfc8785 is not installed.

    Source:
        RFC 8785, JSON Canonicalization Scheme.

    Example:
        >>> canonical_bytes({"b": 1.0, "a": [1e21, True]}).decode()
        '{"a":[1e+21,true],"b":1}'
    """
    from vlmcore.lab import _rfc8785  # noqa: PLC0415 - the door

    try:
        try:
            return _rfc8785.dumps(value)
        except _rfc8785.BeyondExactError:  # 1e16 is written without an exponent, and read as whole
            return _rfc8785.dumps(_with_doubles(value, _rfc8785.dumps))
    except RecursionError:
        raise ContractError("JSON", "got values nested too deep, expected fewer levels") from None
    except ValueError as error:
        raise ContractError("JSON", f"got what has no canonical form: {error}") from None


def digest_of(value: Any) -> str:
    """
    Return the SHA-256 of a value in canonical JSON, in hexadecimals.

    Raises:
        ContractError: If it has no canonical form.
        MissingDependencyError: If rfc8785 is not installed.

    Example:
        >>> digest_of({})[:12]
        '44136fa355b3'
    """
    return hashlib.sha256(canonical_bytes(value)).hexdigest()


def _with_doubles(value: Any, write: Callable[[Any], bytes]) -> Any:
    """Turn large whole numbers into the floats that they are, or spell; others stay, and fail."""
    if isinstance(value, dict):
        return {key: _with_doubles(each, write) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_with_doubles(each, write) for each in value]
    if type(value) is int and abs(value) > EXACT and value in JSON_INTEGERS:
        number = float(value)
        return number if number == value or write(number) == b"%d" % value else value
    return value
