"""
Holes that gates for actions have had in practice, each with the numbers it was seen with, closed.

The words of a hole stand first in each docstring. Bounds are [-1, 1] and the step bound is 0.1
unless something else is said. What is closed elsewhere has its words there: the motion that changes
add up to in `test_positions`, too many unsafe chunks in a row in `test_latch`, who makes a vetted
chunk in `test_vetted`, float32 ramps in the properties.
"""

from __future__ import annotations

import math

import attrs
import numpy as np
import pytest

from safety_cases import GRIPPER, JOINT, SLIDE, WHEEL, chunk, gate, joint, refused, vetted
from vlmcore.contracts.actions import Stream
from vlmcore.contracts.embodiment import ActionDim, Reference
from vlmcore.contracts.presets import PRESETS
from vlmcore.errors import ContractError, UnsafeActionError
from vlmcore.safety import NonFinite, RefusalReason, Remedy, SafetyGate, ViolationKind

NAN = math.nan


def test_nan_with_no_previous_command_is_never_moved_to_mid_range() -> None:
    """
    NaN with no previous command, Clamp: [0, 10] becomes 5.0 and safe. Nothing is invented here.
    """
    slot = ActionDim(name="x", low=0.0, high=10.0, max_step=0.1)
    error = refused([[NAN]], last_command=None, remedy=Remedy.CLAMP, dims=(slot,))
    assert "no_reference" == error.reason


def test_nan_falls_back_to_the_last_good_step_not_to_the_chunk_start() -> None:
    """
    [0.5, NaN, 0.5] with previous 0.9 and delta 0.5 becomes [0.5, 0.9, 0.5]; it is [0.5, 0.5, 0.5].
    """
    came, known = [[0.5], [NAN], [0.5]], {"last_command": [0.9], "dims": (joint(0.5),)}
    assert [0.5, 0.5, 0.5] == vetted(came, non_finite=NonFinite.HOLD, **known)


@pytest.mark.parametrize("lost", [NAN, math.inf, -math.inf])
def test_any_non_finite_value_truncates_the_chunk_there_unless_the_user_asks_for_fill(
    lost: float,
) -> None:
    """
    Any non-finite value truncates the chunk there (executable prefix) unless the user asks for
    fill. The remedy to hold asks for it, of the whole chunk.
    """
    came, known = [[0.5], [lost], [0.5]], {"last_command": [0.9], "dims": (joint(0.5),)}
    assert [0.5] == vetted(came, **known)
    assert [0.5] == vetted(came, non_finite=NonFinite.TRUNCATE, **known)
    assert [0.9, 0.9, 0.9] == vetted(came, remedy=Remedy.HOLD, **known)


def test_nan_is_held_at_what_was_vetted_not_at_what_came() -> None:
    """
    NaN holds the last validated step: it was clamped, and that is where the robot is.
    """
    held = vetted([[0.9], [math.inf], [0.9]], last_command=[0.0], non_finite=NonFinite.HOLD)
    assert [0.1, 0.1, 0.2] == pytest.approx(held)


@pytest.mark.parametrize("remedy", [Remedy.BLOCK, Remedy.REPORT, Remedy.CLAMP])
def test_the_first_step_is_not_unchecked_without_a_previous_command(remedy: Remedy) -> None:
    """
    First step unchecked without previous: [1, 1] passes in Block mode, a jump across the room.
    """
    error = refused([[1.0], [1.0]], last_command=None, remedy=remedy)
    assert "first_step_unchecked" == error.reason
    assert (1, 0) == (error.report.counts[ViolationKind.START_UNKNOWN], error.report.total)
    assert not error.report.previous_action_provided


def test_changes_start_from_zero_without_a_previous_command() -> None:
    """
    First step unchecked without previous: a robot that is driven by changes may start, slowly.
    """
    assert [0.02, 0.04] == vetted(
        [[0.02], [0.04]], last_command=None, remedy=Remedy.BLOCK, dims=(SLIDE,)
    )
    assert "violations" == refused([[0.03]], last_command=None, dims=(SLIDE,)).reason


@pytest.mark.parametrize("remedy", Remedy)
def test_a_previous_command_out_of_bounds_is_not_answered_by_a_jump(remedy: Remedy) -> None:
    """
    Previous out of bounds (5.0): Clamp gives [1.0, 0.9], a 4.0 step with limit 0.1.
    """
    error = refused([[0.9], [0.9]], last_command=[5.0], remedy=remedy)
    assert error.reason in {"reference_out_of_bounds", "violations"}
    assert 1 == error.report.counts[ViolationKind.REFERENCE_OUT_OF_BOUNDS]


def test_a_previous_command_just_out_of_bounds_is_led_back() -> None:
    """
    Previous out of bounds: what is allowed is what one step reaches and the bounds hold.
    """
    assert [0.95, 0.85] == pytest.approx(vetted([[0.0], [0.0]], last_command=[1.05]))
    error = refused([[1.0]], last_command=[1.05])
    assert RefusalReason.REFERENCE_OUT_OF_BOUNDS is error.report.reason


def test_hold_does_not_return_a_previous_command_out_of_bounds() -> None:
    """
    Hold returns an out-of-bounds previous unchanged, [5, 5]: it needs one in bounds and finite.
    """
    for at in (5.0, 1.05):
        error = refused([[NAN], [NAN]], last_command=[at], remedy=Remedy.HOLD)
        assert "reference_out_of_bounds" == error.reason
    assert "no_reference" == refused([[NAN]], last_command=None, remedy=Remedy.HOLD).reason


def test_hold_does_not_repeat_the_last_delta() -> None:
    """
    Hold for delta actions repeats the last delta: after 0.05 the robot keeps moving. It stops here.
    """
    dims = (SLIDE, JOINT)
    held = vetted([[NAN, 0.0]] * 2, last_command=[0.05, 0.3], remedy=Remedy.HOLD, dims=dims)
    assert [[0.0, 0.0], [0.3, 0.3]] == held


def test_stopping_is_never_too_fast() -> None:
    """
    Per-step delta on a delta action bounds the jerk of the delta: from 0.05 to 0 is one step.
    """
    assert [0.0] == vetted([[0.0]], last_command=[0.05], remedy=Remedy.BLOCK, dims=(SLIDE,))
    assert [-0.02] == vetted([[-0.05]], last_command=[0.05], dims=(SLIDE,))
    assert [0.03, 0.05] == pytest.approx(vetted([[1], [1]], last_command=[0.01], dims=(SLIDE,)))


def test_action_mode_is_free_text_and_never_read() -> None:
    """
    action_mode is free text and never read: what a number means is said by its dimension.
    """
    robot = attrs.evolve(PRESETS["ALOHA bimanual template"], action_mode="delta, trust me")
    came = chunk([[0.1] * 14] * 2, *robot.actions.names)
    moving = SafetyGate(embodiment=robot, remedy=Remedy.HOLD).vet(came, last_command=[0.1] * 14)
    assert [[0.1] * 14] * 2 == moving.values.tolist()
    with pytest.raises(UnsafeActionError):
        SafetyGate(embodiment=robot).vet(came, last_command=[-0.1] * 14)


@pytest.mark.parametrize(
    ("reference", "leads_out", "held"),
    [
        (Reference.ABSOLUTE, 0, 0.1),
        (Reference.DELTA, 1, 0.0),  # 0.1 and 0.1 are 0.2
        (Reference.CHUNK_RELATIVE, 0, 0.0),  # 0.1 from the start, and still 0.1
        (Reference.VELOCITY, 0, 0.0),  # 0.1 a second is 0.005 a step
        (Reference.TORQUE, 0, 0.0),
    ],
)
def test_the_same_numbers_are_checked_by_what_they_refer_to(
    reference: Reference, leads_out: int, held: float
) -> None:
    """
    Action mode enum {absolute, step_delta, chunk_relative, velocity, torque}, checks on the
    integrated absolute path when a reference state is given.
    """
    bounds = {"position_low": -0.15, "position_high": 0.15} if reference.leads_somewhere else {}
    dim = ActionDim(name="x", reference=reference, low=-1.0, high=1.0, max_step=0.1, **bounds)
    known = {"last_command": [0.1], "position": {"x": 0.0} if bounds else {}}
    came = chunk([[0.1], [0.1]])

    report = gate(dim).check(came, **known)
    assert leads_out == report.counts[ViolationKind.POSITION] == report.total
    lost = gate(dim, remedy=Remedy.HOLD).vet(chunk([[NAN], [0.1]]), **known)
    assert [[held], [held]] == lost.values.tolist()


def test_clamp_does_not_reject_its_own_output() -> None:
    """
    "Clamp safely" rejects its own output (.3 + .1 k), at limits that have no exact binary form.
    """
    clamping = gate(joint(0.1, bound=4.0), remedy=Remedy.CLAMP)
    once = clamping.vet(chunk([[3.9]] * 30), last_command=[0.3])
    blocking = gate(joint(0.1, bound=4.0))

    assert (
        once.values.tobytes() == blocking.vet(once.as_chunk(), last_command=[0.3]).values.tobytes()
    )
    as_float32 = chunk(once.as_float32())
    assert not blocking.vet(as_float32, last_command=[0.3]).report.total


def test_float32_pi_is_above_pi_and_out_of_bounds() -> None:
    """
    float32(pi) > pi passes, a violation downstream: clamped it is pi, and below it as float32.
    """
    turn = joint(0.2, bound=math.pi)
    came = np.array([[np.pi]], np.float32)
    assert 1 == refused(came, last_command=[3.1], dims=(turn,)).report.total

    clamped = gate(turn, remedy=Remedy.CLAMP).vet(chunk(came), last_command=[3.1])
    assert math.pi == clamped.values[0, 0]
    assert float(clamped.as_float32()[0, 0]) < math.pi


def test_an_angle_that_comes_round_again_goes_the_short_way() -> None:
    """
    3.1 to -3.1 rad is 0.083 apart, seen as 6.2, clamped to 2.98 (the long way round).
    """
    yaw = ActionDim(name="x", low=-math.pi, high=math.pi, period=2 * math.pi, max_step=0.12)
    assert [-3.1] == vetted([[-3.1]], last_command=[3.1], remedy=Remedy.BLOCK, dims=(yaw,))
    # 0.12 on from 3.1 is past pi, which is written from the other end.
    assert [3.22 - 2 * math.pi] == pytest.approx(vetted([[-2.0]], last_command=[3.1], dims=(yaw,)))
    assert [-2.8, -2.3] == pytest.approx(
        vetted([[-1.5], [-1.5]], last_command=[2.7], dims=(WHEEL,))
    )


def test_a_binary_gripper_is_never_half_closed() -> None:
    """
    Binary gripper: 0 to 1 with max_delta .15 becomes .15, .30, .45, half closed for 7 steps.
    """
    assert [1.0] * 7 == vetted([[1]] * 7, last_command=[0], remedy=Remedy.BLOCK, dims=(GRIPPER,))
    assert [1.0, 0.0] == vetted([[1], [0]], last_command=[0], remedy=Remedy.BLOCK, dims=(GRIPPER,))
    halves = refused([[0.15], [0.30], [0.45]], last_command=[0], dims=(GRIPPER,))
    assert 3 == halves.report.counts[ViolationKind.NOT_A_LEVEL] == halves.report.total


def test_a_binary_gripper_has_hysteresis() -> None:
    """
    Binary dims are snapped by thresholds with hysteresis (open < 0.4, close > 0.6).
    """
    closing = [[0.4], [0.5], [0.6], [0.6000001], [0.5], [0.4], [0.3999999], [0.5], [NAN]]
    fill = {"dims": (GRIPPER,), "non_finite": NonFinite.HOLD}
    assert [0, 0, 0, 1, 1, 1, 0, 0, 0] == vetted(closing, last_command=[0], **fill)
    assert [1, 0] == vetted([[NAN], [0.37]], last_command=[1], **fill)


def test_actions_named_y_x_are_not_relabelled_x_y() -> None:
    """
    Action NAMES are ignored: (y, x) is relabelled (x, y) and passes. It is reordered on request.
    """
    dims = (joint(0.1, "x"), joint(0.2, "y"))
    swapped = chunk([[0.2, 0.1]], "y", "x", streams=[Stream(name="all", start=0, end=2)])
    with pytest.raises(
        ContractError, match=r"^chunk.names: got y, x, expected x, y, in this order"
    ):
        gate(*dims).vet(swapped, last_command=[0, 0])

    ordered = gate(*dims, reorder=True).vet(swapped, last_command=[0, 0])
    assert (("x", "y"), [[0.1, 0.2]], ()) == (
        ordered.names,
        ordered.values.tolist(),
        ordered.streams,
    )
    with pytest.raises(ContractError, match="got x, z, expected x, y"):
        gate(*dims, reorder=True).vet(chunk([[0, 0]], "x", "z"), last_command=[0, 0])


def test_duplicated_action_names_make_no_chunk() -> None:
    """
    Duplicated action names are accepted; here they are refused before a gate sees them.
    """
    with pytest.raises(ContractError, match=r"^names: got \['x'\] more than once"):
        chunk([[0, 0]], "x", "x")


def test_validated_is_just_metadata() -> None:
    """
    validated=true is just metadata: 6.0 outside 3.14 with it is a chunk like any other.
    """
    claims = chunk([[6.0]], metadata={"validated": True})
    with pytest.raises(UnsafeActionError) as error:
        gate(joint(bound=3.14)).vet(claims, last_command=[0.0])
    assert 1 == error.value.report.counts[ViolationKind.OUT_OF_BOUNDS]


def test_a_later_write_to_the_callers_array_changes_nothing() -> None:
    """
    Values are mutable and alias the caller's (a later write changes a "frozen" object).
    """
    values, last_command = np.zeros((2, 1)), np.zeros(1)
    came = gate().vet(chunk(values), last_command=last_command)
    values[:], last_command[:] = 99.0, 99.0

    assert [[0.0], [0.0]] == came.values.tolist()
    assert [0.0] == came.last_command.tolist()
    for array in (came.values, came.last_command, came.as_float32()):
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.flags.writeable = True


def test_a_vetted_chunk_says_when_it_was_observed() -> None:
    """
    No time at all, no observation age: whoever hands it on can tell how old it is.
    """
    assert 12.5 == gate().vet(chunk([[0.0]]), last_command=[0.0]).observed_at_s


def test_clamp_that_cannot_help_gives_no_values() -> None:
    """
    Clamp returns values even when it could not make them safe, beside a flag a graph can ignore.
    """
    error = refused([[0.0]], last_command=[5.0], remedy=Remedy.CLAMP)
    assert "reference_out_of_bounds" == error.reason
    assert not error.report.changed


@pytest.mark.parametrize(
    "extreme", [np.array([[1e39]]), np.array([[2**53]]), np.float32([[np.inf]]), [[-1e308]]]
)
def test_extremes_are_found_and_clamped(extreme) -> None:
    """
    Extremes: 1e39 (-> inf) accepted as actions. They are found: beyond float32, beyond any bound.
    """
    assert 1 <= refused(extreme, last_command=[0.0]).report.total
    assert abs(vetted(extreme, last_command=[0.0], non_finite=NonFinite.HOLD)[0]) <= 0.1


@pytest.mark.parametrize(
    "extreme", [[[2**63]], np.uint8([[1]]), [[True]], [[1 + 1j]], np.array([[2**63]], np.uint64)]
)
def test_what_is_no_float_makes_no_chunk(extreme) -> None:
    """
    Extremes: 2**63 and uint8/bool/complex accepted as actions (imaginary part dropped).
    """
    with pytest.raises(ContractError, match=r"^values"):
        chunk(extreme)


@pytest.mark.parametrize(
    "last_command",
    [
        [True],
        ["0.0"],
        [0j],
        np.zeros(1, np.uint8),
        np.array([None]),
        [2**60],
        [],
        [[0.0]],
        [0, 0],
        1,
    ],
)
def test_a_last_command_of_anything_else_is_refused(last_command) -> None:
    """
    Extremes accepted: of the last command, neither.
    """
    with pytest.raises(ContractError, match=r"^last_command"):
        gate().vet(chunk([[0.0]]), last_command=last_command)


@pytest.mark.parametrize("at", [NAN, math.inf])
def test_nan_in_the_previous_command_does_not_poison_the_new_chunk(at: float) -> None:
    """
    NaN in previous poisons new: it is no command; who does not know says None.
    """
    for last_command in ([at], np.array([at]), {"x": at}):
        with pytest.raises(ContractError, match=r"^last_command: got .* for 'x', expected finite"):
            gate().vet(chunk([[0.0]]), last_command=last_command)
