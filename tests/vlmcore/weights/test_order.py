"""What is needed next, learnt from rounds before."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given

from vlmcore.weights._order import SeenOrder


def after(parts: str) -> str:
    order = SeenOrder()
    for part in parts:
        order.note(part)
    return "".join(order.following())


def test_nothing_is_known_in_the_first_round() -> None:
    """
    Nor after a part that is new, whatever was known before.
    """
    assert "" == after("")
    assert "" == after("abc")
    assert "" == after("abcabcx")


def test_the_round_before_is_expected_again() -> None:
    """
    What comes after a part came after it the last time; then it all begins again.
    """
    assert "bcda" == after("abcda")
    assert "cdab" == after("abcdab")
    assert "abcd" == after("abcdabcd")


def test_a_part_that_is_needed_several_times_in_a_round_is_no_new_round() -> None:
    """
    A tied weight is needed at both ends, and some layers look at their weights twice.
    """
    assert "bcda" == after("ababcdcda" * 2 + "a")
    assert "cdab" == after("abcdababcdab")
    assert "bcda" == after("abcdabcda")


def test_parts_that_a_round_leaves_out_are_expected_no_more() -> None:
    """
    A vision tower is needed for the prompt, and not for each token after it.
    """
    assert "efd" == after("vwxyz" + "def" * 3 + "d")
    assert "fde" == after("vwxyz" + "def" * 3 + "de")


def test_what_is_forgotten_is_expected_no_more() -> None:
    """
    A model that was closed is not read ahead.
    """
    order = SeenOrder()
    for part in "abcda":
        order.note(part)
    order.forget("c")

    assert ["b", "d", "a"] == list(order.following())
    assert ["b", "d", "a"] == list(order.longest_ago())


@given(st.text("abcdef"))
def test_nothing_is_expected_that_was_never_needed(parts) -> None:
    """
    And nothing twice.
    """
    expected = after(parts)

    assert set(expected) <= set(parts)
    assert len(set(expected)) == len(expected)


@given(st.permutations("abcdefgh"), st.integers(2, 8), st.integers(2, 5))
def test_rounds_that_repeat_are_foretold_whole(order, size, rounds) -> None:
    """
    From every place in a round.
    """
    parts = "".join(order[:size])

    for stop in range(1, size + 1):
        expected = parts[stop:] + parts[:stop]
        assert expected == after(parts * rounds + parts[:stop])
