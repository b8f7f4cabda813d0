"""Tests of `vlmcore.rollout.documents`."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmcore.errors import ContractError, DocumentError
from vlmcore.rollout import ReplanReport
from vlmcore.rollout.documents import (
    REPLAN_REPORT,
    replan_report_from_document,
    replan_report_from_json,
    replan_report_to_document,
    replan_report_to_json,
)
from vlmcore.testing.contract_strategies import hostile_json
from vlmcore.testing.rollout_strategies import replan_reports

DOCUMENT: dict[str, Any] = {
    "schema": "comfyui-vlm/robot-action-replan",
    "version": 1,
    "previous_source": "old",
    "new_source": "new",
    "previous_horizon": 8,
    "new_horizon": 6,
    "executed_steps": 3,
    "remaining_previous_steps": 5,
    "transition_steps_requested": 9,
    "transition_steps_applied": 5,
    "output_horizon": 6,
}
SCHEMA = jsonschema.Draft202012Validator(REPLAN_REPORT.json_schema())


def test_a_report_is_written_with_its_keys_in_their_order() -> None:
    """
    Workflows and servers read them by these names.
    """
    report = replan_report_from_document(DOCUMENT)
    assert list(DOCUMENT.items()) == list(replan_report_to_document(report).items())


def test_a_document_without_schema_and_version_is_of_version_1() -> None:
    """
    As every document.
    """
    bare = {key: value for key, value in DOCUMENT.items() if key not in ("schema", "version")}
    assert replan_report_from_document(DOCUMENT) == replan_report_from_document(bare)


@given(replan_reports())
def test_a_report_is_read_back_exactly_and_its_schema_knows_it(report: ReplanReport) -> None:
    """
    Whatever it says.
    """
    text = replan_report_to_json(report)
    assert report == replan_report_from_json(text)
    assert report == replan_report_from_json(text.encode())
    SCHEMA.validate(json.loads(text))


def test_all_faults_are_told_at_once_each_with_its_place() -> None:
    """
    Another type, a key that nobody knows, and one that is missing.
    """
    broken = {**DOCUMENT, "new_horizon": "6", "extra": 1}
    del broken["new_source"]
    with pytest.raises(DocumentError) as error:
        replan_report_from_document(broken)
    assert {"$.new_horizon", "$.extra", "$.new_source"} == {path for path, _ in error.value.faults}


def test_numbers_that_contradict_each_other_are_found_at_their_place() -> None:
    """
    3 of 8 steps leave 5.
    """
    with pytest.raises(DocumentError) as error:
        replan_report_from_document({**DOCUMENT, "remaining_previous_steps": 4})
    assert (("$.remaining_previous_steps", "got 4, expected 5"),) == error.value.faults


@pytest.mark.parametrize(
    "change", [{"schema": "comfyui-vlm/robot-actions"}, {"version": 2}, {"version": True}]
)
def test_another_document_is_refused_by_name(change: dict[str, Any]) -> None:
    """
    Before anything else of it is looked at.
    """
    with pytest.raises(DocumentError, match=r"\$\.(schema|version): got "):
        replan_report_from_document({**DOCUMENT, **change})


@given(hostile_json())
def test_any_text_gives_a_report_or_our_error(text: str) -> None:
    """
    Never something else.
    """
    with contextlib.suppress(ContractError):
        assert isinstance(replan_report_from_json(text), ReplanReport)


@given(st.sampled_from(list(DOCUMENT)), st.integers() | st.none() | st.floats() | st.text())
def test_any_value_under_any_key_gives_a_report_or_our_error(key: str, value: Any) -> None:
    """
    What is read says what was written.
    """
    said = {**DOCUMENT, key: value}
    try:
        report = replan_report_from_document(said)
    except DocumentError:
        return
    assert said == replan_report_to_document(report)
