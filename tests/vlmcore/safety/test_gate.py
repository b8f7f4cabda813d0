"""Tests of `vlmcore.safety.gate`; what gates have let through is in `test_known_holes`."""

from __future__ import annotations

import math
import pickle
import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import attrs
import numpy as np
import pytest

from safety_cases import GRIPPER, JOINT, chunk, gate, joint, refused, space, vetted
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.embodiment import ActionDim, ActionSpace, LimitsSource, Reference
from vlmcore.contracts.presets import PRESETS
from vlmcore.errors import ContractError, UnsafeActionError
from vlmcore.safety import NonFinite, RefusalReason, Remedy, SafetyGate, ViolationKind

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


def test_holding_a_robot_that_was_told_to_stand_still_changes_nothing() -> None:
    """
    Though its last change was out of bounds, and the report says so.
    """
    slide = ActionDim(name="x", reference=Reference.DELTA, low=-1, high=1, max_step=1)
    held = SafetyGate(space=ActionSpace(dims=(slide,), rate_hz=10), remedy=Remedy.HOLD)
    report = held.vet(chunk([[0.0], [0.0]], "x"), last_command=[1.5]).report
    assert {ViolationKind.REFERENCE_OUT_OF_BOUNDS} == {k for k, n in report.counts.items() if n}
    assert not report.changed


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
        refused([[0.9]], last_command=[5.0], remedy=Remedy.CLAMP)
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
        ({"limits_source": "manufacturer"}, "limits_source"),
    ],
)
def test_a_gate_that_is_not_one_cannot_be_made(fields: dict, field: str) -> None:
    """
    One error, about the field.
    """
    with pytest.raises(ContractError, match=f"^{field}: "):
        SafetyGate(**{"space": space(JOINT), **fields})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"space": None}, "space: got neither space nor embodiment, expected one of them"),
        ({"embodiment": SO100}, "space: got both space and embodiment, expected one of them"),
        ({"space": 7}, "space: got int, expected an ActionSpace"),
        ({"space": None, "embodiment": 7}, "embodiment: got int, expected an Embodiment"),
        ({"reorder": 1}, "reorder: got 1, expected True or False"),
        (
            {"space": None, "embodiment": SO100, "limits_source": LimitsSource.MANUFACTURER},
            (
                "limits_source: got LimitsSource.MANUFACTURER with an embodiment, expected None: "
                "the embodiment says where its limits come from"
            ),
        ),
        (
            {"execution_horizon": 0},
            "execution_horizon: got 0, expected a whole number of at least 1",
        ),
        (
            {"remedy": Remedy.HOLD, "non_finite": NonFinite.TRUNCATE},
            (
                "non_finite: got NonFinite.TRUNCATE with Remedy.HOLD, expected None: only "
                "Remedy.CLAMP lets a part of a chunk pass"
            ),
        ),
    ],
)
def test_what_makes_no_gate_is_told_in_a_sentence(fields: dict, message: str) -> None:
    """
    What came, and what was expected.
    """
    with pytest.raises(ContractError) as error:
        SafetyGate(**{"space": space(JOINT), **fields})
    assert message == str(error.value)


@pytest.mark.parametrize(
    ("last_command", "message"),
    [
        ([0.0], "got 1 numbers, expected 2, one a dimension"),
        ({"x": 0.0, "z": 0.0}, "got names with missing ['y'] and unknown ['z'], expected x, y"),
        ([0.0, NAN], "got nan for 'y', expected finite numbers, or None where nobody knows"),
        (0.5, "got float, expected an array or lists of numbers, axes [D]"),
        (np.zeros((1, 2)), "got an array of shape [1, 2], expected one of axes [D]"),
        (np.zeros(2, np.complex128), "got complex128, expected float16, float32, float64 or"),
    ],
    ids=str,
)
def test_what_is_no_last_command_is_told_in_a_sentence(last_command, message: str) -> None:
    """
    The same to those who vet and to those who look.
    """
    two = gate(JOINT, joint(name="y"))
    for look in (two.vet, two.check):
        with pytest.raises(ContractError) as error:
            look(chunk([[0.0, 0.0]], "x", "y"), last_command=last_command)
        assert str(error.value).startswith(f"last_command: {message}")


@pytest.mark.parametrize("bad", ["1", True, None, 1j, [0.0], 2**53 + 1])
def test_what_is_no_number_in_a_last_command_by_name_is_told_by_its_name(bad: object) -> None:
    """
    It was told by its place in the space, which who gives names does not know.
    """
    two = gate(JOINT, joint(name="y"))
    words = rf"^last_command\['y'\]: got {re.escape(repr(bad))}, expected a number$"
    with pytest.raises(ContractError, match=words):
        two.vet(chunk([[0.0, 0.0]], "x", "y"), last_command={"y": bad, "x": np.float32(0.0)})


def test_names_in_another_order_are_told_the_way_out() -> None:
    """
    It is no way out where the names are others.
    """
    two = gate(JOINT, joint(name="y"))
    for names, way_out in (
        ("yx", "in this order; SafetyGate(reorder=True) puts them in it"),
        ("xz", "in this order"),
    ):
        with pytest.raises(ContractError) as error:
            two.vet(chunk([[0.0, 0.0]], *names), last_command=None)
        assert f"chunk.names: got {', '.join(names)}, expected x, y, {way_out}" == str(error.value)


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


def test_the_limits_of_a_space_come_from_nowhere_until_somebody_says_where() -> None:
    """
    The space of a template alone does not say that it is one: a template passed as good limits.
    """
    chunk_of_zeros = chunk([[0.0] * 6], *SO100.actions.names)
    for source in (None, *LimitsSource):
        one = SafetyGate(space=SO100.actions, limits_source=source)
        for each in (one, pickle.loads(pickle.dumps(one))):
            assert source is each.vet(chunk_of_zeros, last_command=[0.0] * 6).limits_source
    robot = SafetyGate(embodiment=SO100).vet(chunk_of_zeros, last_command=[0.0] * 6)
    assert LimitsSource.TEMPLATE is robot.limits_source


@pytest.mark.parametrize(
    ("made", "shown"),
    [
        (
            SafetyGate(embodiment=SO100, remedy=Remedy.CLAMP, execution_horizon=8),
            "<SafetyGate of 'lerobot_so100_so101_template': 6 dimensions at 30 Hz, clamp, 8 steps>",
        ),
        (SafetyGate(space=space(JOINT)), "<SafetyGate of a space: 1 dimension at 20 Hz, block>"),
        (
            SafetyGate(space=space(JOINT), remedy=Remedy.CLAMP, non_finite=NonFinite.HOLD),
            "<SafetyGate of a space: 1 dimension at 20 Hz, clamp, NaN held>",
        ),
        (
            SafetyGate(space=space(JOINT), remedy=Remedy.HOLD, non_finite=NonFinite.HOLD),
            "<SafetyGate of a space: 1 dimension at 20 Hz, hold>",
        ),
    ],
)
def test_a_gate_is_shown_in_one_line(made: SafetyGate, shown: str) -> None:
    """
    Its repr printed every dimension, and was 3,500 characters long.
    """
    assert shown == repr(made)


def test_two_dimensions_are_more_than_one() -> None:
    """
    In what a gate says of itself.
    """
    assert repr(gate(JOINT, joint(name="y"))).startswith("<SafetyGate of a space: 2 dimensions at")


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
        ActionDim(
            name="g", low=-1e308, high=1e308, levels=(-1e308, 9e307, 1e308), max_step=1.7e308
        ),
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


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([[NAN, 0.0]], "no_reference"),
        ([[0.0, NAN]], "first_step_unchecked"),
        ([[0.0, 0.0], [NAN, 0.0]], "first_step_unchecked"),
    ],
)
def test_there_is_no_reference_only_where_a_first_target_is_lost(values, reason: str) -> None:
    """
    A change that is lost is zero, and a later target could be held, if the first one could be sent.
    """
    dims = (JOINT, attrs.evolve(JOINT, name="dx", reference=Reference.DELTA))
    error = refused(values, last_command=None, remedy=Remedy.CLAMP, dims=dims)
    assert reason == error.reason


def test_hold_between_levels_that_are_too_far_refuses() -> None:
    """
    The nearest level of a measured start may be further than its step bound.
    """
    valve = ActionDim(name="x", low=0, high=4, levels=(0.0, 3.5, 4.0), max_step=1.0)
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


def test_a_switch_just_a_step_outside_comes_back_to_its_last_level() -> None:
    """
    It is forgiven by how little more than a step that is, as a jump between two levels would be.
    """
    notch = ActionDim(name="x", low=0.0, high=1.0, levels=(0.0, 1.0), max_step=1.0)
    assert [1.0] == vetted([[1.0]], last_command=[2.0 + 1e-7], dims=(notch,))


def test_hold_does_not_bring_a_switch_back_from_where_it_cannot_be() -> None:
    """
    To hold is to stay; the nearest level would be a motion that nobody asked for.
    """
    error = refused([[1.0]], last_command=[3.0], remedy=Remedy.HOLD, dims=(GRIPPER,))
    assert "reference_out_of_bounds" == error.reason


def test_a_robot_that_comes_back_by_itself_is_changed_in_nothing() -> None:
    """
    The finding is about where it stood, and there is nothing for a remedy to do.
    """
    came = gate(remedy=Remedy.CLAMP).vet(chunk([[1.0]]), last_command=[1.05])
    assert [[1.0]] == came.values.tolist()
    assert not came.report.changed
    assert {ViolationKind.REFERENCE_OUT_OF_BOUNDS} == came.report.findings.kinds


def test_a_space_alone_has_no_name_and_no_mode() -> None:
    """
    A report of it says nothing in their place.
    """
    report = gate().check(chunk([[0.1]]), last_command=[0.0])
    assert ("", "") == (report.embodiment, report.action_mode)


@pytest.mark.parametrize("lost", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("remedied", [False, True])
def test_any_non_finite_value_truncates_the_chunk_there_and_the_report_says_what_was_cut(
    lost: float, *, remedied: bool
) -> None:
    """
    Any non-finite value truncates the chunk there, in whichever dimension: the rest is a prefix.
    """
    made = gate(JOINT, joint(name="y"), remedy=Remedy.CLAMP)
    path = np.array([[0.05, 0.9 if remedied else 0.1], [0.1, 0.15], [0.15, 0.2], [0.2, 0.25]])
    path[2, 1] = lost
    came = made.vet(chunk(path, "x", "y"), last_command=[0.0, 0.0])

    assert (2, 4, 2, True) == (
        came.horizon,
        came.report.execution_horizon,
        came.report.cut_steps,
        came.report.changed,
    )
    assert str(came.report).endswith("; 2 steps cut off")
    assert 1 == came.report.counts[ViolationKind.NON_FINITE]
    assert (4, 2) == came.report.marks().shape
    expected = path[:2].tolist() if not remedied else [[0.05, 0.1], [0.1, 0.15]]
    assert expected == came.values.tolist()
    again = made.vet(came.as_chunk(), last_command=[0.0, 0.0])
    assert (expected, False) == (again.values.tolist(), again.report.changed)


def test_steps_that_keep_every_limit_are_cut_off_and_not_clamped() -> None:
    """
    What float32 is forgiven in a step stays as it came.
    """
    ramp = np.float32(0.1) * np.arange(1, 6, dtype=np.float32)
    ramp[4] = np.nan
    came = gate(remedy=Remedy.CLAMP).vet(chunk(ramp[:, None]), last_command=[0.0])
    assert ramp[:4].tobytes() == came.as_float32().tobytes()


def test_nothing_leaves_if_the_first_step_is_not_finite_and_the_chunk_ends_there() -> None:
    """
    A chunk without steps is none.
    """
    with pytest.raises(UnsafeActionError) as error:
        gate(remedy=Remedy.CLAMP).vet(chunk([[math.nan], [0.0]]), last_command=[0.0])
    report = error.value.report
    assert "nothing_left" == error.value.reason
    assert (False, 0, False) == (report.changed, report.cut_steps, report.safe_for_handoff)


def test_a_chunk_that_was_cut_off_is_still_unchecked_without_a_last_command() -> None:
    """
    What is before the first NaN starts from nobody knows where.
    """
    error = refused([[0.0], [math.nan]], last_command=None, remedy=Remedy.CLAMP)
    assert "first_step_unchecked" == error.reason
    assert 0 == error.report.cut_steps


def test_a_gate_that_is_made_to_clamp_cuts_off_unless_it_was_told_to_fill() -> None:
    """
    A default that depends on the remedy would have filled, once the remedy was another.
    """
    lost = chunk([[0.05], [math.nan]])
    made = attrs.evolve(gate(), remedy=Remedy.CLAMP)
    assert (1, None) == (made.vet(lost, last_command=[0.0]).horizon, made.non_finite)
    filling = attrs.evolve(gate(non_finite=NonFinite.HOLD), remedy=Remedy.CLAMP)
    assert 2 == filling.vet(lost, last_command=[0.0]).horizon


def test_only_clamp_lets_a_part_of_a_chunk_pass() -> None:
    """
    An option that does nothing would be believed.
    """
    for remedy in set(Remedy) - {Remedy.CLAMP}:
        with pytest.raises(ContractError, match=r"^non_finite: got NonFinite.TRUNCATE with"):
            gate(remedy=remedy, non_finite=NonFinite.TRUNCATE)
    with pytest.raises(ContractError, match=r"^non_finite"):
        gate(remedy=Remedy.CLAMP, non_finite="truncate")
    for way in (None, *NonFinite):
        made = gate(remedy=Remedy.CLAMP, non_finite=way)
        assert way is pickle.loads(pickle.dumps(made)).non_finite


def test_what_was_cut_off_is_drawn_as_far_as_it_goes() -> None:
    """
    The marks and what was proposed are of more steps than left.
    """
    came = gate(remedy=Remedy.CLAMP).vet(chunk([[0.9], [0.2], [math.nan]]), last_command=[0.0])
    chart = came._chart()
    assert (2, 2) == (len(chart.values), len(chart.marks))
    assert "Vetted" in came._repr_html_()


MOVING = ActionDim(
    name="dx",
    reference=Reference.DELTA,
    low=-1,
    high=1,
    max_step=1,
    position_low=0,
    position_high=1,
)


class Keys(dict):
    """A mapping that says it has keys which it has not."""

    def keys(self):
        return {"dx": 0}.keys()

    def __contains__(self, name: object) -> bool:
        return True


@pytest.mark.parametrize("field", ["last_command", "position"])
def test_keys_that_lie_are_told_in_a_sentence(field: str) -> None:
    """
    They raised a KeyError.
    """
    known = {"last_command": [0.0], "position": {"dx": 0.0}} | {field: Keys()}
    with pytest.raises(
        ContractError, match=rf"^{field}: got keys without a value \(KeyError\('dx'"
    ):
        gate(MOVING).vet(chunk([[0.0]], "dx"), **known)


@pytest.mark.parametrize("field", ["last_command", "position"])
def test_names_that_are_unknown_are_listed_to_a_thousand_characters(field: str) -> None:
    """
    All that people write; what a peer makes up does not fill a log.
    """
    few, many = [[f"joint {i} of the left arm" for i in range(size)] for size in (20, 40)]
    for unknown, listed in ((few, repr(few)), (many, repr(many)[:1000])):
        known = {"last_command": [0.0], field: dict.fromkeys(unknown, 0.0)}
        with pytest.raises(ContractError) as error:
            gate(MOVING).vet(chunk([[0.0]], "dx"), **known)
        assert f"and unknown {listed}, expected" in str(error.value)


def test_spans_of_time_are_no_numbers_anywhere() -> None:
    """
    NumPy takes a timedelta for a whole number, and so did everything here.
    """
    span = np.timedelta64(1, "s")
    for make in (
        lambda: ActionDim(name="x", low=0, high=span, max_step=1),
        lambda: ActionDim(name="x", low=0, high=1, levels=(0, span)),
        lambda: ActionSpace(dims=(JOINT,), rate_hz=span),
        lambda: chunk([[span]]),
        lambda: gate().vet(chunk([[0.0]]), last_command=[span]),
        lambda: gate().vet(chunk([[0.0]]), last_command={"x": span}),
        lambda: gate().vet(chunk([[0.0]]), last_command=np.array([span])),
    ):
        with pytest.raises(ContractError):
            make()


@pytest.mark.parametrize("wrong", [np.array(3), np.int64(3), np.array("x"), None, 3])
def test_what_is_no_tuple_is_told_in_a_sentence(wrong) -> None:
    """
    An array without axes raised a TypeError of NumPy.
    """
    for make in (
        lambda: ActionSpace(dims=wrong, rate_hz=20),
        lambda: ActionSpace(dims=(JOINT,), rate_hz=20, rotations=wrong),
        lambda: ActionDim(name="x", low=0, high=1, levels=wrong, max_step=None),
        lambda: ActionChunk(values=[[0.0]], names=wrong, source="s", observed_at_s=0),
        lambda: chunk([[0.0]], streams=wrong),
    ):
        with pytest.raises(ContractError):
            make()


@pytest.mark.parametrize(
    "dims",
    [
        (ActionDim(name="x", low=-5e-324, high=5e-324, max_step=5e-324),),
        (ActionDim(name="x", low=0.0, high=1e-310, levels=(0.0, 1e-310), max_step=1e-310),),
        (ActionDim(name="x", low=-1.7e308, high=1.7e308, max_step=1.797e308),),
        (
            ActionDim(
                name="x", low=-1e308, high=1e308, levels=(-1e308, 9e307, 1e308), max_step=1.797e308
            ),
        ),
        (
            ActionDim(
                name="x",
                reference=Reference.VELOCITY,
                low=-1e-310,
                high=1e-310,
                max_step=1e-310,
                position_low=-5e-324,
                position_high=5e-324,
            ),
        ),
    ],
)
def test_a_gate_is_made_however_numpy_treats_what_is_too_small_or_too_large(dims) -> None:
    """
    Subnormal sizes raised FloatingPointError, and the largest step a RuntimeWarning.
    """
    (dim,) = dims
    position = None if dim.position_low is None else {"x": 0.0}
    with np.errstate(all="raise"):
        for remedy in Remedy:
            made = gate(dim, remedy=remedy)
            values = chunk([[dim.high], [dim.low], [math.nan]])
            with suppress(UnsafeActionError):
                made.vet(values, last_command=[dim.low], position=position).as_float32()
            str(made.check(values, last_command=[dim.low], position=position))
