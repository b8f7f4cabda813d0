"""Which prompts are given to a model at once, and what happens where they are too many."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmcore.errors import ModelMemoryError
from vlmcore.vlm.backends._batches import answer_in_batches
from vlmcore.vlm.batch import Batched
from vlmcore.vlm.generation import Generation, StopReason
from vlmcore.vlm.prompt import Prompt


class Model:
    """Answers each prompt with its own words, and has memory for so many at once."""

    def __init__(self, room: int = 100, estimate: int = 100) -> None:
        self.room = room
        self.estimate = estimate
        self.batches: list[list[str]] = []

    def __call__(self, prompts):
        prompts = prompts[: self.estimate]
        if len(prompts) > self.room:
            raise ModelMemoryError("model", "memory ran out while generating")
        self.batches.append([prompt.text for prompt in prompts])
        return [
            Generation(text=prompt.text, stop_reason=StopReason.END, prompt_tokens=1, new_tokens=1)
            for prompt in prompts
        ]


def words(*texts: str) -> list[Prompt]:
    return [Prompt(text=text) for text in texts]


def test_prompts_of_like_length_share_a_batch():
    """Padding is what the longest of a batch costs the others."""
    model = Model()

    answers = answer_in_batches(words("aaaa", "b", "ccc", "dd"), 2, model)

    assert ["aaaa", "b", "ccc", "dd"] == [answer.text for answer in answers]
    assert [["b", "dd"], ["ccc", "aaaa"]] == model.batches


def test_prompts_with_images_and_without_share_no_batch():
    """Processors take images for all prompts or for none."""
    model = Model()
    seen = Prompt(text="seen", images=[np.zeros((8, 8, 3), np.uint8)])

    answer_in_batches([seen, *words("unseen")], 8, model)

    assert [["seen"], ["unseen"]] == model.batches


def test_a_batch_that_does_not_fit_goes_in_halves_and_so_do_those_after_it():
    """Memory that ran out once is not asked for again."""
    model = Model(room=2)

    answers = answer_in_batches(words(*"abcdefgh"), 8, model)

    assert list("abcdefgh") == [answer.text for answer in answers]
    assert [2, 2, 2, 2] == [len(batch) for batch in model.batches]


def test_answers_tell_their_batch_and_that_memory_ran_out():
    """So that a caller can ask for so few at once the next time."""
    answers = answer_in_batches(words(*"abcdefg"), 6, Model(room=3))

    assert 7 * ["memory ran out with 6 at once"] == [a.batched.smaller_because for a in answers]
    assert [3, 3, 3, 3, 3, 3, 1] == [answer.batched.size for answer in answers]


def test_a_batch_that_would_not_fit_by_estimate_is_answered_in_part_and_the_rest_after_it():
    """Those after it are no shorter, and are asked so few at once as well."""
    model = Model(estimate=3)

    answers = answer_in_batches(words(*"abcdefg"), 6, model)

    assert list("abcdefg") == [answer.text for answer in answers]
    assert [3, 3, 1] == [len(batch) for batch in model.batches]
    assert answers[0].batched.smaller_because.startswith("more than 3 at once would take more")


def test_answers_of_whole_batches_say_so():
    """Nothing made them smaller."""
    answers = answer_in_batches(words(*"abc"), 2, Model())

    assert [Batched(size=2), Batched(size=2), Batched(size=1)] == [a.batched for a in answers]


def test_a_prompt_that_does_not_fit_alone_is_an_error():
    """There is no half of it."""
    with pytest.raises(ModelMemoryError):
        answer_in_batches(words("a", "b"), 2, Model(room=0))


@given(
    st.lists(st.text("ab", min_size=1, max_size=9)),
    st.integers(1, 9),
    st.integers(1, 9),
    st.integers(1, 9),
)
def test_every_prompt_is_answered_once_in_its_place(texts, size, room, estimate):
    """Whatever is asked, and however little fits."""
    model = Model(room, estimate)

    answers = answer_in_batches(words(*texts), size, model)

    assert texts == [answer.text for answer in answers]
    assert sorted(texts) == sorted(text for batch in model.batches for text in batch)
    assert all(len(batch) <= size for batch in model.batches)
