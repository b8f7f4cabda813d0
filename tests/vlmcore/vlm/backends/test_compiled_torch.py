"""Steps of one token that are compiled, on a CPU."""

from contextlib import ExitStack

import attrs
import numpy as np
import pytest
import torch
import transformers

from vlmcore.errors import ContractError, UnsupportedModelError
from vlmcore.vlm.backends import _compiled, _twin
from vlmcore.vlm.backends._compiled import CompiledSteps
from vlmcore.vlm.backends._opening import estimate_bytes, open_model
from vlmcore.vlm.backends._placing import check_requirements
from vlmcore.vlm.generation import CancelToken, GenerationOptions, StopReason
from vlmcore.vlm.loading import load_predictor
from vlmcore.vlm.outputs import JsonOutput
from vlmcore.vlm.placement import Decoding, Dtype, Placement, WeightLoading
from vlmcore.vlm.prompt import Prompt
from vlmcore.vlm.sources import resolve_model

COMPILED = Placement(device="cpu", decoding=Decoding.COMPILED)
ROUNDED = Placement(device="cpu", decoding=Decoding.COMPILED_FLOAT16)
SHORT = GenerationOptions(max_new_tokens=12, stop_on_repetition=False)
IMAGE = np.random.default_rng(0).integers(0, 256, (40, 60, 3), dtype=np.uint8)
PROMPTS = [
    Prompt(text="What is this?", images=[IMAGE], system="Answer in one word."),
    Prompt(text="No image at all: what now?"),
]


STANCES = {  # to compile takes long: one kind is, and the embedded model
    "idefics3": "force_eager",
    "llava": "force_eager",
    "qwen3_vl": "default",
    "smolvlm": "force_eager",
}


@pytest.fixture(scope="module", params=STANCES)
def loaded(request, tiny_model):
    """The kind of a tiny model, the model as it is, and with the steps that are compiled."""
    asked = {"device": "cpu", "reuse": False}
    folder = tiny_model(request.param)
    with ExitStack() as stack:
        with torch.compiler.set_stance(STANCES[request.param]):
            plain = stack.enter_context(load_predictor(folder, **asked))
            compiled = stack.enter_context(load_predictor(folder, **asked, decoding="compiled"))
        yield request.param, plain, compiled


@pytest.fixture
def uncompiled():
    """Leave the layers uncompiled: what is tried is which ones there are."""
    with torch.compiler.set_stance("force_eager"):
        yield


@pytest.fixture
def both(loaded):
    """The two, to be asked."""
    kind, *predictors = loaded
    with torch.compiler.set_stance(STANCES[kind]):
        yield predictors


@pytest.fixture(scope="module")
def embedded():
    """The embedded model as it is, and with compiled steps."""
    asked = {"device": "cpu", "dtype": "float32"}
    with (
        load_predictor("embedded", **asked) as plain,
        load_predictor("embedded", **asked, decoding="compiled") as compiled,
    ):
        yield plain, compiled


@pytest.mark.parametrize("prompt", PROMPTS)
def test_tiny_models_write_the_same_tokens(both, prompt):
    """With a picture and without; random weights fill float32, so nothing is copied."""
    plain, compiled = both

    assert compiled.info.decoding.startswith("compiled (the same numbers, ")
    assert compiled.info.decoding.endswith(" layers read in float32)")
    assert plain.generate(prompt, SHORT).text == compiled.generate(prompt, SHORT).text


def test_an_answer_that_outgrows_its_cache_goes_on_in_a_longer_one(both, monkeypatch):
    """And once more, to be twice as long again."""
    monkeypatch.setattr(_compiled, "_SHORTEST", 16)
    long = attrs.evolve(SHORT, max_new_tokens=60)

    expected, answer = (each.generate(PROMPTS[1], long) for each in both)

    assert expected.text == answer.text
    assert expected.new_tokens == answer.new_tokens
    assert answer.prompt_tokens + answer.new_tokens > 64


def test_several_prompts_at_once_are_answered_as_without(both):
    """A batch has several tokens at a time."""
    plain, compiled = both
    expected = [answer.text for answer in plain.generate_many(PROMPTS, SHORT)]

    assert expected == [answer.text for answer in compiled.generate_many(PROMPTS, SHORT)]


@pytest.mark.parametrize("prompt", PROMPTS)
def test_the_embedded_model_writes_the_same_tokens_over_copies_of_half_the_bytes(embedded, prompt):
    """Its weights are stored in float16, so that the copies are the same numbers."""
    plain, compiled = embedded

    assert "compiled (the same numbers)" == compiled.info.decoding
    assert plain.generate(prompt, SHORT).text == compiled.generate(prompt, SHORT).text


@pytest.mark.parametrize(
    "change",
    [
        {"stop": ("e",)},
        {"repetition_penalty": 1.3},
        {"prompt_lookup": True},
        {"output": JsonOutput(schema={"type": "array", "items": {"enum": ["red", "blue"]}})},
    ],
)
def test_what_follows_an_answer_token_by_token_sees_each_token(embedded, change):
    """Stops, penalties and grammars do what they do without."""
    options = attrs.evolve(SHORT, **change)
    expected, answer = (each.generate_many([PROMPTS[0]], options)[0] for each in embedded)

    assert (expected.text, expected.stop_reason) == (answer.text, answer.stop_reason)
    assert expected.new_tokens == answer.new_tokens


def test_with_prompt_lookup_too_steps_are_compiled_and_nothing_is_looked_up(embedded):
    """The report of the answer says why."""
    answer = embedded[1].generate(PROMPTS[1], attrs.evolve(SHORT, prompt_lookup=True))

    assert answer.looked_up.plain_because == "steps of one token read copies of the weights"


def test_a_seed_gives_the_same_sample_twice(embedded):
    """And another seed gives another."""
    drawn = attrs.evolve(SHORT, temperature=3.0, seed=1)
    first, again, other = (
        embedded[1].generate(PROMPTS[1], attrs.evolve(drawn, seed=seed)).text for seed in (1, 1, 2)
    )

    assert first == again
    assert first != other


def test_a_cancelled_answer_ends_within_a_token(embedded):
    """What was written until then stays."""
    cancel, pieces = CancelToken(), []
    with embedded[1].stream(PROMPTS[0], SHORT, cancel=cancel) as stream:
        pieces.append(next(stream))
        cancel.cancel()
        pieces.extend(stream)

    assert StopReason.CANCELLED is stream.result.stop_reason
    assert "".join(pieces) == stream.result.text


def test_another_question_about_the_same_picture_takes_over_what_was_kept(embedded):
    """Keys and values that are kept are those of the prompt, as without."""
    again = attrs.evolve(PROMPTS[0], text="What is this, and where?")
    for predictor in embedded:
        predictor.generate(PROMPTS[0], SHORT)
    expected, answer = (each.generate(again, SHORT) for each in embedded)

    assert answer.reused.prefix_tokens == expected.reused.prefix_tokens > 0
    assert expected.text == answer.text


@pytest.mark.usefixtures("uncompiled")
def test_weights_that_float16_cannot_hold_exactly_are_rounded_only_if_asked_for(tiny_model):
    """A product is as close as float16 is."""
    source = resolve_model(tiny_model("llava"))
    exact, rounded = open_model(source, COMPILED), open_model(source, ROUNDED)

    assert 0 == exact.copies.nbytes
    assert "compiled (rounded to float16)" == rounded.copies.report
    assert 15 * 2 <= rounded.copies.nbytes < rounded.nbytes / 2


@pytest.mark.usefixtures("uncompiled")
def test_weights_in_bfloat16_are_copied_as_the_same_numbers():
    """Checkpoints are mostly in this format, and float16 would lose some of their numbers."""
    model = tiny_language_model()
    with torch.no_grad():
        for each in model.parameters():
            each.copy_(each.bfloat16())
    steps = CompiledSteps(model, name="model", rounds=False)

    assert "compiled (the same numbers)" == steps.report
    linear = [each for each in model.modules() if type(each) is torch.nn.Linear]
    assert 2 * sum(each.weight.numel() for each in linear) == steps.nbytes


@pytest.mark.usefixtures("uncompiled")
def test_weights_that_float16_cannot_hold_at_all_are_read_in_float32():
    """And the report counts them."""
    model = tiny_language_model()
    with torch.no_grad():
        model.lm_head.weight[0, 0] = 1e6 / 3
    steps = CompiledSteps(model, name="model", rounds=True)

    assert "compiled (rounded to float16, 1 layers read in float32)" == steps.report


@pytest.mark.usefixtures("uncompiled")
def test_the_memory_of_the_copies_counts_and_is_given_back(tiny_model):
    """The residency plans with it before the weights are read."""
    source, plain = resolve_model(tiny_model("llava")), Placement(device="cpu")
    opened, bare = open_model(source, ROUNDED), open_model(source, plain)
    copies = opened.copies

    assert bare.nbytes + copies.nbytes == opened.nbytes
    assert estimate_bytes(source, ROUNDED) >= opened.nbytes
    opened.free()
    assert (0, 0) == (opened.nbytes, copies.nbytes)


def tiny_language_model(**changes):
    settings = {
        "vocab_size": 64, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "pad_token_id": 0,
        "tie_word_embeddings": False,
    }  # fmt: skip
    kind = changes.pop("kind", "Llama")
    config = getattr(transformers, f"{kind}Config")(**settings, **changes)
    return getattr(transformers, f"{kind}ForCausalLM")(config).eval()


@pytest.mark.parametrize(
    ("kind", "changes", "why"),
    [
        ("Gemma2", {}, "had: not every layer of it attends to every token before; use another"),
        (
            "Gemma2",
            {"layer_types": ["full_attention"] * 2},
            "its attention is told softcap; use",
        ),
    ],
)
def test_models_that_attend_otherwise_are_refused(kind, changes, why):
    """An answer that is nearly right would be worse than a slow one."""
    with pytest.raises(UnsupportedModelError, match=why):
        CompiledSteps(tiny_language_model(kind=kind, **changes), name="m", rounds=False)


def test_a_model_of_which_the_steps_would_come_out_otherwise_is_refused(monkeypatch):
    """Each model is tried when it is loaded, since nobody knows what attention there will be."""

    def forgetful(*tensors, **given):
        return _twin._attend(*tensors, **{**given, "scaling": 5.0})

    known = transformers.AttentionInterface._global_mapping
    monkeypatch.setitem(known, _twin._ATTENTION, forgetful)

    with pytest.raises(UnsupportedModelError, match=r"tell of other tokens \(logits .* apart\)"):
        CompiledSteps(tiny_language_model(), name="m", rounds=False)


def test_without_a_compiler_the_error_says_so(monkeypatch, tmp_path):
    """It comes when the model is loaded, not with the first answer."""
    inductor = pytest.importorskip("torch._inductor.config")
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(inductor.cpp, "cxx", ("there-is-no-such-compiler",))

    with pytest.raises(UnsupportedModelError, match=r"it takes a C\+\+ compiler; use ano"):
        CompiledSteps(tiny_language_model(), name="m", rounds=False)


def test_transformers_before_5_is_refused(monkeypatch):
    """Its steps are asked for otherwise."""
    monkeypatch.setattr(_compiled, "IS_KNOWN_RELEASE", False)

    with pytest.raises(UnsupportedModelError, match="transformers before 5"):
        CompiledSteps(tiny_language_model(), name="m", rounds=False)


@pytest.mark.parametrize("placement", [COMPILED, ROUNDED])
def test_other_devices_are_refused_before_anything_is_read(placement):
    """There, a static cache has its steps compiled by transformers."""
    with pytest.raises(UnsupportedModelError, match=r"is for the CPU.*GenerationCache.STATIC"):
        check_requirements("model", placement, torch.device("cuda"))


def test_weights_in_another_format_than_float32_are_refused(tiny_model):
    """Nothing would be read sooner."""
    placement = attrs.evolve(COMPILED, dtype=Dtype.BFLOAT16)
    with pytest.raises(UnsupportedModelError, match=r"^.*'compiled' copies weights in float32"):
        open_model(resolve_model(tiny_model("llava")), placement)


def test_weights_that_come_and_go_are_refused():
    """Copies of them would not go."""
    with pytest.raises(ContractError, match=r"^decoding: got 'compiled' together with"):
        Placement(weights=WeightLoading.LAZY, weights_budget_bytes=1, decoding=Decoding.COMPILED)
