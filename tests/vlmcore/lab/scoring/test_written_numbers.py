"""Tests of `vlmcore.lab.scoring.written_numbers`."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmcore.lab.scoring.written_numbers import read_numbers


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("3", ["3"]),
        ("-5 and \u22125", ["-5", "-5"]),
        ("3-5", ["3", "5"]),
        ("+3", ["3"]),
        (".5 and -.5", ["0.5", "-0.5"]),
        ("so...5", ["5"]),
        ("1,234.5", ["1234.5"]),
        ("12,345,678", ["12345678"]),
        ("1,2,3", ["1", "2", "3"]),
        ("3,5", ["3", "5"]),
        ("0,123", ["0", "123"]),
        ("$5.00, 5kg, 20%", ["5.00", "5", "20"]),
        ("1e3 and 2.5e-1", ["1000", "0.25"]),
        ("12:30", ["12", "30"]),
        ("1/2", ["1", "2"]),
        ("10\u00b2", ["10", "2"]),
        ("3\u00bd", ["3", "1", "2"]),
        ("٣ and \uff13", ["3", "3"]),
        ("1\u200b2", ["12"]),
        ("mp3, F-16, covid-19, b2b", []),
        ("the 3rd", ["3"]),
        ("no number", []),
        ("3.", ["3"]),
        ("(3)", ["3"]),
        ("x=-5", ["-5"]),
    ],
)
def test_numbers_are_read_as_people_write_them(text: str, values: list[str]) -> None:
    """
    What has two readings is two numbers, and never silently one of them.
    """
    found = [number.value for number in read_numbers(text)]

    assert [Decimal(value) for value in values] == found


@pytest.mark.parametrize("text", ["1.000,5", "3.5.1", "1.2,3.4", "12,34.5.6"])
def test_what_cannot_be_read_is_told(text: str) -> None:
    """
    It stands there, and is no number that we know.
    """
    assert [(text, None)] == [(number.text, number.value) for number in read_numbers(text)]


def test_words_are_numbers_in_their_order_where_they_are_asked_for() -> None:
    """
    From zero to twenty, at the boundaries of words.
    """
    found = read_numbers("Twenty dogs, 3 cats, someone, Zero", spelled=True)

    assert ["20", "3", "0"] == [str(number.value) for number in found]


@given(st.lists(st.integers(-9999, 9999), max_size=8))
def test_numbers_in_a_row_are_found_in_their_order(numbers: list[int]) -> None:
    """
    With semicolons between them.
    """
    text = "; ".join(map(str, numbers))

    assert [Decimal(number) for number in numbers] == [each.value for each in read_numbers(text)]


@given(st.text(alphabet="0123456789.,-+e ²½٣\u200bx"))
def test_any_text_is_read(text: str) -> None:
    """
    And every number in it is finite.
    """
    for number in read_numbers(text, spelled=True):
        assert number.value is None or number.value.is_finite()
