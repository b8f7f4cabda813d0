"""Tests of `vlmcore.jobs.batching`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from vlmcore.jobs.batching import Batches, Question
from vlmcore.vlm.generation import GenerationOptions
from vlmcore.vlm.prompt import Prompt

SHORT, LONG = GenerationOptions(max_new_tokens=8), GenerationOptions(max_new_tokens=99)


def question(key: str, height: int = 4, width: int = 4, *, is_long: bool = False) -> Question:
    pixels = np.zeros((height, width, 3), np.uint8)
    return Question(
        key=key,
        digest=b"",
        mark="mark",
        prompt=Prompt(text="What?", images=(pixels,)),
        options=LONG if is_long else SHORT,
    )


def all_of(batches: Batches) -> list[list[str]]:
    found = []
    while batch := batches.take():
        found.append([each.key for each in batch])
    return found


QUESTIONS = st.lists(
    st.tuples(st.integers(1, 9), st.integers(1, 9), st.booleans()), max_size=60
).map(
    lambda shapes: [
        question(str(n), height, width, is_long=is_long)
        for n, (height, width, is_long) in enumerate(shapes)
    ]
)


def batched(questions: Sequence[Question], size: int, max_bytes: int) -> list[list[Question]]:
    batches, found = Batches(size, max_bytes), []
    for each in questions:
        batches.add(each)
        while batch := batches.take():
            found.append(batch)
    batches.complete()
    while batch := batches.take():
        found.append(batch)
    assert not batches
    return found


@given(QUESTIONS, st.integers(1, 9), st.integers(1, 600))
def test_every_question_is_in_one_batch(
    questions: list[Question], size: int, max_bytes: int
) -> None:
    """
    Of those that are answered alike, and of no more than fit; the same ones in every run.
    """
    found = batched(questions, size, max_bytes)
    assert sorted(each.key for each in questions) == sorted(each.key for b in found for each in b)
    for batch in found:
        assert 1 <= len(batch) <= size
        assert 1 == len({each.options for each in batch})
    again = batched(questions, size, max_bytes)
    assert [[each.key for each in b] for b in found] == [[each.key for each in b] for b in again]


@given(QUESTIONS, st.integers(1, 9), st.integers(1, 600))
def test_what_is_collected_is_bounded(questions: list[Question], size: int, max_bytes: int) -> None:
    """
    Before a batch is made of it: in number, and in bytes but for the last.
    """
    batches = Batches(size, max_bytes)
    for each in questions:
        batches.add(each)
        while batches.take():
            pass
        assert len(batches) < max(2, 4 * size)


def test_pictures_of_about_the_same_size_are_asked_about_together() -> None:
    """
    Smaller ones first, as padding to the largest of a batch is work for nothing.
    """
    batches = Batches(2, 10**9)
    for n, side in enumerate([9, 1, 8, 2, 9, 1, 8, 2]):
        batches.add(question(str(n), side, side))
    assert [["1", "5"], ["3", "7"], ["2", "6"], ["0", "4"]] == all_of(batches)


def test_a_batch_of_one_is_ready_at_once() -> None:
    """
    A server is sent what is there, and need not wait for more.
    """
    batches = Batches(1, 10**9)
    batches.add(question("a"))
    assert [["a"]] == all_of(batches)


def test_pictures_that_are_large_do_not_wait_for_others() -> None:
    """
    What is collected is divided as soon as it takes the memory that it may.
    """
    batches = Batches(8, 100)
    batches.add(question("large", 10, 10))
    assert [["large"]] == all_of(batches)


def test_what_is_put_back_comes_after_what_is_ready() -> None:
    """
    A server that breaks over it would be asked nothing else; two such questions took turns.
    """
    batches = Batches(1, 10**9)
    for key in ("next", "later"):
        batches.add(question(key))
    batches.put_back([question("again")])
    batches.put_back([])
    assert 3 == len(batches)
    assert [["next"], ["later"], ["again"]] == all_of(batches)
