"""Targets that are rotations in space, written in several numbers that mean nothing alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import attrs

from vlmcore._arrays import plain_float, require_member, require_name, require_positive
from vlmcore._rotations import RotationForm
from vlmcore.contracts.dimensions import ActionDim
from vlmcore.errors import ContractError
from vlmcore.limits import ContractLimits

__all__ = ["RotationForm", "RotationGroup"]

_LIMITS = ContractLimits()


@attrs.frozen(kw_only=True)
class RotationGroup:
    """
    A target that is a rotation in space: the dimensions that name it, side by side.

    Its step is the angle of the rotation that leads from one to the next, whatever the numbers do;
    the dimensions keep their bounds. Exactly one of *max_step_rad* and *max_rate_rad_s* is given,
    and a step is at most pi, since no two rotations are further apart.

    Attributes:
        name: Unique in its space; what `ActionDim.rotation` says.
        form: How it is written, and so how many dimensions there are.
        max_step_rad: The most that it may turn from one control step to the next, in radians.
        max_rate_rad_s: The same for each second.

    Raises:
        ContractError: If a field is not as described.

    Example:
        >>> RotationGroup(name="wrist", form=RotationForm.ROT6D, max_rate_rad_s=1.5).step_rad(30)
        0.05
    """

    name: str
    form: RotationForm
    max_step_rad: float | None = attrs.field(default=None, converter=plain_float)
    max_rate_rad_s: float | None = attrs.field(default=None, converter=plain_float)

    def __attrs_post_init__(self) -> None:
        require_name("name", self.name, max_characters=_LIMITS.max_name_characters)
        require_member(RotationForm, form=self.form)
        step, rate = self.max_step_rad, self.max_rate_rad_s
        if (step is None) is (rate is None):
            field, count = (
                ("max_step_rad", "neither") if step is None else ("max_rate_rad_s", "both")
            )
            raise ContractError(
                field,
                f"got {count} max_step_rad and max_rate_rad_s for {self.name!r}, expected one",
            )
        if rate is not None:
            require_positive(max_rate_rad_s=rate)
        if step is not None:
            require_positive(max_step_rad=step)
            self._check_step(step, "max_step_rad", f"{step:g}")

    def step_rad(self, rate_hz: float) -> float:
        """
        Say how far it may turn in one step at *rate_hz*, in radians.

        Raises:
            ContractError: If that is more than pi, or too little for float64.
        """
        if self.max_rate_rad_s is None:
            assert self.max_step_rad is not None
            return self.max_step_rad
        step = self.max_rate_rad_s / rate_hz
        return self._check_step(
            step, "max_rate_rad_s", f"{self.max_rate_rad_s:g} at {rate_hz:g} Hz"
        )

    def columns(self, dims: Sequence[ActionDim]) -> slice:
        """
        Find the dimensions of this rotation among *dims*.

        Raises:
            ContractError: If they are not side by side, or not as many as the form has.
        """
        at = [i for i, dim in enumerate(dims) if dim.rotation == self.name]
        if len(at) != self.form.size:
            raise ContractError(
                "rotations",
                f"got {len(at)} dimensions for {self.name!r}, expected {self.form.size}, "
                f"the numbers of {self.form}",
            )
        if any(after != before + 1 for before, after in pairwise(at)):
            raise ContractError(
                "rotations", f"got dimensions {at} for {self.name!r}, expected them side by side"
            )
        return slice(at[0], at[-1] + 1)

    def _check_step(self, step: float, field: str, came: str) -> float:
        if not 0 < step <= math.pi:
            raise ContractError(
                field,
                f"got {came} for {self.name!r}, expected a step above 0 and of at most pi: "
                "no two rotations are further apart",
            )
        return step
