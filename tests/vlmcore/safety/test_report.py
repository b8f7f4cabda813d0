"""Tests of `vlmcore.safety.report`."""

from __future__ import annotations

import copy
import math
import pickle

import attrs
import numpy as np
import pytest

from rotation_cases import AXIS_ANGLE, XYZW, turn, turning, wrist
from safety_cases import GRIPPER, JOINT, SLIDE, chunk, joint, space
from vlmcore.contracts.rotations import RotationForm, RotationGroup
from vlmcore.errors import UnsafeActionError
from vlmcore.safety import SafetyGate, Violation, ViolationKind


def test_violations_say_what_where_and_which_limit() -> None:
    """
    By step, then by dimension, then by kind; the last command has no step.
    """
    gate = SafetyGate(space=space(JOINT, SLIDE, GRIPPER))
    values = [[0.5, math.nan, 0.25], [-2.0, 0.05, 1.0]]
    report = gate.check(chunk(values, "x", "dx", "gripper"), last_command=[1.5, 0.0, 0.0])

    listed = [
        (each.kind.value, each.step, each.name, each.value, each.limit)
        for each in report.violations
    ]
    assert [
        ("step", 0, "x", -1.0, 0.1),
        ("reference_out_of_bounds", None, "x", 1.5, 1.0),
        ("non_finite", 0, "dx", pytest.approx(math.nan, nan_ok=True), None),
        ("not_a_level", 0, "gripper", 0.25, 0.0),
        ("out_of_bounds", 1, "x", -2.0, -1.0),
        ("step", 1, "x", -2.5, 0.1),
        ("step", 1, "dx", 0.05, 0.02),
    ] == listed
    assert 6 == report.total  # of the chunk; the last command is counted beside it
    assert 1 == report.counts[ViolationKind.REFERENCE_OUT_OF_BOUNDS]
    assert [[True, True, True], [True, True, False]] == report.marks().tolist()
    assert (
        "test, 2 x 3 values: 1 not finite, 1 out of bounds, 3 too far from the step before, "
        "1 not a level, 1 with a last command out of bounds; first: step 0, 'x': -1 too far from "
        "the step before (limit 0.1)"
    ) == str(report)


def test_a_violation_names_the_bound_on_its_side() -> None:
    """
    The upper one for what is above it, the lower one for what is below it; in the last command too.
    """
    gate = SafetyGate(space=space(joint(9), joint(9, "y")))
    report = gate.check(chunk([[3.0, -3.0]], "x", "y"), last_command=[2.0, -2.0])
    assert [
        "step 0, 'x': 3 out of bounds (limit 1)",
        "last command, 'x': 2 with a last command out of bounds (limit 1)",
        "step 0, 'y': -3 out of bounds (limit -1)",
        "last command, 'y': -2 with a last command out of bounds (limit -1)",
    ] == list(map(str, report.violations))


@pytest.mark.parametrize(("value", "level"), [(0.75, 1.0), (-0.75, -1.0), (0.25, 0.0)])
def test_a_value_between_levels_names_the_nearest_one(value: float, level: float) -> None:
    """
    That is what was meant.
    """
    switch = attrs.evolve(GRIPPER, low=-1.0, levels=(-1.0, 0.0, 1.0))
    report = SafetyGate(space=space(switch)).check(chunk([[value]], "gripper"), last_command=[0])
    assert [level] == [violation.limit for violation in report.violations]


@pytest.mark.parametrize(
    ("form", "row", "value", "limit"),
    [
        (XYZW, 0.5 * turn(0), 0.5, 0.99),
        (XYZW, 2 * turn(0), 2.0, 1.01),
        (AXIS_ANGLE, [7.0, 0, 0], 7.0, 2 * math.pi),
        (RotationForm.ROT6D, [1.0, 0, 0, 0, 0.005, 0], 0.005, 0.01),
    ],
)
def test_what_is_no_rotation_is_measured_as_its_form_is(form, row, value, limit) -> None:
    """
    A norm, an angle or the shortest of two columns, and the bound on that side.
    """
    gate = SafetyGate(space=wrist(form, low=-9, high=9))
    (violation,) = gate.check(turning(row), last_command=turn(0, form)).violations
    assert (value, limit) == pytest.approx((violation.value, violation.limit), rel=1e-6)


def test_a_turn_that_is_too_fast_names_the_turn_of_one_step() -> None:
    """
    2 rad/s at 20 Hz is 0.1 rad.
    """
    fast = RotationGroup(name="wrist", form=XYZW, max_rate_rad_s=2.0)
    gate = SafetyGate(space=attrs.evolve(wrist(), rotations=(fast,)))
    (violation,) = gate.check(turning(turn(0.5)), last_command=turn(0)).violations
    assert (0.5, 0.1) == pytest.approx((violation.value, violation.limit))


def test_a_thousand_violations_are_counted_and_a_hundred_are_listed() -> None:
    """
    The first ones; a report of a long chunk stays readable.
    """
    gate = SafetyGate(space=space(joint(name="x"), joint(name="y")))
    values = np.tile([[9.0, 0.0], [-9.0, 0.0]], (500, 1))
    report = gate.check(chunk(values, "x", "y"), last_command=[0, 0])
    assert (1000, 1000) == (
        report.counts[ViolationKind.OUT_OF_BOUNDS],
        report.counts[ViolationKind.STEP],
    )
    assert 100 == len(report.violations)
    assert 49 == report.violations[-1].step
    assert 3 == len(report.findings.violations(3))


def test_a_clean_report_says_so() -> None:
    """
    With every kind, and none of it.
    """
    report = SafetyGate(space=space(JOINT)).check(chunk([[0.0]]), last_command=[0.0])
    assert ("test, 1 x 1 values: all kept", (), 0) == (
        str(report),
        report.violations,
        report.total,
    )
    assert set(ViolationKind) == set(report.counts)
    assert report.previous_action_provided


def test_marks_are_of_the_steps_that_are_executed() -> None:
    """
    True where a value breaks anything; nothing is marked for want of a last command.
    """
    gate = SafetyGate(space=space(JOINT, SLIDE), execution_horizon=2)
    came = chunk([[0.5, 0.0], [0.5, 0.05], [9.0, 9.0]], "x", "dx")
    assert [[True, False], [False, True]] == gate.check(came, last_command=[0, 0]).marks().tolist()
    assert [[False, False], [False, True]] == gate.check(came, last_command=None).marks().tolist()
    calm = gate.check(chunk([[0.0, 0.0]], "x", "dx"), last_command=[0, 0])
    assert [[False, False]] == calm.marks().tolist()


def test_a_start_that_is_unknown_is_counted_beside_the_values() -> None:
    """
    No value of the chunk is wrong.
    """
    report = SafetyGate(space=space(JOINT)).check(chunk([[0.5]]), last_command=None)
    assert (0, 1) == (report.total, report.counts[ViolationKind.START_UNKNOWN])


def test_a_start_that_is_unknown_has_no_limit_to_show() -> None:
    """
    The value is the first command.
    """
    report = SafetyGate(space=space(JOINT)).check(chunk([[0.5]]), last_command=None)
    (violation,) = report.violations
    assert (
        Violation(kind=ViolationKind.START_UNKNOWN, step=0, dim=0, name="x", value=0.5, limit=None)
        == violation
    )
    assert "step 0, 'x': 0.5 without a last command" == str(violation)


def test_a_refusal_crosses_a_process_boundary_with_its_report() -> None:
    """
    Rollouts run in workers.
    """
    with pytest.raises(UnsafeActionError) as error:
        SafetyGate(space=space(JOINT)).vet(chunk([[0.5]]), last_command=[0.0])
    other = pickle.loads(pickle.dumps(error.value))
    assert (str(error.value), error.value.report.violations) == (
        str(other),
        other.report.violations,
    )
    assert "violations: test, 1 x 1 values: 1 too far from the step before" in str(other)


def test_a_report_is_as_it_was_made() -> None:
    """
    report.findings.masks.clear() emptied a frozen report.
    """
    findings = SafetyGate(space=space(JOINT)).check(chunk([[5.0]]), last_command=[0.0]).findings
    assert findings is not None
    with pytest.raises((AttributeError, TypeError)):
        findings.masks.clear()  # type: ignore[attr-defined]
    for array in (*findings.masks.values(), findings.values, findings.steps, findings.reference):
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.flags.writeable = True
    for same in (copy.deepcopy(findings), pickle.loads(pickle.dumps(findings))):
        assert (findings.counts, findings.violations()) == (same.counts, same.violations())


@pytest.mark.parametrize(
    ("value", "limit", "words"),
    [
        (float(np.float32(math.pi)), math.pi, "3.14159274 out of bounds (limit 3.14159265)"),
        (math.nextafter(1, 2), 1.0, "1.0000000000000002 out of bounds (limit 1.0)"),
        (-1.0000001, -1.0, "-1.0000001 out of bounds (limit -1)"),
        (2.0, 1.0, "2 out of bounds (limit 1)"),
    ],
)
def test_a_number_and_its_limit_are_written_so_that_they_differ(
    value: float, limit: float, words: str
) -> None:
    """
    "3.14159 out of bounds (limit 3.14159)" says nothing.
    """
    said = Violation(
        kind=ViolationKind.OUT_OF_BOUNDS, step=0, dim=0, name="x", value=value, limit=limit
    )
    assert f"step 0, 'x': {words}" == str(said)


@pytest.mark.parametrize(
    ("value", "limit", "words"),
    [
        (1.01, 1.0, "1.01 out of bounds (limit 1)"),
        (-1.01, -1.0, "-1.01 out of bounds (limit -1)"),
        (-1.00000001, 1.0, "-1.00000001 out of bounds (limit 1)"),
        (1.00000001, -1.0, "1.00000001 out of bounds (limit -1)"),
        (1.0000000012, 1.0, "1.0000000012 out of bounds (limit 1)"),
        (1.0000000000012, 1.0, "1.0000000000012 out of bounds (limit 1.0)"),
        (math.nextafter(1, 2), 1.0, "1.0000000000000002 out of bounds (limit 1.0)"),
    ],
)
def test_a_number_is_written_so_that_it_differs_from_its_limit(value, limit, words) -> None:
    """
    In size: its sign alone does not say why.
    """
    kind = ViolationKind.OUT_OF_BOUNDS
    each = Violation(kind=kind, step=0, dim=0, name="x", value=value, limit=limit)
    assert f"step 0, 'x': {words}" == str(each)
