"""Writing several tokens at once, where the answer repeats what was said before."""

import attrs
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from vlmcore.errors import ContractError
from vlmcore.vlm.backends._conversation import prepare
from vlmcore.vlm.backends._lookup import Lookup, Past
from vlmcore.vlm.backends._opening import open_model
from vlmcore.vlm.generation import CancelToken, GenerationCache, GenerationOptions, StopReason
from vlmcore.vlm.loading import load_predictor
from vlmcore.vlm.outputs import JsonOutput
from vlmcore.vlm.placement import Dtype, Placement
from vlmcore.vlm.prompt import Prompt
from vlmcore.vlm.sources import resolve_model

KINDS = ("idefics3", "llava", "qwen3_vl", "smolvlm")
IMAGE = np.random.default_rng(0).integers(0, 256, (40, 60, 3), dtype=np.uint8)
WORDS = "A red circle, a red circle, a blue square, a red circle."
PROMPTS = [Prompt(text=WORDS, images=[IMAGE]), Prompt(text=WORDS)]
PLAIN = GenerationOptions(max_new_tokens=32, stop_on_repetition=False)


def looking_up(options: GenerationOptions) -> GenerationOptions:
    return attrs.evolve(options, prompt_lookup=True)


@pytest.fixture(scope="module")
def embedded():
    with load_predictor("embedded", device="cpu", dtype="float32") as predictor:
        yield predictor


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("penalty", [1.0, 1.3])
def test_tiny_models_write_the_same_tokens(tiny_model, kind, penalty):
    """With a picture and without, and with what makes repeated tokens less likely."""
    options = attrs.evolve(PLAIN, repetition_penalty=penalty)
    with load_predictor(tiny_model(kind), device="cpu") as predictor:
        for prompt in PROMPTS:
            plain = predictor.generate(prompt, options)
            guessed = predictor.generate(prompt, looking_up(options))

            assert plain.text == guessed.text
            assert plain.new_tokens == guessed.new_tokens
            assert "" == guessed.looked_up.plain_because
            assert plain.looked_up is None


@pytest.mark.parametrize("kind", KINDS)
def test_tiny_models_write_the_same_tokens_where_guesses_hold_and_where_they_fail(
    tiny_model, kind, monkeypatch
):
    """Told the answer, with every fifth token wrong: guesses of all lengths are taken in part."""
    opened = open_model(resolve_model(tiny_model(kind)), Placement(device="cpu"))
    ids = torch.tensor([opened.processor.tokenizer("a red circle, a red circle")["input_ids"]])
    asked = {"input_ids": ids, "max_new_tokens": 40, "do_sample": False, "eos_token_id": None}
    with torch.inference_mode():
        plain = opened.generate(**asked)
    told = [token + 1 if place % 5 == 0 else token for place, token in enumerate(plain[0].tolist())]
    monkeypatch.setattr(Past, "guess", lambda past, most: told[len(past._tokens) :][:most])
    lookup = Lookup()

    with torch.inference_mode():
        written = opened.generate(**asked, custom_generate=lookup)

    assert plain.tolist() == written.tolist()
    assert lookup.report.accepted_tokens > 10
    assert lookup.report.guessed_tokens > lookup.report.accepted_tokens
    assert 40 == 1 + lookup.report.passes + lookup.report.accepted_tokens


@pytest.mark.parametrize("images", [[IMAGE], []])
def test_the_embedded_model_writes_the_same_tokens_in_fewer_passes(images):
    """Kept from ending its answers, it repeats itself and what it was told."""
    placement = Placement(device="cpu", dtype=Dtype.FLOAT32)
    opened = open_model(resolve_model("embedded"), placement)
    for text in (WORDS, "Describe this image.", "What colour is the shape? Red, blue or green?"):
        inputs = prepare(
            [Prompt(text=text, images=images)], opened.processor, model="embedded", thinking=None,
            supports_video=False, device=opened.device, dtype=opened.dtype,
        )  # fmt: skip
        asked = {**inputs.tensors, "max_new_tokens": 48, "do_sample": False, "eos_token_id": None}
        lookup = Lookup()
        with torch.inference_mode():
            plain = opened.generate(**asked)
            assert plain.tolist() == opened.generate(**asked, custom_generate=lookup).tolist()
        assert lookup.report.accepted_tokens > 0
        assert 48 == 1 + lookup.report.passes + lookup.report.accepted_tokens


@pytest.mark.parametrize(
    "change",
    [
        {"stop": ("e",)},
        {"stop_on_repetition": True, "max_new_tokens": 64},
        {"output": JsonOutput(schema={"type": "array", "items": {"enum": ["red", "blue"]}})},
    ],
)
def test_pieces_stops_and_json_are_those_of_a_plain_answer(embedded, change):
    """What follows an answer token by token sees each token once, in order."""
    options = attrs.evolve(PLAIN, **change)
    plain = embedded.generate_many([PROMPTS[0]], options)[0]
    guessed = embedded.generate_many([PROMPTS[0]], looking_up(options))[0]

    assert (plain.text, plain.stop_reason) == (guessed.text, guessed.stop_reason)
    assert plain.new_tokens == guessed.new_tokens
    assert "" == guessed.looked_up.plain_because


def test_a_cancelled_answer_ends_within_a_token(tiny_model):
    """Also where more tokens of a guess would hold."""
    with load_predictor(tiny_model("qwen3_vl"), device="cpu") as predictor:
        cancel, pieces = CancelToken(), []
        with predictor.stream(PROMPTS[0], looking_up(PLAIN), cancel=cancel) as stream:
            pieces.append(next(stream))
            cancel.cancel()
            pieces.extend(stream)

    assert StopReason.CANCELLED is stream.result.stop_reason
    assert "".join(pieces) == stream.result.text


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"temperature": 1.0, "seed": 1}, "sampled"),
        ({"cache": GenerationCache.STATIC}, "cannot be shortened"),
    ],
)
def test_where_nothing_can_be_looked_up_the_answer_is_the_plain_one_and_says_why(
    tiny_model, change, why
):
    """It is no error: the answer is the same, and takes as long as without."""
    options = attrs.evolve(PLAIN, max_new_tokens=8, **change)
    with load_predictor(tiny_model("llava"), device="cpu") as predictor:
        plain = predictor.generate(PROMPTS[1], options)
        guessed = predictor.generate(PROMPTS[1], looking_up(options))

    assert plain.text == guessed.text
    assert why in guessed.looked_up.plain_because


@pytest.mark.parametrize(
    ("kind", "placed", "why"),
    [
        ("gemma3", {}, "cannot be shortened"),
        ("llava", {"dtype": "bfloat16"}, "rounding"),
        ("llava", {"decoding": "float16"}, "copies"),
    ],
)
def test_models_that_cannot_look_up_write_plainly_and_say_why(tiny_model, kind, placed, why):
    """A cache that slides, short formats, and copies for steps of one token."""
    options = attrs.evolve(PLAIN, max_new_tokens=8)
    with load_predictor(tiny_model(kind), device="cpu", **placed) as predictor:
        plain = predictor.generate(PROMPTS[0], options)
        guessed = predictor.generate(PROMPTS[0], looking_up(options))

    assert plain.text == guessed.text
    assert why in guessed.looked_up.plain_because


def test_a_batch_is_written_plainly_and_says_why(tiny_model):
    """Its rows would take guesses of different lengths."""
    options = looking_up(attrs.evolve(PLAIN, max_new_tokens=4))
    with load_predictor(tiny_model("llava"), device="cpu") as predictor:
        answers = predictor.generate_many([PROMPTS[1]] * 2, options)

    assert 2 * ["several prompts are answered at once"] == [
        answer.looked_up.plain_because for answer in answers
    ]


def test_another_word_for_whether_to_look_up_is_refused():
    """Yes and no, and nothing that passes for them."""
    with pytest.raises(ContractError, match=r"^prompt_lookup: got 'yes', expected True or False$"):
        GenerationOptions(prompt_lookup="yes")


def test_the_longest_ending_counts_and_the_last_time_it_was_seen():
    """More of the same words say more; what was said last is likelier."""
    assert [9] == Past([1, 2, 3, 9, 7, 2, 3, 8, 1, 2, 3]).guess(1)
    assert [8] == Past([2, 3, 9, 7, 2, 3, 8, 6, 2, 3]).guess(1)


def test_a_lone_token_is_not_looked_up():
    """One word is followed by anything."""
    assert [] == Past([1, 2, 3, 4, 1]).guess(4)


@given(st.lists(st.integers(0, 3), max_size=40), st.integers(0, 9))
def test_a_guess_is_what_followed_before_and_has_no_picture_in_it(tokens, most):
    """Tokens of pictures stand for what cannot be written, and are alike where pictures differ."""
    guess = Past(tokens, never={0}).guess(most)

    assert len(guess) <= most
    assert 0 not in guess
    before = [tokens[at - 2 : at + len(guess)] for at in range(2, len(tokens))]
    assert not guess or [*tokens[-2:], *guess] in before
    assert not guess or 0 not in tokens[-2:]
