"""Which prompts are given to a model at once, and what happens where they are too many."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmcore.errors import ModelMemoryError
from vlmcore.vlm.backends._batches import answer_in_batches
from vlmcore.vlm.generation import Generation, StopReason
from vlmcore.vlm.prompt import Prompt


class Model:
    """Answers each prompt with its own words, and has memory for so many at once."""

    def __init__(self, room: int = 100) -> None:
        self.room = room
        self.batches: list[list[str]] = []

    def __call__(self, prompts):
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


def test_a_prompt_that_does_not_fit_alone_is_an_error():
    """There is no half of it."""
    with pytest.raises(ModelMemoryError):
        answer_in_batches(words("a", "b"), 2, Model(room=0))


@given(st.lists(st.text("ab", min_size=1, max_size=9)), st.integers(1, 9), st.integers(1, 9))
def test_every_prompt_is_answered_once_in_its_place(texts, size, room):
    """Whatever is asked, and however little fits."""
    model = Model(room)

    answers = answer_in_batches(words(*texts), size, model)

    assert texts == [answer.text for answer in answers]
    assert sorted(texts) == sorted(text for batch in model.batches for text in batch)
    assert all(len(batch) <= size for batch in model.batches)
