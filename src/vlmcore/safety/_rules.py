"""What an action space asks of every step, worked out once for all its chunks."""

from __future__ import annotations

import hashlib
import json

import attrs
import numpy as np
import numpy.typing as npt

from vlmcore._arrays import BoolArray, Float64Array
from vlmcore.contracts.dimensions import ActionDim
from vlmcore.contracts.embodiment import ActionSpace
from vlmcore.safety._orientations import Orientation
from vlmcore.safety._positions import Positions
from vlmcore.safety._slack import STEP_SLACK, STEP_SLACK_SHARE, slack_of
from vlmcore.safety.levels import LevelSwitch

__all__ = ["Levels", "Rules", "short_way", "space_digest"]

_Indices = npt.NDArray[np.intp]


@attrs.frozen(kw_only=True, eq=False)
class Levels(LevelSwitch):
    """
    The levels of one discrete dimension, and what the gate asks of them.

    Attributes:
        column: Which dimension it is.
        slack: How far from a level a value may be and still be that level.
        reach: For each level the first and the last one that may follow it.
        rest: The level 0 of a change; ``None`` for a target.
    """

    column: int
    slack: float
    reach: tuple[tuple[int, int], ...]
    rest: int | None

    @classmethod
    def of(cls, column: int, dim: ActionDim, step: float) -> Levels:
        """Work out the levels of *dim*, between which *step* may be jumped."""
        values = np.array(dim.levels, np.float64)
        is_change = dim.reference.is_change
        reach = []
        for level in values.tolist():
            least = (min(level, 0.0) if is_change else level) - step
            most = (max(level, 0.0) if is_change else level) + step
            first, after = np.searchsorted(values, least), np.searchsorted(values, most, "right")
            reach.append((int(first), int(after) - 1))
        gap = float(np.min(values[1:] / 2 - values[:-1] / 2)) * 2
        return cls(
            column=column,
            values=values,
            slack=min(STEP_SLACK * float(np.abs(values).max()), STEP_SLACK_SHARE * gap),
            reach=tuple(reach),
            rest=int(np.searchsorted(values, 0.0)) if is_change else None,
        )

    def includes(self, values: Float64Array) -> BoolArray:
        """Say which of *values* are levels."""
        near: BoolArray = np.abs(values - self.values[self.nearest(values)]) <= self.slack
        return near


@attrs.frozen(eq=False)
class Rules:
    """
    An action space, ready to be compared with.

    Attributes:
        space: The space.
        low: The bounds, shape ``[D]``.
        high: The same.
        max_step: The step bounds, shape ``[D]``; infinite where there is none.
        slack: What is added to them in a comparison, shape ``[D]``.
        allowed_step: The sum of the two.
        changes: Indices of changes and rates, discrete ones too.
        free_changes: Indices of those that are neither discrete nor bound in where they lead.
        linear: Indices of targets that are neither periodic nor discrete nor of a rotation.
        periodic: Indices of targets that come round again.
        turn: Their periods.
        levels: The discrete dimensions.
        orientations: The rotations in space.
        positions: The changes and rates that are bound in where they lead; ``None`` if none is.
    """

    space: ActionSpace
    low: Float64Array
    high: Float64Array
    max_step: Float64Array
    slack: Float64Array
    allowed_step: Float64Array
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
        step, period = space.max_step, space.period
        largest = np.maximum(np.abs(space.low), np.abs(space.high))
        scale = np.maximum(largest, np.where(np.isfinite(step), step, 0.0))
        slack = slack_of(scale, step)
        is_periodic = np.isfinite(period)
        is_turned = np.array([dim.rotation is not None for dim in space.dims])
        # Half the slack, so that the audit, which rounds otherwise, agrees at the very edge.
        jumps = step + slack / 2
        return cls(
            space=space,
            low=space.low,
            high=space.high,
            max_step=step,
            slack=slack,
            allowed_step=step + slack,
            changes=np.flatnonzero(space.is_change),
            free_changes=np.flatnonzero(
                space.is_change & ~space.is_discrete & np.isneginf(space.position_low)
            ),
            linear=np.flatnonzero(~(space.is_change | space.is_discrete | is_periodic | is_turned)),
            periodic=np.flatnonzero(is_periodic),
            turn=period[is_periodic],
            levels=tuple(
                Levels.of(i, dim, float(jumps[i]))
                for i, dim in enumerate(space.dims)
                if dim.is_discrete
            ),
            orientations=Orientation.of(space),
            positions=Positions.of(space),
        )

    def steps(self, values: Float64Array, before: Float64Array) -> Float64Array:
        """
        Measure how far each value is from the one before it, as its step bound means it.

        For a target that is the difference, the short way round where there is one. For a change
        it is how much faster it gets: between what was and zero there is no step.

        Args:
            values: Shape ``[T, D]``.
            before: What each of them follows, shape ``[T, D]``.
        """
        steps: Float64Array = values - before
        if self.periodic.size:
            columns = self.periodic
            steps[:, columns] = short_way(steps[:, columns], self.turn)
        if self.changes.size:
            now, then = values[:, self.changes], before[:, self.changes]
            kept = np.clip(now, np.minimum(then, 0.0), np.maximum(then, 0.0))
            steps[:, self.changes] = now - kept
        return steps


def short_way(difference: Float64Array, turn: Float64Array) -> Float64Array:
    """Take a difference of angles the short way round, in ``[-turn / 2, turn / 2)``."""
    short: Float64Array = np.remainder(difference + turn / 2, turn) - turn / 2
    return short


def space_digest(space: ActionSpace) -> str:
    """Digest all that *space* says, SHA-256: two spaces that differ in anything differ here."""
    said = attrs.asdict(space, filter=lambda field, _: field.init)
    text = json.dumps(said, sort_keys=True, default=lambda member: member.value)
    return hashlib.sha256(text.encode()).hexdigest()
