"""Loops are found, and lists and tables are not taken for them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmcore.vlm.repetition import LoopDetector, is_one_loop


def found_after(tokens: list[int]) -> int | None:
    detector = LoopDetector()
    for count, token in enumerate(tokens, start=1):
        if detector.add(token):
            return count
    return None


@pytest.mark.parametrize(
    ("period", "after"), [(1, 64), (2, 64), (16, 64), (17, 68), (40, 160), (128, 512)]
)
def test_a_loop_is_found_once_it_fills_four_rounds_and_64_tokens(period, after):
    """The rule of `LoopDetector`, at its edges."""
    assert after == found_after(list(range(1000, 1000 + period)) * 600)


def test_a_loop_is_found_after_a_text_that_is_none():
    """Models loop after a good beginning."""
    assert 30 + 64 == found_after([*range(30), *[7] * 100])


@given(st.lists(st.integers(0, 500), min_size=1, max_size=40), st.integers(1, 10_000))
def test_counting_upwards_is_no_loop(head, start):
    """Numbered lists, coordinates and tables change from line to line."""
    lines = [token for i in range(40) for token in (*head, start + 1000 + i)]

    assert found_after(lines) is None


@given(
    phrase=st.lists(st.integers(0, 9), min_size=1, max_size=128),
    head=st.lists(st.integers(10, 99)),
)
def test_every_loop_is_found_within_its_bound(phrase, head):
    """Whatever came before, a loop costs at most 4 rounds or 64 tokens, and one round to settle."""
    found = found_after(head + phrase * 80)

    assert found is not None
    assert found <= len(head) + max(64, 4 * len(phrase))


@pytest.mark.parametrize(
    ("tokens", "loop"),
    [
        ([0] * 32, True),
        ([0] * 8, True),
        ([0] * 7, False),
        ([], False),
        ([1, 2] * 8, True),
        ([1, 2] * 8 + [1], True),
        ([1, 2, 3] * 7, False),
        ([9, *[0] * 32], False),
    ],
)
def test_an_answer_of_one_phrase_eight_times_is_one_loop(tokens, loop):
    """Only-"!" answers are known for what they are, also when the budget was small."""
    assert loop is is_one_loop(tokens)
