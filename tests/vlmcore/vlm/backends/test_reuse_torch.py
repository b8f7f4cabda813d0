"""What is taken over from earlier answers, on real files of several architectures."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from tiny_models import CHAT_KINDS
from vlmcore.errors import ModelMemoryError
from vlmcore.limits import ReuseLimits
from vlmcore.vlm.backends import _conversation
from vlmcore.vlm.backends._kept import KeptBytes
from vlmcore.vlm.generation import (
    CancelToken,
    GenerationCache,
    GenerationOptions,
    MatmulPrecision,
    StopReason,
)
from vlmcore.vlm.loading import load_predictor
from vlmcore.vlm.prompt import Prompt
from vlmcore.vlm.residency import ProcessResidency

SHORT = GenerationOptions(max_new_tokens=6, stop_on_repetition=False)
QUESTIONS = ("What is this?", "Describe the shape in one sentence.")
# SmolVLM is of the classes of Idefics 3: it is only asked whether it takes over anything.
KINDS = (*(kind for kind in CHAT_KINDS if kind != "smolvlm"), "embedded")
WITH_PREFIX = tuple(kind for kind in CHAT_KINDS if kind != "gemma3")


def picture(height: int, width: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


IMAGE = picture(40, 60)
OTHER = picture(90, 30, 1)


def ask(text: str, *images: np.ndarray) -> Prompt:
    return Prompt(text=text, images=images)


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Several only wait for one another in models as small as these."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def loaded(tiny_model):
    """Give the predictor of a kind, which is loaded once and has nothing kept."""
    predictors = {}

    def emptied(kind: str):
        if kind not in predictors:
            predictors[kind] = load_predictor(kind if kind == "embedded" else tiny_model(kind))
        with predictors[kind]._held.using() as opened:
            opened.kept.clear()
        return predictors[kind]

    yield emptied
    for predictor in predictors.values():
        predictor.close()


@pytest.fixture(scope="module", params=KINDS)
def kind(request):
    return request.param


@pytest.fixture
def kept(loaded, kind):
    return loaded(kind)


@pytest.fixture
def llava(loaded):
    return loaded("llava")


@pytest.fixture(scope="module")
def fresh(kind, tiny_model):
    """Answers of a model of its own that keeps nothing, asked once for each prompt."""
    answers = {}
    source = kind if kind == "embedded" else tiny_model(kind)
    with load_predictor(source, reuse=False, residency=ProcessResidency()) as predictor:

        def answer(prompt: Prompt) -> str:
            shown = tuple(image.tobytes() for image in prompt.images)
            key = (prompt.text, prompt.system, shown, prompt.video is None)
            if key not in answers:
                answers[key] = predictor.generate(prompt, SHORT).text
            return answers[key]

        yield answer


def test_questions_about_one_picture_are_answered_as_by_a_fresh_run(kept, fresh):
    """Token by token, and all but the first take something over."""
    asked = (*QUESTIONS, QUESTIONS[0])
    with kept.session(images=[IMAGE], system="Be brief.") as session:
        answers = [session.ask(question, SHORT) for question in asked]

    prompts = [Prompt(text=q, images=[IMAGE], system="Be brief.") for q in asked]
    assert [fresh(prompt) for prompt in prompts] == [answer.text for answer in answers]
    assert [False, True, True] == [answer.reused.vision for answer in answers]


def test_pictures_of_other_sizes_in_between_change_nothing(kept, fresh):
    """Positions of tokens are those of the picture that is asked about, not of the last one."""
    for question in QUESTIONS:
        for image in (IMAGE, OTHER, picture(20, 20, 2)):
            prompt = ask(question, image)
            assert fresh(prompt) == kept.generate(prompt, SHORT).text


def test_prompts_of_several_pictures_and_of_none_are_answered_as_fresh(kept, fresh):
    """What is kept of one is no prefix of the other."""
    prompts = [
        ask(QUESTIONS[0], IMAGE, OTHER),
        ask(QUESTIONS[0]),
        ask(QUESTIONS[0], IMAGE),
        ask(QUESTIONS[0], OTHER, IMAGE),
    ]
    expected = [fresh(prompt) for prompt in prompts]

    assert expected == [kept.generate(prompt, SHORT).text for prompt in prompts]
    assert expected == [kept.generate(prompt, SHORT).text for prompt in prompts]


def test_a_stream_takes_over_what_generate_kept(kept, fresh):
    """The pieces join to the answer of a fresh run."""
    kept.generate(ask(QUESTIONS[0], IMAGE), SHORT)

    with kept.stream(ask(QUESTIONS[1], IMAGE), SHORT) as stream:
        assert fresh(ask(QUESTIONS[1], IMAGE)) == "".join(stream)
    assert stream.result.reused.vision


def test_many_prompts_are_answered_as_fresh(kept, fresh):
    """In batches, twice."""
    prompts = [ask(question, image) for question in QUESTIONS for image in (IMAGE, OTHER)]
    expected = [fresh(prompt) for prompt in prompts]

    for _ in range(2):
        answers = kept.generate_many(prompts, SHORT, batch_size=3)
        assert expected == [answer.text for answer in answers]


def test_many_prompts_one_by_one_take_over_what_those_before_them_left(llava):
    """All but the first about each picture."""
    prompts = [ask(question, image) for question in QUESTIONS for image in (IMAGE, OTHER)]
    answers = llava.generate_many(prompts, SHORT, batch_size=1)

    assert [llava.generate(prompt, SHORT).text for prompt in prompts] == [a.text for a in answers]
    assert sorted([False, False, True, True]) == sorted(a.reused.vision for a in answers)


def test_a_video_is_looked_at_once(kept, fresh):
    """Frames are pictures to be kept like any other."""
    video = np.stack([picture(32, 32, seed) for seed in range(3)])
    with kept.session(video=video) as session:
        answers = [session.ask(question, SHORT) for question in QUESTIONS]

    expected = [fresh(Prompt(text=question, video=video)) for question in QUESTIONS]
    assert expected == [answer.text for answer in answers]
    assert answers[-1].reused.vision


def test_a_question_that_was_cancelled_is_answered_when_asked_again(kept, fresh):
    """What a cancelled answer leaves behind is whole."""
    cancel = CancelToken()
    with kept.stream(ask(QUESTIONS[1], IMAGE), SHORT, cancel=cancel) as stream:
        next(stream)
        cancel.cancel()
        list(stream)

    for question in QUESTIONS:
        assert fresh(ask(question, IMAGE)) == kept.generate(ask(question, IMAGE), SHORT).text


def test_threads_get_the_answers_of_fresh_runs(kept, fresh):
    """Two of them, with pictures of different sizes."""
    prompts = [ask(question, image) for question in QUESTIONS for image in (IMAGE, OTHER)]
    expected = [fresh(prompt) for prompt in prompts]

    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda prompt: kept.generate(prompt, SHORT).text, prompts))

    assert expected == answers


def test_answers_stay_those_of_fresh_runs_where_little_can_be_kept(kept, fresh):
    """After others had to leave."""
    limits = ReuseLimits(max_vision_bytes=9000, max_prefix_bytes=9000)
    with load_predictor(kept.info.source, reuse=limits) as little:
        for question in QUESTIONS:
            for image in (IMAGE, OTHER):
                prompt = ask(question, image)
                assert fresh(prompt) == little.generate(prompt, SHORT).text
        report = little.reuse_report

    assert report.vision_bytes <= 9000
    assert report.prefix_bytes <= 9000


@pytest.mark.parametrize("name", WITH_PREFIX)
def test_the_prefix_up_to_the_question_is_taken_over(name, loaded):
    """The report counts the tokens that were not computed again."""
    predictor = loaded(name)
    before = predictor.reuse_report
    first, second, third = (
        predictor.generate(ask(text, IMAGE), SHORT) for text in ("One", "Two", "Two")
    )
    report = predictor.reuse_report

    assert (0, "") == (first.reused.prefix_tokens, first.reused.fresh_because)
    assert 0 < second.reused.prefix_tokens < third.prompt_tokens
    taken = second.reused.prefix_tokens + third.reused.prefix_tokens
    assert 2 == report.prefix_hits - before.prefix_hits
    assert 1 == report.prefix_misses - before.prefix_misses
    assert taken == report.prefix_tokens - before.prefix_tokens
    assert report.prefix_bytes > 0


def test_a_cache_that_slides_is_not_taken_over(loaded):
    """Gemma 3 forgets what lies behind its window: its pictures are kept, its prefixes not."""
    predictor = loaded("gemma3")
    predictor.generate(ask("One", IMAGE), SHORT)
    reused = predictor.generate(ask("Two", IMAGE), SHORT).reused

    assert (True, 0) == (reused.vision, reused.prefix_tokens)
    assert reused.fresh_because == "its cache of keys and values cannot be shortened"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (GenerationOptions(max_new_tokens=4, cache=GenerationCache.STATIC), "static"),
        (GenerationOptions(max_new_tokens=4, temperature=1.0, seed=1), "seed"),
    ],
)
def test_what_stands_against_a_prefix_is_told(llava, options, reason):
    """Vision outputs are the same numbers and are taken over all the same."""
    llava.generate(ask("One", IMAGE), options)
    reused = llava.generate(ask("Two", IMAGE), options).reused

    assert (True, 0) == (reused.vision, reused.prefix_tokens)
    assert reason in reused.fresh_because


def test_prefixes_are_not_taken_over_in_short_formats(tiny_model):
    """Rounding weighs more there; the pictures are kept all the same."""
    with load_predictor(tiny_model("llava"), dtype="bfloat16") as predictor:
        predictor.generate(ask("One", IMAGE), SHORT)
        reused = predictor.generate(ask("Two", IMAGE), SHORT).reused

    assert (True, 0) == (reused.vision, reused.prefix_tokens)
    assert "float32" in reused.fresh_because


def test_nothing_is_kept_where_that_is_asked_for(tiny_model):
    """The report stays at zero, and the answer says why."""
    alone = ProcessResidency()
    with load_predictor(tiny_model("llava"), reuse=False, residency=alone) as predictor:
        for _ in range(2):
            reused = predictor.generate(ask("One", IMAGE), SHORT).reused
        report = predictor.reuse_report

    assert "nothing is kept: reuse is off" == reused.fresh_because
    assert (0, 0, 0) == (report.vision_bytes, report.prefix_bytes, report.vision_misses)


def test_pictures_are_not_digested_where_nothing_is_kept(llava, tiny_model, monkeypatch):
    """A digest costs time, and nobody would ask for it."""
    digested = []
    monkeypatch.setattr(_conversation, "_digest", lambda shown: digested.append(shown) or b"1")
    with load_predictor(tiny_model("llava"), reuse=False) as off:
        off.generate(ask("One", IMAGE), SHORT)
    assert [] == digested

    llava.generate(ask("One", IMAGE), SHORT)
    assert 1 == len(digested)


def test_one_pixel_makes_another_picture(llava):
    """Keys are of what the model is shown."""
    changed = IMAGE.copy()
    changed[20, 30] ^= 255
    llava.generate(ask("One", IMAGE), SHORT)

    assert not llava.generate(ask("One", changed), SHORT).reused.vision
    assert llava.generate(ask("One", IMAGE.copy()), SHORT).reused.vision


def test_another_precision_makes_another_picture(llava):
    """What was computed with rounded products is not given to who asked for exact ones."""
    high = GenerationOptions(max_new_tokens=4, matmul_precision=MatmulPrecision.HIGH)
    llava.generate(ask("One", IMAGE), high)

    assert not llava.generate(ask("One", IMAGE), SHORT).reused.vision


def test_predictors_of_one_model_share_what_is_kept(llava, tiny_model):
    """As they share its weights."""
    llava.generate(ask("One", IMAGE), SHORT)

    with load_predictor(tiny_model("llava")) as other:
        assert other.generate(ask("Two", IMAGE), SHORT).reused.prefix_tokens > 0


def test_a_smaller_limit_holds_after_each_call(llava, tiny_model):
    """Also for what a predictor of the same weights kept with a larger one."""
    llava.generate(ask("One", IMAGE), SHORT)
    least = ReuseLimits(max_vision_bytes=1, max_prefix_bytes=1)
    with load_predictor(tiny_model("llava"), reuse=least) as other:
        answers = [other.generate(ask("Two", OTHER), SHORT).text for _ in range(2)]
        report = other.reuse_report

    assert [llava.generate(ask("Two", OTHER), SHORT).text] * 2 == answers
    assert (0, 0) == (report.vision_bytes, report.prefix_bytes)


def test_what_is_kept_goes_with_the_model(tiny_model):
    """A model that is loaded again knows nothing."""
    alone = ProcessResidency()
    for _ in range(2):
        with load_predictor(tiny_model("llava"), residency=alone) as predictor:
            assert not predictor.generate(ask("One", IMAGE), SHORT).reused.vision


def test_what_is_kept_is_given_back_where_memory_runs_out(llava, monkeypatch):
    """The next call has that much more."""
    llava.generate(ask("One", IMAGE), SHORT)

    def run_out(*_, **__):
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(KeptBytes, "get", run_out)
        with pytest.raises(ModelMemoryError):
            llava.generate(ask("Two", OTHER), SHORT)

    report = llava.reuse_report
    assert (0, 0) == (report.vision_bytes, report.prefix_bytes)


def test_a_growing_conversation_keeps_one_prefix(llava):
    """What a longer prompt extends is replaced by it."""
    llava.generate(ask("One", IMAGE), SHORT)
    before = llava.reuse_report.prefix_bytes
    for count in range(2, 6):
        llava.generate(ask(" ".join(["One"] * count), IMAGE), SHORT)

    assert llava.reuse_report.prefix_bytes == before


def test_a_cancelled_call_says_so_and_tells_of_nothing(llava):
    """It was never begun."""
    cancel = CancelToken()
    cancel.cancel()
    answer = llava.generate(ask("One", IMAGE), SHORT, cancel=cancel)

    assert (StopReason.CANCELLED, None) == (answer.stop_reason, answer.reused)


def test_the_least_recently_used_leaves_first():
    """What was asked for lately stays."""
    values = KeptBytes()
    for key in "ab":
        values.put(key, key, 4, limit=10)
    values.get("a")
    values.put("c", "c", 4, limit=10)

    assert ["c", "a"] == [key for key, _ in values]
    assert values.nbytes == 8


def test_what_is_too_large_by_itself_drives_nothing_out():
    """It is not kept, and neither is what it would have replaced."""
    values = KeptBytes()
    values.put("a", 1, 4, limit=10)
    values.put("b", 2, 11, limit=10)

    assert [("a", 1)] == list(values)
    values.put("a", 3, 11, limit=10)
    assert values.nbytes == 0
