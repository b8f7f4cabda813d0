"""Rounding to float32 so that what kept the limits in float64 keeps them still."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from vlmcore._arrays import Float64Array

__all__ = ["round_inward", "round_sums"]


def round_inward(
    values: Float64Array, low: Float64Array, high: Float64Array
) -> npt.NDArray[np.float32]:
    """
    Round to the nearest float32, or to the next one where that is out of bounds.

    Args:
        values: Shape ``[T, D]``. What overflows is brought back: NumPy's warnings about it are the
            caller's to silence.
        low: The bounds, shape ``[D]``.
        high: The same.
    """
    up, down = np.float32(np.inf), np.float32(-np.inf)
    rounded = values.astype(np.float32)
    exact = rounded.astype(np.float64)
    rounded = np.where(exact > high, np.nextafter(rounded, down), rounded)
    return np.where(exact < low, np.nextafter(rounded, up), rounded)


def round_sums(
    values: Float64Array, low: Float64Array, high: Float64Array
) -> npt.NDArray[np.float32]:
    """
    Round changes so that their roundings do not add up: over 4,096 steps they are no trifle.

    What a step is off is made good by those that follow, each by one unit in its last place at the
    most: nothing changes its sign, and zero stays zero.

    Args:
        values: Shape ``[T, P]``.
        low: The bounds, shape ``[P]``.
        high: The same.
    """
    owed = np.zeros(values.shape[1])
    rounded = np.empty(values.shape, np.float32)
    for row, out in zip(values, rounded, strict=True):
        most = np.abs(row) * 2.0**-23
        out[:] = round_inward(row + np.clip(owed, -most, most), low, high)
        owed += row - out
    return rounded
