"""Small spaces and rows of rotations in space, for tests of the gate and of what mixes chunks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from safety_cases import chunk
from vlmcore._rotations import from_quaternions
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.embodiment import ActionDim, ActionSpace
from vlmcore.contracts.rotations import RotationForm, RotationGroup

XYZW, AXIS_ANGLE = RotationForm.QUATERNION_XYZW, RotationForm.AXIS_ANGLE
NAMES = ("r0", "r1", "r2", "r3", "r4", "r5")


def wrist(
    form: RotationForm = XYZW,
    *others: ActionDim,
    max_step_rad: float = 0.1,
    low: float | None = None,
    high: float | None = None,
) -> ActionSpace:
    """Make a space of a rotation with wide bounds, and of other dimensions after it."""
    most = 2 * math.pi if form is AXIS_ANGLE else 1.01
    low, high = -most if low is None else low, most if high is None else high
    dims = [ActionDim(name=n, low=low, high=high, rotation="wrist") for n in NAMES[: form.size]]
    group = RotationGroup(name="wrist", form=form, max_step_rad=max_step_rad)
    return ActionSpace(dims=(*dims, *others), rate_hz=20, rotations=(group,))


def turn(angle: float, form: RotationForm = XYZW, axis: int = 2) -> Any:
    """Write a rotation about an axis."""
    quaternion = np.array([0.0, 0.0, 0.0, math.cos(angle / 2)])
    quaternion[axis] = math.sin(angle / 2)
    return from_quaternions(quaternion, form)


def turning(*rows: Any) -> ActionChunk:
    """Make a chunk of rotations."""
    return chunk([list(map(float, row)) for row in rows], *NAMES[: len(rows[0])])
