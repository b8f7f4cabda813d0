"""Tests of `vlmcore.safety.gate`: each hole that gates have had, closed."""

from __future__ import annotations

import math
import pickle
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import attrs
import numpy as np
import pytest

from safety_cases import GRIPPER, JOINT, SLIDE, WHEEL, chunk, joint, space
from vlmcore.contracts.actions import ActionChunk, Stream
from vlmcore.contracts.embodiment import ActionDim, ActionSpace, LimitsSource, Reference
from vlmcore.contracts.presets import PRESETS
from vlmcore.errors import ContractError, UnsafeActionError
from vlmcore.safety import RefusalReason, Remedy, SafetyGate, ViolationKind

NAN = math.nan
SO100 = PRESETS["LeRobot SO-100 / SO-101 template"]
RAW = [
    [0.06258623, -0.11250310, -0.13713294, -0.06168950, -0.00926633, -0.08506130],
    [0.15420279, -0.05678255, -0.20159233, 0.06734322, -0.00563951, -0.09575561],
    [0.16482556, -0.07453565, -0.17410603, 0.02461835, -0.00256573, 0.15842065],
    [0.27048433, -0.09272483, -0.19934477, 0.05491992, 0.05286619, 0.07594281],
]
CLAMPED = [
    [0.06258623, -0.1, -0.1, -0.06168950, -0.00926633, -0.08506130],
    [0.15420279, -0.05678255, -0.2, 0.03831051, -0.00563951, -0.09575561],
    [0.16482556, -0.07453565, -0.17410603, 0.02461835, -0.00256573, 0.05424440],
    [0.26482555, -0.09272483, -0.19934477, 0.05491992, 0.05286619, 0.07594281],
]


def gate(*dims: ActionDim, remedy: Remedy = Remedy.BLOCK, **more) -> SafetyGate:
    return SafetyGate(space=space(*(dims or (JOINT,))), remedy=remedy, **more)


def vetted(values, *, last_command, remedy=Remedy.CLAMP, dims=(JOINT,)) -> list:
    """Vet a chunk of one dimension, and list what left."""
    names = [dim.name for dim in dims]
    came = gate(*dims, remedy=remedy).vet(chunk(values, *names), last_command=last_command)
    return came.values.T.tolist() if len(dims) > 1 else came.values.ravel().tolist()


def refused(values, *, last_command, remedy=Remedy.BLOCK, dims=(JOINT,)) -> UnsafeActionError:
    """Vet a chunk that is refused, and take the error."""
    with pytest.raises(UnsafeActionError) as error:
        vetted(values, last_command=last_command, remedy=remedy, dims=dims)
    assert not error.value.report.safe_for_handoff
    assert error.value.reason == error.value.report.reason.value
    return error.value


def test_a_measured_run_of_smolvla_is_clamped_to_the_table() -> None:
    """
    Five steps that are too long, none out of bounds, all finite; the values to 1e-6.
    """
    raw = chunk(RAW, *SO100.actions.names)
    came = SafetyGate(embodiment=SO100, remedy=Remedy.CLAMP).vet(raw, last_command=np.zeros(6))

    np.testing.assert_allclose(came.values, CLAMPED, rtol=0, atol=1e-6)
    report = came.report
    assert 5 == report.counts[ViolationKind.STEP] == report.total
    assert ("lerobot_so100_so101_template", "dataset-normalized template", "test") == (
        report.embodiment,
        report.action_mode,
        report.policy_source,
    )
    assert (4, 4, 6, Remedy.CLAMP) == (
        report.input_horizon,
        report.execution_horizon,
        report.action_dim,
        report.mode,
    )
    assert report.previous_action_provided
    assert report.changed
    assert report.safe_for_handoff
    assert came.limits_source is LimitsSource.TEMPLATE


def test_s1_nan_with_no_previous_command_is_never_moved_to_mid_range() -> None:
    """
    Nothing is known to hold: the gate refuses, and invents nothing.
    """
    slot = ActionDim(name="x", low=0.0, high=10.0, max_step=0.1)
    error = refused([[NAN]], last_command=None, remedy=Remedy.CLAMP, dims=(slot,))
    assert "no_reference" == error.reason


def test_s2_nan_falls_back_to_the_last_good_step_not_to_the_chunk_start() -> None:
    """
    [0.5, NaN, 0.5] after 0.9 is [0.5, 0.5, 0.5].
    """
    held = vetted([[0.5], [NAN], [0.5]], last_command=[0.9], dims=(joint(0.5),))
    assert [0.5, 0.5, 0.5] == held


def test_s2_nan_is_held_at_what_was_vetted_not_at_what_came() -> None:
    """
    The step before was clamped; that is where the robot is.
    """
    assert [0.1, 0.1, 0.2] == pytest.approx(vetted([[0.9], [math.inf], [0.9]], last_command=[0.0]))


@pytest.mark.parametrize("remedy", [Remedy.BLOCK, Remedy.REPORT, Remedy.CLAMP])
def test_s3_the_first_step_is_unchecked_without_a_previous_command(remedy: Remedy) -> None:
    """
    [1, 1] keeps every bound, and may still be a jump across the room.
    """
    error = refused([[1.0], [1.0]], last_command=None, remedy=remedy)
    assert "first_step_unchecked" == error.reason
    assert (1, 0) == (error.report.counts[ViolationKind.START_UNKNOWN], error.report.total)
    assert not error.report.previous_action_provided


def test_s3_changes_start_from_zero() -> None:
    """
    A robot that is driven by changes may start without a last command, slowly.
    """
    assert [0.02, 0.04] == vetted(
        [[0.02], [0.04]], last_command=None, remedy=Remedy.BLOCK, dims=(SLIDE,)
    )
    assert "violations" == refused([[0.03]], last_command=None, dims=(SLIDE,)).reason


@pytest.mark.parametrize("remedy", Remedy)
def test_s4_a_previous_command_out_of_bounds_is_not_answered_by_a_jump(remedy: Remedy) -> None:
    """
    From 5.0 no step of 0.1 leads into [-1, 1]; [1.0, 0.9] would be one of 4.0.
    """
    error = refused([[0.9], [0.9]], last_command=[5.0], remedy=remedy)
    assert error.reason in {"reference_out_of_bounds", "violations"}
    assert 1 == error.report.counts[ViolationKind.REFERENCE_OUT_OF_BOUNDS]


def test_s4_a_previous_command_just_out_of_bounds_is_led_back() -> None:
    """
    What is allowed is what one step reaches and the bounds hold.
    """
    assert [0.95, 0.85] == pytest.approx(vetted([[0.0], [0.0]], last_command=[1.05]))
    error = refused([[1.0]], last_command=[1.05])
    assert RefusalReason.REFERENCE_OUT_OF_BOUNDS is error.report.reason


def test_s5_hold_does_not_return_a_previous_command_out_of_bounds() -> None:
    """
    Holding still there would keep the robot where it must not be.
    """
    for at in (5.0, 1.05):
        error = refused([[NAN], [NAN]], last_command=[at], remedy=Remedy.HOLD)
        assert "reference_out_of_bounds" == error.reason
    assert "no_reference" == refused([[NAN]], last_command=None, remedy=Remedy.HOLD).reason


def test_s6_hold_does_not_repeat_the_last_delta() -> None:
    """
    Holding sends zero for a change, not the last change again, which would keep the robot moving.
    """
    dims = (SLIDE, JOINT)
    held = vetted([[NAN, 0.0]] * 2, last_command=[0.05, 0.3], remedy=Remedy.HOLD, dims=dims)
    assert [[0.0, 0.0], [0.3, 0.3]] == held


def test_s6_stopping_is_never_too_fast() -> None:
    """
    The step bound of a change limits speeding up: from 0.05 to 0 is one step.
    """
    assert [0.0] == vetted([[0.0]], last_command=[0.05], remedy=Remedy.BLOCK, dims=(SLIDE,))
    assert [-0.02] == vetted([[-0.05]], last_command=[0.05], dims=(SLIDE,))
    assert [0.03, 0.05] == pytest.approx(vetted([[1], [1]], last_command=[0.01], dims=(SLIDE,)))


def test_s8_action_mode_is_free_text_and_is_never_read() -> None:
    """
    What a number means is said by its dimension.
    """
    robot = attrs.evolve(SO100, action_mode="delta, trust me")
    error = None
    try:
        SafetyGate(embodiment=robot).vet(chunk(RAW, *SO100.actions.names), last_command=[0.0] * 6)
    except UnsafeActionError as refusal:
        error = refusal
    assert error is not None
    assert 5 == error.report.total


def test_s9_clamp_accepts_its_own_output() -> None:
    """
    .3 + .1 k, and limits that have no exact binary form.
    """
    clamping = gate(joint(0.1, bound=4.0), remedy=Remedy.CLAMP)
    once = clamping.vet(chunk([[3.9]] * 30), last_command=[0.3])
    blocking = gate(joint(0.1, bound=4.0))

    assert (
        once.values.tobytes() == blocking.vet(once.as_chunk(), last_command=[0.3]).values.tobytes()
    )
    as_float32 = chunk(once.as_float32())
    assert not blocking.vet(as_float32, last_command=[0.3]).report.total


def test_s9_float32_pi_is_above_pi_and_out_of_bounds() -> None:
    """
    A controller that compares in float64 would refuse it; clamped, it is pi, and below as float32.
    """
    turn = joint(0.2, bound=math.pi)
    came = np.array([[np.pi]], np.float32)
    assert 1 == refused(came, last_command=[3.1], dims=(turn,)).report.total

    clamped = gate(turn, remedy=Remedy.CLAMP).vet(chunk(came), last_command=[3.1])
    assert math.pi == clamped.values[0, 0]
    assert float(clamped.as_float32()[0, 0]) < math.pi


def test_s10_an_angle_that_comes_round_again_goes_the_short_way() -> None:
    """
    2.9 to -2.9 is 0.2 apart when a turn is 6, not 5.8.
    """
    assert [-2.9] == vetted([[-2.9]], last_command=[2.9], remedy=Remedy.BLOCK, dims=(WHEEL,))
    assert [-2.8, -2.3] == pytest.approx(
        vetted([[-1.5], [-1.5]], last_command=[2.7], dims=(WHEEL,))
    )


def test_s11_a_binary_gripper_is_never_half_closed() -> None:
    """
    0 to 1 is one step, and what is between the two is one of them.
    """
    assert [1.0, 0.0] == vetted([[1], [0]], last_command=[0], remedy=Remedy.BLOCK, dims=(GRIPPER,))
    noisy = [[0.37], [0.55], [0.61], [0.45], [0.39], [NAN]]
    assert [0, 0, 1, 1, 0, 0] == vetted(noisy, last_command=[0], dims=(GRIPPER,))
    assert 6 == refused(noisy, last_command=[0], dims=(GRIPPER,)).report.total


def test_s13_actions_named_y_x_are_not_relabelled_x_y() -> None:
    """
    Refused; put in order where that was asked for.
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


def test_s14_validated_is_not_metadata() -> None:
    """
    A file that says so is a chunk like any other.
    """
    claims = chunk([[6.0]], metadata={"validated": True})
    with pytest.raises(UnsafeActionError):
        gate().vet(claims, last_command=[0.0])


def test_s14_a_later_write_to_the_callers_array_changes_nothing() -> None:
    """
    Neither to the values nor to the last command.
    """
    values, last_command = np.zeros((2, 1)), np.zeros(1)
    came = gate().vet(chunk(values), last_command=last_command)
    values[:], last_command[:] = 99.0, 99.0

    assert [[0.0], [0.0]] == came.values.tolist()
    assert [0.0] == came.last_command.tolist()
    for array in (came.values, came.last_command, came.as_float32()):
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.flags.writeable = True


def test_s17_clamp_that_cannot_help_gives_no_values() -> None:
    """
    It raises; there is no flag that a graph could ignore.
    """
    error = refused([[0.0]], last_command=[5.0], remedy=Remedy.CLAMP)
    assert "reference_out_of_bounds" == error.reason
    assert not error.report.changed


@pytest.mark.parametrize(
    "extreme", [np.array([[1e39]]), np.array([[2**53]]), np.float32([[np.inf]]), [[-1e308]]]
)
def test_s18_extremes_are_found_and_clamped(extreme) -> None:
    """
    Beyond float32, beyond any bound, overflowed to infinity.
    """
    assert 1 <= refused(extreme, last_command=[0.0]).report.total
    assert abs(vetted(extreme, last_command=[0.0])[0]) <= 0.1


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
def test_s18_a_last_command_of_anything_else_is_refused(last_command) -> None:
    """
    One clear error of ours, about this argument.
    """
    with pytest.raises(ContractError, match=r"^last_command"):
        gate().vet(chunk([[0.0]]), last_command=last_command)


@pytest.mark.parametrize("at", [NAN, math.inf])
def test_b4_nan_in_the_previous_command_does_not_poison_the_new_chunk(at: float) -> None:
    """
    It is no command; who does not know says None.
    """
    for last_command in ([at], np.array([at]), {"x": at}):
        with pytest.raises(ContractError, match=r"^last_command: got .* for 'x', expected finite"):
            gate().vet(chunk([[0.0]]), last_command=last_command)


def test_the_last_command_may_be_given_by_name() -> None:
    """
    In any order; missing and unknown names are listed.
    """
    two = gate(joint(name="x"), joint(name="y"))
    came = two.vet(chunk([[0.5, 0.1]], "x", "y"), last_command={"y": 0.1, "x": 0.5})
    assert [0.5, 0.1] == came.last_command.tolist()
    with pytest.raises(ContractError, match=r"missing \['y'\] and unknown \['z'\]"):
        two.vet(chunk([[0.5, 0.1]], "x", "y"), last_command={"x": 0.5, "z": 0})


def test_the_last_command_has_no_default() -> None:
    """
    Forgetting it is not a way to say that nobody knows.
    """
    with pytest.raises(TypeError, match="last_command"):
        gate().vet(chunk([[0.0]]))


def test_only_what_is_executed_is_audited_and_leaves() -> None:
    """
    NaN beyond the execution horizon is nobody's concern; a shorter chunk is taken as it is.
    """
    two = gate(execution_horizon=2)
    came = two.vet(chunk([[0.1], [0.2], [NAN]]), last_command=[0.0])
    assert ([[0.1], [0.2]], 3, 2) == (
        came.values.tolist(),
        came.report.input_horizon,
        came.report.execution_horizon,
    )
    assert not came.report.changed
    assert 1 == two.vet(chunk([[0.1]]), last_command=[0.0]).horizon


def test_looking_lets_nothing_pass() -> None:
    """
    ``check`` gives a report, in the mode that changes nothing.
    """
    clamping = gate(remedy=Remedy.CLAMP)
    report = clamping.check(chunk([[0.0], [2.0]]), last_command=[0.0])
    assert (Remedy.REPORT, RefusalReason.VIOLATIONS, False) == (
        report.mode,
        report.reason,
        report.changed,
    )
    assert {ViolationKind.OUT_OF_BOUNDS: 1, ViolationKind.STEP: 1} == {
        kind: count for kind, count in report.counts.items() if count
    }
    assert clamping.check(chunk([[0.0]]), last_command=[0.0]).reason is None


def test_a_dimension_without_findings_passes_unchanged() -> None:
    """
    A float32 ramp at exactly the limit is not touched because another dimension must be.
    """
    ramp = np.float32(0.12) * np.arange(1, 6, dtype=np.float32)
    values = np.stack((ramp, np.full(5, 9, np.float32)), axis=1)
    dims = (joint(0.12, "x"), joint(0.1, "y"))
    came = vetted(values, last_command=[0, 0], dims=dims)
    assert ramp.tolist() == came[0]


def test_a_gate_holds_with_the_validators_of_attrs_switched_off() -> None:
    """
    Anybody can do that, for the whole process.
    """
    attrs.validators.set_disabled(True)
    try:
        test_s4_a_previous_command_out_of_bounds_is_not_answered_by_a_jump(Remedy.CLAMP)
        test_a_measured_run_of_smolvla_is_clamped_to_the_table()
        test_a_gate_that_is_not_one_cannot_be_made({"remedy": "clamp"}, "remedy")
    finally:
        attrs.validators.set_disabled(False)


def test_threads_may_share_a_gate() -> None:
    """
    It keeps nothing between chunks.
    """
    clamping = gate(remedy=Remedy.CLAMP)

    def walk(start: float) -> list:
        came = clamping.vet(chunk([[1.0]] * 5), last_command=[start])
        return came.values.ravel().tolist()

    starts = [i / 100 for i in range(40)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(walk, starts)) == [walk(start) for start in starts]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"remedy": "clamp"}, "remedy"),
        ({"execution_horizon": 0}, "execution_horizon"),
        ({"execution_horizon": True}, "execution_horizon"),
        ({"reorder": 1}, "reorder"),
        ({"space": None}, "space"),
        ({"embodiment": SO100}, "space"),
        ({"space": SO100}, "space"),
        ({"space": None, "embodiment": space(JOINT)}, "embodiment"),
    ],
)
def test_a_gate_that_is_not_one_cannot_be_made(fields: dict, field: str) -> None:
    """
    One error, about the field.
    """
    with pytest.raises(ContractError, match=f"^{field}: "):
        SafetyGate(**{"space": space(JOINT), **fields})


def test_only_a_chunk_can_be_vetted() -> None:
    """
    Not an array, whose names nobody knows.
    """
    with pytest.raises(ContractError, match=r"^chunk: got ndarray, expected an ActionChunk"):
        gate().vet(np.zeros((1, 1)), last_command=[0.0])


def test_a_gate_can_be_sent_to_another_process() -> None:
    """
    It is made anew there.
    """
    other = pickle.loads(pickle.dumps(SafetyGate(embodiment=SO100, remedy=Remedy.CLAMP)))
    came = other.vet(chunk(RAW, *SO100.actions.names), last_command=[0.0] * 6)
    np.testing.assert_allclose(came.values, CLAMPED, rtol=0, atol=1e-6)


def test_a_velocity_is_a_change() -> None:
    """
    It starts from zero, and holding stops it.
    """
    wheel = ActionDim(name="v", reference=Reference.VELOCITY, low=-1, high=1, max_rate=2.0)
    assert [0.1, 0.2] == pytest.approx(vetted([[1.0], [1.0]], last_command=None, dims=(wheel,)))
    assert [0.0] == vetted([[9.0]], last_command=None, remedy=Remedy.HOLD, dims=(wheel,))


@pytest.mark.parametrize("remedy", Remedy)
def test_nothing_depends_on_how_numpy_treats_overflow(remedy: Remedy) -> None:
    """
    A program may have told it to raise.
    """
    dims = (
        ActionDim(name="x", low=-1.5e308, high=1.5e308, max_step=1e308),
        ActionDim(name="dx", reference=Reference.DELTA, low=-1e308, high=1e308, max_step=1e308),
        ActionDim(name="g", low=-1e308, high=1e308, levels=(-1e308, 1e308), max_step=1.7e308),
        ActionDim(name="a", low=-8e307, high=8e307, period=1.6e308, max_step=1e307),
    )
    values = [[1.7e308, -1e308, 5e-324, 1.7e308], [math.inf, NAN, 1e308, -1.7e308]]
    with np.errstate(all="raise"):
        careful = gate(*dims, remedy=remedy)
        for last_command in (None, [-1.5e308, 1e308, -1e308, 8e307], [1.7e308] * 4):
            with suppress(UnsafeActionError):
                came = careful.vet(chunk(values, "x", "dx", "g", "a"), last_command=last_command)
                assert not careful.check(came.as_chunk(), last_command=last_command).total


def test_what_a_remedy_made_is_audited_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A remedy with a mistake in it lets nothing out.
    """
    monkeypatch.setattr("vlmcore.safety.gate.clamp", lambda values, *_, **__: values * 0.9)
    error = refused([[0.9]], last_command=[0.0], remedy=Remedy.CLAMP)
    assert "remedy_failed" == error.reason


def test_hold_between_levels_that_are_too_far_refuses() -> None:
    """
    The nearest level of a measured start may be further than its step bound.
    """
    valve = ActionDim(name="x", low=0, high=4, levels=(0.0, 4.0), max_step=1.0)
    error = refused([[NAN]], last_command=[1.5], remedy=Remedy.HOLD, dims=(valve,))
    assert "remedy_failed" == error.reason
    assert [0.0] == vetted([[NAN]], last_command=[0.5], remedy=Remedy.HOLD, dims=(valve,))


def test_a_last_command_more_than_a_step_from_every_level_is_what_the_refusal_names() -> None:
    """
    The remedy did not fail by itself: no level can be reached from out there in one step.
    """
    switch = ActionDim(name="grip", low=-1.0, high=1.0, max_step=1.0, levels=(-1.0, 0.0, 1.0))
    gate = SafetyGate(space=ActionSpace(dims=(switch,), rate_hz=10), remedy=Remedy.CLAMP)
    chunk = ActionChunk(values=[[-1.0]], names=("grip",), source="test", observed_at_s=0.0)

    with pytest.raises(UnsafeActionError) as refused:
        gate.vet(chunk, last_command=[-3.0])

    assert "reference_out_of_bounds" == refused.value.reason
