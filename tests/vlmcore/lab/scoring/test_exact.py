"""Tests of `vlmcore.lab.scoring.exact`."""

from __future__ import annotations

from typing import Any

import pytest

from vlmcore.errors import ContractError, LimitExceededError
from vlmcore.lab.scoring.exact import ExactEvaluator
from vlmcore.lab.scoring.normalising import Level
from vlmcore.lab.scoring.scores import Evaluator, ScoreFlag


@pytest.mark.parametrize("level", Level)
@pytest.mark.parametrize(
    ("expected", "text"),
    [("3.5", "3 5"), ("-5", "5"), ("C++", "C"), ("$5.00", "5 00"), ("50%", "50"), ("#1", "1")],
)
def test_signs_that_change_what_is_said_are_kept_at_every_level(
    expected: str, text: str, level: Level
) -> None:
    """
    A scorer that drops all punctuation gives 1.0 for each of these.
    """
    assert 0.0 == ExactEvaluator(expected=expected, level=level).score(text).value
    assert 1.0 == ExactEvaluator(expected=expected, level=level).score(expected).value


@pytest.mark.parametrize("level", Level)
def test_an_accent_of_its_own_is_the_same_letter_at_every_level(level: Level) -> None:
    """
    "cafe" with U+0301 against "café" is 0.0 where code points are compared.
    """
    assert 1.0 == ExactEvaluator(expected="café", level=level).score("cafe\u0301").value


@pytest.mark.parametrize("level", Level)
def test_full_width_digits_are_digits_but_to_the_raw_level(level: Level) -> None:
    """
    Raw is NFC, the others are NFKC.
    """
    score = ExactEvaluator(expected="12", level=level).score("\uff11\uff12")

    assert (0.0 if level is Level.RAW else 1.0) == score.value


@pytest.mark.parametrize(
    ("text", "right_from"),
    [
        ("A Dog", Level.RAW),
        (" A Dog\n", Level.TRIM),
        ("a  DOG", Level.FOLDED),
        ("a d\u200bog", Level.FOLDED),
        ("“A dog!”", Level.LOOSE),
    ],
)
def test_each_level_forgives_what_the_one_before_does_and_more(
    text: str, right_from: Level
) -> None:
    """
    From raw over trimmed and folded to loose.
    """
    levels = list(Level)
    for i, level in enumerate(levels):
        score = ExactEvaluator(expected="A Dog", level=level).score(text)
        assert (1.0 if i >= levels.index(right_from) else 0.0) == score.value


@pytest.mark.parametrize("expected", [None, "", "  ", 3, True, ["a"], b"a", "\ud800"])
def test_what_is_no_text_is_refused_when_the_suite_is_made(expected: Any) -> None:
    """
    A missing value must not become the word "none", which a model may say.
    """
    with pytest.raises(ContractError, match=r"^expected"):
        ExactEvaluator(expected=expected)


def test_a_text_of_which_the_level_leaves_nothing_is_refused() -> None:
    """
    It would be equal to every row of dots.
    """
    with pytest.raises(ContractError, match="of which 'loose' leaves nothing"):
        ExactEvaluator(expected="!!!", level=Level.LOOSE)
    with pytest.raises(ContractError, match="leaves nothing"):
        ExactEvaluator(expected="\u200b", level=Level.FOLDED)
    with pytest.raises(LimitExceededError):
        ExactEvaluator(expected="x" * 65_537)
    with pytest.raises(ContractError, match=r"^level"):
        ExactEvaluator(expected="x", level="trim")  # type: ignore[arg-type]


@pytest.mark.parametrize("reason", ["length", "max_tokens", "content_filter", "repetition"])
def test_an_answer_that_is_cut_fails_unless_the_case_says_otherwise(reason: str) -> None:
    """
    That what came so far is right says nothing about the rest.
    """
    score = ExactEvaluator(expected="a dog").score("a dog", finish_reason=reason)

    assert (0.0, (ScoreFlag.CUT,)) == (score.value, score.flags)
    assert f"the answer is cut: it ended with {reason!r}" == score.reason
    lenient = ExactEvaluator(expected="a dog", must_be_whole=False)
    assert 1.0 == lenient.score("a dog", finish_reason=reason).value


@pytest.mark.parametrize("reason", ["stop", "end", "end_turn", None])
def test_an_answer_that_ended_of_itself_or_nobody_knows_passes(reason: str | None) -> None:
    """
    Local models and servers have their own words.
    """
    assert 1.0 == ExactEvaluator(expected="a dog").score("a dog", finish_reason=reason).value


def test_reasoning_is_no_part_of_the_answer() -> None:
    """
    Nor is the space behind it.
    """
    raw = ExactEvaluator(expected="blue", level=Level.RAW)

    assert 1.0 == raw.score("<think>red?</think>\n\nblue").value
    assert 1.0 == raw.score("red?</think>\n\nblue").value
    assert ScoreFlag.EMPTY in raw.score("<think>blue").flags
    assert isinstance(raw, Evaluator)


def test_the_reason_shows_both_texts_shortly_and_on_one_line() -> None:
    """
    A report has room for a line.
    """
    score = ExactEvaluator(expected="blue").score("red\n" * 100)

    assert "got 'red\\nred\\n" == score.reason[:15]
    assert len(score.reason) < 120
    assert "\n" not in score.reason
