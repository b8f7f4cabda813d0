"""Tests of `vlmcore.contracts.schemas`: the published JSON Schema says what is read and written."""

from __future__ import annotations

import json
import math
from typing import Any

import jsonschema
import pytest
from hypothesis import given

from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.documents import (
    action_chunk_to_document,
    action_step_to_document,
    embodiment_to_document,
    observation_summary_to_document,
)
from vlmcore.contracts.embodiment import Embodiment
from vlmcore.contracts.observation import Observation
from vlmcore.contracts.presets import PRESETS
from vlmcore.contracts.schemas import ACTION_CHUNK, ACTION_STEP, DOCUMENTS, EMBODIMENT
from vlmcore.errors import DocumentError
from vlmcore.testing.contract_strategies import action_chunks, embodiments, observations

VALIDATORS = {
    name: jsonschema.Draft202012Validator(kind.json_schema()) for name, kind in DOCUMENTS.items()
}
ALOHA = embodiment_to_document(PRESETS["ALOHA bimanual template"])


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_schema_is_json_schema_and_json(name: str) -> None:
    """
    Draft 2020-12, with a description of every key.
    """
    schema = DOCUMENTS[name].json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)

    assert schema == json.loads(json.dumps(schema, allow_nan=False))
    assert f"comfyui-vlm/{name}, version 1" == schema["title"]
    assert all(prop["description"] for prop in schema["properties"].values())


def test_the_documents_have_the_schemas_that_are_known_outside() -> None:
    """
    To the letter.
    """
    assert [
        "comfyui-vlm/robot-embodiment",
        "comfyui-vlm/robot-observation",
        "comfyui-vlm/robot-actions",
        "comfyui-vlm/robot-action-step",
    ] == [kind.schema_id for kind in DOCUMENTS.values()]


@given(embodiments())
def test_what_is_written_of_an_embodiment_is_valid(embodiment: Embodiment) -> None:
    """
    As the schema says.
    """
    VALIDATORS["robot-embodiment"].validate(embodiment_to_document(embodiment))


@given(action_chunks())
def test_what_is_written_of_a_chunk_is_valid(chunk: ActionChunk) -> None:
    """
    And of each of its steps.
    """
    VALIDATORS["robot-actions"].validate(action_chunk_to_document(chunk))
    VALIDATORS["robot-action-step"].validate(action_step_to_document(chunk.step(0)))


@given(observations())
def test_what_is_written_of_an_observation_is_valid(observation: Observation) -> None:
    """
    Its summary.
    """
    VALIDATORS["robot-observation"].validate(observation_summary_to_document(observation.summary()))


@pytest.mark.parametrize(
    "changes",
    [
        {"name": " "},
        {"name": "x" * 257},
        {"name": 1},
        {"version": 2},
        {"schema": "x"},
        {"control_hz": 0},
        {"control_hz": 10_001},
        {"control_hz": True},
        {"control_hz": "20"},
        {"camera_names": []},
        {"camera_names": [str(i) for i in range(17)]},
        {"max_delta_per_step": [0.0]},
        {"max_delta": [1.0]},
        {"limits_source": "mine"},
        {"action_levels": {"joint_0": [1]}},
        {"camera_sizes": {"cam_high": [1.5, 2]}},
        {"camera_sizes": {"cam_high": [0, 2]}},
        {"more": 1},
        {"action_references": []},
    ],
    ids=repr,
)
def test_the_schema_and_the_reader_refuse_the_same(changes: dict[str, Any]) -> None:
    """
    Both are made from one table.
    """
    wrong = ALOHA | changes
    with pytest.raises(DocumentError):
        EMBODIMENT.check(wrong)
    assert not VALIDATORS["robot-embodiment"].is_valid(wrong)


def test_the_older_name_of_a_key_is_read_as_todays() -> None:
    """
    One of them must be there.
    """
    old = {key: value for key, value in ALOHA.items() if key != "max_delta_per_step"}
    assert not VALIDATORS["robot-embodiment"].is_valid(old)
    old["max_delta"] = ALOHA["max_delta_per_step"]

    assert VALIDATORS["robot-embodiment"].is_valid(old)
    assert ALOHA == EMBODIMENT.check(old)


def test_a_list_may_be_a_step_only_if_its_items_are_numbers() -> None:
    """
    Looked at one by one where one is not a float.
    """
    chunk = {"source": "s", "action_names": ["x"], "actions": [[1], [2.5], [math.nan], ["1"]]}
    with pytest.raises(DocumentError) as caught:
        ACTION_CHUNK.check(chunk)
    assert ("$.actions[2][0]", "$.actions[3][0]") == tuple(path for path, _ in caught.value.faults)


def test_a_value_in_an_object_has_a_path_that_can_be_read_in_one_way() -> None:
    """
    Names with dots in them are quoted.
    """
    step = {"source": "s", "step_index": 0, "action": {"a.b": "x", "c": "y"}}
    with pytest.raises(DocumentError) as caught:
        ACTION_STEP.check(step)
    assert ("$.action['a.b']", "$.action.c") == tuple(path for path, _ in caught.value.faults)
