"""What can be done about unsafe actions, and doing it."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator
from itertools import chain

import numpy as np
import numpy.typing as npt

from vlmcore._arrays import BoolArray, Float64Array
from vlmcore.safety._positions import walk_offset_within, walk_within
from vlmcore.safety._rules import Levels, Rules, short_way

__all__ = ["NonFinite", "Remedy", "can_return", "can_stay", "clamp", "hold"]


class Remedy(enum.Enum):
    """What the gate does about a chunk that breaks a limit."""

    BLOCK = "block"  # refuse it
    CLAMP = "clamp"  # move each value to the nearest one that keeps the limits
    HOLD = "hold"  # discard it: targets stay at the last command, all else is zero
    REPORT = "report"  # change nothing; as BLOCK, an unsafe chunk does not pass


class NonFinite(enum.Enum):
    """What `Remedy.CLAMP` does about a value that is not finite."""

    TRUNCATE = "truncate"  # end the chunk before that step, in all dimensions
    HOLD = "hold"  # fill: hold the last step in that dimension, and go on


def can_return(reference: Float64Array, rules: Rules) -> bool:
    """
    Say whether one step leads from *reference* into the bounds.

    From a change or a rate it always does, to zero; from an angle that comes round again too.
    """
    at, step = reference[rules.linear], rules.max_step[rules.linear]
    low, high = rules.low[rules.linear], rules.high[rules.linear]
    return bool(((at - step <= high) & (at + step >= low)).all())


def can_stay(reference: Float64Array, rules: Rules) -> bool:
    """
    Say whether every target may stay where *reference* is; an angle may be written anew.

    What is out of its bounds by the rounding of float32 stays at the bound.
    """
    stays = np.isfinite(rules.settled(reference)) | rules.is_change
    stays[rules.periodic] = True
    return bool(stays.all())


def hold(rules: Rules, reference: Float64Array | None, horizon: int) -> Float64Array:
    """
    Stay where the robot is for *horizon* steps: targets stay, and all else is zero.

    Args:
        rules: The rules of the space.
        reference: The last command, shape ``[D]``; ``None`` only if no dimension is a target.
        horizon: How many steps.

    Returns:
        Actions, shape ``[horizon, D]``.
    """
    row = np.zeros(len(rules.low))
    if reference is not None:
        row = np.where(rules.is_change, 0.0, rules.settled(reference))
        turns = rules.periodic
        limits = (rules.low[turns], rules.high[turns], rules.turn)
        row[turns] = _inside(reference[turns], *limits)
    for levels in rules.levels:
        row[levels.column] = levels.values[levels.nearest(row[levels.column])]
    held: Float64Array = np.tile(row, (horizon, 1))
    return held


def clamp(
    values: Float64Array,
    rules: Rules,
    reference: Float64Array | None,
    columns: BoolArray,
    *,
    position: Float64Array | None = None,
) -> Float64Array:
    """
    Move each value to the nearest one that keeps the limits, step after step.

    What may follow is counted from the last step as it was made here, not as it came. What is not
    finite, or no rotation, is held: a target or an offset stays, a change is zero. Dimensions are
    independent of each other, but for those of a rotation; only those in *columns* are touched.
    What overflows on the way is clipped: NumPy's warnings about it are the caller's to silence.

    Args:
        values: Actions, shape ``[T, D]``.
        rules: The rules of the space.
        reference: The last command, shape ``[D]``, from which one step leads into the bounds;
            ``None`` only if no dimension is a target.
        columns: Which dimensions to clamp, shape ``[D]``.
        position: Where the things are that move, shape ``[P]``; ``None`` only if nothing moves that
            is bound in where it leads.

    Returns:
        Actions, shape ``[T, D]``.
    """
    out: Float64Array = values.copy()
    start = np.zeros(values.shape[1]) if reference is None else reference
    lost = None if np.isfinite(values).all() else _standing_still(values, rules, start)
    for of_kind, walk in ((rules.linear, _walk_target), (rules.free_changes, _walk_change)):
        at = of_kind[columns[of_kind]]
        if not at.size:
            continue
        path = _within(values, rules, at, None if lost is None else lost[:, at])
        made = map(walk, path, start[at].tolist(), rules.max_step[at].tolist())
        flat = np.fromiter(chain.from_iterable(made), np.float64, at.size * len(values))
        out[:, at] = flat.reshape(at.size, len(values)).T
    if rules.positions is not None:
        _clamp_moves(out, values, rules, columns, start=start, position=position)
    if rules.periodic.size and (chosen := columns[rules.periodic]).any():
        at = rules.periodic[chosen]
        out[:, at] = _walk_angles(values[:, at], start[at], rules, chosen)
    for each in rules.orientations:
        if columns[each.at].any():
            out[:, each.at] = each.walk(values[:, each.at], start[each.at])
    for levels in rules.levels:
        column = levels.column
        if columns[column]:
            out[:, column] = _switch(values[:, column], float(start[column]), levels)
    return out


def _standing_still(values: Float64Array, rules: Rules, start: Float64Array) -> Float64Array:
    """Say what to put where a value is not finite: zero for a change, NaN for what is to stay."""
    lost = np.zeros(values.shape)
    lost[:, rules.linear] = math.nan
    lost[0, rules.linear] = rules.settled(start)[rules.linear]
    return lost


def _within(
    values: Float64Array,
    rules: Rules,
    at: npt.NDArray[np.intp] | list[int],
    lost: Float64Array | float | None,
) -> list[list[float]]:
    """
    Bring the columns *at* into their bounds, ``[P, T]``; what is not finite becomes *lost*.

    *lost* has shape ``[T, P]``; it is ``None`` where all are finite.
    """
    came = values[:, at]
    within = np.minimum(np.maximum(came, rules.low[at]), rules.high[at])
    if lost is not None:
        within = np.where(np.isfinite(came), within, lost)
    path: list[list[float]] = within.T.tolist()
    return path


def _clamp_moves(
    out: Float64Array,
    values: Float64Array,
    rules: Rules,
    columns: BoolArray,
    *,
    start: Float64Array,
    position: Float64Array | None,
) -> None:
    """Clamp what is bound in where it leads, into *out*; it is zero if nobody knows from where."""
    assert rules.positions is not None
    positions = rules.positions
    if position is None:
        out[:, positions.columns[columns[positions.columns]]] = 0.0
        return
    for i, column in enumerate(positions.columns.tolist()):
        if not columns[column]:
            continue
        is_offset, max_step = positions.is_offset[i], float(rules.max_step[column])
        (path,) = _within(values, rules, [column], math.nan if is_offset else 0.0)
        at, low, high, per_unit = (
            float(numbers[i])
            for numbers in (position, positions.low, positions.high, positions.per_unit)
        )
        if is_offset:
            made = walk_offset_within(path, max_step, at=at, low=low, high=high)
        else:
            before = float(start[column])
            made = walk_within(path, before, max_step, at=at, low=low, high=high, per_unit=per_unit)
        out[:, column] = made


# One dimension at a time and in plain floats: a step needs the one before it, and for as many
# dimensions as robots have, four operations of NumPy a step take longer than the floats do.


def _walk_target(path: list[float], before: float, max_step: float) -> Iterator[float]:
    """Keep the steps of a target or an offset that is in bounds; where it is NaN it stays."""
    for value in path:
        if value < (least := before - max_step):
            before = least
        elif value > (most := before + max_step):
            before = most
        elif not math.isnan(value):
            before = value
        yield before


def _walk_change(path: list[float], before: float, max_step: float) -> Iterator[float]:
    """Keep a change from speeding up too much; slowing down to zero is always allowed."""
    for value in path:
        least = min(before, 0.0) - max_step
        most = max(before, 0.0) + max_step
        before = min(max(value, least), most)
        yield before


def _walk_angles(
    values: Float64Array, start: Float64Array, rules: Rules, chosen: BoolArray
) -> Float64Array:
    """Keep the steps of the *chosen* angles that come round again, the short way."""
    at, turn = rules.periodic[chosen], rules.turn[chosen]
    low, high, max_step = rules.low[at], rules.high[at], rules.max_step[at]
    holes = ~np.isfinite(values)
    path, before = _inside(values, low, high, turn), _inside(start, low, high, turn)
    for row, hole in zip(path, holes, strict=True):
        np.copyto(row, before, where=hole)
        step = short_way(before, row, turn)
        reached = before + np.clip(step, -max_step, max_step)
        np.copyto(row, _inside(reached, low, high, turn), where=np.abs(step) > max_step)
        before = row
    return path


def _inside(
    angles: Float64Array, low: Float64Array, high: Float64Array, turn: Float64Array
) -> Float64Array:
    """Write angles so that they are in bounds; those that are already stay as they are."""
    # Whole turns first, which is exact: what is subtracted from many of them is lost.
    same = np.minimum(low + np.remainder(np.fmod(angles, turn) - low, turn), high)
    inside: Float64Array = np.where((angles >= low) & (angles <= high), angles, same)
    return inside


def _switch(values: Float64Array, start: float, levels: Levels) -> Float64Array:
    """Switch between levels as `LevelSwitch` does; what one step does not reach is approached."""
    level = int(levels.nearest(np.array([start]))[0])
    first, last = levels.reach_of(start)  # it was measured, and may be between two levels
    at_least, at_most = (each.tolist() for each in levels.stays(values))
    finite = np.isfinite(values).tolist()
    path = []
    for i, is_finite in enumerate(finite):
        if is_finite:
            wanted = min(max(level, at_least[i]), at_most[i])
        else:
            wanted = level if levels.rest is None else levels.rest
        level = min(max(wanted, first), last)
        first, last = levels.reach[level]
        path.append(level)
    chosen: Float64Array = levels.values[path]
    return chosen
