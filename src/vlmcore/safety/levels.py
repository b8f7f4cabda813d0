"""The levels of a discrete dimension, and when one of them is left for another."""

from __future__ import annotations

import attrs
import numpy as np
import numpy.typing as npt

from vlmcore._arrays import Float64Array

__all__ = ["LevelSwitch"]

_STAY_SHARE = 0.6  # of the way to the next level, before the present one is left: no chatter


@attrs.frozen(kw_only=True, eq=False)
class LevelSwitch:
    """
    A switch between levels that noise does not make chatter.

    A level is left when a number is beyond 60 % of the way to the next.

    Attributes:
        values: The levels, as in ``ActionDim.levels``, ascending, two or more, shape ``[L]``.
        middles: Where the nearest level changes, shape ``[L - 1]``.
        rising: Above which the next level is taken when coming from below, shape ``[L - 1]``.
        falling: Below which the level under it is taken when coming from above.

    Example:
        >>> gripper = LevelSwitch(values=np.array([0.0, 1.0]))
        >>> numbers = np.array([0.55, 0.65, 0.45, 0.35])
        >>> gripper.nearest(numbers).tolist()
        [1, 1, 0, 0]
        >>> gripper.switched(numbers, start=0).tolist()
        [0, 1, 0, 0]
        >>> gripper.switched(numbers, start=1).tolist()
        [1, 1, 1, 0]
    """

    values: Float64Array
    middles: Float64Array = attrs.field(init=False, repr=False)
    rising: Float64Array = attrs.field(init=False, repr=False)
    falling: Float64Array = attrs.field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        under, over = self.values[:-1], self.values[1:]
        keep = object.__setattr__  # the class is frozen, and these are made once
        # Between neighbours in float64 there is nothing, and rounding must not take a level away.
        below, above = np.nextafter(over, -np.inf), np.nextafter(under, np.inf)
        keep(self, "middles", np.minimum(under / 2 + over / 2, below))
        rising = (1 - _STAY_SHARE) * under + _STAY_SHARE * over
        falling = _STAY_SHARE * under + (1 - _STAY_SHARE) * over
        keep(self, "rising", np.minimum(rising, below))
        keep(self, "falling", np.maximum(falling, above))

    def nearest(self, numbers: Float64Array) -> npt.NDArray[np.intp]:
        """Find the index of the level that is nearest to each of *numbers*."""
        return np.searchsorted(self.middles, numbers)

    def stays(self, numbers: Float64Array) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Give the lowest and the highest level that is not left at each of *numbers*."""
        lowest = np.searchsorted(self.rising, numbers, "left")
        return lowest, np.searchsorted(self.falling, numbers, "right")

    def switched(self, numbers: Float64Array, *, start: int) -> npt.NDArray[np.intp]:
        """Find the level that each of *numbers* leads to from level *start*, by its index."""
        lowest, highest = self.stays(numbers)
        return np.minimum(np.maximum(start, lowest), highest)
