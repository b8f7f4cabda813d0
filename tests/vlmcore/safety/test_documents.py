"""Tests of `vlmcore.safety.documents`."""

from __future__ import annotations

import copy
import json
import math
import pickle
from typing import Any

import attrs
import jsonschema
import pytest
from hypothesis import given

from safety_cases import GRIPPER, JOINT, SLIDE, chunk, space
from vlmcore.contracts.presets import PRESETS
from vlmcore.errors import ContractError, DocumentError, LimitExceededError
from vlmcore.limits import DocumentLimits
from vlmcore.safety import RefusalReason, Remedy, SafetyGate, SafetySummary, ViolationKind
from vlmcore.safety.documents import (
    DOCUMENTS,
    SAFETY_REPORT,
    safety_report_from_document,
    safety_report_from_json,
    safety_report_to_document,
    safety_report_to_json,
)
from vlmcore.testing.contract_strategies import hostile_json, safety_summaries

VALIDATOR = jsonschema.Draft202012Validator(SAFETY_REPORT.json_schema())
OLD: dict[str, Any] = {
    "schema": "comfyui-vlm/robot-action-safety",
    "version": 1,
    "embodiment": "aloha_bimanual_template",
    "action_mode": "absolute bimanual joint position",
    "policy_source": "act",
    "input_horizon": 50,
    "execution_horizon": 8,
    "action_dim": 14,
    "mode": "Clamp safely",
    "previous_action_provided": False,
    "violations": {
        "non_finite_values": 1,
        "out_of_bounds_values": 2,
        "per_step_delta_values": 3,
        "total": 6,
    },
    "changed": True,
    "safe_for_handoff": True,
}


def test_a_report_is_written_with_the_keys_that_are_known_outside() -> None:
    """
    To the letter and in their order; nothing more where there is nothing more to say.
    """
    gate = SafetyGate(embodiment=PRESETS["ALOHA bimanual template"], execution_horizon=1)
    came = chunk([[0.0] * 14] * 2, *gate.actions.names)
    written = safety_report_to_document(gate.check(came, last_command=[0.0] * 14))

    assert list(OLD) == list(written)
    assert list(OLD["violations"]) == list(written["violations"])
    assert "comfyui-vlm/robot-action-safety" == written["schema"]
    assert (2, 1, 14) == tuple(
        written[key] for key in ("input_horizon", "execution_horizon", "action_dim")
    )


def test_what_the_old_keys_cannot_say_has_keys_of_its_own() -> None:
    """
    The total is of the values; what is wrong with the last command is counted beside it.
    """
    gate = SafetyGate(space=space(JOINT, SLIDE, GRIPPER))
    came = chunk([[0.5, math.nan, 0.25], [-2.0, 0.05, 1.0]], "x", "dx", "gripper")
    written = safety_report_to_document(gate.check(came, last_command=[1.5, 0.0, 0.0]))

    assert {
        "non_finite_values": 1,
        "out_of_bounds_values": 1,
        "per_step_delta_values": 3,
        "total": 6,
        "not_a_level_values": 1,
        "reference_out_of_bounds": 1,
    } == written["violations"]
    assert "violations" == written["reason"]
    VALIDATOR.validate(written)


def test_a_report_comes_back_as_its_summary() -> None:
    """
    Exactly, from a report and from a summary of one.
    """
    report = SafetyGate(space=space(JOINT)).check(chunk([[0.5]]), last_command=None)
    assert report.summary() == safety_report_from_json(safety_report_to_json(report))
    assert report.summary() == safety_report_from_json(safety_report_to_json(report.summary()))


@given(safety_summaries())
def test_every_summary_is_read_back_exactly(summary: SafetySummary) -> None:
    """
    And what was written is valid by the published schema.
    """
    VALIDATOR.validate(safety_report_to_document(summary))
    assert summary == safety_report_from_json(safety_report_to_json(summary))
    assert summary == copy.deepcopy(summary) == pickle.loads(pickle.dumps(summary))
    assert hash(summary) == hash(copy.copy(summary))


@given(hostile_json())
def test_any_text_gives_a_summary_or_our_error(text: str) -> None:
    """
    Nothing else is raised.
    """
    with pytest.raises(ContractError):
        safety_report_from_json(text)


@pytest.mark.parametrize(
    ("mode", "remedy"),
    [
        ("Block unsafe", Remedy.BLOCK),
        ("Clamp safely", Remedy.CLAMP),
        ("Hold position on unsafe", Remedy.HOLD),
        ("Report only", Remedy.REPORT),
        ("hold", Remedy.HOLD),
    ],
)
def test_a_document_of_an_old_writer_is_read(mode: str, remedy: Remedy) -> None:
    """
    With only the old keys, the old words for what was to be done, and their word of caution.
    """
    summary = safety_report_from_document(OLD | {"mode": mode, "warning": "Not certified."})
    assert (remedy, None, 6) == (summary.mode, summary.reason, summary.total)
    assert (1, 2, 3, 0, 0, 0) == tuple(summary.counts.values())[:6]
    assert not safety_report_from_document(OLD | {"safe_for_handoff": False}).safe_for_handoff
    headless = {key: value for key, value in OLD.items() if key not in ("schema", "version")}
    assert safety_report_from_document(OLD) == safety_report_from_document(headless)


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"schema": "comfyui-vlm/robot-actions"}, "$.schema"),
        ({"version": 2}, "$.version"),
        ({"embodiment": None}, "$.embodiment"),
        ({"embodiment": "a\nb"}, "$.embodiment"),
        ({"policy_source": ""}, "$.policy_source"),
        ({"input_horizon": 0}, "$.input_horizon"),
        ({"input_horizon": 4}, "$.execution_horizon"),
        ({"execution_horizon": 4_097}, "$.execution_horizon"),
        ({"execution_horizon": 8.0}, "$.execution_horizon"),
        ({"action_dim": True}, "$.action_dim"),
        ({"mode": "clamp safely"}, "$.mode"),
        ({"previous_action_provided": 1}, "$.previous_action_provided"),
        ({"changed": "false"}, "$.changed"),
        ({"safe_for_handoff": None}, "$.safe_for_handoff"),
        ({"reason": "because"}, "$.reason"),
        ({"reason": "violations"}, "$.reason"),
        ({"violations": []}, "$.violations"),
        ({"violations": {**OLD["violations"], "total": 5}}, "$.violations.total"),
        ({"violations": {**OLD["violations"], "step_values": 1}}, "$.violations.step_values"),
        (
            {"violations": {**OLD["violations"], "per_step_delta_values": -1}},
            "$.violations.per_step_delta_values",
        ),
        ({"validated": True}, "$.validated"),
    ],
)
def test_a_fault_is_named_with_its_place(changes: dict[str, Any], path: str) -> None:
    """
    One that nothing else follows from.
    """
    with pytest.raises(DocumentError) as caught:
        safety_report_from_document(OLD | changes)
    assert path in [place for place, _ in caught.value.faults]


def test_a_total_that_is_not_the_sum_is_told_with_both_numbers() -> None:
    """
    And which document it is.
    """
    violations = {**OLD["violations"], "total": 5}
    with pytest.raises(DocumentError, match=r"robot-action-safety") as caught:
        safety_report_from_document(OLD | {"violations": violations})
    problem = "got 5, expected 6, the sum of the counts of values"
    assert [("$.violations.total", problem)] == list(caught.value.faults)


def test_kinds_that_a_summary_does_not_count_are_zero() -> None:
    """
    Every kind is there.
    """
    summary = attrs.evolve(safety_report_from_document(OLD), counts={ViolationKind.STEP: 2})
    assert dict.fromkeys(ViolationKind, 0) | {ViolationKind.STEP: 2} == dict(summary.counts)


def test_all_faults_are_told_at_once() -> None:
    """
    A person mends them all.
    """
    with pytest.raises(DocumentError) as caught:
        safety_report_from_document({"mode": "x", "changed": 0})
    assert {"$.mode", "$.changed", "$.violations", "$.input_horizon"} <= {
        path for path, _ in caught.value.faults
    }


def test_a_document_that_is_too_large_is_not_read() -> None:
    """
    The caller says how large.
    """
    text = json.dumps(OLD)
    assert safety_report_from_document(OLD) == safety_report_from_json(text)
    small = DocumentLimits(max_document_bytes=len(text) - 1)
    with pytest.raises(LimitExceededError, match="max_document_bytes"):
        safety_report_from_json(text, limits=small)


def test_the_schema_is_published_as_json_schema() -> None:
    """
    Draft 2020-12, with a description of every key.
    """
    schema = DOCUMENTS["robot-action-safety"].json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema == json.loads(json.dumps(schema, allow_nan=False))
    assert all(each["description"] for each in schema["properties"].values())


def test_all_steps_but_the_first_may_be_cut_off() -> None:
    """
    Of nothing that leaves there is no summary that says so.
    """
    said = safety_report_from_document(OLD)
    assert 0 == said.cut_steps
    assert 7 == attrs.evolve(said, cut_steps=7).cut_steps


@pytest.mark.parametrize(
    ("field", "value"),
    [
        pytest.param("embodiment", "a\u202eb", id="embodiment-turned"),  # mutmut finds no id with \
        ("policy_source", ""),
        ("input_horizon", 4_097),
        ("execution_horizon", 51),
        ("action_dim", 0),
        ("mode", "clamp"),
        ("previous_action_provided", 1),
        ("counts", []),
        ("counts", {"step": 1}),
        ("counts", {ViolationKind.STEP: True}),
        ("counts", {ViolationKind.STEP: -1}),
        ("counts", {ViolationKind.STEP: 1.0}),
        ("changed", None),
        ("safe_for_handoff", 0),
        ("reason", "violations"),
        ("reason", RefusalReason.VIOLATIONS),
        ("cut_steps", True),
        ("cut_steps", 1.0),
        ("cut_steps", -1),
    ],
)
def test_a_summary_that_cannot_be_is_refused(field: str, value: Any) -> None:
    """
    One error, which names the field.
    """
    with pytest.raises(ContractError, match=f"^{field}"):
        attrs.evolve(safety_report_from_document(OLD), **{field: value})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"counts": 7}, "counts: got 7, expected numbers by kind"),
        ({"counts": {"step": 1}}, "counts: got 'step', expected a ViolationKind"),
        (
            {"counts": {ViolationKind.STEP: -1}},
            "counts[step]: got -1, expected a whole number from 0",
        ),
        ({"changed": 1}, "changed: got 1, expected True or False"),
        ({"action_dim": 5_000}, "action_dim: got 5000, expected at most 2048"),
        ({"input_horizon": 5_000}, "input_horizon: got 5000, expected at most 4096"),
        ({"execution_horizon": 51}, "execution_horizon: got 51, expected at most 50"),
        (
            {"reason": "stale", "safe_for_handoff": False},
            f"reason: got 'stale', expected one of {', '.join(map(str, RefusalReason))}",
        ),
        (
            {"reason": RefusalReason.STALE},
            "reason: got RefusalReason.STALE for what is safe, expected None",
        ),
        ({"cut_steps": 8}, "cut_steps: got 8, expected a whole number up to 7"),
        (
            {"cut_steps": 1, "changed": False},
            "cut_steps: got 1, expected a whole number up to 0",
        ),
    ],
    ids=str,
)
def test_a_summary_that_cannot_be_says_what_came_and_what_was_expected(
    fields: dict[str, Any], message: str
) -> None:
    """
    One sentence.
    """
    with pytest.raises(ContractError) as error:
        attrs.evolve(safety_report_from_document(OLD), **fields)
    assert message == str(error.value)
