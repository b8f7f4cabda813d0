"""Tests of `vlmcore.lab.scoring.number`."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmcore.errors import ContractError
from vlmcore.lab.scoring.number import NumberEvaluator, NumberPolicy
from vlmcore.lab.scoring.scores import Evaluator, ScoreFlag


def test_two_numbers_are_ambiguous_where_one_was_asked_for() -> None:
    """
    "There are 3 to 5" gives 1.0 for 3 where the first number is taken.
    """
    score = NumberEvaluator(expected=3).score("There are 3 to 5")

    assert (0.0, (ScoreFlag.AMBIGUOUS,)) == (score.value, score.flags)
    assert "ambiguous: the answer says '3', '5'" == score.reason


@pytest.mark.parametrize(
    ("text", "expected"),
    [("I count 1, 2, 3. So 3 objects.", 3), ("Image 1 shows 4 dogs", 4)],
)
def test_the_final_number_is_taken_where_the_case_says_so_and_never_the_first(
    text: str, expected: float
) -> None:
    """
    Otherwise the answer is ambiguous.
    """
    final = NumberEvaluator(expected=expected, policy=NumberPolicy.FINAL)
    only = NumberEvaluator(expected=expected)

    assert 1.0 == final.score(text).value
    assert (0.0, (ScoreFlag.AMBIGUOUS,)) == (only.score(text).value, only.score(text).flags)
    assert 0.0 == NumberEvaluator(expected=1, policy=NumberPolicy.FINAL).score(text).value


def test_decimals_are_numbers_and_are_not_cut() -> None:
    """
    3.7 is not 3, and 1.5 is 1.5.
    """
    assert 0.0 == NumberEvaluator(expected=3).score("3.7").value
    assert 1.0 == NumberEvaluator(expected=1.5).score("It is 1.5.").value
    assert 0.0 == NumberEvaluator(expected=1.5).score("1").value
    assert 1.0 == NumberEvaluator(expected=0.1).score("0.10").value


@pytest.mark.parametrize(
    "expected", [True, False, None, "3", "3 cats", [3], float("nan"), float("inf"), 10**400]
)
def test_what_is_no_number_is_refused_when_the_suite_is_made(expected: Any) -> None:
    """
    True is not 1, and "3 cats" must not raise in the middle of a run.
    """
    with pytest.raises(ContractError, match=r"^expected: got "):
        NumberEvaluator(expected=expected)


def test_one_number_that_is_said_twice_is_one() -> None:
    """
    Also where it is written in two ways.
    """
    assert 1.0 == NumberEvaluator(expected=3).score("3 dogs (3.0): \uff13").value


@pytest.mark.parametrize("text", ["1.000,5", "192.168.0.1", "1" * 100])
def test_a_number_with_more_than_one_reading_is_ambiguous(text: str) -> None:
    """
    Under every policy.
    """
    for policy in NumberPolicy:
        score = NumberEvaluator(expected=1, policy=policy).score(text)
        assert (0.0, (ScoreFlag.AMBIGUOUS,)) == (score.value, score.flags)


def test_no_number_is_told_and_words_are_numbers_where_the_case_says_so() -> None:
    """
    "one" is mostly no count.
    """
    assert "the answer says no number" == NumberEvaluator(expected=3).score("Three").reason
    spelled = NumberEvaluator(expected=3, spelled=True)
    assert 1.0 == spelled.score("Three dogs").value
    assert "ambiguous: the answer says 'three', 'one'" == spelled.score("three, one").reason


def test_a_tolerance_is_a_distance_and_is_exact() -> None:
    """
    0.3 is 0.1 from 0.2, which floats deny.
    """
    near = NumberEvaluator(expected=0.2, tolerance=0.1)

    assert (1.0, 1.0, 0.0) == tuple(near.score(text).value for text in ("0.3", "0.1", "0.31"))
    for wrong in (-1, float("nan"), True):
        with pytest.raises(ContractError, match=r"^tolerance"):
            NumberEvaluator(expected=1, tolerance=wrong)


def test_an_answer_that_is_cut_fails() -> None:
    """
    1 may be the start of 12.
    """
    score = NumberEvaluator(expected=1).score("It is 1", finish_reason="length")

    assert (0.0, (ScoreFlag.CUT,)) == (score.value, score.flags)


@given(number=st.integers(-(10**15), 10**15) | st.decimals(-1000, 1000, places=3).map(float))
def test_a_number_that_is_written_plainly_is_right_and_another_is_wrong(number: float) -> None:
    """
    Whole or not, signed or not, alone or in a sentence.
    """
    written = f"{number}" if isinstance(number, int) else f"{number:.3f}"
    evaluator = NumberEvaluator(expected=number)

    assert 1.0 == evaluator.score(f"There are {written} of them.").value
    assert 0.0 == NumberEvaluator(expected=number + 1).score(written).value
    assert isinstance(evaluator, Evaluator)


@given(text=st.text())
def test_any_text_has_a_score(text: str) -> None:
    """
    A run that is paid for does not end in a traceback.
    """
    for policy in NumberPolicy:
        score = NumberEvaluator(expected=3, policy=policy, spelled=True).score(text)
        assert score.value in (0.0, 1.0)


def test_numbers_of_any_length_and_exponent_have_a_score() -> None:
    """
    In time that grows with the text.
    """
    for text in ("1e999", "1e-999", "9" * 100_000, "1," * 100_000, "." * 100_000, "1e" * 50_000):
        assert 0.0 == NumberEvaluator(expected=3, policy=NumberPolicy.FINAL).score(text).value
