"""Tests of `vlmcore.lab.scoring.keywords`."""

from __future__ import annotations

from typing import Any

import pytest

from vlmcore.errors import ContractError, LimitExceededError
from vlmcore.lab.scoring.keywords import KeywordEvaluator
from vlmcore.lab.scoring.scores import Evaluator, ScoreFlag


@pytest.mark.parametrize(
    ("keyword", "text"),
    [("red", "The bored man sat."), ("cat", "Education"), ("man", "A woman")],
)
def test_a_keyword_inside_another_word_does_not_count(keyword: str, text: str) -> None:
    """
    A naive search finds red in bored, cat in Education, and man in woman, and gives 1.0.
    """
    assert 0.0 == KeywordEvaluator(expected=[keyword]).score(text).value


@pytest.mark.parametrize(
    ("keyword", "text"),
    [
        ("red", "A RED car."),
        ("red", "**Red**, of course"),
        ("red", "a (red) car"),
        ("red", "a red-haired man"),
        ("golden retriever", "a golden\nretriever"),
        ("C++", "It is C++."),
        ("3.5", "3.5 km"),
        ("dog", "the dog's tail"),
        ("café", "a cafe\u0301"),
        ("straße", "STRASSE"),
        ("犬", "これは犬です。"),
        ("हिन्दी", "यह हिन्दी है"),
        ("dog", "a d\u200bog"),
    ],
)
def test_a_keyword_that_is_a_word_of_the_answer_counts(keyword: str, text: str) -> None:
    """
    Capitals, punctuation and the encoding make no difference; scripts without spaces have no words.
    """
    assert 1.0 == KeywordEvaluator(expected=[keyword]).score(text).value


@pytest.mark.parametrize(
    ("keyword", "text"),
    [
        ("C++", "C"),
        ("C", "C++"),
        ("3", "3.5"),
        ("5", "-5"),
        ("retriever golden", "golden retriever"),
    ],
)
def test_signs_that_change_a_word_and_the_order_of_words_count(keyword: str, text: str) -> None:
    """
    C++ is not C, and -5 is not 5.
    """
    assert 0.0 == KeywordEvaluator(expected=[keyword]).score(text).value


def test_a_plural_counts_by_a_stated_rule_only() -> None:
    """
    "dogs" for "dog" is 1.0 only where the case says so.
    """
    assert 0.0 == KeywordEvaluator(expected=["dog"]).score("dogs").value
    assert 1.0 == KeywordEvaluator(expected=["dog"], plurals=True).score("dogs").value
    assert 1.0 == KeywordEvaluator(expected=["dog", "dogs"]).score("dog dogs").value


@pytest.mark.parametrize(
    ("keyword", "plural"),
    [
        ("box", "boxes"),
        ("city", "cities"),
        ("boy", "boys"),
        ("potato", "potatoes"),
        ("man", "mans"),
    ],
)
def test_the_rule_of_plurals_is_the_regular_one_of_english(keyword: str, plural: str) -> None:
    """
    It knows no exceptions: men are an alias.
    """
    assert 1.0 == KeywordEvaluator(expected=[keyword], plurals=True).score(plural).value


def test_the_score_is_the_part_that_is_found_and_the_reason_names_the_rest() -> None:
    """
    So that a person sees what to look for.
    """
    score = KeywordEvaluator(expected=["red", "car", "tree"]).score("A red car.")

    assert (2 / 3, "2 of 3 keywords; missing: 'tree'") == (score.value, score.reason)


def test_a_keyword_that_is_only_denied_counts_and_is_flagged() -> None:
    """
    Keywords ask for words; concepts ask whether they are meant.
    """
    score = KeywordEvaluator(expected=["dog"]).score("There is no dog")

    assert (1.0, (ScoreFlag.NEGATED,)) == (score.value, score.flags)


def test_a_keyword_in_reasoning_does_not_count() -> None:
    """
    "<think>a red bird? no</think>blue" says blue.
    """
    score = KeywordEvaluator(expected=["red"]).score("<think>a red bird? no</think>blue")

    assert (0.0, (ScoreFlag.REASONING,)) == (score.value, score.flags)
    assert 1.0 == KeywordEvaluator(expected=["blue"]).score("<think>red</think>blue").value


def test_a_list_of_500_nouns_is_keyword_stuffing_and_scores_nothing() -> None:
    """
    Whatever was expected, it would be in there.
    """
    stuffed = " ".join(["dog", "cat", *(f"noun{i}" for i in range(498))])
    score = KeywordEvaluator(expected=["dog", "cat"]).score(stuffed)

    assert (0.0, (ScoreFlag.TOO_LONG,)) == (score.value, score.flags)
    assert "the answer has 500 words, and 300 are allowed" == score.reason
    assert 1.0 == KeywordEvaluator(expected=["dog"], most_words=500).score(stuffed).value


@pytest.mark.parametrize(
    "expected", ["dog", [], (), [""], ["  "], ["dog", ""], ["..."], ["dog", "Dog"], [1], None, 3]
)
def test_what_is_no_list_of_keywords_is_refused_when_the_suite_is_made(expected: Any) -> None:
    """
    The text "dog" would be the letters d, o and g, which "God knows" has; no keywords at all would
    fail every answer after it was paid for.
    """
    with pytest.raises(ContractError, match=r"^expected"):
        KeywordEvaluator(expected=expected)
    assert issubclass(ContractError, ValueError)


@pytest.mark.parametrize("wrong", [0, -1, True, 1.5, "12", None])
def test_a_bound_of_words_is_a_whole_number_of_at_least_one(wrong: Any) -> None:
    """
    As every bound.
    """
    with pytest.raises(ContractError, match=r"^most_words"):
        KeywordEvaluator(expected=["dog"], most_words=wrong)


def test_what_is_expected_is_bounded() -> None:
    """
    A suite comes from a file that anybody wrote.
    """
    with pytest.raises(LimitExceededError, match="max_phrases"):
        KeywordEvaluator(expected=[f"w{i}" for i in range(257)])
    with pytest.raises(ContractError, match="257 characters"):
        KeywordEvaluator(expected=["x" * 257])
    with pytest.raises(LimitExceededError, match="max_words"):
        KeywordEvaluator(expected=["dog"], most_words=100_001)


def test_an_empty_answer_and_one_that_is_cut_say_so() -> None:
    """
    A caption that is cut may still have its keywords; a case can ask for more.
    """
    dog = KeywordEvaluator(expected=["dog"])
    strict = KeywordEvaluator(expected=["dog"], must_be_whole=True)

    assert (0.0, (ScoreFlag.EMPTY,)) == (dog.score("  ").value, dog.score("  ").flags)
    cut = dog.score("a dog and", finish_reason="length")
    assert (1.0, (ScoreFlag.CUT,)) == (cut.value, cut.flags)
    assert 0.0 == strict.score("a dog and", finish_reason="length").value
    assert isinstance(dog, Evaluator)
