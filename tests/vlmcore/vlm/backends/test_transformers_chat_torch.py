"""The local predictor, on real files of several architectures."""

import gc
import json
import shutil
import threading
import time
from pathlib import Path

import attrs
import numpy as np
import pytest
import torch
import transformers
from PIL import Image
from safetensors.torch import load_file, save_file

from tiny_models import CHAT_KINDS
from vlmcore.errors import ContractError, GenerationError, ModelError
from vlmcore.testing import check_predictor
from vlmcore.vlm.generation import (
    CancelToken,
    GenerationCache,
    GenerationOptions,
    StopReason,
)
from vlmcore.vlm.loading import load_predictor
from vlmcore.vlm.prompt import Prompt

SHORT = GenerationOptions(max_new_tokens=12, stop_on_repetition=False)
# Hot enough that even a trained model finds no end.
# With this seed it ends by itself after some 850 tokens, which take seconds.
ENDLESS = GenerationOptions(max_new_tokens=900, stop_on_repetition=False, temperature=9.0, seed=5)


def picture(height: int, width: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


@pytest.fixture(scope="module", params=CHAT_KINDS)
def tiny(request, tiny_model):
    with load_predictor(tiny_model(request.param)) as predictor:
        yield predictor


@pytest.fixture(scope="module")
def embedded():
    with load_predictor("embedded") as predictor:
        yield predictor


PROMPTS = [
    Prompt(text="What is this?", images=[picture(40, 60)], system="Answer in one word."),
    Prompt(
        text="Describe the image precisely, and then say it again.", images=[picture(90, 30, 1)]
    ),
    Prompt(text="Hi", images=[picture(20, 20, 2), picture(30, 50, 3)]),
    Prompt(text="No image at all: what now?"),
]


def test_the_embedded_model_keeps_the_whole_contract():
    """Streams, batches, cancelling, threads and closing, as `check_predictor` lists them."""
    prompt = Prompt(text="Describe this image in one sentence.", images=[picture(64, 64)])

    assert check_predictor(lambda: load_predictor("embedded"), prompt)


def test_a_batch_answers_as_one_by_one(tiny):
    """Shorter prompts are padded on the left, and their answers do not change."""
    alone = [tiny.generate(prompt, SHORT) for prompt in PROMPTS]
    together = tiny.generate_many(PROMPTS, SHORT)

    fields = ("text", "reasoning", "stop_reason", "prompt_tokens", "new_tokens")
    for one, other in zip(alone, together, strict=True):
        assert [getattr(one, f) for f in fields] == [getattr(other, f) for f in fields]


def test_a_stream_joins_to_the_blocking_answer(tiny):
    """The same characters, piece by piece."""
    for prompt in PROMPTS:
        with tiny.stream(prompt, SHORT) as stream:
            pieces = list(stream)

        assert tiny.generate(prompt, SHORT).text == "".join(pieces) == stream.result.text


def plain_answer(folder: Path, prompt: Prompt, max_new_tokens: int) -> str:
    """Answer as the documentation of transformers shows it, without vlmcore."""
    processor = transformers.AutoProcessor.from_pretrained(folder)
    model = transformers.AutoModelForImageTextToText.from_pretrained(folder, dtype=torch.float32)
    images = [{"type": "image", "image": Image.fromarray(image)} for image in prompt.images]
    messages = [
        {"role": "system", "content": [{"type": "text", "text": prompt.system}]},
        {"role": "user", "content": [*images, {"type": "text", "text": prompt.text}]},
    ]
    inputs = processor.apply_chat_template(
        messages, add_generation_prompt=True, tokenize=True, return_dict=True, return_tensors="pt"
    )
    written = model.generate(**inputs, max_new_tokens=max_new_tokens, do_sample=False)
    new = written[0, inputs["input_ids"].shape[1] :]
    return processor.decode(new, skip_special_tokens=True).strip().rstrip("\ufffd")


@pytest.mark.parametrize("kind", ["idefics3", "llava", "gemma3"])
def test_the_answer_is_that_of_plain_transformers(kind, tiny_model):
    """Everything around the model adds nothing to what it answers greedily."""
    folder, prompt = tiny_model(kind), PROMPTS[0]

    with load_predictor(folder) as predictor:
        assert plain_answer(folder, prompt, 12) == predictor.generate(prompt, SHORT).text


def test_the_words_of_a_special_token_in_a_question_are_words(tiny):
    """`<image>` in a caption template is not an image that is missing."""
    answer = tiny.generate(
        Prompt(text="Is <image> or <|im_end|> or <|image_pad|> here?", images=[picture(30, 30)]),
        SHORT,
    )

    assert 12 == answer.new_tokens


def test_frames_of_a_video_reach_a_model_that_knows_images_only(embedded):
    """They are given as images, and the model is told when each was seen."""
    frames = np.stack([picture(32, 32, seed) for seed in range(3)])

    without = embedded.generate(Prompt(text="What happens?"), SHORT)
    answer = embedded.generate(Prompt(text="What happens?", video=frames), SHORT)

    assert not embedded.info.supports_video
    assert answer.prompt_tokens > without.prompt_tokens


def writing_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "vlmcore-stream"]


def test_leaving_the_loop_stops_the_model_and_leaves_no_thread(embedded):
    """A notebook cell that breaks out of a stream does not keep a core busy."""
    for _ in embedded.stream(Prompt(text="Hi", images=[picture(64, 64)]), ENDLESS):
        break
    for thread in writing_threads():
        thread.join(timeout=30)

    assert [] == writing_threads()


def test_a_stream_can_be_closed_while_another_thread_waits_for_its_next_piece(embedded):
    """The window with the stop button is not the one that reads."""
    stream = embedded.stream(Prompt(text="Hi", images=[picture(64, 64)]), ENDLESS)
    next(stream)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.extend(stream))
    reader.start()

    stream.close()
    reader.join(timeout=30)

    assert not reader.is_alive()
    assert [] == writing_threads()
    assert len(read) < ENDLESS.max_new_tokens


def test_a_stream_that_the_garbage_collector_drops_keeps_nobody_waiting(tiny_model):
    """Collected while another model is closed, it neither joins a thread nor takes a lock."""
    running, other = load_predictor("embedded"), load_predictor(tiny_model("llava"))
    holder: list = []
    holder += [holder, running.stream(Prompt(text="Hi", images=[picture(64, 64)]), ENDLESS)]
    next(holder[1])
    del holder

    closing = threading.Thread(target=other.close)
    closing.start()
    closing.join(timeout=60)
    assert not closing.is_alive()
    gc.collect()
    running.close()


def test_cancelling_stops_an_answer_that_is_being_written(embedded):
    """Within one token, whoever cancels."""
    token, answers = CancelToken(), []
    prompt = Prompt(text="Hi", images=[picture(64, 64)])
    writing = threading.Thread(
        target=lambda: answers.append(embedded.generate(prompt, ENDLESS, cancel=token))
    )
    writing.start()
    time.sleep(0.5)
    token.cancel()
    writing.join(timeout=60)

    assert StopReason.CANCELLED is answers[0].stop_reason
    assert answers[0].new_tokens < ENDLESS.max_new_tokens


def test_a_stream_of_a_predictor_that_was_closed_before_its_first_piece_is_cancelled():
    """Closing is no error for those who were on their way."""
    predictor = load_predictor("embedded")
    stream = predictor.stream(Prompt(text="Hi"), SHORT)
    predictor.close()

    assert [] == list(stream)
    assert StopReason.CANCELLED is stream.result.stop_reason


@pytest.mark.parametrize(
    ("field", "call"),
    [
        ("prompt", lambda p: p.generate("Hi")),
        ("prompt", lambda p: p.stream("Hi")),
        ("options", lambda p: p.generate(Prompt(text="Hi"), {"max_new_tokens": 3})),
        ("cancel", lambda p: p.generate(Prompt(text="Hi"), cancel=threading.Event())),
        ("prompts", lambda p: p.generate_many("Hi")),
        ("prompts", lambda p: p.generate_many(None)),
        ("batch_size", lambda p: p.generate_many([], batch_size=0)),
    ],
)
def test_an_argument_of_another_kind_is_refused_by_its_name(embedded, field, call):
    """The error comes from the call, not from the depths of a library."""
    with pytest.raises(ContractError) as refused:
        call(embedded)

    assert field == refused.value.field


def test_whole_numbers_will_do_for_options_of_sampling(embedded):
    """Two is a temperature."""
    hot = GenerationOptions(max_new_tokens=3, temperature=2, repetition_penalty=2, top_p=1)

    assert 1 <= embedded.generate(Prompt(text="Hi", images=[picture(9, 9)]), hot).new_tokens <= 3


def test_settings_of_the_checkpoint_do_not_decide_how_it_decodes(tiny_model, tmp_path):
    """Neither three answers at once nor an end after a second, unless they are asked for."""
    folder = shutil.copytree(tiny_model("llava"), tmp_path / "willful")
    path = folder / "generation_config.json"
    willful = {"num_return_sequences": 3, "max_time": 1e-9, "do_sample": True, "temperature": 5.0}
    path.write_text(json.dumps(json.loads(path.read_text()) | willful))

    with load_predictor(folder) as predictor, load_predictor(tiny_model("llava")) as plain:
        assert plain.generate(PROMPTS[0], SHORT).text == predictor.generate(PROMPTS[0], SHORT).text


def test_a_seed_repeats_while_another_model_samples(embedded, tiny_model):
    """The generators of random numbers are the process's; they are not shared in mid-draw."""
    hot = GenerationOptions(max_new_tokens=12, temperature=3.0, seed=11, stop_on_repetition=False)
    prompt = Prompt(text="Describe this.", images=[picture(64, 64)])
    alone = embedded.generate(prompt, hot).text
    with load_predictor(tiny_model("llava")) as other:
        unseeded = attrs.evolve(hot, seed=None, max_new_tokens=200)
        with other.stream(PROMPTS[0], unseeded) as stream:
            next(stream, "")  # now and then its first token ends it
            beside = [embedded.generate(prompt, hot).text for _ in range(2)]

    assert [alone, alone] == beside


def test_closing_a_predictor_stops_what_it_is_writing():
    """`close` does not wait for a long answer."""
    predictor = load_predictor("embedded")
    stream = predictor.stream(Prompt(text="Hi", images=[picture(64, 64)]), ENDLESS)
    next(stream)

    predictor.close()
    list(stream)

    assert stream.result.stop_reason in (StopReason.CANCELLED, StopReason.END)
    with pytest.raises(ModelError, match="closed"):
        predictor.generate(Prompt(text="Hi"))


def test_a_call_that_waits_for_its_turn_can_be_cancelled(embedded):
    """Cancelling does not wait until the answers before it are written."""
    endless = attrs.evolve(ENDLESS, seed=0)
    token, answers = CancelToken(), []
    with embedded.stream(Prompt(text="Hi", images=[picture(64, 64)]), endless) as running:
        next(running)
        waiting = threading.Thread(
            target=lambda: answers.append(embedded.generate(Prompt(text="Hi"), cancel=token))
        )
        waiting.start()
        time.sleep(0.1)
        token.cancel()
        waiting.join(timeout=60)

    assert [StopReason.CANCELLED] == [answer.stop_reason for answer in answers]
    assert 0 == answers[0].new_tokens


def test_a_seed_repeats_a_sampled_answer_alone_and_in_a_batch(embedded):
    """Sampling with a seed is repeatable, and a batch does not change it."""
    hot = GenerationOptions(max_new_tokens=12, temperature=3.0, seed=11)
    prompt = Prompt(text="Describe this.", images=[picture(64, 64)])

    first = embedded.generate(prompt, hot).text

    assert first == embedded.generate(prompt, hot).text
    assert [first, first] == [a.text for a in embedded.generate_many([prompt, prompt], hot)]
    assert first != embedded.generate(prompt, attrs.evolve(hot, seed=12)).text


def test_a_static_cache_gives_the_answer_of_the_dynamic_one(tiny):
    """The cache is a matter of speed."""
    static = GenerationOptions(
        max_new_tokens=12, stop_on_repetition=False, cache=GenerationCache.STATIC
    )

    assert tiny.generate(PROMPTS[0], SHORT).text == tiny.generate(PROMPTS[0], static).text


@pytest.fixture(scope="module")
def broken(tiny_model, tmp_path_factory):
    """A model whose last layer is all zeros: it writes token 0 for ever, as broken weights do."""
    folder = tmp_path_factory.mktemp("broken")
    shutil.copytree(tiny_model("llava"), folder, dirs_exist_ok=True)
    (folder / "generation_config.json").write_text('{"eos_token_id": 2, "pad_token_id": 0}')
    weights = load_file(folder / "model.safetensors")
    head = next(name for name in weights if "lm_head" in name)
    save_file({**weights, head: torch.zeros_like(weights[head])}, folder / "model.safetensors")
    with load_predictor(folder) as predictor:
        yield predictor


@pytest.mark.parametrize(("budget", "spent"), [(500, 64), (32, 32)])
def test_a_model_that_repeats_itself_is_stopped_and_says_so(broken, budget, spent):
    """A loop is not passed off as an answer, nor paid for until the budget is spent."""
    answer = broken.generate(PROMPTS[0], GenerationOptions(max_new_tokens=budget))

    assert (StopReason.REPETITION, spent) == (answer.stop_reason, answer.new_tokens)


def test_repetition_can_be_allowed(broken):
    """Who wants the loop gets it, and pays for it."""
    options = GenerationOptions(max_new_tokens=80, stop_on_repetition=False)

    answer = broken.generate(PROMPTS[0], options)

    assert (StopReason.LENGTH, 80) == (answer.stop_reason, answer.new_tokens)


def test_a_prompt_longer_than_the_context_is_refused_with_both_numbers(embedded):
    """Otherwise the model reads positions that it has no idea of."""
    with pytest.raises(GenerationError, match=r"has \d+ tokens, expected fewer than"):
        embedded.generate(Prompt(text="word " * 20_000))


def test_a_failure_inside_the_model_names_it_and_leaves_it_usable(embedded, monkeypatch):
    """One bad call does not take the predictor down, streamed or not."""
    prompt = Prompt(text="Hi", images=[picture(64, 64)])
    before = embedded.generate(prompt, SHORT)

    def fail(*_args, **_kwargs):
        message = "no kernel"
        raise RuntimeError(message)

    with monkeypatch.context() as patch:
        patch.setattr(transformers.GenerationMixin, "generate", fail)
        with pytest.raises(GenerationError, match=r"^embedded: .*RuntimeError: no kernel"):
            embedded.generate(prompt, SHORT)
        with pytest.raises(GenerationError, match="no kernel"):
            list(embedded.stream(prompt, SHORT))

    assert before.text == embedded.generate(prompt, SHORT).text


def test_a_question_of_nothing_but_images_of_one_pixel_is_answered(embedded):
    """Extreme sizes do not crash the processor."""
    for height, width in ((1, 1), (1, 300), (300, 1)):
        assert embedded.generate(Prompt(text="What?", images=[picture(height, width)]), SHORT)


def test_the_report_says_how_it_runs(embedded):
    """A person sees which device and number format were chosen, and why."""
    info = embedded.info

    assert ("embedded", "cpu", "managed") == (info.model, info.device, info.memory)
    assert info.dtype.startswith("float32 (")
    assert transformers.__version__ in info.backend
