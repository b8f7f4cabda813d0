"""What an audit finds in a chunk: kinds of violations, single ones, and all of them as arrays."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType

import attrs
import numpy as np

from vlmcore._arrays import BoolArray, Float64Array, immutable
from vlmcore._copying import through_constructor
from vlmcore._rotations import bounds_of_measure, measure
from vlmcore.contracts.embodiment import ActionSpace
from vlmcore.contracts.rotations import RotationForm, RotationGroup

__all__ = ["KINDS", "MEASURES", "WORDS", "Findings", "Violation", "ViolationKind"]

_LISTED = 100  # violations that a report describes one by one; all of them are counted


class ViolationKind(enum.Enum):
    """What can be wrong with an action."""

    NON_FINITE = "non_finite"  # NaN or infinity; it is not counted as anything else
    OUT_OF_BOUNDS = "out_of_bounds"  # below low or above high
    STEP = "step"  # further from the step before than max_step
    NOT_A_LEVEL = "not_a_level"  # between the levels of a discrete dimension
    NOT_A_ROTATION = "not_a_rotation"  # numbers that are no rotation in space together
    POSITION = "position"  # leads out of where the thing that is moved may be
    START_UNKNOWN = "start_unknown"  # a target without a last command: its first step is unbounded
    REFERENCE_OUT_OF_BOUNDS = "reference_out_of_bounds"  # the last command itself is out of bounds
    POSITION_UNKNOWN = "position_unknown"  # nobody knows where what is moved and bound is

    @property
    def is_of_values(self) -> bool:
        """Whether a value of the chunk is wrong, and not what is known of the robot before it."""
        return self not in _BEFORE_THE_CHUNK


_BEFORE_THE_CHUNK = (
    ViolationKind.START_UNKNOWN,
    ViolationKind.REFERENCE_OUT_OF_BOUNDS,
    ViolationKind.POSITION_UNKNOWN,
)
_OF_ROTATIONS = (ViolationKind.STEP, ViolationKind.NOT_A_ROTATION)  # of all numbers of one
KINDS = tuple(ViolationKind)  # walking an enum takes as long as an audit of a chunk
_KIND_ORDER = {kind: i for i, kind in enumerate(KINDS)}
WORDS = {
    ViolationKind.NON_FINITE: "not finite",
    ViolationKind.OUT_OF_BOUNDS: "out of bounds",
    ViolationKind.STEP: "too far from the step before",
    ViolationKind.NOT_A_LEVEL: "not a level",
    ViolationKind.NOT_A_ROTATION: "not a rotation",
    ViolationKind.POSITION: "leads out of the positions that are allowed",
    ViolationKind.START_UNKNOWN: "without a last command",
    ViolationKind.REFERENCE_OUT_OF_BOUNDS: "with a last command out of bounds",
    ViolationKind.POSITION_UNKNOWN: "without a measured position",
}
MEASURES = {  # what `measure` tells of the numbers of a rotation
    RotationForm.QUATERNION_XYZW: "norm",
    RotationForm.QUATERNION_WXYZ: "norm",
    RotationForm.ROT6D: "length or sine",
    RotationForm.AXIS_ANGLE: "angle",
}


@attrs.frozen(kw_only=True)
class Violation:
    """
    One thing that is wrong with one number.

    Attributes:
        kind: What is wrong.
        step: In which step of the chunk, from 0; ``None`` for the last command.
        dim: In which dimension; for a rotation in space its first one.
        name: The name of the dimension; of a rotation in space, where it is about all its numbers.
        value: The number. For `ViolationKind.STEP` it is the step that was asked for, signed; for a
            change, a rate or a torque, how much larger it got; for a rotation in space the angle in
            radians. For `ViolationKind.POSITION` it is where it leads. For
            `ViolationKind.NOT_A_ROTATION` it is the norm of a quaternion, the angle about an axis,
            or the least of the lengths of two columns and the sine between them.
        limit: What it breaks: the bound, the step bound, the nearest level, the bound of positions
            or of the norm; ``None`` where there is no number.
        form: How the rotation in space is written, where it is about all its numbers.
    """

    kind: ViolationKind
    step: int | None
    dim: int
    name: str
    value: float
    limit: float | None
    form: RotationForm | None = None

    def __str__(self) -> str:
        where = "last command" if self.step is None else f"step {self.step}"
        value, limit = self._numbers()
        if self.form is None:
            words = f"{value} {WORDS[self.kind]}{f' ({limit})' if limit else ''}"
        elif self.kind is ViolationKind.STEP:
            words = f"turns by {value} rad ({limit})"
        else:
            words = f"is no rotation ({MEASURES[self.form]} {value}, {limit})"
        return f"{where}, {self.name!r}: {words}"

    def _numbers(self) -> tuple[str, str]:
        """Write the number and the limit with as many digits as tell them apart."""
        if self.limit is None:
            return f"{self.value:g}", ""
        value, limit = repr(self.value), repr(self.limit)
        for digits in (6, 9, 12):
            written = f"{self.value:.{digits}g}", f"{self.limit:.{digits}g}"
            if written[0].lstrip("-") != written[1].lstrip("-"):
                value, limit = written
                break
        return value, f"limit {limit}"


@attrs.frozen(kw_only=True, eq=False)
class Findings:
    """
    All that an audit found, as arrays; records are made when they are asked for.

    Attributes:
        space: What was held against.
        values: What was audited, shape ``[T, D]``.
        reference: The last command, shape ``[D]``; ``None`` if there was none.
        steps: Every step as its bound means it, shape ``[T, D]``; zero if nothing was found.
        masks: For each kind that was found where it was found, shape ``[T, D]``; for the kinds that
            concern the last command, shape ``[1, D]``.
        tally: How many there are of each kind, in the order of `ViolationKind`.
        reached: Where each step leads from the position that was measured, shape ``[T, D]``, NaN
            where no position is bound; ``None`` unless something leads out.
    """

    space: ActionSpace
    values: Float64Array
    reference: Float64Array | None
    steps: Float64Array
    masks: Mapping[ViolationKind, BoolArray]
    tally: tuple[int, ...]
    reached: Float64Array | None = None

    def __attrs_post_init__(self) -> None:
        keep = object.__setattr__  # the class is frozen, and what it holds is to be so too
        masks = {kind: immutable(mask) for kind, mask in self.masks.items()}
        keep(self, "masks", MappingProxyType(masks))
        for field in ("values", "reference", "steps", "reached"):
            array = getattr(self, field)
            keep(self, field, None if array is None else immutable(array))

    __reduce__ = through_constructor

    @property
    def kinds(self) -> frozenset[ViolationKind]:
        """What kinds there are."""
        return frozenset(self.masks)

    @property
    def counts(self) -> dict[ViolationKind, int]:
        """How many there are of every kind."""
        return dict(zip(KINDS, self.tally, strict=True))

    def marks(self) -> BoolArray:
        """
        Say which values of the chunk break anything, shape ``[T, D]``.

        What is wrong with the last command, or that there is none, marks no value. What is wrong
        with a rotation marks all its numbers.
        """
        marked = np.zeros(self.values.shape, np.bool_)
        for kind, mask in self.masks.items():
            if kind.is_of_values:
                marked |= mask
        for group in self.space.rotations:
            at = group.columns(self.space.dims)
            for kind in _OF_ROTATIONS:
                if kind in self.masks:
                    marked[:, at] |= self.masks[kind][:, at.start, np.newaxis]
        return marked

    def columns(self) -> BoolArray:
        """Say in which dimensions something was found, shape ``[D]``."""
        found = np.zeros(self.values.shape[1], np.bool_)
        for mask in self.masks.values():
            found |= mask.any(axis=0)
        return found

    def violations(self, most: int = _LISTED) -> tuple[Violation, ...]:
        """Describe the first *most* violations, by step, then by dimension, then by kind."""
        width = self.values.shape[1]
        places = [
            (*divmod(at, width), kind)
            for kind, mask in self.masks.items()
            for at in np.flatnonzero(mask)[:most].tolist()
        ]
        places.sort(key=lambda place: (*place[:2], _KIND_ORDER[place[2]]))
        return tuple(self._violation(*place) for place in places[:most])

    def _violation(self, step: int, dim: int, kind: ViolationKind) -> Violation:
        value, limit = float(self.values[step, dim]), None
        at: int | None = step
        low, high = float(self.space.low[dim]), float(self.space.high[dim])
        match kind:
            case (
                ViolationKind.NON_FINITE
                | ViolationKind.START_UNKNOWN
                | ViolationKind.POSITION_UNKNOWN
            ):
                pass
            case ViolationKind.OUT_OF_BOUNDS:
                limit = high if value > high else low
            case ViolationKind.STEP:
                value, limit = float(self.steps[step, dim]), self._step_bound(dim)
            case ViolationKind.NOT_A_LEVEL:
                levels = self.space.dims[dim].levels or ()
                limit = min(levels, key=lambda level: abs(level - value))
            case ViolationKind.NOT_A_ROTATION:
                value, limit = self._measured(step, dim)
            case ViolationKind.POSITION:
                assert self.reached is not None
                value = float(self.reached[step, dim])
                low, high = self.space.position_low[dim], self.space.position_high[dim]
                limit = float(high if value > high else low)
            case ViolationKind.REFERENCE_OUT_OF_BOUNDS:
                assert self.reference is not None
                at, value = None, float(self.reference[dim])
                limit = high if value > high else low
        group = self._rotation_of(dim) if kind in _OF_ROTATIONS else None
        return Violation(
            kind=kind,
            step=at,
            dim=dim,
            name=self.space.names[dim] if group is None else group.name,
            value=value,
            limit=limit,
            form=None if group is None else group.form,
        )

    def _rotation_of(self, dim: int) -> RotationGroup | None:
        name = self.space.dims[dim].rotation
        return next((group for group in self.space.rotations if group.name == name), None)

    def _step_bound(self, dim: int) -> float:
        group = self._rotation_of(dim)
        if group is None:
            return float(self.space.max_step[dim])
        return group.step_rad(self.space.rate_hz)

    def _measured(self, step: int, dim: int) -> tuple[float, float]:
        """Say what numbers are instead of a rotation, and the bound that this breaks."""
        group = self._rotation_of(dim)
        assert group is not None
        value = float(measure(self.values[step, group.columns(self.space.dims)], group.form))
        least, most = bounds_of_measure(group.form)
        return value, most if value > most else least
