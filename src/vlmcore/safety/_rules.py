"""What an action space asks of every step, worked out once for all its chunks."""

from __future__ import annotations

import attrs
import numpy as np
import numpy.typing as npt

from vlmcore._arrays import BoolArray, Float64Array
from vlmcore.contracts._fineness import SLACK_SHARE
from vlmcore.contracts.dimensions import ActionDim
from vlmcore.contracts.embodiment import ActionSpace
from vlmcore.safety._orientations import Orientation
from vlmcore.safety._positions import Positions
from vlmcore.safety._slack import STEP_SLACK, slack_of
from vlmcore.safety.levels import LevelSwitch

__all__ = ["Levels", "Rules", "short_way"]

_Indices = npt.NDArray[np.intp]
_LARGEST = float(np.finfo(np.float64).max)


@attrs.frozen(kw_only=True, eq=False)
class Levels(LevelSwitch):
    """
    The levels of one discrete dimension, and what the gate asks of them.

    Attributes:
        column: Which dimension it is.
        slack: How far from a level a value may be and still be that level.
        step: How far one may jump.
        reach: For each level the first and the last one that may follow it.
        rest: The level 0 of what zero stops at once; ``None`` for a target or an offset.
    """

    column: int
    slack: float
    step: float
    reach: tuple[tuple[int, int], ...] = attrs.field(init=False)
    rest: int | None

    @classmethod
    def of(cls, column: int, dim: ActionDim, step: float) -> Levels:
        """Work out the levels of *dim*, between which *step* may be jumped."""
        values = np.array(dim.levels, np.float64) + 0.0  # -0.0 becomes 0.0
        gap = float(np.min(values[1:] / 2 - values[:-1] / 2)) * 2
        return cls(
            column=column,
            values=values,
            slack=min(STEP_SLACK * float(np.abs(values).max()), SLACK_SHARE * gap),
            step=step,
            rest=int(np.searchsorted(values, 0.0)) if dim.reference.is_change else None,
        )

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        reach = tuple(map(self.reach_of, self.values.tolist()))
        object.__setattr__(self, "reach", reach)  # the class is frozen, and this is made once

    def reach_of(self, number: float) -> tuple[int, int]:
        """
        Find the first and the last level that may follow *number*, which need be none itself.

        If none may, the last is below the first.
        """
        is_change = self.rest is not None
        least = (min(number, 0.0) if is_change else number) - self.step
        most = (max(number, 0.0) if is_change else number) + self.step
        first = np.searchsorted(self.values, least)
        after = np.searchsorted(self.values, most, "right")
        return int(first), int(after) - 1

    def includes(self, values: Float64Array) -> BoolArray:
        """Say which of *values* are levels."""
        near: BoolArray = np.abs(values - self.values[self.nearest(values)]) <= self.slack
        return near


@attrs.frozen(eq=False)
class Rules:
    """
    An action space, ready to be compared with.

    All arrays are made anew and handed to nobody. Those of the space are shared with whoever has
    it, and what takes memory by DLPack, as torch, writes to read-only arrays too.

    Attributes:
        space: The space as it was given, for what is said of it.
        low: The bounds, shape ``[D]``.
        high: The same.
        max_step: The step bounds, shape ``[D]``; infinite where there is none.
        slack: What is added to them in a comparison, shape ``[D]``.
        allowed_step: The sum of the two.
        is_change: Which are changes, rates or torques, shape ``[D]``.
        is_target: Which are targets, shape ``[D]``. What is neither is an offset.
        changes: Indices of changes, rates and torques, discrete ones too.
        free_changes: Indices of those that are neither discrete nor bound in where they lead.
        linear: Indices of targets and offsets that are neither periodic nor discrete nor of a
            rotation nor bound in where they lead.
        periodic: Indices of targets that come round again.
        turn: Their periods.
        levels: The discrete dimensions.
        orientations: The rotations in space.
        positions: The dimensions that are bound in where they lead; ``None`` if none is.
    """

    space: ActionSpace
    low: Float64Array
    high: Float64Array
    max_step: Float64Array
    slack: Float64Array
    allowed_step: Float64Array
    is_change: BoolArray
    is_target: BoolArray
    changes: _Indices
    free_changes: _Indices
    linear: _Indices
    periodic: _Indices
    turn: Float64Array
    levels: tuple[Levels, ...]
    orientations: tuple[Orientation, ...]
    positions: Positions | None

    @classmethod
    def of(cls, space: ActionSpace) -> Rules:
        """Work out the rules of *space*."""
        with np.errstate(all="ignore"):  # what is too small for a slack is forgiven nothing
            return cls._of(space, attrs.evolve(space))

    @classmethod
    def _of(cls, space: ActionSpace, own: ActionSpace) -> Rules:
        """Work out the rules of *space* from a copy that nobody else has."""
        step, period = own.max_step, own.period
        largest = np.maximum(np.abs(own.low), np.abs(own.high))
        scale = np.maximum(largest, np.where(np.isfinite(step), step, 0.0))
        slack = slack_of(scale, step)
        is_periodic = np.isfinite(period)
        is_turned = np.array([dim.rotation is not None for dim in own.dims])
        is_free = ~own.is_discrete & np.isneginf(own.position_low)
        # Half the slack, so that the audit, which rounds otherwise, agrees at the very edge.
        jumps = step + slack / 2
        return cls(
            space=space,
            low=own.low + 0.0,  # -0.0 becomes 0.0: what is clipped to it is the same each time
            high=own.high + 0.0,
            max_step=step,
            slack=slack,
            # The largest bounds are still bounds: what overflows is longer.
            allowed_step=np.where(np.isfinite(step), np.minimum(step + slack, _LARGEST), step),
            is_change=own.is_change,
            is_target=own.is_target,
            changes=np.flatnonzero(own.is_change),
            free_changes=np.flatnonzero(own.is_change & is_free),
            linear=np.flatnonzero(~own.is_change & is_free & ~is_periodic & ~is_turned),
            periodic=np.flatnonzero(is_periodic),
            turn=period[is_periodic],
            levels=tuple(
                Levels.of(i, dim, float(jumps[i]))
                for i, dim in enumerate(own.dims)
                if dim.is_discrete
            ),
            orientations=Orientation.of(own),
            positions=Positions.of(own),
        )

    def settled(self, reference: Float64Array) -> Float64Array:
        """
        Bring a last command into the bounds that it is out of by what float32 cannot help.

        A robot that stands at a bound may say so in float32. What is further out, NaN stands for.

        Args:
            reference: Shape ``[D]``.
        """
        inside = np.minimum(np.maximum(reference, self.low), self.high)
        near: Float64Array = np.where(np.abs(reference - inside) <= self.slack, inside, np.nan)
        return near

    def steps(self, values: Float64Array, before: Float64Array) -> Float64Array:
        """
        Measure how far each value is from the one before it, as its step bound means it.

        For a target or an offset that is the difference, the short way round where there is one.
        For a change it is how much faster it gets: between what was and zero there is no step.

        Args:
            values: Shape ``[T, D]``.
            before: What each of them follows, shape ``[T, D]``.
        """
        steps: Float64Array = values - before
        if self.periodic.size:
            at = self.periodic
            steps[:, at] = short_way(before[:, at], values[:, at], self.turn)
        if self.changes.size:
            now, then = values[:, self.changes], before[:, self.changes]
            kept = np.clip(now, np.minimum(then, 0.0), np.maximum(then, 0.0))
            steps[:, self.changes] = now - kept
        return steps


def short_way(before: Float64Array, after: Float64Array, turn: Float64Array) -> Float64Array:
    """
    Say how far it is from one angle to another the short way round, in ``[-turn / 2, turn / 2)``.

    Whole turns are left out first, which is exact, however many there are.
    """
    difference = np.fmod(after, turn) - np.fmod(before, turn)
    short: Float64Array = np.remainder(difference + turn / 2, turn) - turn / 2
    return short
