"""Tests of `vlmcore.vlm.structure_requests`: each server is asked in its own way."""

from __future__ import annotations

import json
from typing import Any

import pytest

from structure_cases import Dot
from vlmcore.vlm.outputs import JsonOutput
from vlmcore.vlm.structure_requests import StructureStyle, structure_fields, structure_words

SCHEMA = {
    "type": "object",
    "properties": {"x": {"type": "integer"}},
    "required": ["x"],
    "additionalProperties": False,
}
OUTPUT = JsonOutput(schema=SCHEMA)


@pytest.mark.parametrize(
    ("style", "fields"),
    [
        (
            StructureStyle.OPENAI_CHAT,
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "answer", "schema": SCHEMA, "strict": True},
                }
            },
        ),
        (
            StructureStyle.OPENAI_RESPONSES,
            {
                "text": {
                    "format": {
                        "type": "json_schema",
                        "name": "answer",
                        "schema": SCHEMA,
                        "strict": True,
                    }
                }
            },
        ),
        (
            StructureStyle.ANTHROPIC,
            {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
        ),
        (
            StructureStyle.LLAMA_CPP,
            {"response_format": {"type": "json_object", "schema": SCHEMA}},
        ),
        (StructureStyle.TENSORRT_LLM, {"response_format": {"type": "json", "schema": SCHEMA}}),
        (StructureStyle.JSON_OBJECT, {"response_format": {"type": "json_object"}}),
        (StructureStyle.WORDS, {}),
    ],
)
def test_a_schema_is_sent_as_each_server_takes_it(
    style: StructureStyle, fields: dict[str, Any]
) -> None:
    """
    In fields at the top of the request; where those cannot say it, words do.
    """
    assert fields == structure_fields(OUTPUT, style)
    assert (json.dumps(SCHEMA) in structure_words(OUTPUT, style)) is (
        style in (StructureStyle.JSON_OBJECT, StructureStyle.WORDS)
    )


@pytest.mark.parametrize("style", StructureStyle)
def test_any_object_is_asked_for_in_words_as_well(style: StructureStyle) -> None:
    """
    Servers refuse ``json_object`` with a prompt that does not speak of JSON.
    """
    assert "JSON" in structure_words(JsonOutput(), style)
    assert "schema" not in json.dumps(structure_fields(JsonOutput(), style))


@pytest.mark.parametrize("style", StructureStyle)
def test_for_text_nothing_is_said(style: StructureStyle) -> None:
    """
    Requests stay as they were.
    """
    assert ({}, "") == (structure_fields(None, style), structure_words(None, style))


@pytest.mark.parametrize(
    ("output", "is_strict"),
    [
        (OUTPUT, True),
        (JsonOutput(schema={"type": "object"}), False),
        (JsonOutput.of(Dot), False),  # y has a default, and strict mode wants all or nothing
        (JsonOutput(schema={**SCHEMA, "properties": {"x": {"type": "object"}}}), False),
        (JsonOutput(schema={"type": "array", "items": SCHEMA}), True),
    ],
)
def test_strict_is_said_of_schemas_that_are_closed_all_through(
    output: JsonOutput, *, is_strict: bool
) -> None:
    """
    OpenAI refuses the others in its strict mode, and takes them without.
    """
    fields = structure_fields(output, StructureStyle.OPENAI_CHAT)

    assert is_strict is fields["response_format"]["json_schema"]["strict"]
