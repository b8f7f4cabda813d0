"""The nodes over texts do to each text what their widgets say, and to hostile ones no more."""

from __future__ import annotations

import hashlib
import json
import re
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmcore.errors import ContractError, LimitExceededError
from vlmcore.limits import TextLimits
from vlmcore_comfy.hosting import AloneHost, NodeStoppedError
from vlmcore_comfy.nodes.json_texts import json_extract, json_to_text
from vlmcore_comfy.nodes.text_changes import text_clean, text_replace, text_split
from vlmcore_comfy.nodes.texts import (
    simple_text,
    text_inspect,
    text_join,
    text_template,
    view_text,
)
from vlmcore_comfy.texts import count

JOIN: dict[str, Any] = {
    "separator": "New line",
    "custom_separator": " | ",
    "trim_parts": True,
    "drop_empty": True,
    "deduplicate": False,
}
CLEAN: dict[str, Any] = {
    "unicode_normalization": "NFC",
    "whitespace": "Normalize line endings",
    "trim_edges": True,
    "remove_outer_markdown_fence": False,
    "deduplicate_lines": False,
    "max_characters": 0,
}
REPLACE: dict[str, Any] = {
    "mode": "Literal",
    "case_sensitive": True,
    "max_replacements": 0,
    "if_not_found": "Keep text",
}
SPLIT: dict[str, Any] = {
    "mode": "Lines",
    "delimiter": ",",
    "trim_items": True,
    "remove_empty": True,
    "deduplicate": False,
    "max_items": 0,
}


def test_a_text_passes_as_it_is() -> None:
    """
    White space and line breaks stay, unless the switches say otherwise.
    """
    assert simple_text(" a\r\nb \n") == (" a\r\nb \n", 7, 2, 2)
    assert simple_text(" a\r\nb \n", trim_edges=True, normalize_newlines=True) == ("a\nb", 3, 2, 2)
    assert simple_text("") == ("", 0, 0, 0)


def test_a_text_is_shown_and_passed_on() -> None:
    """
    The page is told the text, by the name that it knows.
    """
    given_ = view_text("two words")
    assert given_.values[:4] == ("two words", 9, 2, 1)
    assert given_.shown == {"text": ["two words"]}
    assert json.loads(given_.values[4])["utf8_bytes"] == 9


@given(text=st.text())
def test_every_text_is_counted(text: str) -> None:
    """
    Half of a surrogate pair, control characters and NUL are characters too.
    """
    said = text_inspect(text)
    assert said[0] == text
    assert said[1] == len(text)
    assert said[2] == len(text.encode("utf-8", "surrogatepass"))
    assert said[6] == hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    assert json.loads(said[7])["approx_tokens"] == said[5] == -(-said[2] // 4)


def test_half_a_surrogate_pair_is_counted() -> None:
    """
    A page can hold one, and UTF-8 cannot.
    """
    assert count("\ud800").utf8_bytes == 3


@pytest.mark.parametrize(
    ("changes", "text", "parts"),
    [
        ({}, "a\nb\na", ["a", "b", "a"]),
        ({"deduplicate": True, "separator": "Comma"}, "a, b", ["a", "b"]),
        ({"separator": "Custom", "drop_empty": False}, "a | b |  | a |  |  |  | ", None),
        ({"separator": "Blank line"}, "a\n\nb\n\na", None),
        ({"separator": "Space", "trim_parts": False}, "a  b   a", None),
    ],
)
def test_texts_are_joined(changes: dict[str, Any], text: str, parts: list[str] | None) -> None:
    """
    What is empty is dropped, and what was there before, where wanted.
    """
    joined, said, number = text_join(
        text_a="a", text_b=" b ", text_c="", text_d=" a", **{**JOIN, **changes}
    )
    assert joined == text
    assert len(json.loads(said)) == number
    if parts is not None:
        assert json.loads(said) == parts


def test_a_template_is_filled_in() -> None:
    """
    By name, by a path into an object, and never twice: a value that looks like a place stays.
    """
    template = "{{{a}}} {b.c} {text1} {n}"
    variables = '{"a": "{text1}", "b": {"c": [1]}, "n": 2.5}'
    filled, said, missing = text_template(template, variables, "Error", text1="T")
    assert filled == "{{text1}} [1] T 2.5".replace("[1]", json.dumps([1], indent=2))
    assert json.loads(said)["text1"] == "T"
    assert missing == "[]"


@pytest.mark.parametrize(
    ("how", "text"), [("Keep placeholder", "a {b} c"), ("Empty string", "a  c")]
)
def test_a_name_without_a_value_is_kept_or_empty(how: str, text: str) -> None:
    """
    And told.
    """
    filled, _, missing = text_template("a {b} c", "", how)
    assert (filled, json.loads(missing)) == (text, ["b"])


def test_a_name_without_a_value_is_an_error_where_wanted() -> None:
    """
    All of them are named.
    """
    with pytest.raises(ContractError, match="template: names 'x', 'y', expected a value for each"):
        text_template("{x} {y} {x}", "{}", "Error")


def test_a_template_cannot_look_into_objects_of_python() -> None:
    """
    It is not a format string: attributes and calls are names without a value.
    """
    filled, _, missing = text_template("{text1.__class__}", "{}", "Keep placeholder", text1="a")
    assert filled == "{text1.__class__}"
    assert json.loads(missing) == ["text1.__class__"]


def test_a_template_does_not_grow_beyond_its_bound() -> None:
    """
    A million places for a long value would take all memory.
    """
    with pytest.raises(LimitExceededError, match="max_text_characters"):
        text_template("{text1}" * 10_000, "{}", "Error", text1="x" * 10_000)


@pytest.mark.parametrize(
    ("changes", "text", "cleaned"),
    [
        ({}, " a\r\n b\r ", "a\n b"),
        ({"whitespace": "Preserve", "trim_edges": False}, " a\r\n", " a\r\n"),
        ({"whitespace": "Collapse horizontal"}, "a \t b\n\n c", "a b\n\n c"),
        ({"whitespace": "Collapse all"}, "a \t b\n\n c", "a b c"),
        ({"unicode_normalization": "NFKC"}, "ﬁ①", "fi1"),
        ({"unicode_normalization": "NFC"}, "e\u0301", "é"),
        ({"unicode_normalization": "None"}, "e\u0301", "e\u0301"),
        ({"remove_outer_markdown_fence": True}, "```json\n{}\n```", "{}"),
        ({"remove_outer_markdown_fence": True}, "see ```x```", "see ```x```"),
        ({"deduplicate_lines": True}, "a\n\nb\n\na", "a\n\nb"),
        ({"max_characters": 2}, "abc", "ab"),
    ],
)
def test_a_text_is_cleaned(changes: dict[str, Any], text: str, cleaned: str) -> None:
    """
    In one order, and what was done is told.
    """
    made, said = text_clean(text=text, **{**CLEAN, **changes})
    assert made == cleaned
    told = json.loads(said)
    assert told["changed"] is (made != text)
    assert told["output_characters"] == len(made)


@given(text=st.text())
def test_cleaning_twice_is_cleaning_once(text: str) -> None:
    """
    What is clean stays.
    """
    once, _ = text_clean(text=text, **{**CLEAN, "whitespace": "Collapse all"})
    assert text_clean(text=once, **{**CLEAN, "whitespace": "Collapse all"})[0] == once


@pytest.mark.parametrize(
    ("changes", "search", "replacement", "made"),
    [
        ({}, "a.", "b", ("bA.a", 1)),
        ({}, "a", r"\1", (r"\1.A.\1", 2)),
        ({"case_sensitive": False}, "a", "x", ("x.x.x", 3)),
        ({"max_replacements": 1}, "a", "x", ("x.A.a", 1)),
        ({"mode": "Regular expression"}, "(a)", r"[\1]", ("[a].A.[a]", 2)),
        ({"mode": "Regular expression", "case_sensitive": False}, "a", "x", ("x.x.x", 3)),
        ({"mode": "Regular expression", "max_replacements": 1}, "a", "x", ("x.A.a", 1)),
        ({}, "", "x", ("a.A.a", 0)),
    ],
)
def test_a_text_is_replaced(
    changes: dict[str, Any], search: str, replacement: str, made: tuple[str, int]
) -> None:
    """
    Literally, or by the words of Python's expressions; nothing is searched for nothing.
    """
    changed, times, said = text_replace(
        text="a.A.a", search=search, replacement=replacement, **{**REPLACE, **changes}
    )
    assert (changed, times) == made
    assert json.loads(said)["replacements"] == times


def test_a_long_search_takes_no_longer_than_its_text() -> None:
    """
    As it is written, it is no expression; without regard to capitals it is one, which has a bound.
    """
    long = "ab" * 500_000
    assert text_replace(text=f"<{long}>", search=long, replacement="x", **REPLACE)[:2] == ("<x>", 1)
    with pytest.raises(LimitExceededError, match="max_pattern_characters"):
        text_replace(text="a", search=long, replacement="x", **{**REPLACE, "case_sensitive": False})


def test_what_is_not_found_is_an_error_where_wanted() -> None:
    """
    A graph that relies on it does not go on.
    """
    with pytest.raises(ContractError, match="search: 'b' is not in the text"):
        text_replace(text="a", search="b", replacement="", **{**REPLACE, "if_not_found": "Error"})


@pytest.mark.parametrize(
    ("pattern", "replacement", "said"),
    [
        ("(", "", "unterminated subpattern"),
        ("a", r"\2", "invalid group reference"),
        ("(" * 3000 + ")" * 3000, "", "search: "),
        ("x" * 10_001, "", "max_pattern_characters"),
    ],
)
def test_a_wrong_expression_is_told(pattern: str, replacement: str, said: str) -> None:
    """
    In one sentence, with what Python says of it.
    """
    with pytest.raises((ContractError, LimitExceededError), match=re.escape(said)):
        text_replace(
            text="aa",
            search=pattern,
            replacement=replacement,
            **{**REPLACE, "mode": "Regular expression"},
        )


class _Stopping(AloneHost):
    def __init__(self) -> None:
        self._ends_s = time.monotonic() + 0.3

    def raise_if_stopped(self) -> None:
        if time.monotonic() > self._ends_s:
            raise NodeStoppedError


def test_an_expression_that_never_ends_can_be_stopped() -> None:
    """
    Nested repeats try every way to divide a text; the process that does it is ended.
    """
    with pytest.raises(NodeStoppedError):
        text_replace(
            text="a" * 40 + "b",
            search="(a+)+$",
            replacement="",
            comfyui=_Stopping(),
            **{**REPLACE, "mode": "Regular expression"},
        )


def test_an_expression_that_never_ends_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Nobody has to stop it.
    """
    monkeypatch.setattr("vlmcore_comfy.patterns._LIMITS", TextLimits(max_pattern_s=1))
    with pytest.raises(ContractError, match="takes more than 1 s over this text"):
        text_replace(
            text="a" * 40 + "b",
            search="(a+)+$",
            replacement="",
            **{**REPLACE, "mode": "Regular expression"},
        )


def test_an_expression_does_not_make_a_text_that_is_too_long() -> None:
    """
    The bound is looked at while it is written.
    """
    with pytest.raises(ContractError, match="the text becomes longer than 10000000 characters"):
        text_replace(
            text="a" * 5000,
            search="a",
            replacement="x" * 5000,
            **{**REPLACE, "mode": "Regular expression"},
        )
    with pytest.raises(LimitExceededError, match="max_text_characters"):
        text_replace(text="a" * 5000, search="a", replacement="x" * 5000, **REPLACE)


@pytest.mark.parametrize(
    ("changes", "text", "items"),
    [
        ({}, " a \n\nb\r\nb", ["a", "b", "b"]),
        ({"deduplicate": True}, "a\nb\na", ["a", "b"]),
        ({"remove_empty": False, "trim_items": False}, " a \n\nb", [" a ", "", "b"]),
        ({"mode": "Paragraphs"}, "a\nb\n \n\nc", ["a\nb", "c"]),
        ({"mode": "Literal delimiter"}, "a,b,,c", ["a", "b", "c"]),
        ({"mode": "Literal delimiter", "delimiter": r"\n"}, "a\nb", ["a", "b"]),
        ({"mode": "Regular expression", "delimiter": "[;,]+"}, "a;,b,c", ["a", "b", "c"]),
        ({"mode": "CSV"}, 'a,"b,c"\nd', ["a", "b,c", "d"]),
        ({"mode": "JSON array"}, '["a", {"b": 1}, 2]', ["a", '{\n  "b": 1\n}', "2"]),
        ({"max_items": 1}, "a\nb", ["a"]),
        ({}, "", []),
    ],
)
def test_a_text_is_split(changes: dict[str, Any], text: str, items: list[str]) -> None:
    """
    In each of its ways; the list has as many items as it says.
    """
    made, said, number = text_split(text=text, **{**SPLIT, **changes})
    assert made == items
    assert json.loads(said) == items
    assert number == len(items)


@pytest.mark.parametrize(
    ("changes", "text", "said"),
    [
        ({"mode": "JSON array"}, '{"a": 1}', "text: expected a JSON list"),
        ({"mode": "JSON array"}, "[1", "JSON"),
        ({"mode": "CSV"}, 'a,"b', "text: is no CSV"),
        ({"mode": "CSV", "delimiter": "ab"}, "a", "delimiter: got 'ab', expected one character"),
        ({"mode": "Literal delimiter", "delimiter": ""}, "a", "delimiter: is empty"),
        ({"mode": "Regular expression", "delimiter": ""}, "a", "delimiter: is empty"),
        ({}, "\n".join(map(str, range(100_001))), "max_items: got 100001"),
    ],
)
def test_what_cannot_be_split_is_told(changes: dict[str, Any], text: str, said: str) -> None:
    """
    By the widget that is wrong.
    """
    with pytest.raises((ContractError, LimitExceededError), match=re.escape(said)):
        text_split(text=text, **{**SPLIT, **changes})


@pytest.mark.parametrize("given_", [None, 3, ["a"], b"a"])
def test_what_is_no_text_is_refused(given_: Any) -> None:
    """
    A socket of any colour can bring anything.
    """
    with pytest.raises(ContractError, match=r"text: got .*, expected text"):
        view_text(given_)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: text_replace(text="a", search=3, replacement="", **REPLACE), "search"),
        (lambda: text_replace(text="a", search="a", replacement=3, **REPLACE), "replacement"),
        (lambda: text_split(text="a", **{**SPLIT, "mode": "CSV", "delimiter": 3}), "delimiter"),
        (
            lambda: text_join(text_a="a", **{**JOIN, "separator": "Custom", "custom_separator": 3}),
            "custom_separator",
        ),
        (lambda: text_template(3, "{}", "Error"), "template"),
        (lambda: json_extract("{}", 3, "Text", "Error", ""), "path"),
        (lambda: json_extract("{}", "$", "Text", "Error", 3), "default_value"),
        (lambda: json_to_text("{}", separator=3), "separator"),
        (lambda: json_to_text("{}", json_path=3), "json_path"),
    ],
)
def test_every_text_of_a_node_is_looked_at(call: Any, name: str) -> None:
    """
    Not the first alone: what comes is named, where it came.
    """
    with pytest.raises(ContractError, match=rf"{name}: got int, expected text"):
        call()
