"""The nodes over JSON find it, follow a path into it, and write it for people."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmcore.errors import ContractError
from vlmcore_comfy.json_paths import find
from vlmcore_comfy.nodes.json_texts import json_extract, json_to_text

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-1000, 1000) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=10,
)


def _paths(value: Any, path: str = "$") -> Any:
    yield path, value
    if isinstance(value, dict):
        for key, each in value.items():
            quoted = key.replace("\\", "\\\\").replace("'", "\\'")
            yield from _paths(each, f"{path}['{quoted}']")
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _paths(each, f"{path}[{index}]")


@given(value=JSON)
def test_every_value_is_found_by_its_path(value: Any) -> None:
    """
    Whatever its keys are called.
    """
    for path, expected in _paths(value):
        found = find(value, path)
        assert found.is_there
        assert found.value == expected


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("$", {"a": [{"b c": 7}], "d.e": None}),
        ("", {"a": [{"b c": 7}], "d.e": None}),
        ("a[0]['b c']", 7),
        ('$.a[-1]["b c"]', 7),
        ("$['d.e']", None),
        (" .a ", [{"b c": 7}]),
    ],
)
def test_a_path_is_read_as_people_write_it(path: str, value: Any) -> None:
    """
    With or without ``$``, in either kind of quotation marks, from the end of a list.
    """
    found = find({"a": [{"b c": 7}], "d.e": None}, path)
    assert (found.is_there, found.value) == (True, value)


@pytest.mark.parametrize("path", ["a.x", "a[1]", "a[-2]", "a[0][0]", "x", "d"])
def test_a_path_may_lead_to_nothing(path: str) -> None:
    """
    Which is no error here.
    """
    assert find({"a": [{"b": 7}], "d.e": 1}, path).kind == "missing"


@pytest.mark.parametrize("path", ["$..a", "$.a[*]", "a[", "a['b", "a b", "$.a[1:2]", "[x]"])
def test_what_is_no_path_is_told(path: str) -> None:
    """
    Wildcards, slices and what is not closed.
    """
    with pytest.raises(ContractError, match=r"path: got .*, expected steps"):
        find({"a": [1]}, path)


@pytest.mark.parametrize(
    ("path", "form", "said"),
    [
        ("$.a", "Text", ("x", True, "string", '"x"')),
        ("$.b", "Text", ("[1,2.5]", True, "array", "[1,2.5]")),
        ("$.b", "Pretty JSON", ("[\n  1,\n  2.5\n]", True, "array", "[1,2.5]")),
        ("$.a", "Compact JSON", ('"x"', True, "string", '"x"')),
        ("$.c", "Text", ("null", True, "null", "null")),
        ("$.d", "Text", ("true", True, "boolean", "true")),
        ("$.b[0]", "Text", ("1", True, "number", "1")),
    ],
)
def test_a_value_is_taken_out(path: str, form: str, said: tuple[Any, ...]) -> None:
    """
    In the form that is wanted, with its kind.
    """
    text = '{"a": "x", "b": [1, 2.5], "c": null, "d": true}'
    assert json_extract(text, path, form, "Error", "") == said


def test_what_is_missing_is_an_error_or_a_value() -> None:
    """
    As the widget says.
    """
    with pytest.raises(ContractError, match=r"path: '\$\.x' leads to nothing"):
        json_extract("{}", "$.x", "Text", "Error", "")
    assert json_extract("{}", "$.x", "Text", "Empty string", "d") == ("", False, "missing", "")
    assert json_extract("{}", "$.x", "Text", "Default value", "d") == ("d", False, "missing", "")


@pytest.mark.parametrize(
    "text",
    ['```json\n{"a": 1}\n```', 'Here it is: {"a": 1}. Done.', ' {"a": 1} '],
)
def test_json_is_found_between_words(text: str) -> None:
    """
    Models write so.
    """
    assert json_extract(text, "a", "Text", "Error", "")[0] == "1"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "text: is empty"),
        ("no", "text: is no JSON"),
        ('{"a": 1} {"b": 2}', "text: holds 2 objects or lists of JSON, expected one"),
        ('{"a": NaN}', "text: is no JSON"),
        ("[" * 100, "text: is no JSON|max_depth"),
    ],
)
def test_what_is_no_json_is_told(text: str, said: str) -> None:
    """
    Nothing is guessed.
    """
    with pytest.raises(ContractError, match=said):
        json_extract(text, "$", "Text", "Error", "")


@pytest.mark.parametrize(
    ("form", "text", "items"),
    [
        ("Smart readable (legacy compatible)", "Main subject: a cat\n\nStyle: oil, warm", 2),
        ("Values only", "a cat\n\noil\n\nwarm", 3),
        ("Key/value lines", "main_subject: a cat\n\nstyle[0]: oil\n\nstyle[1]: warm", 3),
        ("Compact JSON", '{"main_subject":"Create an image of a cat","style":["oil","warm"]}', 2),
    ],
)
def test_json_is_written_for_people(form: str, text: str, items: int) -> None:
    """
    ``Create an image of`` goes, for a model that draws; JSON stays as it is.
    """
    given_ = '{"main_subject": "Create an image of a cat", "style": ["oil", "warm"]}'
    said, canonical, number = json_to_text(given_, form)
    assert (said, number) == (text, items)
    assert json.loads(canonical) == json.loads(given_)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Generate a photo of two dogs", "two dogs"),
        ("please draw me: a tree", "a tree"),
        ("Creates an image", "Creates an image"),
        ("a drawing of a house", "a drawing of a house"),
        ("Make the detailed oil painting with blue sky", "blue sky"),
    ],
)
def test_verbs_are_taken_off_the_front_only(text: str, kept: str) -> None:
    """
    What is drawn stays whole.
    """
    assert json_to_text(json.dumps([text]))[0] == kept
    assert json_to_text(json.dumps([text]), strip_generation_verbs=False)[0] == text


@given(value=JSON)
def test_every_json_is_written_in_every_form(value: Any) -> None:
    """
    And equal values have equal canonical texts.
    """
    for form in ("Smart readable (legacy compatible)", "Values only", "Key/value lines"):
        _, canonical, items = json_to_text(json.dumps(value), form)
        assert json.loads(canonical) == value
        assert items >= 0
