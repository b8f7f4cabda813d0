"""
Rotations in space as the numbers that policies write, and the arithmetic that they need.

Everything is computed in unit quaternions ``x, y, z, w``, shape ``[..., 4]``, float64; a quaternion
and its negative are one rotation. Nothing is checked but by `is_rotation`: what it refuses has no
meaning to the other functions.
"""

from __future__ import annotations

import enum
import math

import numpy as np

from vlmcore._arrays import BoolArray, Float64Array

__all__ = [
    "RotationForm",
    "angle_between",
    "bounds_of_measure",
    "from_quaternions",
    "is_rotation",
    "mean",
    "measure",
    "slerp",
    "step_towards",
    "to_quaternions",
    "written_near",
]

_TURN = 2 * math.pi


class RotationForm(enum.Enum):
    """How a rotation is written in numbers."""

    QUATERNION_XYZW = "quaternion_xyzw"  # 4 numbers of norm 1, the real part last
    QUATERNION_WXYZ = "quaternion_wxyz"  # 4 numbers of norm 1, the real part first
    ROT6D = "rot6d"  # the first two columns of the matrix, one after the other
    AXIS_ANGLE = "axis_angle"  # the axis, as long as the angle in radians

    @property
    def size(self) -> int:
        """How many numbers it takes."""
        match self:
            case RotationForm.QUATERNION_XYZW | RotationForm.QUATERNION_WXYZ:
                return 4
            case RotationForm.ROT6D:
                return 6
            case RotationForm.AXIS_ANGLE:
                return 3


def measure(values: Float64Array, form: RotationForm) -> Float64Array:
    """
    Measure what says whether numbers are a rotation; NaN if they are not numbers.

    For a quaternion that is its norm, for an axis and angle the angle. For two columns it is the
    least of their lengths and of the sine of the angle between them.

    Args:
        values: Shape ``[..., form.size]``.
        form: How they are written.

    Returns:
        Shape ``[...]``.
    """
    with np.errstate(all="ignore"):  # what overflows is no rotation, nor is what has no direction
        if form is not RotationForm.ROT6D:
            return _norm(values)
        first, second = values[..., :3], values[..., 3:]
        lengths = np.minimum(_norm(first), _norm(second))
        return np.minimum(lengths, _norm(np.cross(_unit(first), _unit(second))))


def bounds_of_measure(form: RotationForm) -> tuple[float, float]:
    """
    Say between what `measure` must be for numbers to be a rotation.

    A norm may be off 1 by a hundredth: what is further off was not meant as a quaternion. An angle
    may be one turn, as float32 writes it.
    """
    match form:
        case RotationForm.QUATERNION_XYZW | RotationForm.QUATERNION_WXYZ:
            return 0.99, 1.01
        case RotationForm.ROT6D:
            return 0.01, math.inf
        case RotationForm.AXIS_ANGLE:
            return 0.0, _TURN + 1e-6


def is_rotation(values: Float64Array, form: RotationForm, slack: float = 0.0) -> BoolArray:
    """
    Say which numbers are a rotation; those that are not finite are none.

    Args:
        values: Shape ``[..., form.size]``.
        form: How they are written.
        slack: By how much `measure` may be beyond its bounds.
    """
    measured, (least, most) = measure(values, form), bounds_of_measure(form)
    sound: BoolArray = (measured >= least - slack) & (measured <= most + slack)
    return sound & np.isfinite(values).all(axis=-1)


def to_quaternions(values: Float64Array, form: RotationForm) -> Float64Array:
    """
    Read rotations.

    Two columns are made orthogonal by Gram and Schmidt; the first one keeps its direction.

    Args:
        values: Shape ``[..., form.size]``.
        form: How they are written.

    Source:
        Zhou et al. 2019 (arXiv:1812.07035) for the six numbers.
    """
    match form:
        case RotationForm.QUATERNION_XYZW:
            return _unit(values)
        case RotationForm.QUATERNION_WXYZ:
            return _unit(np.roll(values, -1, axis=-1))
        case RotationForm.ROT6D:
            return _of_columns(values[..., :3], values[..., 3:])
        case RotationForm.AXIS_ANGLE:
            half = _norm(values)[..., np.newaxis] / 2
            imaginary = values / 2 * np.sinc(half / math.pi)  # sin(half) / (2 * half)
            return _unit(np.concatenate((imaginary, np.cos(half)), axis=-1))


def from_quaternions(quaternions: Float64Array, form: RotationForm) -> Float64Array:
    """
    Write rotations; angles are at most pi, see `written_near` for other ways to write them.

    Args:
        quaternions: Shape ``[..., 4]``.
        form: How to write them.

    Returns:
        Shape ``[..., form.size]``.
    """
    x, y, z, w = np.moveaxis(quaternions, -1, 0)
    written: Float64Array
    match form:
        case RotationForm.QUATERNION_XYZW:
            return quaternions
        case RotationForm.QUATERNION_WXYZ:
            return np.roll(quaternions, 1, axis=-1)
        case RotationForm.ROT6D:
            first = (1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y))
            second = (2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x))
            written = np.clip(np.stack((*first, *second), axis=-1), -1.0, 1.0)
        case RotationForm.AXIS_ANGLE:
            imaginary = quaternions[..., :3]
            sine = _norm(imaginary)
            angle = 2 * np.arctan2(sine, np.abs(w))
            longer = np.divide(angle, sine, out=np.full_like(sine, 2.0), where=sine > 0)
            written = imaginary * np.copysign(longer, w)[..., np.newaxis]
    return written


def written_near(values: Float64Array, near: Float64Array, form: RotationForm) -> Float64Array:
    """
    Write the same rotations so that their numbers are nearest to others.

    A quaternion may be its negative, and an angle may go the other way round, up to one turn. Two
    columns are written in one way only.

    Args:
        values: Shape ``[..., form.size]``.
        near: Shape ``[..., form.size]``; what is not finite pulls nowhere.
        form: How both are written.
    """
    near = np.where(np.isfinite(near), near, 0.0)
    match form:
        case RotationForm.ROT6D:
            return values
        case RotationForm.QUATERNION_XYZW | RotationForm.QUATERNION_WXYZ:
            return np.where(_dot(values, near) < 0, -values, values)
        case RotationForm.AXIS_ANGLE:
            angle, far = _norm(values)[..., np.newaxis], _norm(near)[..., np.newaxis]
            # What turns nothing may be a turn about any axis, also about the one of the other.
            axis = np.divide(near, far, out=np.zeros_like(values), where=far > 0)
            np.divide(values, angle, out=axis, where=angle > 0)
            turns = np.round((_dot(near, axis) - angle) / _TURN)
            return values + _TURN * np.clip(turns, -1, np.where(angle > 0, 0, 1)) * axis


def angle_between(a: Float64Array, b: Float64Array) -> Float64Array:
    """
    Measure the angle of the rotation that leads from one to the other, in radians, 0 to pi.

    It is exact where the inverse cosine of their product is not: near 0 and near pi.

    Args:
        a: Shape ``[..., 4]``.
        b: Shape ``[..., 4]``.
    """
    apart, along = _norm(a - b), _norm(a + b)  # one of them, if a sign is turned round
    angle: Float64Array = 4 * np.arctan2(np.minimum(apart, along), np.maximum(apart, along))
    return angle


def slerp(a: Float64Array, b: Float64Array, share: Float64Array | float) -> Float64Array:
    """
    Go a *share* of the short way from one rotation to the other, at an even speed.

    Half a turn has two ways; of these the one about the axis is taken whose first number that is
    not zero is above zero.

    Args:
        a: Shape ``[..., 4]``.
        b: Shape ``[..., 4]``.
        share: 0 to 1, one number or shape ``[...]``.

    Source:
        Shoemake 1985, "Animating rotation with quaternion curves".
    """
    b = _aligned(b, a)
    half = 2 * np.arctan2(_norm(a - b), _norm(a + b))[..., np.newaxis]
    part = np.asarray(share, np.float64)[..., np.newaxis]
    even = np.sinc(half / math.pi)
    of_b = part * np.sinc(part * half / math.pi) / even  # sin(part * half) / sin(half)
    of_a = (1 - part) * np.sinc((1 - part) * half / math.pi) / even
    return _unit(of_a * a + of_b * b)


def step_towards(start: Float64Array, targets: Float64Array, max_angle: float) -> Float64Array:
    """
    Follow *targets* one after another, by at most *max_angle* each; what is near enough is reached.

    Args:
        start: Shape ``[4]``.
        targets: Shape ``[T, 4]``.
        max_angle: In radians, above 0.

    Returns:
        Shape ``[T, 4]``.
    """
    at, path = start.tolist(), []
    for target in targets.tolist():  # in plain floats: each step needs the one before it
        along = math.hypot(*map(float.__add__, at, target))
        apart = math.dist(at, target)
        angle = 4 * math.atan2(min(apart, along), max(apart, along))
        at = target if angle <= max_angle else _part_of_the_way(at, target, max_angle / angle)
        path.append(at)
    return np.array(path, np.float64).reshape(targets.shape)


def _part_of_the_way(a: list[float], b: list[float], share: float) -> list[float]:
    """Do what `slerp` does, for one step."""
    dot = sum(map(float.__mul__, a, b))
    if dot == 0:
        b = _aligned(np.array(b), np.array(a)).tolist()
    elif dot < 0:
        b = [-each for each in b]
    half = 2 * math.atan2(math.dist(a, b), math.hypot(*map(float.__add__, a, b)))
    of_a, of_b = math.sin((1 - share) * half), math.sin(share * half)
    made = [of_a * x + of_b * y for x, y in zip(a, b, strict=True)]
    norm = math.hypot(*made)
    return [each / norm for each in made]


def mean(quaternions: Float64Array, weights: Float64Array) -> Float64Array:
    """
    Take the weighted mean: the rotation from which the squares of the distances add up to least.

    Distances are those of the matrices. Signs do not matter. Where two rotations are as good as
    each other, as between two of equal weight that are half a turn apart, it is one of them.

    Args:
        quaternions: Shape ``[..., N, 4]``.
        weights: Shape ``[N]``, not negative, and not all of them zero.

    Returns:
        Shape ``[..., 4]``.

    Source:
        Markley et al. 2007, "Averaging quaternions", equation 12: the eigenvector of the largest
        eigenvalue of the sum of the weighted outer products.
    """
    scaled = quaternions * np.sqrt(weights / weights.max())[:, np.newaxis]
    vectors: Float64Array = np.linalg.eigh(np.swapaxes(scaled, -1, -2) @ scaled)[1]
    return vectors[..., -1]


def _norm(vectors: Float64Array) -> Float64Array:
    """Measure lengths; squares would lose what is tiny, and overflow."""
    norm: Float64Array = np.hypot.reduce(vectors, axis=-1)
    return norm


def _unit(vectors: Float64Array) -> Float64Array:
    unit: Float64Array = vectors / _norm(vectors)[..., np.newaxis]
    return unit


def _dot(a: Float64Array, b: Float64Array) -> Float64Array:
    dot: Float64Array = (a * b).sum(axis=-1, keepdims=True)
    return dot


def _aligned(b: Float64Array, to: Float64Array) -> Float64Array:
    """Take the sign of *b* with which the way to it is the short one."""
    dot = _dot(b, to)
    side = np.where(dot < 0, -1.0, 1.0)
    if (dot == 0).any():  # half a turn: by the axis, which knows nothing of signs
        x, y, z, w = np.moveaxis(to, -1, 0)
        u, v, s, t = np.moveaxis(b, -1, 0)
        axis = np.stack(
            (
                w * u - t * x - y * s + z * v,
                w * v - t * y - z * u + x * s,
                w * s - t * z - x * v + y * u,
            ),
            axis=-1,
        )
        leading = np.take_along_axis(axis, np.argmax(axis != 0, axis=-1, keepdims=True), axis=-1)
        side = np.where(dot == 0, np.where(leading < 0, -1.0, 1.0), side)
    aligned: Float64Array = b * side
    return aligned


def _of_columns(first: Float64Array, second: Float64Array) -> Float64Array:
    """Read the quaternion of a matrix by two of its columns."""
    x, y = _unit(first), _unit(second)
    for _ in range(2):  # once is not enough for columns that are nearly parallel
        y = _unit(y - _dot(x, y) * x)
    matrix = np.stack((x, y, np.cross(x, y)), axis=-1)
    (a, b, c), (d, e, f), (g, h, i) = np.moveaxis(matrix, (-2, -1), (0, 1))
    # The products of every two parts of the quaternion, times 4: any row is the quaternion, and
    # the row of its largest part the most exact one (Shepperd 1978).
    rows = (
        (1 + a - e - i, b + d, c + g, h - f),
        (b + d, 1 - a + e - i, f + h, c - g),
        (c + g, f + h, 1 - a - e + i, d - b),
        (h - f, c - g, d - b, 1 + a + e + i),
    )
    products = np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)
    largest = np.argmax(np.diagonal(products, axis1=-2, axis2=-1), axis=-1)
    row = np.take_along_axis(products, largest[..., np.newaxis, np.newaxis], axis=-2)
    return _unit(row[..., 0, :])
