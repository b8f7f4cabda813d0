"""Models behind servers as predictors: the contract, streams, many at once, and what is sent."""

from __future__ import annotations

import asyncio
import collections
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import numpy as np
import pytest

from model_server_cases import (
    DONE,
    END,
    QUICK,
    STREAM,
    Asked,
    answers,
    chunk,
    delta,
    http,
    model,
    refuses,
    says,
    serving,
    streams,
    usage,
)
from vlmcore.errors import (
    ContractError,
    IncompleteAnswersError,
    LimitExceededError,
    ModelServerKeyError,
    ModelServerRefusedError,
    StructureError,
)
from vlmcore.testing import PREDICTOR_CHECKS, check_predictor
from vlmcore.vlm.generation import CancelToken, Generation, GenerationOptions, StopReason
from vlmcore.vlm.outputs import JsonOutput
from vlmcore.vlm.prompt import Prompt
from vlmcore.vlm.remote.async_predictors import AsyncOpenAICompatiblePredictor
from vlmcore.vlm.remote.pictures import PictureRules
from vlmcore.vlm.remote.predictors import OpenAICompatiblePredictor

PROMPT = Prompt(text="What is this?")
RED = np.full((8, 16, 3), (255, 0, 0), np.uint8)


@pytest.mark.parametrize("streaming", [True, False])
def test_it_is_a_predictor_to_the_letter(*, streaming: bool) -> None:
    """
    The public compliance kit finds nothing, whether answers come piece by piece or whole.
    """
    with serving(model) as server:

        def make() -> OpenAICompatiblePredictor:
            return OpenAICompatiblePredictor(server.url, model="m", streaming=streaming)

        passed = check_predictor(make, Prompt(text="What does the picture show?"))
    assert len(PREDICTOR_CHECKS) == len(passed)


def test_an_answer_tells_what_the_server_said_of_it() -> None:
    """
    Counts are the server's, and so are the reason and the names.
    """
    told = {"prompt_tokens_details": {"cached_tokens": 16}}
    script = streams(delta("A dog."), delta(reason="stop"), usage(3, 20, **told), DONE)
    with serving(script) as server, OpenAICompatiblePredictor(server.url, model="m") as predictor:
        answer = predictor.generate(PROMPT)
    assert ("A dog.", StopReason.END, 20, 3) == (
        answer.text,
        answer.stop_reason,
        answer.prompt_tokens,
        answer.new_tokens,
    )
    assert answer.served is not None
    assert ("stop", "served", "c-1", 16, 1) == (
        answer.served.finish_reason,
        answer.served.model,
        answer.served.response_id,
        answer.served.cached_tokens,
        answer.served.attempts,
    )


def test_counts_that_a_server_does_not_tell_are_not_made_up() -> None:
    """
    Chunks are no tokens.
    """
    script = streams(delta("A "), delta("dog."), delta(reason="stop"), DONE)
    with serving(script) as server, OpenAICompatiblePredictor(server.url, model="m") as predictor:
        answer = predictor.generate(PROMPT)
    assert (None, None) == (answer.prompt_tokens, answer.new_tokens)


def test_a_stream_never_yields_half_a_character_wherever_its_bytes_are_cut() -> None:
    """
    Each byte comes in a chunk of its own.
    """
    text = "Ein Würfel, 一只狗, 🐶!"
    whole = b"".join([delta(text[:9]), delta(text[9:]), delta(reason="stop"), usage(9), DONE])
    bytewise = [chunk(bytes([byte])) for byte in whole]
    with (
        serving(lambda _: [STREAM, *bytewise, END]) as server,
        OpenAICompatiblePredictor(server.url, model="m") as predictor,
        predictor.stream(PROMPT) as stream,
    ):
        pieces = list(stream)
    assert text == "".join(pieces) == stream.result.text
    assert "\ufffd" not in text


def test_stream_options_are_asked_for_once_and_remembered_as_refused() -> None:
    """
    The second call leaves them out at once.
    """

    def picky(asked: Asked) -> Iterator[bytes]:
        if "stream_options" in asked.document:
            detail = [{"loc": ["body", "stream_options"], "msg": "Extra inputs are not permitted"}]
            yield http(json.dumps({"detail": detail}).encode(), status=422)
        else:
            yield from model(asked)

    with serving(picky) as server, OpenAICompatiblePredictor(server.url, model="m") as predictor:
        first, second = predictor.generate(PROMPT), predictor.generate(PROMPT)
    assert [True, False, False] == ["stream_options" in each.document for each in server.asked]
    assert first.text == second.text == "You asked: What is this?"
    assert second.served is not None
    assert (("stream_options",), 1) == (second.served.left_out, second.served.attempts)


def test_the_longest_answer_has_another_name_where_the_server_wants_that() -> None:
    """
    As newer models of OpenAI do.
    """

    def picky(asked: Asked) -> Iterator[bytes]:
        if "max_tokens" in asked.document:
            words = "'max_tokens' is not supported with this model. Use 'max_completion_tokens'."
            yield from refuses(400, words, code="unsupported_parameter")(asked)
        else:
            yield from model(asked)

    with serving(picky) as server, OpenAICompatiblePredictor(server.url, model="m") as predictor:
        predictor.generate(PROMPT, GenerationOptions(max_new_tokens=7))
    assert 7 == server.asked[-1].document["max_completion_tokens"]


def test_a_temperature_that_was_not_asked_for_may_go_and_another_may_not() -> None:
    """
    What the caller asked for is an error where it is refused.
    """

    def picky(asked: Asked) -> Iterator[bytes]:
        if "temperature" in asked.document:
            yield from refuses(400, "'temperature' does not support this value")(asked)
        else:
            yield from model(asked)

    with serving(picky) as server, OpenAICompatiblePredictor(server.url, model="m") as predictor:
        answer = predictor.generate(PROMPT)
        assert answer.served is not None
        assert ("temperature",) == answer.served.left_out
        hot = OpenAICompatiblePredictor(server.url, model="m")
        with hot, pytest.raises(ModelServerRefusedError, match="temperature"):
            hot.generate(PROMPT, GenerationOptions(temperature=0.7))


def test_a_loop_is_stopped_and_is_no_answer() -> None:
    """
    The connection is closed, so that nobody pays for the rest.
    """

    def loops(asked: Asked) -> Iterator[bytes]:
        yield STREAM
        while not asked.closing.wait(0.0):
            yield chunk(delta("a red square and "))

    with serving(loops) as server, OpenAICompatiblePredictor(server.url, model="m") as predictor:
        answer = predictor.generate(PROMPT)
        assert server.left.wait(10)
    assert StopReason.REPETITION is answer.stop_reason


def test_a_loop_that_the_length_cut_is_no_answer_either() -> None:
    """
    It may be too short to be seen while it is written.
    """
    with (
        serving(answers("no " * 20, reason="length")) as server,
        OpenAICompatiblePredictor(server.url, model="m") as predictor,
    ):
        assert StopReason.REPETITION is predictor.generate(PROMPT).stop_reason


def test_a_stop_text_that_the_server_does_not_know_cuts_the_answer_here() -> None:
    """
    Five of them are more than servers take: none are sent.
    """
    options = GenerationOptions(stop=("a1", "a2", "a3", "a4", "END"))
    with (
        serving(answers("One two END three")) as server,
        OpenAICompatiblePredictor(server.url, model="m") as predictor,
    ):
        answer = predictor.generate(PROMPT, options)
    assert ("One two", StopReason.END) == (answer.text, answer.stop_reason)
    assert "stop" not in server.asked[0].document


@pytest.mark.parametrize("status", [200, 500])
def test_a_server_that_fails_where_it_is_given_stop_texts_is_asked_without(status: int) -> None:
    """
    As that of transformers does with some models; what is left of an answer is cut here.
    """

    def picky(asked: Asked) -> Iterator[bytes]:
        if "stop" in asked.document:
            yield from refuses(status, "object has no attribute 'get_vocab'")(asked)
        else:
            yield from answers("One two END three")(asked)

    options = GenerationOptions(stop=("END",))
    with serving(picky) as server, OpenAICompatiblePredictor(server.url, model="m") as predictor:
        texts = [predictor.generate(PROMPT, options).text for _ in range(2)]
    assert ["One two", "One two"] == texts
    assert 3 == len(server.asked)


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("stop", StopReason.END),
        ("length", StopReason.LENGTH),
        ("content_filter", StopReason.FILTERED),
        ("eos", StopReason.END),
        ("COMPLETE", StopReason.END),
        ("MAX_TOKENS", StopReason.LENGTH),
    ],
)
def test_the_reason_of_the_server_is_kept_and_understood(reason: str, expected: StopReason) -> None:
    """
    Only END is a whole answer.
    """
    with (
        serving(answers("A dog", reason=reason)) as server,
        OpenAICompatiblePredictor(server.url, model="m") as predictor,
    ):
        answer = predictor.generate(PROMPT)
    assert answer.served is not None
    assert (expected, reason) == (answer.stop_reason, answer.served.finish_reason)


def test_the_frames_of_a_video_are_pictures_with_their_times() -> None:
    """
    Images come first, then frames, then the text.
    """
    prompt = Prompt(
        text="What happens?",
        images=(RED,),
        video=np.stack([RED] * 3),
        video_timestamps_s=(0.0, 2.5, 5.0),
    )
    with serving(model) as server, OpenAICompatiblePredictor(server.url, model="m") as predictor:
        predictor.generate(prompt)
    content = server.asked[0].document["messages"][0]["content"]
    assert [
        "image_url",
        "<0.0 seconds>",
        "image_url",
        "<2.5 seconds>",
        "image_url",
        "<5.0 seconds>",
        "image_url",
        "What happens?",
    ] == [part.get("text", part["type"]) for part in content]


def test_more_pictures_than_the_server_takes_are_refused_before_one_is_encoded() -> None:
    """
    They are not dropped in silence.
    """
    rules = PictureRules(max_pictures=2)
    with (
        OpenAICompatiblePredictor("http://localhost:9", model="m", pictures=rules) as predictor,
        pytest.raises(LimitExceededError, match="max_pictures: got 3, limit is 2"),
    ):
        predictor.generate(attrs.evolve(PROMPT, images=(RED,) * 3))


def test_what_only_one_server_knows_is_passed_on() -> None:
    """
    But not what the predictor writes itself.
    """
    with (
        serving(model) as server,
        OpenAICompatiblePredictor(
            server.url, model="m", reasoning_effort="low", request_fields={"repeat_penalty": 1.1}
        ) as predictor,
    ):
        predictor.generate(PROMPT, GenerationOptions(thinking=False, seed=3, top_p=0.9, top_k=4))
    sent = server.asked[0].document
    assert {
        "repeat_penalty": 1.1,
        "reasoning_effort": "low",
        "chat_template_kwargs": {"enable_thinking": False},
        "seed": 3,
        "top_p": 0.9,
        "top_k": 4,
    }.items() <= sent.items()
    with pytest.raises(ContractError, match="request_fields"):
        OpenAICompatiblePredictor("http://localhost:9", model="m", request_fields={"model": "x"})


# --- JSON


DOG = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def test_json_is_asked_for_in_the_way_of_the_server_and_held_to_its_schema() -> None:
    """
    The value is there, parsed.
    """
    options = GenerationOptions(output=DOG)
    with (
        serving(answers('{"name": "Rex"}')) as server,
        OpenAICompatiblePredictor(server.url, model="m") as predictor,
    ):
        assert {"name": "Rex"} == predictor.generate(PROMPT, options).parsed
    assert "json_schema" == server.asked[0].document["response_format"]["type"]


@pytest.mark.parametrize(
    "answer",
    [
        "[" * 100_000,
        '{"a":' * 5_000 + "1" + "}" * 5_000,
        f'{{"name": [{"1," * 70_000}1]}}',
        "9" * 9_999,
    ],
    ids=["open lists", "objects in objects", "many values", "a long number"],
)
def test_json_that_is_built_to_exhaust_is_an_error_that_carries_the_text(answer: str) -> None:
    """
    Within the limits of answers, before any of its values is looked at.
    """
    options = GenerationOptions(output=DOG)
    with (
        serving(answers(answer)) as server,
        OpenAICompatiblePredictor(server.url, model="m") as predictor,
        pytest.raises(StructureError) as error,
    ):
        predictor.generate(PROMPT, options)
    assert answer == error.value.text


def test_a_schema_that_may_ask_for_endless_work_is_refused_before_the_server_is_asked() -> None:
    """
    References in a circle, patterns that multiply, and what lies elsewhere.
    """
    with serving(answers("{}")) as server:
        for bomb in (
            {"pattern": "(a+)+$"},
            {"patternProperties": {"(a|a)*b": {}}},
            {"$ref": "#"},
            {"$ref": f"{server.url}/schema.json"},
        ):
            with (
                OpenAICompatiblePredictor(server.url, model="m") as predictor,
                pytest.raises(ContractError, match="schema"),
            ):
                predictor.generate(PROMPT, GenerationOptions(output=bomb))
    assert [] == server.asked


def test_an_answer_that_does_not_fit_is_sent_back_once_where_that_is_wanted() -> None:
    """
    Blocking and in asyncio; without it, it is an error that carries the text.
    """
    wrong, right = answers('{"title": "Rex"}'), answers('{"name": "Rex"}')
    options = GenerationOptions(output=JsonOutput(schema=DOG, repair=True))

    async def ask(url: str) -> Generation:
        async with AsyncOpenAICompatiblePredictor(url, model="m") as predictor:
            return await predictor.generate(PROMPT, options)

    with serving(wrong, right, wrong, right, wrong) as server:
        with OpenAICompatiblePredictor(server.url, model="m") as predictor:
            assert {"name": "Rex"} == predictor.generate(PROMPT, options).parsed
        assert {"name": "Rex"} == asyncio.run(ask(server.url)).parsed
        with pytest.raises(StructureError, match="name"):
            asyncio.run(ask(server.url))


def test_a_stream_that_ends_with_other_json_is_an_error_at_its_end() -> None:
    """
    Its pieces were shown already, so it is not sent back.
    """
    options = GenerationOptions(output=DOG)

    async def ask(url: str) -> None:
        async with (
            AsyncOpenAICompatiblePredictor(url, model="m") as predictor,
            predictor.stream(PROMPT, options) as stream,
        ):
            _ = [piece async for piece in stream]

    with serving(answers('{"title": "Rex"}')) as server:
        with (
            OpenAICompatiblePredictor(server.url, model="m") as predictor,
            pytest.raises(StructureError, match="name"),
        ):
            list(predictor.stream(PROMPT, options))
        with pytest.raises(StructureError, match="name"):
            asyncio.run(ask(server.url))
    assert 2 == len(server.asked)


# --- many


def ask_many(url: str, prompts: list[Prompt], **kwargs: Any) -> list[Generation]:
    with OpenAICompatiblePredictor(url, model="m", retries=QUICK) as predictor:
        return predictor.generate_many(prompts, **kwargs)


def ask_many_awaited(url: str, prompts: list[Prompt], **kwargs: Any) -> list[Generation]:
    async def ask() -> list[Generation]:
        async with AsyncOpenAICompatiblePredictor(url, model="m", retries=QUICK) as predictor:
            return await predictor.generate_many(prompts, **kwargs)

    return asyncio.run(ask())


both = pytest.mark.parametrize("many", [ask_many, ask_many_awaited])
Many = Callable[..., list[Generation]]


@both
def test_many_prompts_are_answered_in_their_order_over_kept_connections(many: Many) -> None:
    """
    However their answers overtake each other; with a connection for each that is in flight, and a
    new one where the end of an answer has not come when the next question is due.
    """

    def uneven(asked: Asked) -> Iterator[bytes]:
        asked.closing.wait(0.02 * (asked.connection % 3))
        yield from model(asked)

    prompts = [Prompt(text=f"number {i}") for i in range(30)]
    with serving(uneven) as server:
        texts = [answer.text for answer in many(server.url, prompts, batch_size=6)]
    assert [f"You asked: number {i}" for i in range(30)] == texts
    assert 6 <= server.connections <= 12


@both
def test_no_more_are_in_flight_than_the_window_has(many: Many) -> None:
    """
    And as many as it has.
    """
    lock, now, most = threading.Lock(), 0, 0
    all_there = threading.Barrier(4, timeout=20)

    def counted(asked: Asked) -> Iterator[bytes]:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        all_there.wait()
        with lock:
            now -= 1
        yield from model(asked)

    with serving(counted) as server:
        assert 8 == len(many(server.url, [PROMPT] * 8, batch_size=4))
    assert 4 == most


@both
def test_one_that_fails_leaves_the_answers_of_the_others(many: Many) -> None:
    """
    They are in the error, in their order.
    """

    def picky(asked: Asked) -> Iterator[bytes]:
        bad = "bad" in asked.document["messages"][0]["content"]
        yield from (refuses(400, "not this one")(asked) if bad else model(asked))

    prompts = [Prompt(text=text) for text in ("one", "bad", "three")]
    with serving(picky) as server, pytest.raises(IncompleteAnswersError) as caught:
        many(server.url, prompts)
    first, second, third = caught.value.answers
    assert isinstance(first, Generation)
    assert isinstance(second, ModelServerRefusedError)
    assert isinstance(third, Generation)
    assert ("You asked: one", "You asked: three") == (first.text, third.text)
    assert "m: 1 of 3 prompts were not answered; first: not this one" == str(caught.value)


@both
def test_after_an_error_that_all_would_end_with_no_more_are_asked(many: Many) -> None:
    """
    A thousand times "wrong key" is said once.
    """
    with serving(refuses(401)) as server, pytest.raises(IncompleteAnswersError) as caught:
        many(server.url, [PROMPT] * 100, batch_size=2)
    assert len(server.asked) <= 4
    assert isinstance(caught.value.answers[0], ModelServerKeyError)
    assert None is caught.value.answers[-1]


@both
def test_a_storm_of_refusals_passes(many: Many) -> None:
    """
    Each prompt is refused twice; all are answered in the end.
    """
    lock, seen = threading.Lock(), collections.Counter[str]()

    def stormy(asked: Asked) -> Iterator[bytes]:
        text = asked.document["messages"][0]["content"]
        with lock:
            seen[text] += 1
            is_refused = seen[text] <= 2
        yield from (refuses(429, more="retry-after: 0\r\n") if is_refused else model)(asked)

    prompts = [Prompt(text=f"number {i}") for i in range(40)]
    with serving(stormy) as server:
        answers = many(server.url, prompts, batch_size=8)
    assert {3} == {answer.served.attempts for answer in answers if answer.served is not None}
    assert 40 == len(answers)


@both
def test_cancelling_many_answers_those_that_were_not_begun_with_nothing(many: Many) -> None:
    """
    At once, and as local models do.
    """
    token = CancelToken()

    def cancelling(asked: Asked) -> Iterator[bytes]:
        token.cancel()
        asked.closing.wait(20)
        yield END

    with serving(cancelling) as server:
        answers = many(server.url, [PROMPT] * 20, batch_size=2, cancel=token)
    assert 20 == len(answers)
    assert {StopReason.CANCELLED} == {answer.stop_reason for answer in answers}
    assert len(server.asked) <= 2


def test_many_can_be_asked_within_a_running_event_loop() -> None:
    """
    As in a notebook.
    """

    async def ask(url: str) -> list[Generation]:
        return ask_many(url, [PROMPT] * 3)

    with serving(model) as server:
        assert 3 == len(asyncio.run(ask(server.url)))


# --- asyncio


def test_pieces_come_in_asyncio_as_they_do_elsewhere() -> None:
    """
    And the result after them.
    """

    async def ask(url: str) -> tuple[list[str], Generation]:
        async with AsyncOpenAICompatiblePredictor(url, model="m") as predictor:
            async with predictor.stream(PROMPT) as stream:
                with pytest.raises(RuntimeError):
                    _ = stream.result
                pieces = [piece async for piece in stream]
            return pieces, stream.result

    with serving(model) as server:
        pieces, result = asyncio.run(ask(server.url))
    assert len(pieces) > 1
    assert "You asked: What is this?" == "".join(pieces) == result.text


def test_calls_of_one_event_loop_run_side_by_side() -> None:
    """
    None waits for another.
    """
    together = threading.Barrier(3, timeout=20)

    def meeting(asked: Asked) -> Iterator[bytes]:
        together.wait()
        yield from model(asked)

    async def ask(url: str) -> list[Generation]:
        async with AsyncOpenAICompatiblePredictor(url, model="m") as predictor:
            return list(await asyncio.gather(*(predictor.generate(PROMPT) for _ in range(3))))

    with serving(meeting) as server:
        assert 3 == len(asyncio.run(ask(server.url)))


def test_an_answer_that_came_whole_is_read_as_one_that_was_streamed() -> None:
    """
    Some servers do not stream though they were asked to.
    """
    choice = {"message": {"content": "A dog.", "reasoning": "Fur."}, "finish_reason": "stop"}
    body = json.dumps({"id": "c", "choices": [choice]}).encode()
    with serving(says(body)) as server, OpenAICompatiblePredictor(server.url, model="m") as one:
        answer = one.generate(PROMPT)
    assert ("A dog.", "Fur.") == (answer.text, answer.reasoning)
