"""Tests of `vlmcore.safety._orientations` through the gate: targets that are rotations in space."""

from __future__ import annotations

import math
from typing import Any

import attrs
import numpy as np
import pytest

from rotation_cases import AXIS_ANGLE, NAMES, XYZW, turn, turning, wrist
from safety_cases import JOINT, chunk
from vlmcore._rotations import angle_between, to_quaternions
from vlmcore.contracts.rotations import RotationForm, RotationGroup
from vlmcore.errors import ContractError, UnsafeActionError
from vlmcore.safety import NonFinite, Remedy, SafetyGate, ViolationKind
from vlmcore.safety._orientations import Orientation, find_turns

NAN, INF = math.nan, math.inf
STILL = [0.0, 0.0, 0.0, 1.0]


def clamp(*rows: Any, space: Any = None, start: Any = None) -> Any:
    """Clamp rotations, from no rotation on, and hold the last one where there is none."""
    space = wrist() if space is None else space
    start = turn(0, space.rotations[0].form) if start is None else start
    gate = SafetyGate(space=space, remedy=Remedy.CLAMP, non_finite=NonFinite.HOLD)
    return gate.vet(turning(*rows), last_command=start)


def found(*rows: Any, space: Any = None, start: Any = STILL) -> dict[str, int]:
    """Count what is wrong with rotations."""
    gate = SafetyGate(space=wrist() if space is None else space)
    counts = gate.check(turning(*rows), last_command=start).counts
    return {kind.value: count for kind, count in counts.items() if count}


@pytest.mark.parametrize("form", RotationForm)
def test_group_rotations_use_geodesic_angle_and_slerp(form: RotationForm) -> None:
    """
    S10: a turn of 0.5 with a step of 0.1 is five turns of 0.1 about the same axis, in every form.
    """
    made = clamp(*[turn(0.5, form)] * 6, space=wrist(form)).values

    angles = [0.1, 0.2, 0.3, 0.4, 0.5, 0.5]
    np.testing.assert_allclose(made, [turn(each, form) for each in angles], atol=1e-14)
    assert {"step": 1} == found(*[turn(0.5, form)] * 6, space=wrist(form), start=turn(0, form))


@pytest.mark.parametrize("form", [XYZW, RotationForm.QUATERNION_WXYZ])
def test_group_rotations_renormalise(form: RotationForm) -> None:
    """
    S10: what clamping makes has norm 1, where what came had not quite.
    """
    made = clamp(0.995 * turn(1.0, form), 1.005 * turn(1.0, form), space=wrist(form)).values
    np.testing.assert_allclose(np.linalg.norm(made, axis=1), 1, atol=1e-15)


@pytest.mark.parametrize("norm", [0.0, 0.5, 0.98999, 1.01001, 2.0, -1.02])
def test_group_rotations_refuse_a_norm_that_is_off_1_by_more_than_1e_2(norm: float) -> None:
    """
    S10: it was not meant as a quaternion; clamping holds, as with NaN, and never repairs it.
    """
    space = wrist(low=-3, high=3)
    row = norm * turn(0.05)
    assert {"not_a_rotation": 1} == found(row, space=space)
    assert [turn(0.02).tolist()] * 2 == clamp(turn(0.02), row, space=space).values.tolist()
    with pytest.raises(UnsafeActionError) as caught:
        SafetyGate(space=space).vet(turning(row), last_command=STILL)
    assert "violations" == caught.value.reason


def test_a_norm_that_is_a_little_off_passes_as_it_came() -> None:
    """
    A safe chunk is not touched in any mode, not even to renormalise it.
    """
    rows = [0.9901 * turn(0.05), 1.0099 * turn(0.1), turn(0.15).astype(np.float32)]
    for remedy in Remedy:
        vetted = SafetyGate(space=wrist(), remedy=remedy).vet(turning(*rows), last_command=STILL)
        assert [list(map(float, row)) for row in rows] == vetted.values.tolist()
        assert (0, False) == (vetted.report.total, vetted.report.changed)


@pytest.mark.parametrize(
    ("form", "row"),
    [
        (RotationForm.ROT6D, [0.009, 0, 0, 0, 1, 0]),
        (RotationForm.ROT6D, [1, 0, 0, 1, 0.009, 0]),
        (RotationForm.ROT6D, [0, 0, 0, 0, 0, 0]),
        (AXIS_ANGLE, [0, 0, 6.3]),
        (AXIS_ANGLE, [4, 4, 4]),
    ],
)
def test_other_forms_have_numbers_that_are_no_rotation_too(form: RotationForm, row: Any) -> None:
    """
    Columns too short or nearly parallel, or more than one turn.
    """
    space, start = wrist(form, low=-9, high=9), turn(0.02, form)
    assert {"not_a_rotation": 1} == found(row, space=space, start=start)
    held = clamp(row, turn(0.1, form), space=space, start=start).values
    np.testing.assert_allclose(held, [start, turn(0.1, form)], atol=1e-15)


def test_a_quaternion_and_its_negative_are_one_rotation() -> None:
    """
    There is no step between them, and what clamping makes keeps the sign of what came.
    """
    assert {} == found(-turn(0.05), turn(0.1), -turn(0.15))
    made = clamp(-turn(0.5), turn(0.5), start=[0, 0, 0, -1.0]).values
    np.testing.assert_allclose(made, [-turn(0.1), turn(0.2)], atol=1e-15)


def test_an_axis_and_angle_may_turn_on_past_pi() -> None:
    """
    3.1 and -3.1 about one axis are 0.083 apart, and are written as they came.
    """
    space = wrist(AXIS_ANGLE)
    assert {} == found([0, 0, 3.1], [0, 0, -3.1], space=space, start=[0, 0, 3.05])
    made = clamp([0, 0, 3.4], [0, 0, -2.5], space=space, start=[0, 0, 3.1]).values
    np.testing.assert_allclose(made[:, 2], [3.2, 3.3 - 2 * math.pi], atol=1e-14)


def test_a_rotation_that_is_partly_nan_is_held_as_a_whole() -> None:
    """
    Three numbers of one rotation and one of another are no rotation; the next step is held against
    the last one that was.
    """
    rows = [turn(0.1), [0.5, 0.5, NAN, 0.5], [INF, 0, 0, 1], turn(0.2)]
    assert {"non_finite": 2} == found(*rows)
    made = clamp(*rows).values
    assert [turn(0.1).tolist()] * 3 + [turn(0.2).tolist()] == made.tolist()
    assert {"non_finite": 1, "step": 1} == found(turn(0.1), [NAN, 0, 0, 1], turn(0.3))


def test_what_is_found_of_a_rotation_is_found_once_and_marks_all_its_numbers() -> None:
    """
    At its first dimension: the angle in radians against the bound, the norm against 1.01.
    """
    space = wrist(XYZW, JOINT, low=-3, high=3)
    rows = [[*turn(0.5), 0.0], [*(2 * turn(0.5)), 0.0], [*turn(0.5), 0.0]]
    report = SafetyGate(space=space).check(chunk(rows, *space.names), last_command=[*STILL, 0.0])

    assert [
        "step 0, 'wrist': turns by 0.5 rad (limit 0.1)",
        "step 1, 'wrist': is no rotation (norm 2, limit 1.01)",
    ] == list(map(str, report.violations))
    assert (2, [[True] * 4 + [False]] * 2 + [[False] * 5]) == (
        report.total,
        report.findings.marks().tolist(),
    )


@pytest.mark.parametrize(
    ("form", "row", "words"),
    [
        (RotationForm.QUATERNION_WXYZ, [0.0] * 4, "norm 0, limit 0.99"),
        (RotationForm.ROT6D, [1.0, 0, 0, 1.0, 0, 0], "length or sine 0, limit 0.01"),
        (AXIS_ANGLE, [7.0, 0, 0], "angle 7, limit 6.28319"),
    ],
)
def test_a_rotation_is_told_by_its_own_name_and_in_radians(form, row, words: str) -> None:
    """
    "'qx': 0.40 too far" is about no number that anybody sent.
    """
    space = wrist(form, low=-8, high=8)
    report = SafetyGate(space=space).check(turning(row), last_command=turn(0, form))
    assert f"step 0, 'wrist': is no rotation ({words})" == str(report.violations[0])
    assert (0, form) == (report.violations[0].dim, report.violations[0].form)


def test_a_number_of_a_rotation_that_is_out_of_bounds_is_told_by_its_own_name() -> None:
    """
    The bound is that of one number.
    """
    row, space = [0, 0, 0.55], wrist(AXIS_ANGLE, low=-0.5, high=0.5)
    report = SafetyGate(space=space).check(turning(row), last_command=[0, 0, 0.48])
    assert ["step 0, 'r2': 0.55 out of bounds (limit 0.5)"] == list(map(str, report.violations))


def test_a_rotation_is_clamped_beside_other_dimensions() -> None:
    """
    Each for itself.
    """
    space = wrist(XYZW, JOINT)
    rows = [[*turn(0.05), 0.5], [*turn(0.1), 0.5]]
    gate = SafetyGate(space=space, remedy=Remedy.CLAMP)
    made = gate.vet(chunk(rows, *space.names), last_command=[*STILL, 0.0]).values
    assert [[*turn(0.05), 0.1], [*turn(0.1), 0.2]] == made.tolist()


def test_bounds_of_the_numbers_stay_law() -> None:
    """
    A rotation that cannot be written in bounds is not sent: the last one is held.
    """
    space = wrist(AXIS_ANGLE, low=-0.5, high=0.5)
    assert {"out_of_bounds": 1} == found([0, 0, 0.55], space=space, start=[0, 0, 0.48])
    made = clamp(*[[0, 0, 0.8]] * 2, [0, 0, 0.4], space=space, start=[0, 0, 0.35]).values
    np.testing.assert_allclose(made[:, 2], [0.45, 0.45, 0.4], atol=1e-15)


def test_what_can_be_written_in_bounds_otherwise_is() -> None:
    """
    A sign is turned round, and an angle goes the other way, where bounds ask for it.
    """
    upper = attrs.evolve(wrist(), dims=[attrs.evolve(d, low=0.0) for d in wrist().dims])
    assert [turn(0.05).tolist()] == clamp(-turn(0.05), space=upper).values.tolist()
    half = wrist(AXIS_ANGLE, low=-math.pi, high=math.pi)
    made = clamp([0, 0, 3.2], space=half, start=[0, 0, 3.15 - 2 * math.pi]).values
    np.testing.assert_allclose(made, [[0, 0, 3.2 - 2 * math.pi]], atol=1e-14)


def test_holding_repeats_the_last_rotation() -> None:
    """
    As it was sent, whatever its norm.
    """
    last = 0.995 * turn(0.3)
    gate = SafetyGate(space=wrist(), remedy=Remedy.HOLD)
    held = gate.vet(turning(turn(2.0), turn(2.0)), last_command=last).values
    assert [last.tolist()] * 2 == held.tolist()


def test_a_rotation_that_starts_from_nowhere_is_not_safe() -> None:
    """
    However near it may be; and what is no rotation cannot be held there.
    """
    for row, reason in ((STILL, "first_step_unchecked"), ([0, 0, 0, 0.5], "no_reference")):
        with pytest.raises(UnsafeActionError) as caught:
            SafetyGate(space=wrist(), remedy=Remedy.CLAMP).vet(turning(row), last_command=None)
        assert reason == caught.value.reason


@pytest.mark.parametrize("last", [[0.0] * 4, dict.fromkeys(NAMES[:4], 0.6)])
def test_a_last_command_is_a_rotation(last: Any) -> None:
    """
    Zeros are what a caller sends who forgot to read the robot.
    """
    norm, zeros = ("0", ": zeros are no rotation") if isinstance(last, list) else ("1.2", "")
    with pytest.raises(ContractError) as error:
        SafetyGate(space=wrist()).check(turning(STILL), last_command=last)
    assert (
        f"last_command: got norm {norm} of 'wrist', expected 0.99 to 1.01, as {XYZW} has{zeros}"
    ) == str(error.value)


def test_a_last_command_out_of_bounds_is_said() -> None:
    """
    From there one step must lead back.
    """
    space = wrist(AXIS_ANGLE, low=-0.5, high=0.5)
    row = [0, 0, 0.45]
    assert [[0, 0, 0.45]] == clamp(row, space=space, start=[0, 0, 0.52]).values.tolist()
    with pytest.raises(UnsafeActionError) as caught:
        clamp(row, space=space, start=[0, 0, 0.9])
    assert "reference_out_of_bounds" == caught.value.reason


@pytest.mark.parametrize("remedy", [Remedy.CLAMP, Remedy.HOLD])
def test_a_rotation_at_its_bound_may_be_said_in_float32(remedy: Remedy) -> None:
    """
    Half a turn in float32 is above pi: it is held at the bound.
    """
    space = wrist(AXIS_ANGLE, low=-math.pi, high=math.pi)
    gate = SafetyGate(space=space, remedy=remedy, non_finite=NonFinite.HOLD)
    last = np.array([0, 0, math.pi], np.float32)
    came = gate.vet(turning([0, 0, NAN], [0, 0, NAN]), last_command=last)
    assert [[0.0, 0.0, math.pi]] * 2 == came.values.tolist()
    calm = SafetyGate(space=space).vet(turning([0, 0, 3.1]), last_command=last)
    assert 0 == sum(calm.report.counts.values())
    with pytest.raises(UnsafeActionError) as error:
        gate.vet(turning([0, 0, NAN]), last_command=[0, 0, math.pi + 1e-5])
    assert "reference_out_of_bounds" == error.value.reason


@pytest.mark.parametrize("form", RotationForm)
def test_steps_of_exactly_the_limit_in_float32_are_not_blocked(form: RotationForm) -> None:
    """
    0.12, 0.24, ... radians, as a policy computes and writes them, come back bit by bit.
    """
    space = wrist(form, max_step_rad=0.12)
    ramp = np.array([turn(0.12 * i, form, axis=0) for i in range(1, 26)]).astype(np.float32)
    vetted = SafetyGate(space=space).vet(turning(*ramp), last_command=turn(0, form))
    assert ramp.tobytes() == vetted.as_float32().tobytes()
    assert {"step": 1} == found(turn(0.12001, form), space=space, start=turn(0, form))


@pytest.mark.parametrize(
    ("form", "low", "high", "size"),
    [
        (XYZW, -1.0, 1.0, 1.0),
        (XYZW, -5.0, 5.0, 1.0),
        (RotationForm.ROT6D, -5.0, 5.0, 1.0),
        (AXIS_ANGLE, -0.5, 0.5, 0.5 * 3**0.5),
        (AXIS_ANGLE, -2.0, 0.5, 2 * 3**0.5),  # the longest axis that its bounds allow ...
        (AXIS_ANGLE, -0.5, 2.0, 2 * 3**0.5),
        (AXIS_ANGLE, -9.0, 9.0, 2 * math.pi),  # ... and a turn at the most
    ],
)
def test_a_turn_is_forgiven_what_float32_cannot_help(
    form: RotationForm, low: float, high: float, size: float
) -> None:
    """
    By the largest numbers that it is written with.
    """
    (orientation,) = Orientation.of(wrist(form, low=low, high=high))
    assert 4 * 2**-23 * size == pytest.approx(orientation.slack, rel=1e-12)


def test_a_norm_at_its_edge_is_still_a_rotation_as_float32() -> None:
    """
    Rounding is forgiven there, too, and in the last command that it becomes.
    """
    row = turn(0.288)  # float32 makes it shorter
    row *= 0.99 / np.linalg.norm(row) * (1 + 1e-15)
    vetted = SafetyGate(space=wrist(max_step_rad=0.3)).vet(turning(row), last_command=STILL)
    sent = vetted.as_float32()
    assert np.linalg.norm(sent[0].astype(np.float64)) < 0.99
    SafetyGate(space=wrist()).check(turning(STILL), last_command=sent[0])


def test_half_a_turn_is_walked_without_nan() -> None:
    """
    Both ways are as short; one is taken, and kept.
    """
    made = clamp(*[turn(math.pi, axis=0)] * 40).values
    quaternions = to_quaternions(made, XYZW)
    steps = angle_between(quaternions, np.vstack((STILL, quaternions[:-1])))
    np.testing.assert_allclose(steps[:31], 0.1, atol=1e-14)
    np.testing.assert_allclose(np.abs(made[-1]), [1, 0, 0, 0], atol=1e-15)


def test_a_rate_of_turning_is_a_step_by_the_rate_of_control() -> None:
    """
    2 rad/s at 20 Hz.
    """
    group = RotationGroup(name="wrist", form=XYZW, max_rate_rad_s=2.0)
    made = clamp(turn(1.0), space=attrs.evolve(wrist(), rotations=(group,))).values
    np.testing.assert_allclose(made, [turn(0.1)], atol=1e-15)


def test_a_long_chunk_that_is_held_now_and_then_is_walked_as_a_whole() -> None:
    """
    Every other step is lost, and none is skipped.
    """
    rows = [turn(1.0) if i % 2 else [NAN] * 4 for i in range(64)]
    made = clamp(*rows).values
    expected = [turn(min(1.0, 0.1 * ((i + 1) // 2))) for i in range(64)]
    np.testing.assert_allclose(made, expected, atol=1e-14)


def test_spaces_that_differ_in_a_rotation_differ_in_their_digest() -> None:
    """
    In its form, in its bound, in its name.
    """
    spaces = [
        wrist(),
        wrist(RotationForm.QUATERNION_WXYZ),
        wrist(max_step_rad=0.2),
        attrs.evolve(
            wrist(),
            dims=[attrs.evolve(dim, rotation="hand") for dim in wrist().dims],
            rotations=[attrs.evolve(wrist().rotations[0], name="hand")],
        ),
    ]
    assert len(spaces) == len({each.digest() for each in spaces})


def test_the_kind_is_counted_with_the_values() -> None:
    """
    It is a chunk that is wrong, not what is known before it.
    """
    assert ViolationKind.NOT_A_ROTATION.is_of_values


def walked(rows: Any, start: Any, form: RotationForm = XYZW, **bounds: float) -> Any:
    """Walk from a rotation, and list what was made."""
    (orientation,) = Orientation.of(wrist(form, **bounds))
    return orientation.walk(np.array(rows, np.float64), np.array(start, np.float64)).tolist()


@pytest.mark.parametrize(
    ("low", "high", "start", "held"),
    [
        (-0.5, 0.5, 0.5 + 2.0**-22, 0.5),
        (-0.5, 0.5, -0.5 - 2.0**-22, -0.5),
        (-2.0, 0.5, -2.0 - 2.0**-20, -2.0),
        (-0.5, 0.5, 0.5 + 1.5 * 2.0**-22, 0.5 + 1.5 * 2.0**-22),  # that is no rounding
    ],
)
def test_a_last_rotation_that_float32_led_out_is_held_at_the_bound(low, high, start, held) -> None:
    """
    To the last bit of what float32 cannot help.
    """
    nothing = [[NAN] * 3] * 2
    made = walked(nothing, [0, 0, start], AXIS_ANGLE, low=low, high=high)
    assert [[0, 0, held]] * 2 == made


def test_a_rotation_that_is_near_enough_stays_as_it_came_beside_those_that_do_not() -> None:
    """
    Its norm too, whether another one is too far or out of bounds, and also at its bounds.
    """
    near, far = (0.995 * turn(0.05)).tolist(), turn(1.0).tolist()
    assert near == walked([near, far], STILL)[0]
    assert near == walked([near, [0, 0, 0, 1.005]], STILL, high=1.0)[0]
    for side in (1, -1):
        edge = [0.0, 0.0, 0.0, side * 0.995]
        came = [edge, [0.0, 0.0, 0.0, side * 1.005]]
        assert edge == walked(came, (0.99 * turn(0.02)).tolist(), low=-0.995, high=0.995)[0]


def test_no_turn_at_all_is_a_rotation_like_any_other() -> None:
    """
    An axis of length 0 has no direction, and needs none.
    """
    zero = [0.0, 0.0, 0.0]
    assert [zero, zero] == walked([zero, [NAN] * 3], [0, 0, 0.05], AXIS_ANGLE)


def test_a_last_command_of_two_columns_is_told_what_they_lack() -> None:
    """
    The sine between columns that are parallel is 0.
    """
    gate = SafetyGate(space=wrist(RotationForm.ROT6D))
    with pytest.raises(ContractError, match=r" 0 of 'wrist', expected 0\.01 to inf"):
        gate.check(turning(turn(0, RotationForm.ROT6D)), last_command=[1, 0, 0, 1, 0, 0])


def test_a_turn_is_forgiven_once_to_the_last_bit() -> None:
    """
    Not what is half as much again; and what is exactly allowed is.
    """
    (orientation,) = Orientation.of(wrist())
    assert {} == found(turn(0.1 + 0.9 * orientation.slack))
    assert {"step": 1} == found(turn(0.1 + 1.5 * orientation.slack))

    path = np.array([STILL, turn(0.1)])
    angle = float(orientation.turns(path, np.ones(2, np.bool_))[0])
    for allowed, is_kept in ((angle, True), (math.nextafter(angle, 0), False)):
        exact = attrs.evolve(orientation, max_step=allowed, slack=0.0)
        kept = np.zeros((1, 4), np.bool_)
        find_turns([exact], path, steps=np.zeros((1, 4)), kept=kept, slack=0.0)
        assert is_kept is bool(kept[0, 0])


def test_a_row_that_is_lost_hides_no_other() -> None:
    """
    What is no rotation is found in each row by itself.
    """
    rows = [2 * turn(0.05), [NAN, 0, 0, 1]]
    assert {"not_a_rotation": 1, "non_finite": 1} == found(*rows, space=wrist(low=-3, high=3))
