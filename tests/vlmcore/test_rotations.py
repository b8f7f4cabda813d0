"""Tests of `vlmcore._rotations`, against matrices and against arithmetic with fifty digits."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from vlmcore._rotations import (
    RotationForm,
    angle_between,
    from_quaternions,
    is_rotation,
    mean,
    measure,
    slerp,
    step_towards,
    to_quaternions,
    written_near,
)

XYZW, WXYZ = RotationForm.QUATERNION_XYZW, RotationForm.QUATERNION_WXYZ
ROT6D, AXIS_ANGLE = RotationForm.ROT6D, RotationForm.AXIS_ANGLE
QUATERNIONS = (XYZW, WXYZ)
NAN, INF = math.nan, math.inf
HALF = math.sqrt(0.5)
NONE = np.array([0.0, 0.0, 0.0, 1.0])
TINY = 4e-15

_parts = st.floats(-1, 1) | st.sampled_from((0.0, -0.0, 1e-9, -1e-9, 5e-324, 1e-160, 1.0, HALF))
_angles = st.floats(0, math.pi) | st.floats(0, 1e-6) | st.floats(0, 1e-6).map(lambda a: math.pi - a)
forms = st.sampled_from(RotationForm)
shares = st.floats(0, 1)


@st.composite
def rotations(draw: st.DrawFn) -> Any:
    """Draw a unit quaternion: any, next to nothing, next to half a turn, about an axis."""
    if draw(st.booleans()):
        numbers = np.array([draw(_parts) for _ in range(4)])
        assume(np.abs(numbers).max() > 0.01)
        return numbers / np.linalg.norm(numbers)
    axis = np.array(draw(st.sampled_from(((1, 0, 0), (0, -1, 0), (0, 0.6, 0.8), (0.6, 0.8, 1e-9)))))
    half = draw(_angles) / 2
    return draw(st.sampled_from((1, -1))) * np.append(axis * math.sin(half), math.cos(half))


def turned(angle: float, axis: tuple[float, float, float] = (0, 0, 1)) -> Any:
    """Make the quaternion of a rotation about *axis*."""
    return np.append(np.array(axis) * math.sin(angle / 2), math.cos(angle / 2))


def matrix(quaternion: Any) -> Any:
    """Make the matrix of a rotation, by what it does to the axes: v + 2w(u x v) + 2u x (u x v)."""
    u, w = quaternion[:3], quaternion[3]
    return np.stack(
        [v + 2 * w * np.cross(u, v) + 2 * np.cross(u, np.cross(u, v)) for v in np.eye(3)]
    ).T


def exact_angle(a: Any, b: Any) -> float:
    """Measure an angle with fifty digits, by the arc between two vectors of four."""
    with localcontext(prec=50):
        a, b = ([Decimal(each) for each in vector.tolist()] for vector in (a, b))
        a, b = ([each / sum(e * e for e in v).sqrt() for each in v] for v in (a, b))
        sums = [sum((x + s * y) ** 2 for x, y in zip(a, b, strict=True)).sqrt() for s in (1, -1)]
        return 4 * math.atan(min(sums) / max(sums))


def test_forms_have_their_sizes() -> None:
    """
    Four numbers, four, six and three.
    """
    assert [4, 4, 6, 3] == [form.size for form in RotationForm]


@pytest.mark.parametrize(
    ("form", "values"),
    [
        (XYZW, [0, 0, HALF, HALF]),
        (WXYZ, [HALF, 0, 0, HALF]),
        (ROT6D, [0, 1, 0, -1, 0, 0]),
        (AXIS_ANGLE, [0, 0, math.pi / 2]),
    ],
)
def test_a_quarter_turn_to_the_left_is_written_as_each_form_writes_it(form, values) -> None:
    """
    About z: x becomes y, and y becomes -x.
    """
    quarter = turned(math.pi / 2)
    np.testing.assert_allclose(from_quaternions(quarter, form), values, atol=TINY)
    np.testing.assert_allclose(to_quaternions(np.array(values, float), form), quarter, atol=TINY)


@given(rotations())
def test_the_six_numbers_are_two_columns_of_the_matrix(rotation: Any) -> None:
    """
    The first two, one after the other.
    """
    columns = matrix(rotation)[:, :2].T.ravel()
    np.testing.assert_allclose(from_quaternions(rotation, ROT6D), columns, atol=TINY)


@given(rotations(), forms)
@example(turned(math.pi), AXIS_ANGLE)
@example(turned(math.pi - 1e-9, (0.6, 0, 0.8)), ROT6D)
@example(turned(1e-9), AXIS_ANGLE)
@example(-NONE, AXIS_ANGLE)
def test_every_rotation_can_be_written_and_read(rotation: Any, form: RotationForm) -> None:
    """
    In every form, near no turn and near half a turn, to the last bits, and within [-1, 1] or pi.
    """
    written = from_quaternions(rotation, form)

    assert (form.size,) == written.shape
    assert np.abs(written).max() <= (math.pi if form is AXIS_ANGLE else 1.0) + TINY
    assert np.abs(written).max() <= 1.0 or form is not ROT6D
    assert bool(is_rotation(written, form))
    again = to_quaternions(written, form)
    assert abs(np.linalg.norm(again) - 1) < TINY
    assert exact_angle(again, rotation) < TINY


@given(st.lists(st.tuples(*[st.floats(-1, 1)] * 3), min_size=1, max_size=3).map(np.array))
@example(np.array([[5e-324, 0, 0], [1e-200, -1e-160, 0.0], [-0.0, 0, 0]]))
def test_small_angles_keep_their_digits(vectors: Any) -> None:
    """
    An axis and angle come back as they were, however small; a turn of nothing is zeros, not NaN.
    """
    again = from_quaternions(to_quaternions(vectors, AXIS_ANGLE), AXIS_ANGLE)
    np.testing.assert_allclose(
        again, vectors, rtol=1e-15, atol=TINY * np.abs(vectors).max() + 1e-322
    )


@given(rotations(), st.floats(0.01, 100), st.floats(0.01, 100), st.floats(-5, 5))
def test_columns_need_not_be_orthogonal(
    rotation: Any, long: float, wide: float, skew: float
) -> None:
    """
    As a network writes them: the first keeps its direction, the second is turned away from it.
    """
    first, second, _ = matrix(rotation).T
    written = np.concatenate((long * first, wide * (second + skew * first)))
    assert exact_angle(to_quaternions(written, ROT6D), rotation) < 20 * TINY


@given(st.floats(0.01, 3), rotations())
def test_columns_that_are_nearly_parallel_are_still_a_rotation(angle: float, rotation: Any) -> None:
    """
    At the edge of what is taken for one, the numbers that come out are one, too.
    """
    first, second, _ = matrix(rotation).T
    second = math.cos(angle) * first + math.sin(angle) * second
    read = to_quaternions(np.concatenate((first, second)), ROT6D)
    assert abs(np.linalg.norm(read) - 1) < TINY
    assert exact_angle(read, rotation) < TINY / math.sin(angle)


@pytest.mark.parametrize(
    ("form", "values", "sound"),
    [
        (XYZW, [0, 0, 0, 1], True),
        (XYZW, [0, 0, 0, -1.0099], True),
        (XYZW, [0, 0, 0, 0.9901], True),
        (XYZW, [0, 0, 0, 1.0101], False),
        (WXYZ, [0, 0, 0, 0.9899], False),
        (WXYZ, [0, 0, 0, 0], False),
        (WXYZ, [1e308, 1e308, 1e308, 1e308], False),
        (XYZW, [NAN, 0, 0, 1], False),
        (XYZW, [INF, 0, 0, 1], False),
        (XYZW, [5e-324, 0, 0, -0.0], False),
        (ROT6D, [1, 0, 0, 0, 1, 0], True),
        (ROT6D, [0.02, 0, 0, 0, 50, 0], True),
        (ROT6D, [1e-3, 0, 0, 0, 1, 0], False),
        (ROT6D, [1, 0, 0, 0, 1e-3, 0], False),
        (ROT6D, [1, 0, 0, 1, 0.02, 0], True),
        (ROT6D, [1, 0, 0, -100, 0.5, 0], False),
        (ROT6D, [0, 0, 0, 0, 0, 0], False),
        (ROT6D, [1, 0, 0, 0, 1, NAN], False),
        (ROT6D, [1, 0, 0, 0, INF, 0], False),
        (AXIS_ANGLE, [0, 0, 0], True),
        (AXIS_ANGLE, [0, 0, 6.28], True),
        (AXIS_ANGLE, [0, 0, float(np.float32(2 * math.pi))], True),
        (AXIS_ANGLE, [0, 0, -6.2832], False),
        (AXIS_ANGLE, [4, 4, 4], False),
        (AXIS_ANGLE, [0, -INF, 0], False),
    ],
)
def test_what_is_no_rotation_is_told(
    form: RotationForm, values: list[float], *, sound: bool
) -> None:
    """
    A norm off 1 by more than 1e-2, columns too short or nearly parallel, more than one turn.
    """
    assert sound is bool(is_rotation(np.array(values, float), form))


def test_what_says_whether_it_is_a_rotation_is_a_number() -> None:
    """
    The norm, the angle, the shorter column, or the sine between the two.
    """
    measured = [
        float(measure(np.array(values, float), form))
        for form, values in (
            (XYZW, [0, 0, 3, 4]),
            (AXIS_ANGLE, [0, 3, 4]),
            (ROT6D, [0, 0, 2, 0.5, 0, 0]),
            (ROT6D, [2, 0, 0, 9, 1e-9, 0]),
        )
    ]
    np.testing.assert_allclose(measured, [5, 5, 0.5, 1e-9 / 9], rtol=1e-12)


@given(rotations(), rotations())
@example(NONE, turned(1e-15))
@example(NONE, turned(math.pi))
@example(turned(0.5), turned(0.5 + 1e-12))
def test_the_angle_between_two_rotations_is_exact(a: Any, b: Any) -> None:
    """
    Also where the inverse cosine would give 0 or pi.
    """
    angle = float(angle_between(a, b))
    assert 0 <= angle <= math.pi
    assert abs(exact_angle(a, b) - angle) < TINY


@given(rotations(), rotations(), rotations())
def test_the_angle_is_a_metric(a: Any, b: Any, c: Any) -> None:
    """
    Nothing is 0 from itself, both ways are as long, no way round is shorter, no sign matters.
    """
    assert 0 == angle_between(a, a) == angle_between(a, -a)
    assert (
        angle_between(a, b) == angle_between(b, a) == angle_between(-a, b) == angle_between(a, -b)
    )
    assert angle_between(a, c) <= angle_between(a, b) + angle_between(b, c) + TINY


@given(rotations(), rotations(), shares)
@example(NONE, turned(math.pi, (-1, 0, 0)), 0.25)
@example(NONE, turned(1e-12), 0.5)
def test_a_share_of_the_way_is_a_share_of_the_angle(a: Any, b: Any, share: float) -> None:
    """
    And what is left is the rest: no detour is made.
    """
    angle, between = angle_between(a, b), slerp(a, b, share)
    assert abs(np.linalg.norm(between) - 1) < TINY
    assert abs(angle_between(a, between) - share * angle) < 2 * TINY
    assert abs(angle_between(between, b) - (1 - share) * angle) < 2 * TINY


@given(rotations(), rotations(), shares)
@example(NONE, turned(math.pi), 0.5)
@example(turned(1.0), turned(1.0 + math.pi, (0, 0, -1)), 0.5)
def test_the_way_does_not_depend_on_signs(a: Any, b: Any, share: float) -> None:
    """
    Half a turn has two ways, and the same one is taken whatever the signs are.
    """
    way = slerp(a, b, share)
    for left, right in ((-a, b), (a, -b), (-a, -b)):
        assert angle_between(way, slerp(left, right, share)) < TINY


def test_the_ends_of_the_way_are_reached() -> None:
    """
    0 is where it starts, 1 where it ends.
    """
    a, b = turned(0.25), turned(2.5, (0, 1, 0))
    np.testing.assert_allclose(slerp(a, b, np.array([0.0, 1.0])), [a, b], atol=TINY)


@given(st.lists(rotations(), min_size=1, max_size=5), rotations(), st.floats(1e-6, math.pi))
def test_targets_are_followed_in_steps(targets: Any, start: Any, most: float) -> None:
    """
    Each step is at most as long as it may be, and leads straight to its target.
    """
    path = step_towards(start, np.array(targets), most)
    before = start
    for made, target in zip(path, targets, strict=True):
        angle, went = float(angle_between(before, target)), float(angle_between(before, made))
        assert abs(min(angle, most) - went) < 2 * TINY
        assert abs(angle - went - angle_between(made, target)) < 2 * TINY
        if angle < most - TINY:
            assert made.tobytes() == target.tobytes()
        before = made


@given(rotations(), rotations(), st.floats(0.1, 1.0))
@example(NONE, turned(math.pi), 0.5)
@example(NONE, turned(math.pi, (0, -1, 0)), 0.5)
def test_one_step_is_a_part_of_the_way(start: Any, target: Any, most: float) -> None:
    """
    The plain floats and the arrays do the same, half a turn included.
    """
    angle = float(angle_between(start, target))
    share = min(1.0, most / angle) if angle else 1.0
    made = step_towards(start, target[np.newaxis], most)[0]
    assert angle_between(made, slerp(start, target, share)) < 2 * TINY


@given(st.lists(rotations(), min_size=1, max_size=4), st.data())
def test_the_mean_minimises_the_distances_of_the_matrices(some: Any, data: st.DataObject) -> None:
    """
    No rotation nearby has less of them, and the mean does not see signs.
    """
    weights = np.array([data.draw(st.floats(0.05, 1)) for _ in some])
    signs = np.array([data.draw(st.sampled_from((1.0, -1.0))) for _ in some])[:, np.newaxis]
    middle = mean(np.array(some), weights)

    def cost(rotation: Any) -> float:
        return sum(
            weight * np.square(matrix(rotation) - matrix(each)).sum()
            for weight, each in zip(weights, some, strict=True)
        )

    assert abs(np.linalg.norm(middle) - 1) < TINY
    for other in (*some, slerp(middle, data.draw(rotations()), 0.01)):
        assert cost(middle) <= cost(other) + 1e-12
    flipped = mean(signs * np.array(some), weights)
    assert abs(cost(flipped) - cost(middle)) < 1e-12


@given(rotations(), rotations(), st.floats(0.05, 1), st.floats(0.05, 1))
def test_the_mean_of_two_is_on_the_way_between_them(
    a: Any, b: Any, one: float, other: float
) -> None:
    """
    In the middle, if they weigh the same.
    """
    assume(angle_between(a, b) < 3.1)  # half a turn has two middles
    middle = mean(np.array([a, b]), np.array([one, other]))
    there = angle_between(a, middle) + angle_between(middle, b)
    assert abs(there - angle_between(a, b)) < 1e-12
    if one == other:
        assert abs(angle_between(a, middle) - angle_between(middle, b)) < 1e-12
    assert angle_between(mean(np.array([a, a]), np.array([one, other])), a) < 1e-12


def test_a_mean_with_a_weight_of_nothing_is_the_other() -> None:
    """
    Also where weights are so small that their squares are nothing.
    """
    some = np.array([turned(0.5), turned(2.5)])
    assert angle_between(mean(some, np.array([1.0, 0.0])), some[0]) < 1e-12
    assert angle_between(mean(some, np.array([1e-300, 1e-300])), turned(1.5)) < 1e-12


@given(rotations(), rotations(), forms)
def test_numbers_are_written_near_others(rotation: Any, other: Any, form: RotationForm) -> None:
    """
    The rotation stays, and no other way of writing it is nearer.
    """
    values, near = from_quaternions(rotation, form), from_quaternions(other, form)
    written = written_near(values, near, form)
    assert bool(is_rotation(written, form))
    assert exact_angle(to_quaternions(written, form), rotation) < 2 * TINY

    def distance(numbers: Any) -> float:
        return float(np.linalg.norm(numbers - near))

    ways = [values]
    if form in QUATERNIONS:
        ways.append(-values)
    elif form is AXIS_ANGLE and (angle := np.linalg.norm(values)) > 0:
        ways.append(values - values / angle * 2 * math.pi)
    assert distance(written) <= min(map(distance, ways)) + TINY


@pytest.mark.parametrize(
    ("values", "near", "expected"),
    [
        ([0, 0, -3.0], [0, 0, 3.0], [0, 0, -3.0 + 2 * math.pi]),
        ([0, 0, 3.0], [0, 0, 3.1], [0, 0, 3.0]),
        ([0, 0, 0.1], [0, 0, -6.1], [0, 0, 0.1 - 2 * math.pi]),
        ([0, 0, 0], [0, 0, 6.1], [0, 0, 2 * math.pi]),
        ([0, 0, 0], [0, 0, 3.1], [0, 0, 0]),
        ([0, 0, 0], [0, 0, 0], [0, 0, 0]),
        ([0, 0, 0.1], [0, 0, 99.0], [0, 0, 0.1]),  # no more than one turn
        ([0, 0, 1.0], [NAN, INF, -INF], [0, 0, 1.0]),
    ],
)
def test_an_angle_may_go_the_other_way_round(values, near, expected) -> None:
    """
    So that a wrist that turns on past pi is not written as one that jumps to -pi.
    """
    written = written_near(np.array(values, float), np.array(near, float), AXIS_ANGLE)
    np.testing.assert_allclose(written, expected, atol=TINY)


@given(hnp.arrays("float64", (2, 3, 4), elements=st.floats(-1, 1)), forms)
def test_leading_axes_are_kept(numbers: Any, form: RotationForm) -> None:
    """
    Every row is treated as if it were alone.
    """
    numbers[..., 3] += np.where(np.linalg.norm(numbers, axis=-1) < 0.1, 1, 0)
    some = to_quaternions(numbers, XYZW)
    other = np.roll(some, 1, axis=1)
    written = from_quaternions(some, form)
    assert (2, 3, form.size) == written.shape
    for whole, part in (
        (is_rotation(written, form), lambda i, j: is_rotation(written[i, j], form)),
        (to_quaternions(written, form), lambda i, j: to_quaternions(written[i, j], form)),
        (angle_between(some, other), lambda i, j: angle_between(some[i, j], other[i, j])),
        (slerp(some, other, 0.5), lambda i, j: slerp(some[i, j], other[i, j], 0.5)),
        (
            written_near(written, np.roll(written, 1, axis=0), form),
            lambda i, j: written_near(written[i, j], written[i - 1, j], form),
        ),
    ):
        for i, j in np.ndindex(2, 3):
            np.testing.assert_allclose(whole[i, j], part(i, j), rtol=1e-14, atol=1e-15)
