"""Tests of schemas that anybody may have written: they are checked before anything is done."""

from __future__ import annotations

from typing import Any

import pytest

from vlmcore.errors import ContractError, LimitExceededError
from vlmcore.vlm._schema_patterns import pattern_steps, require_pattern
from vlmcore.vlm.outputs import JsonOutput

TREE = {
    "type": "object",
    "properties": {"name": {}, "kids": {"type": "array", "items": {"$ref": "#"}}},
}


@pytest.mark.parametrize(
    "schema",
    [
        {},
        TREE,
        {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "string"},
        {"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"type": "integer"}}},
        {"$ref": "#/definitions/%7Ea", "definitions": {"~a": True, "b": {"$ref": "#"}}}
        | {"definitions": {"%7Ea": True, "~a": True}, "$ref": "#/definitions/~0a"},
        {"properties": {"$id": {"type": "string"}, "$ref": {"type": "string"}}},
        {"enum": [{"$ref": "http://example.com"}], "default": {"$id": "x"}},
        {"anyOf": [{"$ref": "#/$defs/x"}, {"$ref": "#/$defs/x"}], "$defs": {"x": True}},
        {"type": "string", "pattern": r"^\d{4}-\d{2}$"},
    ],
)
def test_a_schema_that_says_everything_itself_is_taken(schema: dict[str, Any]) -> None:
    """
    References inside, names that only look like keywords, recursion through a value.
    """
    assert schema == JsonOutput(schema=schema).plain_schema()


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"$ref": "https://example.com/s"}, r"schema/\$ref: got 'https.*nothing is fetched"),
        ({"$ref": "file:///etc/passwd"}, r"schema/\$ref: got 'file"),
        ({"$ref": "#name"}, r"schema/\$ref: got '#name'"),
        ({"$ref": "#/$defs/x"}, r"schema/\$ref: got '#/\$defs/x', and there is no schema there"),
        ({"$ref": "#/enum/0", "enum": [{}]}, "there is no schema there"),
        ({"$ref": 5}, r"schema/\$ref: got 5"),
        ({"items": {"$id": "x"}}, r"schema/items/\$id: is not taken"),
        ({"$dynamicRef": "#x"}, r"schema/\$dynamicRef: is not taken"),
        ({"$anchor": "x"}, r"schema/\$anchor: is not taken"),
        ({"$schema": "http://json-schema.org/draft-07/schema#"}, r"schema/\$schema: got 'http"),
        ({"$schema": 7}, r"schema/\$schema: got 7"),
        ({"$ref": "#"}, "schema: refers to itself without end"),
        ({"allOf": [{"$ref": "#"}]}, "refers to itself without end"),
        (
            {"$ref": "#/$defs/a", "$defs": {"a": {"not": {"$ref": "#/$defs/b"}}}}
            | {"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}]}, "b": {"$ref": "#/$defs/a"}}},
            "refers to itself without end",
        ),
        ({"items": 5}, "schema/items: got int, expected a schema"),
        ({"type": "dog"}, "schema.type: is no schema: 'dog' is not valid under any"),
        ({"required": "a"}, "schema.required: is no schema: 'a' is not of type 'array'"),
        ({"minimum": float("nan")}, "schema.minimum: got float nan, expected a JSON value"),
        ({"pattern": "(a+)+$"}, "schema/pattern: got .* with a repeat or a choice in a repeat"),
        ({"patternProperties": {"(a|a)*b": {}}}, "schema/pattern: got"),
        ({"properties": {"x": {"pattern": "["}}}, "schema/properties/x/pattern: got .* no pattern"),
    ],
)
def test_a_schema_that_fetches_or_never_ends_is_refused(
    schema: dict[str, Any], message: str
) -> None:
    """
    A workflow may bring a schema from anybody.
    """
    with pytest.raises(ContractError, match=message):
        JsonOutput(schema=schema)


def test_schemas_that_are_bombs_by_their_size_are_refused() -> None:
    """
    Large, deep, and many values.
    """
    deep: dict[str, Any] = {}
    for _ in range(40):
        deep = {"items": deep}

    with pytest.raises(ContractError, match=r"max_depth|nested more than"):
        JsonOutput(schema=deep)
    with pytest.raises(LimitExceededError, match="max_document_bytes"):
        JsonOutput(schema={"description": "x" * (1 << 19)})
    with pytest.raises(LimitExceededError, match="max_nodes"):
        JsonOutput(schema={"enum": list(range(1 << 14))})


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+",
        "(a|b)*",
        "(a?){30}",
        "(a{1,3}){2,}",
        "(?:(?:x*)y)+",
        r"(a)\1",
        "(?P<n>a)(?P=n)",
        "(?x) a # (",
        "(",
        "a" * 600,
    ],
)
def test_patterns_that_may_search_for_ever_are_refused(pattern: str) -> None:
    """
    Ways to match that multiply, references back, and what is no pattern.
    """
    with pytest.raises(ContractError, match="pattern: got"):
        require_pattern(pattern, "pattern")


@pytest.mark.parametrize(
    ("pattern", "steps"),
    [
        ("abc", 11),
        ("a+", 121),
        ("a+b*", 1331),
        ("a?b", 22),
        (r"\(a+\)", 121),
        ("[*+]", 11),
        ("(?:ab)+", 121),
        ("(?i:a)?", 22),
        (r"\d{4}", 11),
        ("a+?", 121),
        ("[]+]", 11),
    ],
)
def test_the_steps_of_a_pattern_are_bounded_by_its_repeats(pattern: str, steps: int) -> None:
    """
    Each repeat may end at each of ten characters, or before them; each choice doubles the ways.
    """
    require_pattern(pattern, "pattern")

    assert steps == pattern_steps(pattern, 10)
