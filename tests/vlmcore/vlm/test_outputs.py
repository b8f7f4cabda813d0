"""Tests of `vlmcore.vlm.outputs`: what an answer is to be, from a schema or a class."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import attrs
import jsonschema
import pydantic
import pytest

from structure_cases import Dot, Model, Plain, Scene
from vlmcore.errors import ContractError
from vlmcore.vlm.generation import GenerationOptions
from vlmcore.vlm.outputs import JsonOutput, output_of


def test_the_schema_of_a_class_is_closed_and_names_what_must_be_there() -> None:
    """
    Fields without a default are required, private ones go by the name they are given by.
    """
    schema = JsonOutput.of(Scene).plain_schema()

    assert schema is not None
    assert (["name"], False) == (schema["required"], schema["additionalProperties"])
    assert {"name", "dots", "colour", "size", "pair", "counts", "inner", "anything", "private"} == (
        set(schema["properties"])
    )
    assert {"anyOf": [{"$ref": "#"}, {"type": "null"}]} == schema["properties"]["inner"]
    assert {"type": "array", "items": {"$ref": "#/$defs/Dot"}} == schema["properties"]["dots"]
    assert {"enum": ["small", "large"]} == schema["properties"]["size"]


@pytest.mark.parametrize("kind", [Scene, Plain, Model, Dot])
def test_the_schema_of_a_class_is_one(kind: type) -> None:
    """
    Of attrs, a dataclass, a model of pydantic.
    """
    schema = JsonOutput.of(kind).plain_schema()

    assert schema is not None
    jsonschema.Draft202012Validator.check_schema(schema)


@attrs.frozen
class Bytes:
    content: bytes


@attrs.frozen
class Either:
    one: Dot | Plain


@attrs.frozen
class Keys:
    by: dict[int, str]


@attrs.frozen
class Lost:
    one: Nowhere  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (Bytes, "Bytes.content: got <class 'bytes'>, expected str, int, float"),
        (Either, "Either.one: got a union with more than one object"),
        (Keys, "Keys.by: got keys of <class 'int'>, expected str"),
        (Lost, "Lost: has an annotation that is not found: name 'Nowhere'"),
        (int, "output: got int, expected a class of attrs, a dataclass or a pydantic model"),
    ],
)
def test_a_class_that_json_does_not_tell_apart_is_refused(kind: type, message: str) -> None:
    """
    With the field, before a model is asked.
    """
    with pytest.raises(ContractError, match=message):
        JsonOutput.of(kind)


def test_two_classes_of_one_name_do_not_become_one() -> None:
    """
    Modules call things alike.
    """
    other = attrs.make_class("Dot", {"z": attrs.field(type=int)})
    both = attrs.make_class("Both", {"a": attrs.field(type=Dot), "b": attrs.field(type=other)})

    schema = JsonOutput.of(both).plain_schema()

    assert schema is not None
    assert {"Dot", "Dot2"} == set(schema["$defs"])


@pytest.mark.parametrize(
    ("value", "output"),
    [
        (None, None),
        ("text", None),
        ("json", JsonOutput()),
        ({"type": "string"}, JsonOutput(schema={"type": "string"})),
        (Dot, JsonOutput.of(Dot)),
        (JsonOutput(repair=True), JsonOutput(repair=True)),
    ],
)
def test_what_a_caller_says_of_the_answer_is_kept_as_one_thing(
    value: Any, output: JsonOutput | None
) -> None:
    """
    Words, a schema, a class, or the thing itself.
    """
    assert output == output_of(value) == GenerationOptions(output=value).output


@pytest.mark.parametrize("value", ["jsno", 5, ["json"], True, b"json"])
def test_what_says_nothing_of_an_answer_is_refused(value: object) -> None:
    """
    With what is expected.
    """
    with pytest.raises(ContractError, match=r"output: got .*, expected 'text', 'json', a JSON Sch"):
        GenerationOptions(output=value)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"repair": 1}, "repair: got 1, expected True or False"),
        ({"constrained": "no"}, "constrained: got 'no'"),
        ({"kind": "Dot"}, "kind: got 'Dot', expected a class"),
        ({"kind": Dot}, "schema: got None for a class, expected its schema"),
        ({"schema": []}, "schema: got list, expected an object"),
    ],
)
def test_an_output_is_checked_field_by_field(fields: dict[str, Any], message: str) -> None:
    """
    Before a model is asked.
    """
    with pytest.raises(ContractError, match=message):
        JsonOutput(**fields)


def test_options_with_an_output_are_compared_hashed_and_pickled() -> None:
    """
    They are keys of caches, and cross processes.
    """
    options = GenerationOptions(output=Scene)

    assert options == pickle.loads(pickle.dumps(options))
    assert hash(options) == hash(GenerationOptions(output=Scene))
    assert options != GenerationOptions(output=Dot)


def test_a_schema_cannot_be_changed_from_outside() -> None:
    """
    It was checked as it is.
    """
    given = {"type": "object", "required": ["a"]}
    output = JsonOutput(schema=given)
    given["required"].append("b")  # type: ignore[attr-defined]

    assert {"type": "object", "required": ["a"]} == output.plain_schema()
    with pytest.raises(TypeError):
        output.schema["type"] = "string"  # type: ignore[index]


class Unspoken(pydantic.BaseModel):
    call: Callable[[], None]


def test_a_model_of_pydantic_that_json_cannot_hold_is_told() -> None:
    """
    In our error, with what pydantic says.
    """
    with pytest.raises(ContractError, match="output: Unspoken has no JSON Schema: "):
        JsonOutput.of(Unspoken)
