"""Tests of `vlmcore.contracts.json_found`: JSON is found wherever a model put it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmcore.contracts.json_found import find_json
from vlmcore.testing.contract_strategies import json_objects


@given(value=json_objects(), before=st.text("ab'. \n"), behind=st.text("ab'. \n"))
def test_an_object_between_words_is_found_as_it_is(value: object, before: str, behind: str) -> None:
    """
    Words around an object, without brackets of their own, do not matter.
    """
    text = json.dumps(value)

    found = find_json(before + text + behind)

    assert ((text,), False) == (found.parts, found.is_cut)


@given(text=st.text('[]{}",:\\`1a \n'))
def test_whatever_is_found_stands_in_the_text_in_order(text: str) -> None:
    """
    Any text gives parts of itself, one after the other, none inside another.
    """
    at = 0
    for part in find_json(text).parts:
        at = text.index(part, at) + len(part)


@given(value=st.lists(json_objects(), min_size=2, max_size=4), data=st.data())
def test_of_a_list_that_is_cut_the_whole_entries_are_found(
    value: list[object], data: st.DataObject
) -> None:
    """
    A model that ran out of tokens wrote most of what it had to say.
    """
    entries = [json.dumps(each) for each in value]
    whole = "[" + ", ".join(entries)
    cut = data.draw(st.integers(len(entries[0]) + 1, len(whole)))

    found = find_json(whole[:cut])

    assert found.is_cut
    assert entries[0] == found.parts[0]


@pytest.mark.parametrize(
    ("text", "parts", "is_cut"),
    [
        ('```json\n{"a": 1}\n```', ('{"a": 1}',), False),
        ('See [1]:\n```\n{"a": 1}\n```\n', ('{"a": 1}',), False),
        ('{"code": "```\\n{}\\n```"}', ('{"code": "```\\n{}\\n```"}',), False),
        ('```json\n{"a": 1', (), True),
        ('{"a": "}"} {"b": "\\""}', ('{"a": "}"}', '{"b": "\\""}'), False),
        ("[}", (), True),
        ('{"a": "never closed}', (), True),
        ("no brackets", (), False),
    ],
)
def test_fences_texts_and_cuts_are_told_apart(
    text: str, parts: tuple[str, ...], *, is_cut: bool
) -> None:
    """
    Brackets in texts are no brackets, fences are looked into, and what is open at the end is cut.
    """
    found = find_json(text)

    assert (parts, is_cut) == (found.parts, found.is_cut)
