"""Steps of one token over copies of the language weights in float16."""

import numpy as np
import pytest
import torch

from tiny_models import CHAT_KINDS
from vlmcore.errors import ContractError, UnsupportedModelError
from vlmcore.vlm.backends._opening import estimate_bytes, open_model
from vlmcore.vlm.backends._placing import check_requirements
from vlmcore.vlm.generation import GenerationOptions
from vlmcore.vlm.loading import load_predictor
from vlmcore.vlm.placement import Decoding, Dtype, Placement, WeightLoading
from vlmcore.vlm.prompt import Prompt
from vlmcore.vlm.residency import ProcessResidency
from vlmcore.vlm.sources import resolve_model

COPIES = Placement(device="cpu", decoding=Decoding.FLOAT16)
TWELVE = GenerationOptions(max_new_tokens=12, stop_on_repetition=False)


def picture(height: int, width: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


PROMPTS = [
    Prompt(text="What is this?", images=[picture(40, 60)], system="Answer in one word."),
    Prompt(text="No image at all: what now?"),
]


@pytest.mark.parametrize("prompt", PROMPTS)
def test_the_embedded_model_writes_the_same_tokens(prompt):
    """Its weights are stored in float16: the copies hold the same numbers, and say so."""
    with (
        load_predictor("embedded", device="cpu", dtype="float32") as plain,
        load_predictor("embedded", device="cpu", dtype="float32", decoding="float16") as copies,
    ):
        assert "float16 (the same numbers)" == copies.info.decoding
        assert "as_loaded" == plain.info.decoding
        assert plain.generate(prompt, TWELVE).text == copies.generate(prompt, TWELVE).text


@pytest.mark.parametrize("kind", CHAT_KINDS)
def test_a_batch_is_written_from_the_weights_as_they_were_loaded(tiny_model, kind):
    """Only a single token is multiplied with the copies: a batch has several at a time."""
    prompts = [PROMPTS[1], PROMPTS[1]]
    with (
        load_predictor(tiny_model(kind), device="cpu") as plain,
        load_predictor(tiny_model(kind), device="cpu", decoding="float16") as copies,
    ):
        assert "float16 (rounded)" == copies.info.decoding
        expected = [answer.text for answer in plain.generate_many(prompts, TWELVE)]
        assert expected == [answer.text for answer in copies.generate_many(prompts, TWELVE)]


@pytest.mark.parametrize("kind", CHAT_KINDS)
def test_a_step_is_as_close_as_float16_is(tiny_model, kind):
    """Every layer of the language model and its head is copied, and nothing of the vision."""
    opened = open_model(resolve_model(tiny_model(kind)), COPIES)
    layers = opened.copies.layers
    for layer in layers:
        token = torch.randn(1, 1, layer.in_features, generator=torch.Generator().manual_seed(0))
        with torch.inference_mode():
            product, expected = layer(token), type(layer).forward(layer, token)
        assert expected.shape == product.shape
        assert torch.float32 is product.dtype
        assert 0 < float((product - expected).abs().max()) < 0.004 * float(expected.abs().max())
    names = {id(module): name for name, module in opened.model.named_modules()}
    assert 15 == len(layers)
    assert not [names[id(layer)] for layer in layers if "vision" in names[id(layer)]]


def test_a_product_that_float16_cannot_hold_is_made_again_from_the_weights(tiny_model):
    """Infinity is no number to go on with."""
    opened = open_model(resolve_model(tiny_model("llava")), COPIES)
    layer = opened.copies.layers[0]
    for large in (1e5, 3e4):  # what is multiplied is out of range, or what comes out
        token = torch.full((1, 1, layer.in_features), large)
        with torch.inference_mode():
            layer.weight.fill_(1.0)
            opened.copies.renew()
            assert [large * layer.in_features] == layer(token).unique().tolist()


def test_weights_that_float16_cannot_hold_are_left_in_float32(tiny_model):
    """And the report says how many."""
    opened = open_model(resolve_model(tiny_model("llava")), COPIES)
    opened.copies.layers[0].weight[0, 0] = 1e6

    opened.copies.renew()

    assert "float16 (rounded, 1 layers left in float32)" == opened.copies.report
    assert 14 == len(opened.copies.layers)


def test_the_memory_of_the_copies_counts_and_is_given_back(tiny_model):
    """The residency plans with it before the weights are read, and forgets nothing after."""
    source, plain = resolve_model(tiny_model("llava")), Placement(device="cpu")
    opened, bare = open_model(source, COPIES), open_model(source, plain)
    copied = sum(layer.weight.numel() * 2 for layer in opened.copies.layers)

    assert bare.nbytes + copied == opened.nbytes
    assert estimate_bytes(source, COPIES) >= opened.nbytes
    assert estimate_bytes(source, COPIES) == pytest.approx(estimate_bytes(source, plain) * 1.5)
    copies = opened.copies
    opened.free()
    assert (0, 0) == (opened.nbytes, copies.nbytes)


def test_a_model_that_was_sent_away_comes_back_with_its_copies(tiny_model):
    """A residency of one seat has the two take turns."""
    folders = [tiny_model("llava"), tiny_model("idefics3")]
    needed = max(estimate_bytes(resolve_model(folder), COPIES) for folder in folders)
    seat = ProcessResidency(budget_bytes=needed)
    asked = {"device": "cpu", "decoding": "float16", "residency": seat}
    with load_predictor(folders[0], **asked) as first, load_predictor(folders[1], **asked) as other:
        before = first.generate(PROMPTS[0], TWELVE).text
        other.generate(PROMPTS[0], TWELVE)

        assert before == first.generate(PROMPTS[0], TWELVE).text


def test_copies_of_weights_that_are_no_larger_are_refused(tiny_model):
    """They would cost memory, and nothing would be read sooner."""
    placement = Placement(device="cpu", dtype=Dtype.BFLOAT16, decoding=Decoding.FLOAT16)

    with pytest.raises(UnsupportedModelError, match=r"are in bfloat16; use dtype='float32'$"):
        open_model(resolve_model(tiny_model("llava")), placement)


def test_copies_are_refused_on_other_devices_before_anything_is_read():
    """There, weights in 16 bits are the way."""
    with pytest.raises(UnsupportedModelError, match="is for the CPU, and it would run on cuda"):
        check_requirements("model", COPIES, torch.device("cuda"))


@pytest.mark.parametrize("decoding", ["fp16", "int8", None, 16])
def test_another_word_for_decoding_is_refused(decoding):
    """The error names those there are."""
    with pytest.raises(ContractError, match=r"expected one of 'as_loaded', 'float16', 'comp"):
        load_predictor("embedded", decoding=decoding)


def test_copies_of_weights_that_come_and_go_are_refused():
    """They would not go."""
    with pytest.raises(ContractError, match=r"^decoding: got 'float16' together with"):
        Placement(weights=WeightLoading.LAZY, weights_budget_bytes=1, decoding=Decoding.FLOAT16)
