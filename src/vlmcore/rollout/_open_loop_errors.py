"""How far a proposed action is from one that was sent, each dimension as its numbers mean."""

from __future__ import annotations

import attrs
import numpy as np

from vlmcore._arrays import BoolArray, Float64Array
from vlmcore._rotations import angle_between, is_rotation, to_quaternions
from vlmcore.contracts.embodiment import ActionSpace
from vlmcore.safety.levels import LevelSwitch

__all__ = ["ErrorSums", "Ruler"]

_LARGEST = 1e150  # its square is still a number


class Ruler:
    """
    Measures errors, a column for each dimension; a rotation in space is one column.

    An angle that comes round is measured the short way, a rotation in space by the angle that leads
    from one to the other, in radians.

    Args:
        names: What the numbers of an action are.
        space: What they mean; without it all of them are plain numbers.
    """

    def __init__(self, names: tuple[str, ...], space: ActionSpace | None) -> None:
        self._space = space
        groups = () if space is None else space.rotations
        turned = {} if space is None else {g.columns(space.dims).start: g for g in groups}
        units = [""] * len(names) if space is None else [dim.unit for dim in space.dims]
        columns: list[tuple[str, str]] = []
        at = 0
        self._plain: list[tuple[int, int]] = []  # column of errors, column of actions
        self._turned = []
        while at < len(names):
            group = turned.get(at)
            if group is None:
                self._plain.append((len(columns), at))
                columns.append((names[at], units[at]))
                at += 1
            else:
                self._turned.append((len(columns), slice(at, at + group.form.size), group.form))
                columns.append((group.name, "rad"))
                at += group.form.size
        self.names = tuple(name for name, _ in columns)
        self.units = tuple(unit for _, unit in columns)
        self.has_levels = np.zeros(len(columns), np.bool_)
        for column, at in self._plain:
            self.has_levels[column] = space is not None and space.dims[at].is_discrete

    def errors(self, proposed: Float64Array, recorded: Float64Array) -> Float64Array:
        """
        Measure.

        Args:
            proposed: Shape ``[N, D]``; may hold what is no number.
            recorded: The same.

        Returns:
            At least 0, shape ``[N, M]``; NaN where one of them is no number, no rotation, or too
            far away for anything to be computed of it.
        """
        found = np.full((len(proposed), len(self.names)), np.nan)
        with np.errstate(all="ignore"):
            for column, at in self._plain:
                found[:, column] = np.abs(self._differences(proposed, recorded, at))
            for column, part, form in self._turned:
                a, b = proposed[:, part], recorded[:, part]
                sound = is_rotation(a, form) & is_rotation(b, form)
                if sound.any():
                    turned = angle_between(
                        to_quaternions(a[sound], form), to_quaternions(b[sound], form)
                    )
                    found[sound, column] = turned
            found[~(found < _LARGEST)] = np.nan
        return found

    def _differences(self, proposed: Float64Array, recorded: Float64Array, at: int) -> Float64Array:
        difference: Float64Array = proposed[:, at] - recorded[:, at]
        if self._space is not None and np.isfinite(self._space.period[at]):
            turn = self._space.period[at]
            difference = difference - turn * np.rint(difference / turn)
        return difference

    def known(self, recorded: Float64Array) -> BoolArray:
        """Say what of the recorded values anything can be compared with, shape ``[N, M]``."""
        return ~np.isnan(self.errors(recorded, recorded))

    def agree(self, proposed: Float64Array, recorded: Float64Array) -> BoolArray:
        """Say where both are nearest to the same level, shape ``[N, M]``."""
        found = np.zeros((len(proposed), len(self.names)), np.bool_)
        for column, at in self._plain:
            levels = None if self._space is None else self._space.dims[at].levels
            if levels is not None:
                switch = LevelSwitch(values=np.array(levels, np.float64))
                same = switch.nearest(proposed[:, at]) == switch.nearest(recorded[:, at])
                found[:, column] = same
        return found


@attrs.define(eq=False)
class ErrorSums:
    """
    Sums of errors by step of the chunk and by column; they grow with the longest chunk.

    Attributes:
        ruler: What measures.
        count: How many values were compared, shape ``[T, M]``.
        total: The sum of the errors.
        squares: The sum of their squares.
        worst: The largest.
        agreeing: How often both were nearest to the same level.
        lost: How many proposed values could not be compared, shape ``[M]``.
        unknown: How many recorded ones could not.
    """

    ruler: Ruler
    count: Float64Array = attrs.field(init=False)
    total: Float64Array = attrs.field(init=False)
    squares: Float64Array = attrs.field(init=False)
    worst: Float64Array = attrs.field(init=False)
    agreeing: Float64Array = attrs.field(init=False)
    lost: Float64Array = attrs.field(init=False)
    unknown: Float64Array = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        width = len(self.ruler.names)
        for name in _BY_STEP:
            setattr(self, name, np.zeros((0, width)))
        self.lost, self.unknown = np.zeros(width), np.zeros(width)

    def add(self, proposed: Float64Array, recorded: Float64Array, *, first: int) -> None:
        """
        Compare steps of a chunk with what was recorded.

        Args:
            proposed: Steps of the chunk from step *first* on, shape ``[N, D]``.
            recorded: What was sent in these control steps, shape ``[N, D]``.
            first: Which step of the chunk the first is.
        """
        self._grow(first + len(proposed))
        steps = slice(first, first + len(proposed))
        errors = self.ruler.errors(proposed, recorded)
        sound, known = ~np.isnan(errors), self.ruler.known(recorded)
        counted = np.where(sound, errors, 0.0)
        self.count[steps] += sound
        self.total[steps] += counted
        self.squares[steps] += counted**2
        self.worst[steps] = np.maximum(self.worst[steps], counted)
        self.agreeing[steps] += self.ruler.agree(proposed, recorded) & sound
        self.lost += (known & ~sound).sum(axis=0)
        self.unknown += (~known).sum(axis=0)

    def _grow(self, steps: int) -> None:
        more = steps - len(self.count)
        if more > 0:
            for name in _BY_STEP:
                old = getattr(self, name)
                setattr(self, name, np.concatenate([old, np.zeros((more, old.shape[1]))]))


_BY_STEP = ("count", "total", "squares", "worst", "agreeing")
