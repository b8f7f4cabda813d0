"""One dimension of an action: what its numbers mean, and what bounds them."""

from __future__ import annotations

import enum
import math
from itertools import pairwise
from typing import Any

import attrs
import numpy as np

from vlmcore._arguments import shown
from vlmcore._arrays import (
    as_tuple,
    plain_float,
    require_finite,
    require_member,
    require_name,
    require_positive,
)
from vlmcore.errors import ContractError
from vlmcore.limits import ContractLimits

__all__ = ["ActionDim", "Reference"]

_LIMITS = ContractLimits()


class Reference(enum.Enum):
    """What a number in an action refers to."""

    ABSOLUTE = "absolute"  # a target, in the unit of the dimension
    DELTA = "delta"  # a change, made once at each control step
    CHUNK_RELATIVE = "chunk_relative"  # an offset from where the robot is as the chunk begins
    VELOCITY = "velocity"  # a rate, in units a second
    TORQUE = "torque"  # an effort: a torque or a force

    @property
    def is_target(self) -> bool:
        """Whether it is a place to go to, so that zero is one too; of all others zero is none."""
        return self is Reference.ABSOLUTE

    @property
    def is_change(self) -> bool:
        """Whether zero stops it at once, as a change, a rate or a torque."""
        match self:
            case Reference.ABSOLUTE | Reference.CHUNK_RELATIVE:
                return False
            case Reference.DELTA | Reference.VELOCITY | Reference.TORQUE:
                return True

    @property
    def leads_somewhere(self) -> bool:
        """Whether it tells, with a position that was measured, where what it moves will be."""
        match self:
            case Reference.DELTA | Reference.VELOCITY | Reference.CHUNK_RELATIVE:
                return True
            case Reference.ABSOLUTE | Reference.TORQUE:
                return False


def _plain_floats(value: Any) -> Any:
    if isinstance(value, (list, tuple, np.ndarray)):
        value = as_tuple(value)
    return tuple(map(plain_float, value)) if isinstance(value, tuple) else value


@attrs.frozen(kw_only=True)
class ActionDim:
    """
    One dimension of an action: what its numbers mean, and what bounds them.

    ``low < high``, both finite. Exactly one of *max_step* and *max_rate* is given; only a dimension
    with *levels* may do without, and one of a *rotation* does. The range of all that is no target
    holds 0, since standing still must be possible, and so do its levels. A joint with end stops is
    not periodic, however far it turns: *period* is for a target that comes round again, and
    ``high - low`` is one turn.

    A change, a rate or an offset may say where what it moves may be: *position_low* and
    *position_high*, both or neither. `vlmcore.safety.gate.SafetyGate.vet` is then told where it is,
    and adds up. A torque leads nowhere that can be told from it.

    An offset is counted from where the robot is as its chunk begins, so the first step of a chunk
    follows 0, whatever was sent before it. A torque of 0 lets go: what nothing else holds up falls.

    Attributes:
        name: Unique in its space.
        unit: As ``"rad"`` or ``"m"``; empty where there is none.
        reference: A target, a change for each step, an offset, a rate, or a torque.
        low: The smallest value that may be commanded.
        high: The largest.
        max_step: The most that the command may change from one control step to the next. Of a
            change, a rate or a torque it bounds how much larger it gets: it may become smaller, or
            zero, at once.
        max_rate: The same for each second; `ActionSpace` turns it into a step by its rate.
        period: One full turn, for a rotation without end stops; ``None`` for everything else.
        levels: The only values there are, ascending, as ``(0.0, 1.0)`` for a gripper that is open
            or closed; ``None`` if every value in the range is one.
        position_low: The smallest position that a change, a rate or an offset may lead to, in the
            unit of what it adds up to: that of a change, or of a rate times one second. An angle
            is a plain number here, which counts its turns.
        position_high: The largest.
        rotation: The name of the `RotationGroup` of its space that it is one number of; only a
            target that has bounds and nothing else can be.

    Raises:
        ContractError: If a field is not as described.

    Example:
        >>> ActionDim(name="wrist", unit="rad", low=-2.0, high=2.0, max_rate=1.5).is_discrete
        False
    """

    name: str
    unit: str = ""
    reference: Reference = Reference.ABSOLUTE
    low: float = attrs.field(converter=plain_float)
    high: float = attrs.field(converter=plain_float)
    max_step: float | None = attrs.field(default=None, converter=plain_float)
    max_rate: float | None = attrs.field(default=None, converter=plain_float)
    period: float | None = attrs.field(default=None, converter=plain_float)
    levels: tuple[float, ...] | None = attrs.field(default=None, converter=_plain_floats)
    position_low: float | None = attrs.field(default=None, converter=plain_float)
    position_high: float | None = attrs.field(default=None, converter=plain_float)
    rotation: str | None = None

    def __attrs_post_init__(self) -> None:
        require_name("name", self.name, max_characters=_LIMITS.max_name_characters)
        longest = _LIMITS.max_name_characters
        require_name("unit", self.unit, max_characters=longest, may_be_empty=True)
        require_member(Reference, reference=self.reference)
        self._check_range()
        if self.rotation is None:
            self._check_steps()
        else:
            self._check_rotation(self.rotation)
        if self.levels is not None:
            self._check_levels(self.levels)
        if self.period is not None:
            self._check_period(self.period)
        if self.position_low is not None or self.position_high is not None:
            self._check_positions(self.position_low, self.position_high)

    @property
    def is_discrete(self) -> bool:
        """Whether there are only some values, with nothing between them."""
        return self.levels is not None

    def _range(self) -> str:
        unit = f" {self.unit}" if self.unit else ""
        return f"[{self.low:g}, {self.high:g}]{unit} for {self.name!r}"

    def _check_range(self) -> None:
        require_finite(low=self.low, high=self.high)
        if not self.low < self.high:
            raise ContractError("low", f"got {self._range()}, expected low below high")
        if not self.reference.is_target and not self.low <= 0 <= self.high:
            raise ContractError(
                "low",
                f"got {self._range()}, expected a range with 0 in it: "
                "standing still must be possible",
            )

    def _check_steps(self) -> None:
        for field, value in (("max_step", self.max_step), ("max_rate", self.max_rate)):
            if value is not None:
                require_positive(**{field: value})
        if self.max_step is not None and self.max_rate is not None:
            raise ContractError(
                "max_rate", f"got both max_step and max_rate for {self.name!r}, expected one"
            )
        if self.max_step is None and self.max_rate is None and self.levels is None:
            raise ContractError(
                "max_step",
                f"got neither max_step nor max_rate for {self.name!r}, expected one of them: "
                "only a dimension with levels may do without",
            )

    def _check_rotation(self, rotation: str) -> None:
        require_name("rotation", rotation, max_characters=_LIMITS.max_name_characters)
        if not self.reference.is_target:
            raise ContractError(
                "rotation",
                f"got {rotation!r} with {self.reference} for {self.name!r}, expected none: "
                "only a target is a rotation",
            )
        for field in ("max_step", "max_rate", "period", "levels"):
            value = getattr(self, field)
            if value is not None:
                raise ContractError(
                    field,
                    f"got {shown(value)} for {self.name!r} of rotation {rotation!r}, expected "
                    "None: the numbers of a rotation are bounded together",
                )

    def _check_levels(self, levels: Any) -> None:
        if not isinstance(levels, tuple) or not 2 <= len(levels) <= _LIMITS.max_levels:
            raise ContractError(
                "levels", f"got {shown(levels)}, expected 2 to {_LIMITS.max_levels} numbers"
            )
        for i, level in enumerate(levels):
            require_finite(**{f"levels[{i}]": level})
        if any(later <= earlier for earlier, later in pairwise(levels)):
            raise ContractError("levels", f"got {levels}, expected each above the one before")
        if levels[0] < self.low or levels[-1] > self.high:
            raise ContractError("levels", f"got {levels}, expected them in {self._range()}")
        if not self.reference.is_target and 0 not in levels:
            raise ContractError(
                "levels", f"got {levels}, expected 0 among them: standing still must be possible"
            )

    def _check_period(self, period: float) -> None:
        require_positive(period=period)
        if not self.reference.is_target or self.levels is not None:
            what = "levels" if self.levels is not None else str(self.reference)
            raise ContractError(
                "period",
                f"got {period:g} with {what} for {self.name!r}, expected none: "
                "only a target that can take every angle comes round again",
            )
        width = self.high - self.low
        if not abs(width - period) <= 4 * math.ulp(max(abs(self.low), abs(self.high), period)):
            raise ContractError(
                "period",
                f"got {period!r} and the range {self._range()}, expected high - low to be one "
                "period: a joint with end stops is not periodic",
            )

    def _check_positions(self, low: float | None, high: float | None) -> None:
        if low is None or high is None:
            missing = "position_low" if low is None else "position_high"
            raise ContractError(missing, f"got None for {self.name!r}, expected both or neither")
        require_finite(position_low=low, position_high=high)
        if not self.reference.leads_somewhere or self.levels is not None:
            what = "levels" if self.levels is not None else str(self.reference)
            raise ContractError(
                "position_low",
                f"got {low:g} with {what} for {self.name!r}, expected none: only changes, rates "
                "and offsets that can take every value add up to a position",
            )
        if not low < high:
            raise ContractError(
                "position_low",
                f"got [{low:g}, {high:g}] for {self.name!r}, expected low below high",
            )
