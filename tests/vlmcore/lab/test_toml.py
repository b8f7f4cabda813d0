"""Tests of `vlmcore.lab._toml`."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmcore.errors import ContractError, LimitExceededError
from vlmcore.lab._toml import read_toml, write_toml
from vlmcore.limits import SuiteLimits

LIMITS = SuiteLimits()
TEXTS = st.text(st.characters(codec="utf-8"), max_size=8)
VALUES = st.recursive(
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@given(document=st.dictionaries(TEXTS, VALUES, max_size=5))
def test_what_is_written_is_read_back(document: dict[str, Any]) -> None:
    """
    Control characters, quotes, lists of objects and empty names among it.
    """
    assert document == read_toml(write_toml(document), LIMITS)


@pytest.mark.parametrize("value", [None, 2**63, object(), b"a", {"a": None}, [[None]], "\ud800"])
def test_what_toml_does_not_know_is_refused(value: Any) -> None:
    """
    With its place.
    """
    with pytest.raises(ContractError, match=r"^a"):
        write_toml({"a": value})


@pytest.mark.parametrize(
    "text",
    [
        "a",
        "a = 1\na = 2",
        b"\xff = 1",
        "a = " + "[" * 5000,
        "a = " + "[" * 5000 + "]" * 5000,
        "a = " + "9" * 5000,
        'a = "',
        "\ud800 = 1",
        None,
        3,
        "a = {b = " * 2000,
    ],
)
def test_what_is_no_toml_is_our_error(text: Any) -> None:
    """
    Whatever the reader of Python makes of it.
    """
    with pytest.raises(ContractError, match=r"^(TOML|max_\w+): "):
        read_toml(text, LIMITS)


@pytest.mark.parametrize(
    "text",
    [
        ".".join(["a"] * 33) + " = 1",
        "[" + ".".join(["a"] * 33) + "]",
        "x = {" + " . ".join(['"a.b"', "'c'"] * 17) + " = 1}",
    ],
)
def test_names_of_very_many_parts_are_refused_before_they_are_read(text: str) -> None:
    """
    The reader takes time that grows with the square of their number.
    """
    with pytest.raises(LimitExceededError, match="max_key_parts"):
        read_toml(text, LIMITS)


def test_points_in_texts_and_numbers_are_no_parts_of_names() -> None:
    """
    A prompt may have as many sentences as it likes.
    """
    sentences = "One. " * 100
    numbers = ", ".join(["0.5"] * 100)
    text = (
        f'a = "{sentences}"\nb = """\n{sentences}\n{sentences}"""\nc = [{numbers}]\n'
        f"d = '{sentences}' # {sentences}\ne = '''{sentences}'''\n"
    )

    assert sentences == read_toml(text, LIMITS)["a"]


@pytest.mark.parametrize(
    "part", ['"\\', '"""\\"', "'''", "#", '"', "'", '"""x', "'''x\n", "\n", "\\", '"a\n', '"""\\\n']
)
def test_texts_that_are_not_closed_take_time_that_grows_with_their_length(part: str) -> None:
    """
    Each was tried with 1 MB; a search that starts over would not end.
    """
    with contextlib.suppress(ContractError):
        read_toml(part * (1_000_000 // len(part)), LIMITS)


@given(text=st.text(alphabet="ab.=[]{}\"'\\#\n 1-_,"))
def test_any_text_is_read_or_our_error(text: str) -> None:
    """
    And nothing else.
    """
    with contextlib.suppress(ContractError):
        read_toml(text, LIMITS)
