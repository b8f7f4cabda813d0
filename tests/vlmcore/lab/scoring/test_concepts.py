"""Tests of `vlmcore.lab.scoring.concepts`."""

from __future__ import annotations

from typing import Any

import pytest

from vlmcore.errors import ContractError
from vlmcore.lab.scoring.concepts import ConceptEvaluator
from vlmcore.lab.scoring.scores import Evaluator, ScoreFlag

DOG = ConceptEvaluator(expected=[["dog"]])
BEACH = ConceptEvaluator(
    expected=[
        ["woman"],
        ["golden retriever"],
        ["beach"],
        ["high-five", "high-fiving", "high five", "high fiving"],
    ]
)


@pytest.mark.parametrize(
    "text",
    [
        "A woman sits on a beach and gives her golden retriever a high-five.",
        "A woman is high fiving a golden retriever at the beach",
        "On a beach, a woman and a GOLDEN RETRIEVER: high five!",
    ],
)
def test_the_rubric_of_the_reference_image_is_kept_by_each_spelling(text: str) -> None:
    """
    A hyphen is as good as a space.
    """
    assert 1.0 == BEACH.score(text).value


def test_a_person_a_dog_and_sand_are_not_a_woman_a_golden_retriever_and_a_beach() -> None:
    """
    Tables whose rows accept other lists compare nothing.
    """
    score = BEACH.score("A person gives a dog a high five on the sand.")

    assert 0.25 == score.value
    assert "1 of 4 concepts; missing: 'woman', 'golden retriever', 'beach'" == score.reason


@pytest.mark.parametrize(
    "text",
    [
        "There is no dog",
        "There is not a dog in this picture.",
        "I cannot see any dog.",
        "I don\u2019t think there is a dog here.",
        "There is no cat, bird or dog.",
        "no sign of a dog",
        "A street without a dog",
        "Neither a cat nor a dog",
        "The dog is not visible.",
        "A dog isn't present.",
        "Cat: yes\nDog: no\nBird: yes",
        "Is there a dog? No.",
        "A dog, no, a cat.",
    ],
)
def test_a_dog_that_is_denied_does_not_count(text: str) -> None:
    """
    "There is no dog" gives 1.0 where words are only counted.
    """
    score = DOG.score(text)

    assert (0.0, (ScoreFlag.NEGATED,)) == (score.value, score.flags)
    assert "0 of 1 concepts; denied: 'dog'" == score.reason


@pytest.mark.parametrize(
    "text",
    [
        "A dog.",
        "No, it is a dog.",
        "No people, a dog.",
        "There is no cat. A dog runs.",
        "There is no cat, but a dog.",
        "not only a dog but a cat",
        "A man with no shirt walks a dog",
        "There is no dog on the left; a dog sleeps on the right.",
        "The dog is not running.",
        "No cats\n- dog\n- bird",
        "There is no doubt a dog",
        "A dog. No cat.",
        "Dog: yes\nCat: no",
    ],
)
def test_a_dog_that_is_there_counts_beside_what_is_not(text: str) -> None:
    """
    What denies reaches as far as its clause, and no further.
    """
    score = DOG.score(text)

    assert (1.0, ()) == (score.value, score.flags)


def test_forbidden_phrases_make_an_answer_count_nothing() -> None:
    """
    A rule of thumb may miss a denial; a phrase that is forbidden is found by its words.
    """
    strict = ConceptEvaluator(expected=[["dog"]], forbidden=["no dog", "cat"])
    score = strict.score("A dog and a cat.")

    assert (0.0, (ScoreFlag.FORBIDDEN,)) == (score.value, score.flags)
    assert "the answer has what is forbidden: 'cat'" == score.reason
    assert 0.0 == strict.score("There is no dog").value
    assert 1.0 == strict.score("A dog. There is no cat.").value


def test_without_a_window_what_is_denied_counts() -> None:
    """
    For languages whose denials are not known here.
    """
    every = ConceptEvaluator(expected=[["dog"]], negation_window=0)

    assert 1.0 == every.score("There is no dog").value


@pytest.mark.parametrize(
    "expected",
    [
        "dog",
        ["dog"],
        [["dog"], [""]],
        [["dog"], []],
        [["dog"], "cat"],
        [],
        [[]],
        [[1]],
        [["dog"], ["DOG"]],
        None,
        7,
    ],
)
def test_what_is_no_list_of_concepts_is_refused_when_the_suite_is_made(expected: Any) -> None:
    """
    An empty concept must not be dropped: [["dog"], [""]] would give 1.0 for a dog alone.
    """
    with pytest.raises(ContractError, match=r"^expected"):
        ConceptEvaluator(expected=expected)


def test_a_phrase_that_is_expected_and_forbidden_is_refused() -> None:
    """
    No answer could be right.
    """
    with pytest.raises(ContractError, match="two things"):
        ConceptEvaluator(expected=[["dog"]], forbidden=["Dog!"])


@pytest.mark.parametrize("wrong", [-1, 33, True, 1.5, None, "3"])
def test_a_window_is_a_number_of_words(wrong: Any) -> None:
    """
    From 0, which looks for none.
    """
    with pytest.raises(ContractError, match=r"^negation_window"):
        ConceptEvaluator(expected=[["dog"]], negation_window=wrong)


def test_stuffing_plurals_and_cut_answers_are_as_with_keywords() -> None:
    """
    One rule for what is scored by its words.
    """
    stuffed = " ".join(["dog", *(f"noun{i}" for i in range(499))])
    plural = ConceptEvaluator(expected=[["dog"]], plurals=True)

    assert ScoreFlag.TOO_LONG in DOG.score(stuffed).flags
    assert (0.0, 1.0) == (DOG.score("dogs").value, plural.score("dogs").value)
    assert (ScoreFlag.CUT,) == DOG.score("a dog and", finish_reason="length").flags
    assert (ScoreFlag.EMPTY, ScoreFlag.REASONING) == DOG.score("<think>a dog").flags
    assert isinstance(DOG, Evaluator)
