"""Floating-point numbers of one width from those of another."""

from __future__ import annotations

import numpy as np

from vlmcore.errors import ContractError
from vlmcore.weights.dtypes import DType

__all__ = ["convert", "converted", "float_target"]

_FLOATS = (DType.FLOAT16, DType.BFLOAT16, DType.FLOAT32, DType.FLOAT64)


def float_target(dtype: DType | str | None) -> DType | None:
    """
    Take the type that floating-point numbers are converted to.

    Raises:
        ContractError: If it is none of float16, bfloat16, float32, float64.
    """
    if dtype is None:
        return None
    found = DType.of(dtype)
    if found not in _FLOATS:
        names = ", ".join(each.value for each in _FLOATS)
        raise ContractError("dtype", f"got {found.value}, expected one of {names}")
    return found


def converted(dtype: DType, target: DType | None) -> DType:
    """Say what *dtype* becomes: float8, whole numbers and the rest stay as they are."""
    return dtype if target is None or dtype not in _FLOATS else target


def convert(data: memoryview, name: str, dtype: DType, target: DType) -> memoryview:
    """
    Convert the numbers in *data*, to the nearest, to even where two are as near.

    Raises:
        ContractError: If one of them is beyond what *target* can hold.
    """
    if dtype is target:
        return data
    numbers = np.frombuffer(data, dtype.numpy)
    with np.errstate(over="ignore", invalid="ignore"):
        result = numbers.astype(target.numpy)
    if np.any(np.isfinite(numbers) & ~np.isfinite(result)):
        raise ContractError(
            f"{name!a:.90}", f"got numbers beyond {target.value}, expected them to fit"
        )
    return result.view(np.uint8).data
