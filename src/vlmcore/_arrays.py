"""Canonical arrays and the plain checks that contracts share."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from vlmcore.errors import ContractError

__all__ = [
    "UInt8Array",
    "readonly_frames",
    "readonly_image",
    "require_count",
    "require_finite_between",
    "require_positive",
    "require_text",
]

UInt8Array: TypeAlias = npt.NDArray[np.uint8]


def readonly_image(value: Any, *, field: str) -> UInt8Array:
    """
    Check an image of shape ``[H, W, 3]``, uint8 RGB, and return a read-only view of it.

    The pixels are not copied: a frame can be large, and the view cannot be written through.

    Raises:
        ContractError: If the value is not such an array.
    """
    return _readonly_rgb(value, field=field, axes="[H, W, 3]", rank=3)


def readonly_frames(value: Any, *, field: str) -> UInt8Array:
    """
    Check frames of shape ``[T, H, W, 3]``, uint8 RGB, and return a read-only view of them.

    Raises:
        ContractError: If the value is not such an array.
    """
    return _readonly_rgb(value, field=field, axes="[T, H, W, 3]", rank=4)


def _readonly_rgb(value: Any, *, field: str, axes: str, rank: int) -> UInt8Array:
    expected = f"expected a uint8 RGB array of shape {axes}; vlmcore.load_image() makes one"
    if not isinstance(value, np.ndarray):
        raise ContractError(field, f"got {type(value).__name__}, {expected}")
    if value.dtype != np.uint8 or value.ndim != rank or value.shape[-1] != 3 or value.size == 0:
        raise ContractError(field, f"got {value.dtype} of shape {list(value.shape)}, {expected}")
    view = value.view()
    view.flags.writeable = False
    return view


def require_text(**texts: str) -> None:
    """
    Require non-blank strings.

    Raises:
        ContractError: If a value is not a string, or is blank.
    """
    for field, text in texts.items():
        if not isinstance(text, str):
            raise ContractError(field, f"got {type(text).__name__}, expected text")
        if not text.strip():
            raise ContractError(field, "got blank text, expected at least one character")


def require_count(**counts: int) -> None:
    """
    Require whole numbers of at least 1.

    Raises:
        ContractError: If a value is not an integer, or is below 1.
    """
    for field, count in counts.items():
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise ContractError(field, f"got {count!r}, expected a whole number of at least 1")


def require_positive(**numbers: float) -> None:
    """
    Require finite numbers above zero.

    Raises:
        ContractError: If a value is not a finite number, or is not above zero.
    """
    for field, number in numbers.items():
        if not _is_finite_number(number) or number <= 0:
            raise ContractError(field, f"got {number!r}, expected a finite number above 0")


def require_finite_between(low: float, high: float, **numbers: float) -> None:
    """
    Require finite numbers within ``[low, high]``.

    Raises:
        ContractError: If a value is not a finite number, or is outside the range.
    """
    for field, number in numbers.items():
        if not _is_finite_number(number) or not low <= number <= high:
            raise ContractError(field, f"got {number!r}, expected a number from {low} to {high}")


def _is_finite_number(number: object) -> bool:
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        return False
    return math.isfinite(number)
