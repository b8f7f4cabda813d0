"""How many prompts fit into memory at once, by estimate."""

import numpy as np
import pytest
import torch

from vlmcore.errors import ContractError
from vlmcore.vlm.backends import _batch_memory
from vlmcore.vlm.backends._batch_memory import bytes_of_one, kept_bytes, rows_that_fit
from vlmcore.vlm.backends._conversation import prepare
from vlmcore.vlm.backends._opening import open_model
from vlmcore.vlm.generation import GenerationOptions
from vlmcore.vlm.loading import load_predictor
from vlmcore.vlm.placement import Placement
from vlmcore.vlm.prompt import Prompt
from vlmcore.vlm.sources import resolve_model

KINDS = ("idefics3", "llava", "qwen3_vl")
IMAGE = np.random.default_rng(0).integers(0, 256, (40, 60, 3), dtype=np.uint8)
EIGHT = GenerationOptions(max_new_tokens=8, stop_on_repetition=False)


def given(opened, *prompts):
    return prepare(
        prompts, opened.processor, model="tiny", supports_video=False, thinking=None,
        device=opened.device, dtype=opened.dtype,
    )  # fmt: skip


@pytest.fixture
def opened(tiny_model):
    return open_model(resolve_model(tiny_model("llava")), Placement(device="cpu"))


@pytest.mark.parametrize("kind", KINDS)
def test_keys_and_values_are_counted_to_the_byte(tiny_model, kind):
    """As many as a cache holds after an answer: every token but the last that was written."""
    opened = open_model(resolve_model(tiny_model(kind)), Placement(device="cpu"))
    tensors = given(opened, Prompt(text="What is this?", images=[IMAGE])).tensors
    with torch.inference_mode():
        written = opened.generate(
            **tensors, max_new_tokens=8, eos_token_id=None, return_dict_in_generate=True
        )
    layers = written.past_key_values.layers
    held = sum(layer.keys.nbytes + layer.values.nbytes for layer in layers)

    assert held == kept_bytes(opened.model, written.sequences.shape[1] - 1)


def test_longer_prompts_answers_and_pictures_take_more(opened):
    """Each of them by itself."""
    short, picture = Prompt(text="What?"), Prompt(text="What?", images=[IMAGE])
    base = bytes_of_one(opened.model, given(opened, short), 8)

    assert base < bytes_of_one(opened.model, given(opened, short), 9)
    assert base < bytes_of_one(opened.model, given(opened, Prompt(text="What? " * 9)), 8)
    seen = bytes_of_one(opened.model, given(opened, picture), 8)
    assert seen > base + given(opened, picture).tensors["pixel_values"].nbytes


def test_one_row_of_a_batch_takes_what_it_takes_alone(opened):
    """Pictures of a batch are shared out among its rows."""
    prompt = Prompt(text="What?", images=[IMAGE])
    alone = bytes_of_one(opened.model, given(opened, prompt), 8)

    assert alone == bytes_of_one(opened.model, given(opened, prompt, prompt), 8)


@pytest.mark.parametrize(("rows", "budget"), [(1, 0), (1, 1.9), (2, 2), (3, 3), (3, 100)])
def test_so_many_rows_fit_as_the_budget_holds_and_one_at_least(opened, rows, budget):
    """One is always tried: only memory itself can say that it does not suffice."""
    inputs = given(opened, *[Prompt(text="What?")] * 3)
    one = bytes_of_one(opened.model, inputs, 8)

    assert rows == rows_that_fit(opened.model, inputs, 8, int(budget * one))


@pytest.mark.parametrize(("rows", "free"), [(3, None), (3, 100), (1, 1)])
def test_without_a_budget_what_is_free_decides(opened, monkeypatch, rows, free):
    """Where that is not known, nothing is held back."""
    inputs = given(opened, *[Prompt(text="What?")] * 3)
    one = bytes_of_one(opened.model, inputs, 8)
    monkeypatch.setattr(
        _batch_memory, "free_bytes", lambda _device: None if free is None else free * one
    )

    assert rows == rows_that_fit(opened.model, inputs, 8, None)


@pytest.mark.parametrize("kind", KINDS)
def test_answers_within_a_budget_are_those_of_one_large_batch_and_tell_how_they_were_made(
    tiny_model, kind
):
    """Prompts of several lengths, two and one at a time."""
    prompts = [Prompt(text="What? " * words, images=[IMAGE]) for words in (3, 1, 2)]
    with load_predictor(tiny_model(kind), device="cpu") as predictor:
        whole = predictor.generate_many(prompts, EIGHT)
        bit_by_bit = predictor.generate_many(prompts, EIGHT, batch_bytes=1)

    assert [answer.text for answer in whole] == [answer.text for answer in bit_by_bit]
    assert [3, 3, 3] == [answer.batched.size for answer in whole]
    assert [1, 1, 1] == [answer.batched.size for answer in bit_by_bit]
    assert "" == whole[0].batched.smaller_because
    assert "by estimate" in bit_by_bit[0].batched.smaller_because


def test_a_budget_is_a_number_of_bytes(tiny_model):
    """Of one or more."""
    with (
        load_predictor(tiny_model("llava"), device="cpu") as predictor,
        pytest.raises(ContractError, match=r"^batch_bytes: "),
    ):
        predictor.generate_many([Prompt(text="What?")], EIGHT, batch_bytes=0)
