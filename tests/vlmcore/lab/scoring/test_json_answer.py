"""Tests of `vlmcore.lab.scoring.json_answer`."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmcore.errors import ContractError
from vlmcore.lab.scoring.json_answer import JsonEvaluator
from vlmcore.lab.scoring.normalising import Level
from vlmcore.lab.scoring.scores import Evaluator, ScoreFlag
from vlmcore.testing.contract_strategies import hostile_json

COLOUR = {
    "type": "object",
    "properties": {"colour": {"enum": ["red", "blue"]}},
    "required": ["colour"],
}
CAR = JsonEvaluator(expected={"colour": "red", "doors": 4, "/tags/0": "old", "sold": False})


@pytest.mark.parametrize(
    "around", ["{}", "```json\n{}\n```", "Here it is: {}.", "<think>{{}}</think>{}"]
)
def test_json_may_stand_in_a_fence_or_between_words(around: str) -> None:
    """
    As models write it.
    """
    answer = '{"colour": "red", "doors": 4, "tags": ["old", "fast"], "sold": false}'
    score = CAR.score(around.replace("{{}}", "[]").replace("{}", answer))

    assert (1.0, "4 of 4 fields") == (score.value, score.reason)


def test_the_score_is_the_part_of_the_fields_that_are_right() -> None:
    """
    And the reason names the others.
    """
    score = CAR.score('{"colour": "blue", "doors": 4.0, "tags": [], "sold": false}')

    assert (0.5, "2 of 4 fields; wrong: 'colour', '/tags/0'") == (score.value, score.reason)


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        (1, True),
        (True, 1),
        (0, None),
        (None, 0),
        ("1", 1),
        (1, "1"),
        ([1], [1, 2]),
        ([1], {"0": 1}),
        ({"a": 1}, {"a": 1, "b": 2}),
        ({"a": 1}, [1]),
        (3, 3.7),
        (False, None),
    ],
)
def test_values_of_another_kind_are_not_equal(expected: Any, found: Any) -> None:
    """
    Python says that True is 1.
    """
    score = JsonEvaluator(expected={"x": expected}).score(json.dumps({"x": found}))

    assert 0.0 == score.value


@pytest.mark.parametrize(
    ("expected", "found"),
    [(3, 3.0), ([1, {"a": "é"}], [1.0, {"a": "e\u0301"}]), (None, None), ("red", " red ")],
)
def test_values_that_say_the_same_are_equal(expected: Any, found: Any) -> None:
    """
    Numbers by their value, texts at a level.
    """
    assert 1.0 == JsonEvaluator(expected={"x": expected}).score(json.dumps({"x": found})).value


def test_texts_are_compared_at_the_level_that_the_case_says() -> None:
    """
    Trimmed if it says none.
    """
    loose = JsonEvaluator(expected={"x": "Red!"}, level=Level.LOOSE)

    assert 1.0 == loose.score('{"x": "red"}').value
    assert 0.0 == JsonEvaluator(expected={"x": "Red!"}).score('{"x": "red"}').value


def test_what_does_not_fit_the_schema_counts_nothing() -> None:
    """
    Be its fields right or not.
    """
    colour = JsonEvaluator(expected={}, schema=COLOUR)

    assert "is JSON that fits the schema" == colour.score('{"colour": "red"}').reason
    score = colour.score('{"colour": "green"}')
    assert (0.0, (ScoreFlag.BROKEN,)) == (score.value, score.flags)
    assert "$.colour: 'green' is not one of ['red', 'blue']" in score.reason


@pytest.mark.parametrize(
    "text",
    [
        "red",
        "[1]",
        '{"x": ',
        '{"x": NaN}',
        '{"x": 1, "x": 1}',
        '{"x": 1} or {"x": 2}',
        "[" * 10_000,
    ],
)
def test_what_is_not_one_object_counts_nothing_and_says_why(text: str) -> None:
    """
    On one line.
    """
    score = JsonEvaluator(expected={"x": 1}).score(text)

    assert (0.0, (ScoreFlag.BROKEN,)) == (score.value, score.flags)
    assert score.reason.startswith("is not the JSON that was asked for: $: ")
    assert "\n" not in score.reason


def test_an_answer_that_is_cut_fails_even_where_its_json_is_whole() -> None:
    """
    By default; more may have come.
    """
    lenient = JsonEvaluator(expected={"x": 1}, must_be_whole=False)

    assert 0.0 == JsonEvaluator(expected={"x": 1}).score('{"x": 1}', finish_reason="length").value
    assert 1.0 == lenient.score('{"x": 1}', finish_reason="length").value


@pytest.mark.parametrize(
    ("pointer", "value"),
    [("/a/b", 1), ("/a/c/1", 3), ("/x~1y", 4), ("/~0", 5), ("/", 6), ("a/b", 7), ("", 8)],
)
def test_a_key_that_begins_with_a_slash_is_a_json_pointer(pointer: str, value: int) -> None:
    """
    RFC 6901: ~0 is a tilde, and ~1 is a slash.
    """
    answer = {"a": {"b": 1, "c": [2, 3]}, "x/y": 4, "~": 5, "": 6, "a/b": 7}
    answer = answer | ({"": 8} if pointer == "" else {})

    assert 1.0 == JsonEvaluator(expected={pointer: value}).score(json.dumps(answer)).value


@pytest.mark.parametrize("pointer", ["/a/-1", "/a/01", "/a/2", "/a/x", "/b", "/a/0/0", "/a/\u0661"])
def test_a_pointer_that_leads_nowhere_is_wrong(pointer: str) -> None:
    """
    And raises nothing.
    """
    assert 0.0 == JsonEvaluator(expected={pointer: 1}).score('{"a": [1, 1]}').value


@pytest.mark.parametrize(
    ("expected", "schema"),
    [
        ({}, None),
        ({"/a~2": 1}, None),
        ({"/a~": 1}, None),
        ("red", None),
        (None, None),
        (["a"], None),
        ({1: 2}, None),
        ({"a": float("nan")}, None),
        ({"a": object()}, None),
        ({f"k{i}": i for i in range(257)}, None),
        ({}, {"type": "colour"}),
        ({}, {"$ref": "https://example.com/schema"}),
    ],
)
def test_what_is_no_object_or_no_schema_is_refused_when_the_suite_is_made(
    expected: Any, schema: Any
) -> None:
    """
    Before anything is asked.
    """
    with pytest.raises(ContractError):
        JsonEvaluator(expected=expected, schema=schema)


def test_evaluators_are_compared_by_what_they_say_and_can_be_copied() -> None:
    """
    They cross to other processes.
    """
    one = JsonEvaluator(expected={"a": [1]}, schema=COLOUR)

    assert one == pickle.loads(pickle.dumps(one)) == copy.deepcopy(one)
    assert one != JsonEvaluator(expected={"a": [2]}, schema=COLOUR)
    assert isinstance(hash(one), int)
    assert isinstance(one, Evaluator)


@given(text=hostile_json() | st.text())
def test_any_text_has_a_score(text: str) -> None:
    """
    A run that is paid for does not end in a traceback.
    """
    assert 0.0 <= JsonEvaluator(expected={"/a/0": 1}, schema=COLOUR).score(text).value <= 1.0
