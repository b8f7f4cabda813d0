"""Tests of `vlmcore.lab.suite_documents`: suites as JSON and TOML, both ways."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import attrs
import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suite_cases import case, suites
from vlmcore.errors import ContractError, DocumentError, LimitExceededError
from vlmcore.lab.scoring.exact import ExactEvaluator
from vlmcore.lab.scoring.json_answer import JsonEvaluator
from vlmcore.lab.scoring.scores import Score
from vlmcore.lab.suite_documents import (
    SUITE,
    suite_digest,
    suite_document,
    suite_from,
    suite_from_json,
    suite_from_toml,
    suite_to_json,
    suite_to_toml,
)
from vlmcore.lab.suites import Suite
from vlmcore.limits import SuiteLimits
from vlmcore.testing.contract_strategies import hostile_json

SCHEMA = jsonschema.Draft202012Validator(SUITE.json_schema())
ENTRY = {
    "name": "beach",
    "image": "beach.jpg",
    "prompt": "What is here?",
    "evaluator": "exact",
    "expected": "A beach",
}


def document(*entries: dict[str, Any]) -> dict[str, Any]:
    """Write a suite of which only what matters is said."""
    return {"name": "s", "cases": [ENTRY | {"name": str(i)} | e for i, e in enumerate(entries)]}


def faults_of(value: Any) -> dict[str, str]:
    """Read a suite that has faults."""
    with pytest.raises(DocumentError) as caught:
        suite_from(value)
    return dict(caught.value.faults)


@given(suite=suites())
def test_what_is_written_is_read_back_exactly_and_fits_the_schema(suite: Suite) -> None:
    """
    In JSON and in TOML, with every evaluator; and its digest stays what it was.
    """
    SCHEMA.validate(suite_document(suite))

    assert suite == suite_from_json(suite_to_json(suite))
    assert suite == suite_from_toml(suite_to_toml(suite))
    assert suite_digest(suite) == suite_digest(suite_from_toml(suite_to_toml(suite)))


def test_the_schema_is_one() -> None:
    """
    Draft 2020-12, as it is published.
    """
    jsonschema.Draft202012Validator.check_schema(SUITE.json_schema())
    for entry in (ENTRY, ENTRY | {"evaluator": "number", "expected": 3}):
        SCHEMA.validate(document(entry))
    for entry in (ENTRY | {"evaluator": "exakt"}, ENTRY | {"expected": 3}, ENTRY | {"x": 1}):
        with pytest.raises(jsonschema.ValidationError):
            SCHEMA.validate(document(entry))


@pytest.mark.parametrize(
    ("evaluator", "expected", "path", "problem"),
    [
        ("exakt", "a", "evaluator", "got 'exakt', expected one of 'keywords', 'concepts', 'exact'"),
        (True, "a", "evaluator", "got true, expected a text"),
        ("keywords", "dog", "expected", "got the text 'dog', expected a list"),
        ("keywords", [], "expected", "got 0 items, expected 1 to 256"),
        ("concepts", [["dog"], [""]], "expected[1][0]", "got a blank text"),
        ("concepts", ["dog"], "expected[0]", "got the text 'dog', expected a list"),
        ("concepts", [["dog"], ["Dog"]], "expected", "got 'Dog' for two things"),
        ("exact", None, "expected", "got null, expected a text"),
        ("number", True, "expected", "got true, expected a number"),
        ("number", "3 cats", "expected", "got the text '3 cats', expected a number"),
        ("json", {}, "expected", "got no fields and no schema"),
        ("json", [], "expected", "got a list, expected an object"),
    ],
)
def test_what_would_fail_in_the_middle_of_a_run_is_refused_when_the_suite_is_read(
    evaluator: Any, expected: Any, path: str, problem: str
) -> None:
    """
    A typing error costs no request.
    """
    found = faults_of(document({"evaluator": evaluator, "expected": expected}))

    assert [f"$.cases[0].{path}"] == list(found)
    assert problem in next(iter(found.values()))


def test_all_faults_are_told_at_once_each_with_its_place() -> None:
    """
    Those of keys, of values and of what values are to each other.
    """
    box = {"label": "a", "xyxy": [0, 0, 9, 9]}
    scene = {"height": 3, "width": 3, "detections": [box]}
    found = faults_of(
        document(
            {"evaluator": "exakt"},
            {"imagee": "b.png"},
            {"image": "../b.png", "options": {"level": "strict"}},
            {"image": "../b.png", "evaluator": "keywords", "expected": ["a", "A"]},
            {"evaluator": "detection", "expected": scene, "options": {"dialect": "pixels"}},
            {"evaluator": "detection", "expected": scene},
            {"margin": 2, "longest_edge_px": "448"},
            {"evaluator": "number", "expected": 1, "options": {"tolerance": -1}},
            {"video": "b.mp4"},
            {"evaluator": "json", "expected": {"/a~": 1}, "options": {"schema": {"type": 3}}},
        )
    )

    assert {
        "$.cases[0].evaluator",
        "$.cases[1].imagee",
        "$.cases[2].options.level",
        "$.cases[3].expected[1]",
        "$.cases[3].image",
        "$.cases[4].expected.detections[0].place",
        "$.cases[5].options",
        "$.cases[6].margin",
        "$.cases[6].longest_edge_px",
        "$.cases[7].options.tolerance",
        "$.cases[8].image",
        "$.cases[9].expected",
    } == set(found)
    assert "is not a key of this document; did you mean 'image'?" == found["$.cases[1].imagee"]


@pytest.mark.parametrize(
    "value",
    [None, [], "s", {}, {"name": "s"}, {"name": "s", "cases": []}, {"name": "s", "cases": {}}],
)
def test_what_is_no_suite_is_refused(value: Any) -> None:
    """
    Whatever it is.
    """
    assert faults_of(value)
    assert faults_of(document(ENTRY) | {"schema": "comfyui-vlm/robot-episode"})
    assert faults_of(document(ENTRY) | {"version": 2})
    assert {"$.cases[0].name", "$.cases[1].name"} >= set(
        faults_of(document({"name": "a"}, {"name": "a"}))
    ) - {"$.cases"}


def test_a_key_of_another_evaluator_is_unknown() -> None:
    """
    An option that does nothing is a mistake.
    """
    found = faults_of(document({"options": {"plurals": True}}))

    assert {"$.cases[0].options.plurals": "is not a key of this document"} == found


def test_the_digest_is_of_what_a_suite_says_and_not_of_how_it_is_written() -> None:
    """
    Usual options may be said or not; another word is another suite.
    """
    short = suite_from(document({}))
    usual = {"options": {"level": "trim", "must_be_whole": True}, "margin": 0}
    long = suite_from(document(usual))

    assert suite_digest(short) == suite_digest(long)
    assert 64 == len(suite_digest(short))
    for changed in (
        {"prompt": "What is there?"},
        {"expected": "a beach"},
        {"image": "other.jpg"},
        {"margin": 0.1},
        {"options": {"level": "loose"}},
        {"longest_edge_px": 448},
        {"max_new_tokens": 96},
    ):
        assert suite_digest(short) != suite_digest(suite_from(document(changed)))


def test_the_digest_of_a_suite_that_was_written_once_stays() -> None:
    """
    Evidence of last year is compared with that of today.
    """
    suite = Suite(name="s", cases=[case()])

    assert "9dd7712c31807362d02229884a1534ab5d791218e3b05371c203490b87ebc219" == suite_digest(suite)


def test_an_evaluator_of_ones_own_scores_but_is_not_written() -> None:
    """
    A document could not bring it back.
    """

    @attrs.frozen
    class Mine:
        def score(self, text: str, *, finish_reason: str | None = None) -> Score:
            return Score(value=float(bool(text)), reason=f"said, {finish_reason}")

    suite = Suite(name="s", cases=[case(evaluator=Mine())])
    with pytest.raises(ContractError, match=r"^evaluator: got Mine, expected one that a document"):
        suite_document(suite)


def test_null_in_what_is_expected_is_written_in_json_and_not_in_toml() -> None:
    """
    TOML has none.
    """
    suite = Suite(name="s", cases=[case(evaluator=JsonEvaluator(expected={"a": [None]}))])

    assert suite == suite_from_json(suite_to_json(suite))
    with pytest.raises(ContractError, match="which TOML does not know"):
        suite_to_toml(suite)


def test_a_suite_is_bounded() -> None:
    """
    The text, its depth, and what is in it.
    """
    small = SuiteLimits(max_file_bytes=100)
    text = json.dumps(document(ENTRY))
    for read in (suite_from_json, suite_from_toml):
        with pytest.raises(LimitExceededError):
            read(text, limits=small)
    with pytest.raises(DocumentError, match="expected 1 to 10000"):
        suite_from({"name": "s", "cases": [ENTRY] * 10_001})
    with pytest.raises(ContractError, match="nested"):
        suite_from_json("[" * 40 + "]" * 40)


@given(text=hostile_json())
def test_any_json_gives_a_suite_or_our_error(text: str) -> None:
    """
    Documents come from files that anybody wrote.
    """
    with contextlib.suppress(ContractError):
        suite_from_json(text)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["level", "dialect", "height", "a"]), inner)
    ),
    max_leaves=6,
)


@given(
    changes=st.dictionaries(
        st.sampled_from([*ENTRY, "video", "margin", "options", "frames", "longest_edge_px"]),
        VALUES | st.sampled_from(["keywords", "concepts", "json", "detection", "number"]),
    )
)
def test_a_case_with_anything_in_it_gives_a_suite_or_our_error(changes: dict[str, Any]) -> None:
    """
    Under every key, for every evaluator.
    """
    with contextlib.suppress(ContractError):
        suite_from(document(changes))


def test_an_evaluator_in_a_suite_is_the_one_that_it_says() -> None:
    """
    With its options.
    """
    suite = suite_from(document({"options": {"level": "loose"}}))
    evaluator = suite.cases[0].evaluator

    assert isinstance(evaluator, ExactEvaluator)
    assert 1.0 == evaluator.score("a beach!").value
