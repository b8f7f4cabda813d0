"""How fine a bound may be for the numbers that are held against it."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

from vlmcore._rotations import RotationForm
from vlmcore.contracts.dimensions import ActionDim, Reference
from vlmcore.errors import ContractError

if TYPE_CHECKING:
    from vlmcore.contracts.rotations import RotationGroup

__all__ = [
    "SLACK_SHARE",
    "require_fine_positions",
    "require_fine_step",
    "require_fine_turn",
    "require_reachable_level",
]

# What a comparison may forgive is at most this share of the bound, ...
SLACK_SHARE = 0.01
# ... and the few float64 operations that a remedy is made of round by this share of the numbers.
_FLOAT64_SLACK = 16 * 2.0**-52


def require_fine_step(dim: ActionDim, step: float) -> None:
    """
    Require that float64 tells steps of *step* apart anywhere within the range of *dim*.

    Raises:
        ContractError: If it does not.
    """
    field = "max_step" if dim.max_rate is None else "max_rate"
    scale = max(abs(dim.low), abs(dim.high), step if math.isfinite(step) else 0.0)
    _require_fine(field, step, scale, f"a step for {dim.name!r}")


def require_reachable_level(dim: ActionDim, step: float) -> None:
    """
    Require that a step of *step* leads from some level of *dim* to another.

    Of a change, a rate or a torque it must be from zero, where all come to: slower is always
    allowed.

    Raises:
        ContractError: If it does not.
    """
    if dim.levels is None:
        return
    if dim.reference.is_change:
        shortest = min(abs(level) for level in dim.levels if level)
    else:
        shortest = min(after - before for before, after in pairwise(dim.levels))
    if shortest > step * (1 + SLACK_SHARE):
        raise ContractError(
            "max_step" if dim.max_rate is None else "max_rate",
            f"got {step:g} a step for {dim.name!r}, expected at least {shortest:g}, or none: no "
            "other level could ever be reached",
        )


def require_fine_positions(dim: ActionDim, rate_hz: float) -> None:
    """
    Require that float64 tells apart where *dim* may lead.

    Raises:
        ContractError: If it does not.
    """
    low, high = dim.position_low, dim.position_high
    if low is None or high is None:
        return
    per_unit = rate_hz if dim.reference is Reference.VELOCITY else 1.0
    scale = max(abs(low), abs(high), max(abs(dim.low), abs(dim.high)) / per_unit)
    _require_fine("position_low", high - low, scale, f"as the range of positions of {dim.name!r}")


def require_fine_turn(group: RotationGroup, rate_hz: float) -> None:
    """
    Require that float64 tells turns apart that are as small as one step of *group*.

    Raises:
        ContractError: If it does not.
    """
    field = "max_rate_rad_s" if group.max_step_rad is None else "max_step_rad"
    scale = 2 * math.pi if group.form is RotationForm.AXIS_ANGLE else 1.0
    _require_fine(field, group.step_rad(rate_hz), scale, f"rad a step for {group.name!r}")


def _require_fine(field: str, bound: float, scale: float, what: str) -> None:
    rounding = _FLOAT64_SLACK * scale
    if rounding > SLACK_SHARE * bound:
        raise ContractError(
            field,
            f"got {bound:g} {what}, expected at least {rounding / SLACK_SHARE:g}: less is lost in "
            f"the rounding of numbers as large as {scale:g}",
        )
