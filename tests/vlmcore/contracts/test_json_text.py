"""Tests of `vlmcore.contracts.json_text`: any text gives a value or our error."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmcore.contracts.json_text import read_json, write_json
from vlmcore.errors import ContractError, LimitExceededError
from vlmcore.limits import DocumentLimits
from vlmcore.testing.contract_strategies import hostile_json, json_objects


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("NaN", "got NaN, expected numbers: JSON does not know it"),
        ('{"a": [Infinity]}', "got Infinity"),
        ("-Infinity", "got -Infinity"),
        ("1e400", "got 1e400, expected numbers that float64 can hold"),
        ("-1e400", "got -1e400"),
        ("1" + "0" * 100_000, r"got 10000.*, expected numbers of 64 bits"),
        ("18446744073709551616", "expected numbers of 64 bits"),
        ('{"joint_0": 1, "joint_0": 2}', "got the key 'joint_0' twice"),
        ('{"a": {"b": 1, "c": 2, "b": 3}}', "got the key 'b' twice"),
        ("[" * 33 + "]" * 33, "got values nested more than 32 deep"),
        ("[" * 100_000, "got values nested more than 32 deep"),
        ('{"a":' * 100_000, "got values nested more than 32 deep"),
        ("", "got Expecting value at line 1, column 1"),
        ("{'a': 1}", "expected JSON"),
        ("[1,]", "expected JSON"),
        ("[01]", "expected JSON"),
        ("[1] 2", "got Extra data at line 1, column 5"),
        ("\ufeff{}", "expected JSON"),
        ('"\ud800"', "got text that is not UTF-8"),
        (b"\xff", "got text that is not UTF-8"),
        (b"\x00", "expected JSON"),
        (None, "got NoneType, expected text or UTF-8 bytes"),
        (bytearray(b"{}"), "got bytearray"),
        ({}, "got dict"),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_what_only_looks_like_json_is_refused(text: Any, message: str) -> None:
    """
    One clear error each.
    """
    with pytest.raises(ContractError, match=f"^JSON: .*{message}"):
        read_json(text)


@pytest.mark.parametrize(
    ("text", "limit"),
    [('"' + "x" * 100 + '"', "max_document_bytes"), ("[1,2,3,4,5,6,7,8,9]", "max_nodes")],
)
def test_a_text_over_the_limits_is_refused_before_it_is_read(text: str, limit: str) -> None:
    """
    Both as text and as bytes.
    """
    limits = DocumentLimits(max_document_bytes=99, max_nodes=9)
    for form in (text, text.encode()):
        with pytest.raises(LimitExceededError, match=f"^{limit}: got "):
            read_json(form, limits=limits)


def test_the_size_of_a_text_is_counted_in_bytes() -> None:
    """
    40 characters of four bytes each are not 40.
    """
    text = json.dumps("🤖" * 40, ensure_ascii=False)
    with pytest.raises(LimitExceededError, match=r"^max_document_bytes: got 162, limit is 99"):
        read_json(text, limits=DocumentLimits(max_document_bytes=99))


def test_numbers_keep_their_kind() -> None:
    """
    Whole numbers up to 64 bits, and every float64: -0.0 and subnormals, too.
    """
    text = "[-0.0, 5e-324, 1.7976931348623157e308, 18446744073709551615, -9223372036854775808, 1e2]"
    found = read_json(text)

    assert [-0.0, 5e-324, 1.7976931348623157e308, 2**64 - 1, -(2**63), 100.0] == found
    assert math.copysign(1.0, found[0]) == -1.0
    assert [float, float, float, int, int, float] == list(map(type, found))


@pytest.mark.parametrize("wrong", [math.nan, [math.inf], {"a": object()}, {"a": b"x"}])
def test_what_json_cannot_hold_is_not_written(wrong: Any) -> None:
    """
    Never as ``NaN``, which other readers take.
    """
    with pytest.raises(ContractError, match=r"^JSON: got something that JSON cannot hold"):
        write_json(wrong)


def test_a_reader_that_looks_for_nan_can_ask_for_it() -> None:
    """
    As Python's own writer spells it; numbers that overflow stay refused.
    """
    value = read_json("[NaN, Infinity, -Infinity, 1.5]", allow_nan=True)

    assert "[nan, inf, -inf, 1.5]" == repr(value)
    with pytest.raises(ContractError, match="numbers that float64 can hold"):
        read_json("[1e999]", allow_nan=True)


@given(json_objects())
def test_what_is_written_is_read_back_exactly(value: dict[str, Any]) -> None:
    """
    With and without line breaks.
    """
    for indent in (None, 2):
        text = write_json(value, indent=indent)
        assert repr(value) == repr(read_json(text))
        assert repr(value) == repr(read_json(text.encode()))


@given(hostile_json() | st.binary(max_size=30))
def test_any_text_gives_a_value_or_our_error(text: str | bytes) -> None:
    """
    Nothing else is raised.
    """
    try:
        value = read_json(text)
    except ContractError:
        return
    assert value == read_json(write_json(value))


@pytest.mark.parametrize(
    ("value", "limits"),
    [
        ([[[1]]], DocumentLimits(max_depth=2)),
        ({"a": ({"b": 1},)}, DocumentLimits(max_depth=2)),
        ([1, 2, 3], DocumentLimits(max_nodes=3)),
        (["long"], DocumentLimits(max_document_bytes=5)),
        (["über"], DocumentLimits(max_document_bytes=8)),
    ],
)
def test_what_could_not_be_read_again_is_not_written(value: Any, limits: DocumentLimits) -> None:
    """
    A recording that nobody can open is found out while it can still be helped.
    """
    with pytest.raises(ContractError):
        write_json(value, indent=None, limits=limits)
    assert value == json.loads(write_json(value, indent=None)) or isinstance(value, dict)
