"""Where changes, rates and offsets lead, from a position that was measured."""

from __future__ import annotations

import math

import attrs
import numpy as np
import numpy.typing as npt

from vlmcore._arrays import BoolArray, Float64Array
from vlmcore.contracts.embodiment import ActionSpace, Reference
from vlmcore.safety._slack import slack_of

__all__ = ["Positions", "walk_offset_within", "walk_within"]

_A_LITTLE_LESS = 1 - 2.0**-51  # more than the three roundings between a room and its end


@attrs.frozen(eq=False)
class Positions:
    """
    The dimensions of a space that say where what they move may be, P of them.

    Nothing leads out, or further out; from outside a change leads inwards, and not out on the other
    side. So zero is always allowed. Positions are forgiven what float32 cannot help, in the manner
    of steps: ``4 * 2**-23`` of the largest number that goes into them, at most a hundredth of the
    range. What is forgiven is not forgiven again: from there, nothing leads further out.

    An offset leads to where it was measured plus itself, and moves by what it differs from the one
    before it.

    Attributes:
        columns: Their indices, shape ``[P]``.
        is_offset: Which are offsets, shape ``[P]``; all others add up.
        low: The smallest positions, shape ``[P]``.
        high: The largest.
        slack: What is added to both in a comparison, shape ``[P]``.
        per_unit: How many steps of 1 make a distance of 1, shape ``[P]``: 1 for a change, the rate
            of control for a rate.
    """

    columns: npt.NDArray[np.intp]
    is_offset: BoolArray
    low: Float64Array
    high: Float64Array
    slack: Float64Array
    per_unit: Float64Array

    @classmethod
    def of(cls, space: ActionSpace) -> Positions | None:
        """Work out the positions of *space*; ``None`` if nothing is said of any."""
        columns = np.flatnonzero(np.isfinite(space.position_low))
        if not columns.size:
            return None
        low, high = space.position_low[columns], space.position_high[columns]
        references = [space.dims[i].reference for i in columns.tolist()]
        is_rate = [reference is Reference.VELOCITY for reference in references]
        is_offset = [reference is Reference.CHUNK_RELATIVE for reference in references]
        per_unit = np.where(is_rate, space.rate_hz, 1.0)
        longest = np.maximum(np.abs(space.low[columns]), np.abs(space.high[columns])) / per_unit
        scale = np.maximum(np.maximum(np.abs(low), np.abs(high)), longest)
        with np.errstate(over="ignore"):  # a range that overflows bounds no slack
            slack = slack_of(scale, high - low)
        return cls(
            columns=columns,
            is_offset=np.array(is_offset, np.bool_),
            low=low,
            high=high,
            slack=slack,
            per_unit=per_unit,
        )

    def follow(self, values: Float64Array, start: Float64Array) -> Float64Array:
        """
        Add up.

        Args:
            values: Finite actions, shape ``[T, D]``.
            start: Where they start, shape ``[P]``.

        Returns:
            Where each step leads, behind the start, shape ``[T + 1, P]``.
        """
        moves = values[:, self.columns] / self.per_unit
        # One after the other, as a controller would; pairwise sums would round otherwise.
        path: Float64Array = np.add.accumulate(np.concatenate((start[np.newaxis], moves)))
        if self.is_offset.any():
            path[1:, self.is_offset] = (start + moves)[:, self.is_offset]
        return path

    def leads_out(self, values: Float64Array, path: Float64Array, slack: float) -> BoolArray | None:
        """
        Say which actions lead out, shape ``[T, P]``; ``None`` if none does.

        Args:
            values: Actions, shape ``[T, D]``.
            path: Where they lead, behind the start, shape ``[T + 1, P]``.
            slack: How many times the slack is added once more.
        """
        forgiven, reached = (1 + slack) * self.slack, path[1:]
        over, under = reached > self.high + forgiven, reached < self.low - forgiven
        if not (over.any() or under.any()):  # as nearly always
            return None
        moves = np.where(self.is_offset, np.diff(path, axis=0), values[:, self.columns])
        out: BoolArray = over & (moves > 0) | under & (moves < 0)
        return out if out.any() else None


def walk_within(
    path: list[float],
    before: float,
    max_step: float,
    *,
    at: float,
    low: float,
    high: float,
    per_unit: float,
) -> list[float]:
    """
    Keep a change from speeding up too much, and from leading out.

    Both leave a range with zero in it, so they meet. At a bound it stops at once: slowing down is
    never bounded.

    Args:
        path: Finite changes or rates within their bounds, step by step.
        before: The one before them.
        max_step: How much faster one may get.
        at: Where what is moved is.
        low: The smallest position.
        high: The largest.
        per_unit: As in `Positions`.
    """
    made = []
    for value in path:
        least = min(before, 0.0) - max_step
        most = max(before, 0.0) + max_step
        before = min(max(value, least), most)
        if before > 0 and at + before / per_unit > high:
            before = min(before, max(high - at, 0.0) * per_unit)
            if at + before / per_unit > high:
                before *= _A_LITTLE_LESS
        elif before < 0 and at + before / per_unit < low:
            before = max(before, min(low - at, 0.0) * per_unit)
            if at + before / per_unit < low:
                before *= _A_LITTLE_LESS
        at += before / per_unit
        made.append(before)
    return made


def walk_offset_within(
    path: list[float], max_step: float, *, at: float, low: float, high: float
) -> list[float]:
    """
    Keep the steps of an offset, which begins at zero, and keep it from leading out.

    Where it is out already, it goes no further.

    Args:
        path: Offsets within their bounds, step by step; where one is NaN it stays.
        max_step: How far one may be from the one before it.
        at: Where it is counted from.
        low: The smallest position.
        high: The largest.
    """
    made, before = [], 0.0
    for value in path:
        least = max(before - max_step, min(low - at, before))
        most = min(before + max_step, max(high - at, before))
        if not math.isnan(value):
            before = min(max(value, least), most)
        made.append(before)
    return made
