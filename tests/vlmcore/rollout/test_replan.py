"""Tests of `vlmcore.rollout.replan`."""

from __future__ import annotations

import pickle
from typing import Any

import attrs
import pytest

from safety_cases import chunk
from vlmcore.contracts.actions import ActionChunk
from vlmcore.errors import ContractError
from vlmcore.rollout import ReplanReport

REPORT = ReplanReport(
    previous_source="old",
    new_source="test",
    previous_horizon=8,
    new_horizon=6,
    executed_steps=3,
    remaining_previous_steps=5,
    transition_steps_requested=9,
    transition_steps_applied=4,
    output_horizon=4,
)


def test_a_report_says_what_a_blend_with_the_same_arguments_does() -> None:
    """
    As many steps are blended as both plans still have; two of the new ones are past.
    """
    old = ActionChunk(values=[[0.0]] * 8, names=("x",), source="old", observed_at_s=0)
    new = chunk([[1.0]] * 6)
    assert REPORT == ReplanReport.of(old, new, executed=3, overlap=9, elapsed=2)


def test_a_plan_that_was_executed_to_its_end_leaves_nothing_to_blend() -> None:
    """
    The new one starts at once.
    """
    came = ReplanReport.of(chunk([[0.0]] * 2), chunk([[1.0]]), executed=2, overlap=3)
    assert (0, 3, 0, 1) == (
        came.remaining_previous_steps,
        came.transition_steps_requested,
        came.transition_steps_applied,
        came.output_horizon,
    )


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("previous_source", "", "expected"),
        ("new_source", 3, "expected"),
        ("previous_horizon", 0, "expected a whole number from 1 to 4096"),
        ("new_horizon", 4097, "expected a whole number from 1 to 4096"),
        ("new_horizon", True, "expected a whole number from 1 to 4096"),
        ("executed_steps", 9, "expected a whole number from 0 to 8"),
        ("executed_steps", 2.0, "expected a whole number from 0 to 8"),
        ("remaining_previous_steps", 4, "expected 5"),
        ("transition_steps_requested", -1, "expected a whole number from 0 to 4096"),
        ("transition_steps_applied", 3, "expected 4"),
        ("transition_steps_requested", 2, "expected 2"),
        ("output_horizon", 7, "expected a whole number from 1 to 6"),
        ("output_horizon", 3, "expected 3"),
    ],
)
def test_numbers_that_contradict_each_other_are_refused(
    field: str, value: Any, expected: str
) -> None:
    """
    What is left, what was blended, and what came out follow from the rest.
    """
    with pytest.raises(ContractError, match=expected):
        attrs.evolve(REPORT, **{field: value})


def test_a_report_can_be_compared_and_crosses_a_process_boundary() -> None:
    """
    It is a value.
    """
    assert REPORT == pickle.loads(pickle.dumps(REPORT))
    assert 1 == len({REPORT, attrs.evolve(REPORT)})
