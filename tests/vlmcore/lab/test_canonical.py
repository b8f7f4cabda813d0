"""Tests of `vlmcore.lab.canonical`."""

from __future__ import annotations

import json
import math
import random
import struct
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vlmcore.contracts.json_text import read_json
from vlmcore.errors import ContractError, MissingDependencyError
from vlmcore.lab.canonical import EXACT, canonical_bytes, digest_of

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-EXACT, EXACT)
    | st.floats(allow_nan=False, allow_infinity=False).filter(
        lambda number: not 1 << 63 <= abs(number) < 1e21  # written whole, and too long to be read
    )
    | st.text(st.characters(exclude_categories=("Cs",)))
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(st.text(st.characters(exclude_categories=("Cs",))), inner, max_size=5)
    ),
    max_leaves=20,
)

# Bits of float64 and how ECMAScript spells the number: the table of RFC 8785, appendix B.
NUMBERS = {
    "0000000000000000": "0",
    "8000000000000000": "0",
    "0000000000000001": "5e-324",
    "8000000000000001": "-5e-324",
    "7fefffffffffffff": "1.7976931348623157e+308",
    "ffefffffffffffff": "-1.7976931348623157e+308",
    "4340000000000000": "9007199254740992",
    "c340000000000000": "-9007199254740992",
    "4430000000000000": "295147905179352830000",
    "44b52d02c7e14af5": "9.999999999999997e+22",
    "44b52d02c7e14af6": "1e+23",
    "44b52d02c7e14af7": "1.0000000000000001e+23",
    "444b1ae4d6e2ef4e": "999999999999999700000",
    "444b1ae4d6e2ef4f": "999999999999999900000",
    "444b1ae4d6e2ef50": "1e+21",
    "3eb0c6f7a0b5ed8c": "9.999999999999997e-7",
    "3eb0c6f7a0b5ed8d": "0.000001",
    "41b3de4355555553": "333333333.3333332",
    "41b3de4355555554": "333333333.33333325",
    "41b3de4355555555": "333333333.3333333",
    "41b3de4355555556": "333333333.3333334",
    "41b3de4355555557": "333333333.33333343",
    "becbf647612f3696": "-0.0000033333333333333333",
    "43143ff3c1cb0959": "1424953923781206.2",
}


@pytest.mark.parametrize(("bits", "spelled"), NUMBERS.items())
def test_numbers_are_spelled_as_the_rfc_spells_them(bits: str, spelled: str) -> None:
    """
    Another language that writes the same numbers makes the same digest.
    """
    (number,) = struct.unpack(">d", bytes.fromhex(bits))
    assert spelled == canonical_bytes(number).decode()


def test_keys_are_ordered_by_their_utf_16_units() -> None:
    """
    The example of RFC 8785, section 3.2.3: a smiley comes before a letter of Hebrew.
    """
    value = {
        "\u20ac": "Euro Sign",
        "\r": "Carriage Return",
        "\ufb33": "Hebrew Letter Dalet With Dagesh",
        "1": "One",
        "\U0001f600": "Emoji: Grinning Face",
        "\u0080": "Control",
        "\u00f6": "Latin Small Letter O With Diaeresis",
    }
    assert ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"] == list(
        json.loads(canonical_bytes(value))
    )


def test_texts_are_written_with_the_shortest_escapes_only() -> None:
    """
    A line separator, which breaks readers of lines, stands as it is: bytes are digested, not lines.
    """
    value = '\u20ac$\u000f\nA\'B"\\\\"/\u2028'
    assert '"\u20ac$\\u000f\\nA\'B\\"\\\\\\\\\\"/\u2028"' == canonical_bytes(value).decode()


@given(VALUES)
@example([1e16, -1e300, 1.152921504606847e18])
@example({"": {}, "a": []})
def test_what_is_read_back_is_written_the_same(value: object) -> None:
    """
    The digest of a file that nobody changed is found again from its values.
    """
    written = canonical_bytes(value)
    read = read_json(written)
    assert written == canonical_bytes(read)


def test_a_large_float_that_is_read_as_a_whole_number_is_written_as_it_was() -> None:
    """
    ECMAScript writes 2**60 as 1152921504606847000, which is another whole number and the same
    float64: it is no edit.
    """
    assert b"[1152921504606847000]" == canonical_bytes([float(1 << 60)])
    assert b"[1152921504606847000]" == canonical_bytes([1152921504606847000])
    assert b"[1152921504606847000]" == canonical_bytes([1 << 60])


@given(st.dictionaries(st.text(st.characters(codec="ascii")), SCALARS), st.randoms())
def test_the_order_of_writing_makes_no_other_digest(
    value: dict[str, object], order: random.Random
) -> None:
    """
    Two runs that say the same are the same.
    """
    items = list(value.items())
    order.shuffle(items)
    assert digest_of(value) == digest_of(dict(items))


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        -math.inf,
        EXACT + 2,
        -(1 << 60) - 1,
        (1 << 64) + 1,
        10**5000,
        "\ud800",
        {"\udfff": 1},
        {1: 2},
        {None: 1},
        {"a", "b"},
        b"bytes",
        object(),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_json_does_not_know_is_refused_wherever_it_stands(value: object) -> None:
    """
    NaN in an artifact would be a file that other readers refuse.
    """
    for inside in (value, [value], {"x": [value]}):
        with pytest.raises(ContractError, match=r"^JSON: got "):
            canonical_bytes(inside)


def test_a_value_that_contains_itself_or_is_too_deep_is_refused() -> None:
    """
    The writer ends, and says why.
    """
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(ContractError, match="too deep"):
        canonical_bytes(endless)


def test_without_the_package_the_error_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """
    It is imported when the first value is written, and not before.
    """
    monkeypatch.setitem(sys.modules, "rfc8785", None)
    monkeypatch.delitem(sys.modules, "vlmcore.lab._rfc8785", raising=False)
    monkeypatch.delattr("vlmcore.lab._rfc8785", raising=False)
    with pytest.raises(MissingDependencyError, match=r'pip install "vlmcore\[lab\]"'):
        canonical_bytes({})
