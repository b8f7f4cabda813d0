"""Targets that are rotations in space: how far they turn, and how to turn them less."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from vlmcore._arrays import BoolArray, Float64Array
from vlmcore._rotations import (
    RotationForm,
    angle_between,
    from_quaternions,
    is_rotation,
    step_towards,
    to_quaternions,
    written_near,
)
from vlmcore.contracts.embodiment import ActionSpace
from vlmcore.safety._slack import STEP_SLACK, slack_of

__all__ = ["Orientation", "find_turns"]

# Writing a rotation anew moves its numbers by less, and may lead out of bounds by that.
_REWRITTEN = 16 * 2.0**-52 * 6.3


@attrs.frozen(eq=False)
class Orientation:
    """
    One rotation of a space.

    Attributes:
        at: Its dimensions, side by side.
        form: How it is written.
        low: The bounds of its numbers, shape ``[C]``.
        high: The same.
        max_step: How far it may turn in one step, in radians.
        slack: What is added to that in a comparison.
    """

    at: slice
    form: RotationForm
    low: Float64Array
    high: Float64Array
    max_step: float
    slack: float

    @classmethod
    def of(cls, space: ActionSpace) -> tuple[Orientation, ...]:
        """Work out the rotations of *space*."""
        made = []
        for group in space.rotations:
            at, step = group.columns(space.dims), group.step_rad(space.rate_hz)
            low, high = space.low[at], space.high[at]
            # The angle is off by no more than twice the rounding of a vector of length 1, or of
            # the longest axis: the slack of a dimension of that size covers both ends of a step.
            size = 1.0
            if group.form is RotationForm.AXIS_ANGLE:
                size = min(float(np.hypot.reduce(np.maximum(-low, high))), 2 * np.pi)
            scale = np.array(max(size, step))
            slack = float(slack_of(scale, np.array(step)))
            made.append(cls(at=at, form=group.form, low=low, high=high, max_step=step, slack=slack))
        return tuple(made)

    def turns(self, path: Float64Array, sound: BoolArray) -> Float64Array:
        """
        Measure how far each rotation is from the last one before it; 0 where one of them is none.

        Args:
            path: What comes first, and what follows it, shape ``[1 + T, C]``.
            sound: Which of them are rotations, shape ``[1 + T]``.

        Returns:
            Angles in radians, shape ``[T]``.
        """
        turns = np.zeros(len(path) - 1)
        rows = np.flatnonzero(sound)
        quaternions = to_quaternions(path[rows], self.form)
        turns[rows[1:] - 1] = angle_between(quaternions[1:], quaternions[:-1])
        return turns

    def walk(self, values: Float64Array, start: Float64Array) -> Float64Array:
        """
        Turn towards each rotation, by no more than a step may turn.

        What is near enough stays as it came. Where there is none, or where what would be made is
        out of bounds however it is written, the last one is held.

        Args:
            values: Shape ``[T, C]``.
            start: What was sent last, a rotation, shape ``[C]``.

        Returns:
            Shape ``[T, C]``.
        """
        out: Float64Array = values.copy()
        before = start
        rest = np.clip(start, self.low, self.high)
        # What float32 cannot help may lead out of bounds: then the bound is held.
        is_near = (np.abs(start - rest) <= STEP_SLACK * np.maximum(-self.low, self.high)).all()
        sound = is_rotation(values, self.form)
        at, size = 0, len(values)
        while at < len(values):  # as many steps at a time as lead to something that can be sent
            rows = slice(at, at + size)
            made, good = self._turned(values[rows], sound[rows], before)
            count = len(made) if good.all() else int(np.argmin(good))
            out[at : at + count] = made[:count]
            before = made[count - 1] if count else before
            at += count
            if count < len(made):
                out[at] = before = rest if at == 0 and is_near else before
                at, size = at + 1, 1
            else:
                size *= 2
        return out

    def _turned(
        self, values: Float64Array, sound: BoolArray, before: Float64Array
    ) -> tuple[Float64Array, BoolArray]:
        """Turn towards *values*, and say up to where what is made can be sent."""
        came = np.where(sound[:, np.newaxis], values, before)
        targets = to_quaternions(came, self.form)
        path = step_towards(to_quaternions(before, self.form), targets, self.max_step)
        plain = from_quaternions(path, self.form)
        made, good = self._in_bounds(written_near(plain, came, self.form))
        # If what is nearest is out of bounds, the other way to write it may not be: what is nearest
        # to more than a turn the other way round has the other sign, or the longer angle.
        for other in (plain, written_near(plain, -7 * _direction(plain), self.form)):
            again, fits = self._in_bounds(other)
            made, good = _chosen(good, made, again), np.logical_or(good, fits)
        stays = (path == targets).all(axis=1) & _within(came, self.low, self.high)
        return _chosen(stays, came, made), (good | stays) & sound

    def _in_bounds(self, values: Float64Array) -> tuple[Float64Array, BoolArray]:
        """Bring into bounds what rounding led out, and say what else is out."""
        inside = np.clip(values, self.low, self.high)
        is_near: BoolArray = np.logical_and.reduce(np.abs(values - inside) <= _REWRITTEN, axis=1)
        return inside, is_near


def find_turns(
    orientations: Sequence[Orientation],
    path: Float64Array,
    *,
    steps: Float64Array,
    kept: BoolArray,
    slack: float,
) -> BoolArray | None:
    """
    Measure all rotations; what is found of one is found at its first dimension.

    Args:
        orientations: The rotations of a space.
        path: What comes first, and what follows it, shape ``[1 + T, D]``.
        steps: Is given the angles, shape ``[T, D]``.
        kept: Is given which of them keep their bounds, shape ``[T, D]``.
        slack: How many times the slack of a comparison is added to it once more.

    Returns:
        Which numbers are finite and no rotation, shape ``[T, D]``; ``None`` if all are.
    """
    if not orientations:
        return None
    none = np.zeros(kept.shape, np.bool_)
    for each in orientations:
        numbers, first = path[:, each.at], each.at.start
        sound = is_rotation(numbers, each.form, slack * STEP_SLACK)
        steps[:, first] = each.turns(numbers, sound)
        kept[:, each.at] = True
        kept[:, first] = steps[:, first] <= each.max_step + (1 + slack) * each.slack
        none[:, first] = np.isfinite(numbers[1:]).all(axis=1) & ~sound[1:]
    return none if none.any() else None


def _chosen(truths: BoolArray, these: Float64Array, others: Float64Array) -> Float64Array:
    """Take *these* rows where it is true, and the others elsewhere."""
    rows: Float64Array = np.where(truths[:, np.newaxis], these, others)
    return rows


def _within(values: Float64Array, low: Float64Array, high: Float64Array) -> BoolArray:
    within: BoolArray = np.logical_and.reduce((values >= low) & (values <= high), axis=1)
    return within


def _direction(vectors: Float64Array) -> Float64Array:
    """Make vectors of length 1 of all but those of length 0."""
    norm = np.hypot.reduce(vectors, axis=-1)[:, np.newaxis]
    direction: Float64Array = np.zeros_like(vectors)
    np.divide(vectors, norm, out=direction, where=norm > 0)
    return direction
