"""
What the gate promises of rotations, written a second time and another way: with matrices.

Nothing here is imported from ``vlmcore.safety`` or ``vlmcore._rotations``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from vlmcore.contracts.embodiment import ActionSpace
from vlmcore.contracts.rotations import RotationForm


def matrix(numbers: Any, form: RotationForm) -> Any:
    """Make the matrix of a rotation; None if the numbers are none."""
    if not np.isfinite(numbers).all():
        return None
    match form:
        case RotationForm.ROT6D:
            return _of_columns(numbers[:3], numbers[3:])
        case RotationForm.AXIS_ANGLE:
            angle = math.hypot(*numbers)
            if angle > 2 * math.pi + 1e-5:
                return None
            return _about(numbers / angle, angle) if angle > 0 else np.eye(3)
        case RotationForm.QUATERNION_WXYZ:
            numbers = numbers[[1, 2, 3, 0]]
    norm = math.hypot(*numbers)
    if abs(norm - 1) > 0.01 + 1e-6:
        return None
    sine, cosine = math.hypot(*numbers[:3]), float(numbers[3])
    return _about(numbers[:3] / sine, 2 * math.atan2(sine, cosine)) if sine > 0 else np.eye(3)


def _about(axis: Any, angle: float) -> Any:
    """Rodrigues' formula."""
    x, y, z = axis
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    # 1 - cos(angle), without losing what is small
    return np.eye(3) + math.sin(angle) * cross + 2 * math.sin(angle / 2) ** 2 * cross @ cross


def _of_columns(first: Any, second: Any) -> Any:
    lengths = math.hypot(*first), math.hypot(*second)
    if min(lengths) < 0.01 - 1e-6:
        return None
    x, y = first / lengths[0], second / lengths[1]
    z = np.cross(x, y)
    if np.linalg.norm(z) < 0.01 - 1e-6:
        return None
    z /= np.linalg.norm(z)
    return np.stack((x, np.cross(z, x), z), axis=1)


def angle(a: Any, b: Any) -> float:
    """Measure the angle between two matrices, by its sine and its cosine."""
    apart = a.T @ b
    skew = (apart - apart.T)[[2, 0, 1], [1, 2, 0]] / 2
    return math.atan2(float(np.linalg.norm(skew)), (float(np.trace(apart)) - 1) / 2)


def faults(space: ActionSpace, values: Any, start: Any, *, slacks: int = 1) -> list[str]:
    """Find what is wrong with the rotations of vetted values."""
    found = []
    for group in space.rotations:
        columns = [i for i, dim in enumerate(space.dims) if dim.rotation == group.name]
        step = group.max_step_rad or (group.max_rate_rad_s or 0) / space.rate_hz
        longest = 2 * math.pi if group.form is RotationForm.AXIS_ANGLE else 1.0
        slack = min(max(longest, step) / 2**21, step / 100) + 2e-14
        before = matrix(start[columns], group.form)
        for i, row in enumerate(values):
            now = matrix(row[columns], group.form)
            if now is None:
                found.append(f"{i} {group.name}: {row[columns]} is no rotation")
                continue
            if (row[columns] < space.low[columns]).any() or (
                row[columns] > space.high[columns]
            ).any():
                found.append(f"{i} {group.name}: {row[columns]} out of bounds")
            if angle(before, now) > step + slacks * slack:
                found.append(f"{i} {group.name}: turned by {angle(before, now)}, may by {step}")
            before = now
    return found
