"""Mixing predictions of the same step, each dimension as its numbers mean."""

from __future__ import annotations

import numpy as np

from vlmcore._arrays import Float64Array
from vlmcore._rotations import from_quaternions, mean, slerp, to_quaternions, written_near
from vlmcore.contracts.embodiment import ActionSpace
from vlmcore.safety.levels import LevelSwitch

__all__ = ["cross_fade", "weighted_mean"]


def cross_fade(
    old: Float64Array, new: Float64Array, share: Float64Array, space: ActionSpace | None
) -> Float64Array:
    """
    Mix two predictions of each step; without a space every dimension is mixed linearly.

    Args:
        old: Finite, and rotations where the space says so, shape ``[T, D]``.
        new: The same.
        share: How much of *new* there is in each step, from 0 to 1, shape ``[T]``.
        space: What the dimensions are.

    Returns:
        Shape ``[T, D]``. Between the two, also where rounding would say otherwise; angles are
        written in bounds, and rotations in space nearest to the numbers of *new*.
    """
    part = share[:, np.newaxis]
    with np.errstate(over="ignore"):  # what rounding overflows is brought back
        mixed = old * (1 - part) + new * part
    mixed = np.clip(mixed, np.minimum(old, new), np.maximum(old, new))
    if space is None:
        return mixed
    turns = np.flatnonzero(np.isfinite(space.period))
    if turns.size:
        start, end = (_in_bounds(each[:, turns], space, turns) for each in (old, new))
        way = _short_way(end - start, space.period[turns])
        mixed[:, turns] = _in_bounds(start + part * way, space, turns)
    switches = np.flatnonzero(space.is_discrete)
    mixed[:, switches] = np.where(part < 0.5, old[:, switches], new[:, switches])
    for group in space.rotations:
        at, form = group.columns(space.dims), group.form
        start, end = (to_quaternions(each[:, at], form) for each in (old, new))
        turned = from_quaternions(slerp(start, end, share), form)
        mixed[:, at] = written_near(turned, new[:, at], form)
    return mixed


def weighted_mean(
    predictions: Float64Array,
    weights: Float64Array,
    space: ActionSpace | None,
    *,
    before: Float64Array | None = None,
) -> Float64Array:
    """
    Mix any number of predictions of one step; without a space every dimension is averaged.

    Args:
        predictions: Finite, and rotations where the space says so, the oldest first, shape
            ``[N, D]``.
        weights: Of each, at least 0 and not all 0, shape ``[N]``.
        space: What the dimensions are.
        before: What comes before the step, shape ``[D]``; ``None`` if nobody knows.

    Returns:
        Shape ``[D]``. An angle is the oldest one, moved by the mean of the short ways from there to
        the others. Of levels it is the one with most weight, each prediction counting for the one
        that it leads to from *before*; of two with the same, the one that was predicted last. A
        rotation in space is the mean rotation, written nearest to the numbers of the newest one.
    """
    shares = weights / weights.sum()
    mixed = _mean(predictions, shares)
    if space is None:
        return mixed
    turns = np.flatnonzero(np.isfinite(space.period))
    if turns.size:
        angles = _in_bounds(predictions[:, turns], space, turns)
        ways = _short_way(angles - angles[0], space.period[turns])
        mixed[turns] = _in_bounds(angles[0] + _mean(ways, shares), space, turns)
    for column in np.flatnonzero(space.is_discrete):
        switch = LevelSwitch(values=np.array(space.dims[column].levels, np.float64))
        start = None if before is None else before[column : column + 1]
        mixed[column] = _elected(predictions[:, column], weights, switch, start)
    for group in space.rotations:
        at, form = group.columns(space.dims), group.form
        middle = from_quaternions(mean(to_quaternions(predictions[:, at], form), weights), form)
        mixed[at] = written_near(middle, predictions[-1, at], form)
    return mixed


def _mean(values: Float64Array, shares: Float64Array) -> Float64Array:
    """Average the rows, and stay between them where rounding would not."""
    with np.errstate(over="ignore"):
        mean = shares @ values
    between: Float64Array = np.clip(mean, values.min(axis=0), values.max(axis=0))
    return between


def _elected(
    votes: Float64Array, weights: Float64Array, switch: LevelSwitch, before: Float64Array | None
) -> float:
    """Find the level with most weight; without a level before, a vote is for the nearest one."""
    if before is None:
        chosen = switch.nearest(votes)
    else:
        chosen = switch.switched(votes, start=int(switch.nearest(before)[0]))
    totals = np.bincount(chosen, weights)
    last = chosen[totals[chosen] == totals.max()][-1]
    return float(switch.values[last])


def _in_bounds(angles: Float64Array, space: ActionSpace, turns: np.ndarray) -> Float64Array:
    """Write angles so that they are in bounds; those that are already stay as they are."""
    low, high = space.low[turns], space.high[turns]
    same = np.clip(low + np.remainder(angles - low, space.period[turns]), low, high)
    inside: Float64Array = np.where((angles >= low) & (angles <= high), angles, same)
    return inside


def _short_way(difference: Float64Array, turn: Float64Array) -> Float64Array:
    """Take a difference of angles the short way round, at most half a turn."""
    short: Float64Array = difference - turn * np.rint(difference / turn)
    return short
