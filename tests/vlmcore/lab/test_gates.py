"""Tests of `vlmcore.lab.gates`: quality and exact output, case by case."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sample_cases import sample
from vlmcore.errors import ContractError
from vlmcore.lab.events import Failure, FailureKind, Sample
from vlmcore.lab.gates import (
    Exactness,
    Graded,
    Quality,
    are_same_answers,
    judge_exactness,
    judge_quality,
)

BROKEN = Failure(kind=FailureKind.SERVER_ERROR)


def graded(quality: float | None, case: str = "dog", **fields: Any) -> Graded:
    """Make an answer of this quality."""
    return Graded(sample=sample(5, case=case, **fields), quality=quality)


def answers(*texts: str, case: str = "dog", **fields: Any) -> list[Graded]:
    """Make answers of these texts."""
    return [Graded(sample=sample(5, case=case, text=text, **fields)) for text in texts]


def test_as_good_as_before_is_good_enough() -> None:
    """
    0.60 before and after passes: the gate is what there was, not a number for everybody.
    """
    (found,) = judge_quality([graded(0.6)], [graded(0.6)], {"dog": 0.0})

    assert Quality.KEPT is found.quality
    assert (0.6, 0.6) == (found.before, found.after)


def test_one_broken_case_of_fifty_is_named() -> None:
    """
    The mean of 0.98 would pass.
    """
    names = [f"case {i}" for i in range(50)]
    before = [graded(1.0, case) for case in names]
    after = [graded(float(case != "case 7"), case) for case in names]
    found = judge_quality(before, after, dict.fromkeys(names, 0.1))

    assert ["case 7"] == [each.case for each in found if each.quality is Quality.LOST]
    assert "quality 0 after 1, expected at least 0.9" == found[7].reason


@pytest.mark.parametrize(
    ("before", "after", "margin", "quality"),
    [
        (0.8, 0.7, 0.1, Quality.KEPT),  # which floats say is a little less than that
        (0.8, 0.69, 0.1, Quality.LOST),
        (0.5, 1.0, 0.0, Quality.KEPT),
        (0.0, 0.0, 0.0, Quality.KEPT),
        (1.0, 0.0, 1.0, Quality.KEPT),
    ],
)
def test_a_margin_is_of_its_case(
    before: float, after: float, margin: float, quality: Quality
) -> None:
    """
    And of the mean of its answers.
    """
    (found,) = judge_quality([graded(before)], [graded(after)], {"dog": margin})

    assert quality is found.quality


def test_a_request_that_failed_was_no_good_answer() -> None:
    """
    Whatever came of it: a target that drops requests does not get better by it.
    """
    (found,) = judge_quality(
        [graded(1.0), graded(1.0)], [graded(1.0), graded(1.0, failure=BROKEN)], {"dog": 0.2}
    )

    assert (Quality.LOST, 0.5) == (found.quality, found.after)


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ([None], [1.0], "answers that nobody judged before"),
        ([1.0], [None, 1.0], "answers that nobody judged after"),
        ([], [1.0], "no answers before"),
        ([1.0], [], "no answers after"),
    ],
)
def test_what_nobody_judged_is_unknown(before: list[Any], after: list[Any], reason: str) -> None:
    """
    Neither kept nor lost.
    """
    (found,) = judge_quality(map(graded, before), map(graded, after), {"dog": 0.0})

    assert (Quality.UNKNOWN, reason) == (found.quality, found.reason)


@pytest.mark.parametrize("margin", [-0.1, 1.5, math.nan, True, None, "0"])
def test_a_margin_is_a_share(margin: Any) -> None:
    """
    As a quality is.
    """
    with pytest.raises(ContractError, match=r"margins\['dog'\]: got"):
        judge_quality([], [], {"dog": margin})
    if margin is not None:
        with pytest.raises(ContractError, match="quality: got"):
            graded(margin)


def test_an_answer_to_a_case_that_the_suite_does_not_have_is_refused() -> None:
    """
    It would be left out of every finding.
    """
    with pytest.raises(ContractError, match="margins: got none for 'cat', expected one of every"):
        judge_quality([graded(1.0, "cat")], [], {"dog": 0.1})
    with pytest.raises(ContractError, match="sample: got str, expected Sample"):
        Graded(sample="dog")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("before", "after", "exactness", "reason"),
    [
        ("aa", "aa", Exactness.EQUAL, "one answer, the same before and after"),
        ("aa", "bb", Exactness.DIFFERENT, "one answer before, and another one after"),
        ("aab", "aa", Exactness.NONDETERMINISTIC, "2 different answers in 3 before"),
        ("aa", "abca", Exactness.NONDETERMINISTIC, "3 different answers in 4 after"),
        ("ab", "cd", Exactness.NONDETERMINISTIC, "2 different answers in 2 before"),
        ("aa", "a", Exactness.UNKNOWN, "answers: 2 before and 1 after, and two of each are needed"),
        ("", "", Exactness.UNKNOWN, "answers: 0 before and 0 after"),
    ],
)
def test_a_target_must_agree_with_itself_before_it_is_a_reference(
    before: str, after: str, exactness: Exactness, reason: str
) -> None:
    """
    At temperature 0 answers differ by batches and caches: that is not a failure of either.
    """
    (found,) = judge_exactness(answers(*before), answers(*after), ["dog"])

    assert exactness is found.exactness
    assert found.reason.startswith(reason)


def test_exact_is_to_the_byte_and_case_by_case() -> None:
    """
    A code fence of two tokens is a difference, and so is another spelling of é.
    """
    before = [*answers("{}", "{}"), *answers("café", "café", case="cat")]
    after = [*answers("```json", "```json"), *answers(*["cafe\u0301"] * 2, case="cat")]

    found = judge_exactness(before, after, ["cat", "dog"])
    assert ["cat", "dog"] == [each.case for each in found]
    assert {Exactness.DIFFERENT} == {each.exactness for each in found}
    assert found[1].before == (before[0].sample.text_sha256,)


def test_half_an_answer_of_a_request_that_failed_is_no_answer() -> None:
    """
    It says nothing about how a target answers.
    """
    broken = answers("a ", failure=BROKEN)
    (found,) = judge_exactness([*answers("ab", "ab"), *broken], answers("ab", "ab"), ["dog"])

    assert Exactness.EQUAL is found.exactness


def test_a_name_is_not_a_list_of_letters() -> None:
    """
    No case would be compared.
    """
    with pytest.raises(ContractError, match="cases: got str, expected tuple"):
        judge_exactness([], [], "dog")


def test_other_thoughts_are_other_work() -> None:
    """
    The answer may be the same; the time is not of the same tokens.
    """
    short, long = sample(5, reasoning="so"), sample(5, reasoning="so, then")

    assert are_same_answers([short, short], [short])
    assert not are_same_answers([short], [long])
    assert are_same_answers([], [])


@given(
    qualities=st.lists(st.floats(0, 1), min_size=1, max_size=5),
    margin=st.floats(0, 1),
    texts=st.lists(st.sampled_from("ab"), max_size=4),
)
def test_a_target_is_as_good_as_itself(
    qualities: list[float], margin: float, texts: list[str]
) -> None:
    """
    Whatever its quality, and never different from itself.
    """
    side = [graded(quality) for quality in qualities]
    assert Quality.KEPT is judge_quality(side, side, {"dog": margin})[0].quality

    (found,) = judge_exactness(answers(*texts), answers(*texts), ["dog"])
    assert Exactness.DIFFERENT is not found.exactness
    assert found.before == found.after


def test_a_graded_sample_is_a_value() -> None:
    """
    Equal by what it holds.
    """
    one: Sample = sample(5)
    assert Graded(sample=one, quality=1) == Graded(sample=one, quality=1.0)
