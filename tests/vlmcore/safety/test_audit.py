"""Tests of `vlmcore.safety.audit`."""

from __future__ import annotations

import math

import numpy as np
import pytest

from safety_cases import GRIPPER, JOINT, SLIDE, WHEEL, joint, space
from vlmcore.contracts.embodiment import ActionDim
from vlmcore.errors import ContractError
from vlmcore.safety import ViolationKind, audit
from vlmcore.safety._rules import Rules

NAN = math.nan


def found(values, *dims: ActionDim, last_command) -> list[tuple]:
    """Audit, and list the kind, step and dimension of what was found."""
    findings = audit(values, space(*dims), last_command=last_command)
    return [(each.kind.value, each.step, each.dim) for each in findings.violations()]


def test_nothing_is_found_in_what_keeps_every_limit() -> None:
    """
    All kinds are there, with none of each.
    """
    findings = audit([[0.1], [0.2]], space(JOINT), last_command=[0.0])
    assert dict.fromkeys(ViolationKind, 0) == findings.counts
    assert ((), frozenset()) == (findings.violations(), findings.kinds)
    assert ([0.0], [[0.0], [0.0]]) == (findings.reference.tolist(), findings.steps.tolist())


def test_nan_is_counted_once_and_as_that_alone() -> None:
    """
    NaN fails every comparison, and is neither out of bounds nor too far.
    """
    values = [[NAN], [math.inf], [-math.inf]]
    assert [("non_finite", step, 0) for step in range(3)] == found(
        values, JOINT, last_command=[0.0]
    )


def test_where_steps_lead_is_kept_where_one_leads_out_only() -> None:
    """
    Whatever else is found.
    """
    assert audit([[2.0]], space(JOINT), last_command=[0.0]).reached is None


def test_a_jump_behind_nan_is_seen() -> None:
    """
    It is held against what holding would have sent.
    """
    assert [("non_finite", 1, 0), ("step", 2, 0)] == found(
        [[0.1], [NAN], [0.9]], JOINT, last_command=[0.0]
    )
    assert [("non_finite", 1, 0), ("step", 2, 0)] == found(
        [[0.02], [NAN], [0.04]], SLIDE, last_command=[0.0]
    )
    assert [("non_finite", 0, 0), ("step", 1, 0)] == found(
        [[NAN], [0.9]], JOINT, last_command=[0.0]
    )
    assert [("non_finite", 0, 0), ("start_unknown", 0, 0)] == found(
        [[NAN], [0.9]], JOINT, last_command=None
    )


def test_a_jump_is_seen_though_the_first_step_is_lost_and_the_start_unknown() -> None:
    """
    Once a step is known, the next one is held against it.
    """
    assert [("non_finite", 0, 0), ("start_unknown", 0, 0), ("step", 2, 0)] == found(
        [[NAN], [0.1], [0.9]], JOINT, last_command=None
    )


def test_what_is_lost_in_one_dimension_is_held_in_that_dimension() -> None:
    """
    Whatever came meanwhile in those beside it.
    """
    values = [[0.0, 0.0, 0.0], [0.05, NAN, 0.05], [0.05, 0.2, 0.05]]
    dims = (JOINT, joint(name="y"), joint(name="z"))
    assert [("non_finite", 1, 1), ("step", 2, 1)] == found(values, *dims, last_command=[0.0] * 3)


def test_steps_are_held_against_what_came_before_as_it_came() -> None:
    """
    One jump and back are two steps that are too long.
    """
    assert [("step", 1, 0), ("step", 2, 0)] == found(
        [[0.0], [0.5], [0.0]], JOINT, last_command=[0.0]
    )


def test_what_is_out_of_bounds_may_also_be_too_far() -> None:
    """
    Both are said, in the order of the kinds.
    """
    assert [("out_of_bounds", 0, 0), ("step", 0, 0)] == found([[-3]], JOINT, last_command=[0.0])


def test_bounds_are_exact() -> None:
    """
    The next float64 is out of bounds; the bound itself is not, and -0.0 is 0.
    """
    past = math.nextafter(1.0, 2.0)
    assert [("out_of_bounds", 1, 0)] == found([[1.0], [past]], JOINT, last_command=[1.0])
    positive = ActionDim(name="x", low=0, high=1, max_step=0.1)
    assert [] == found([[-0.0], [0.0]], positive, last_command=[0.0])
    assert [("out_of_bounds", 0, 0)] == found([[-5e-324]], positive, last_command=[0.0])


def test_a_change_is_held_against_speeding_up_only() -> None:
    """
    From 0.04 it may go to anything between -0.02 and 0.05.
    """
    for value, wrong in ((-0.03, True), (-0.02, False), (0.0, False), (0.05, False)):
        assert wrong is bool(found([[value]], SLIDE, last_command=[0.04])), value
        assert wrong is bool(found([[-value]], SLIDE, last_command=[-0.04])), -value


def test_only_targets_need_to_know_the_start() -> None:
    """
    Each target is found once, at the first step; changes start from zero.
    """
    dims = (JOINT, SLIDE, GRIPPER, WHEEL)
    assert [("start_unknown", 0, 0), ("start_unknown", 0, 2), ("start_unknown", 0, 3)] == found(
        [[0.9, 0, 1, 2], [0.9, 0, 1, 2]], *dims, last_command=None
    )


def test_a_last_command_out_of_bounds_is_a_finding_of_its_own() -> None:
    """
    It is not in a step of the chunk.
    """
    kinds = found([[1.0, 0.0]], JOINT, SLIDE, last_command=[1.05, 0.06])
    assert [("reference_out_of_bounds", None, 0), ("reference_out_of_bounds", None, 1)] == kinds


def test_a_value_between_levels_is_not_a_level() -> None:
    """
    Out of bounds and not finite are not counted again as that; float32 of a level is the level.
    """
    values = [[0.5], [2.0], [NAN], [1.0]]
    assert [("not_a_level", 0, 0), ("out_of_bounds", 1, 0), ("non_finite", 2, 0)] == found(
        values, GRIPPER, last_command=[0.0]
    )
    tenth = ActionDim(name="x", low=0, high=1, levels=(0.1, 0.9))
    assert [] == found(np.float32([[0.1], [0.9]]), tenth, last_command=[0.1])
    assert [("not_a_level", 0, 0)] == found([[0.1001]], tenth, last_command=[0.1])


def test_levels_may_have_a_step_bound_of_their_own() -> None:
    """
    A jump over one is too far.
    """
    gear = ActionDim(name="g", low=0, high=2, levels=(0.0, 1.0, 2.0), max_step=1.0)
    assert [("step", 1, 0)] == found([[0.0], [2.0]], gear, last_command=[1.0])


def test_nothing_overflows_into_silence() -> None:
    """
    Differences beyond float64 are too far.
    """
    for max_step in (1e300, 1.7e308, 1.797e308):
        wide = ActionDim(name="x", low=-1.5e308, high=1.5e308, max_step=max_step)
        assert [("step", 0, 0)] == found([[1.5e308]], wide, last_command=[-1.5e308])


def test_an_audit_changes_nothing() -> None:
    """
    Neither the values nor the last command.
    """
    values, last_command = np.array([[9.0], [NAN]]), np.array([0.0])
    audit(values, space(JOINT), last_command=last_command)
    assert [9.0] == values[0].tolist()
    assert [0.0] == last_command.tolist()


@pytest.mark.parametrize(
    "values", [[], np.zeros((0, 1)), [[0.0, 0.0]], [0.0], np.zeros((1, 1), np.uint8), [[True]]]
)
def test_what_does_not_fit_the_space_is_refused(values) -> None:
    """
    One error, about the values.
    """
    with pytest.raises(ContractError, match=r"^values"):
        audit(values, space(joint()), last_command=[0.0])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([[0.0, 0.0]], "got shape [1, 2], expected steps of 1 dimensions"),
        (np.zeros((0, 1)), "got shape [0, 1], expected steps of 1 dimensions"),
        (np.zeros(1), "got an array of shape [1], expected one of axes [T, D]"),
    ],
)
def test_values_that_are_refused_are_told_their_shape(values, message: str) -> None:
    """
    And the one that was expected.
    """
    with pytest.raises(ContractError) as error:
        audit(values, space(joint()), last_command=[0.0])
    assert f"values: {message}" == str(error.value)


@pytest.mark.parametrize("wrong", [None, JOINT, (JOINT,), "space"])
def test_a_space_is_needed(wrong) -> None:
    """
    Without one there was an AttributeError.
    """
    with pytest.raises(ContractError, match=r"^space: got .*, expected an ActionSpace$"):
        audit([[0.0]], wrong, last_command=None)


def test_a_robot_is_no_space() -> None:
    """
    The space is a part of it.
    """
    with pytest.raises(ContractError) as error:
        audit([[0.0]], 7, last_command=[0.0])  # type: ignore[arg-type]
    assert "space: got int, expected an ActionSpace" == str(error.value)


def test_a_step_is_forgiven_to_the_last_bit_of_its_slack() -> None:
    """
    And not beyond.
    """
    allowed = float(Rules.of(space(JOINT)).allowed_step[0])
    assert [] == found([[allowed]], JOINT, last_command=[0.0])
    assert [] == found([[-allowed]], JOINT, last_command=[0.0])
    past = math.nextafter(allowed, 1)
    assert [("step", 0, 0)] == found([[past]], JOINT, last_command=[0.0])


def test_an_angle_that_comes_round_turns_nothing_beside_it() -> None:
    """
    A joint that goes 5 the one way has not gone 1 the other way.
    """
    beside = space(WHEEL, joint(0.5, bound=10))
    findings = audit([[2.75, 5.0]], beside, last_command=[-2.75, 0.0])
    assert [("x", 5.0)] == [(each.name, each.value) for each in findings.violations()]
