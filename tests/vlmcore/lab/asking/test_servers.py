"""A server that is asked and measured: what came when, and what became of a request."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from model_server_cases import (
    DONE,
    END,
    HANG_UP,
    STREAM,
    Asked,
    Script,
    answers,
    chunk,
    delta,
    event,
    model,
    refuses,
    says,
    serving,
    streams,
    usage,
)
from vlmcore.errors import MediaError
from vlmcore.lab.asking.requests import Request
from vlmcore.lab.asking.servers import ServerAsker
from vlmcore.lab.events import Channel, FailureKind, Phase, Sample
from vlmcore.lab.metrics import measure
from vlmcore.vlm.generation import GenerationOptions
from vlmcore.vlm.prompt import Prompt
from vlmcore.vlm.remote.tracing import TracedServer

PROMPT = Prompt(text="What is it?", images=[np.zeros((8, 8, 3), np.uint8)])


def request(prompt: Any = lambda: PROMPT, *, clock_ns: Any = time.perf_counter_ns) -> Request:
    began_ns = time.perf_counter_ns()
    return Request(
        case="dog",
        target="served",
        phase=Phase.STEADY,
        block=1,
        leg=2,
        prompt=prompt,
        options=GenerationOptions(max_new_tokens=16, stop_on_repetition=False),
        deadline_s=5,
        clock_ns=lambda: clock_ns() - began_ns,
    )


def sampled(*scripts: Script, streamed: bool = True, timeout_s: float = 5) -> Sample:
    """Ask a server that answers as told, and return what was measured."""
    with serving(*scripts) as server:
        asked = request()
        traced = TracedServer(
            server.url, model="m", timeout_s=timeout_s, streaming=streamed, clock_ns=asked.clock_ns
        )
        asker = ServerAsker(traced, streamed=streamed)
        try:
            return asker.ask(asked)
        finally:
            asker.close()


def test_the_marks_of_a_request_follow_one_another() -> None:
    """
    Prepared, sent, head, pieces, closed.
    """
    sample = sampled(answers("a red dog"))

    marks = [sample.request_ns, sample.prepared_ns, sample.sent_ns, sample.headers_ns]
    assert None not in marks
    assert "a red dog" == sample.text
    assert ("dog", "served", 1, 2) == (sample.case, sample.target, sample.block, sample.leg)
    assert ("stop", 3, 1) == (sample.finish_reason, sample.generated_tokens, sample.attempts)
    assert sample.first_token_ns < sample.closed_ns
    assert "" == sample.excluded


def test_the_last_token_ends_the_clock_and_not_the_stream() -> None:
    """
    300 ms until ``[DONE]`` are no part of the answer.
    """

    def late(_: Asked) -> Iterator[bytes]:
        yield STREAM
        yield chunk(delta("dog"))
        time.sleep(0.3)
        yield chunk(delta(reason="stop"))
        yield chunk(DONE)
        yield END

    sample = sampled(late)
    assert measure(sample, "tail/1").value >= 290
    assert measure(sample, "e2e/1").value == measure(sample, "ttft/1").value


def test_reasoning_is_counted_and_kept_apart() -> None:
    """
    Its first token is the first token; the first text comes later.
    """
    thoughts = [delta(reasoning_content="hm ") for _ in range(5)]
    sample = sampled(streams(*thoughts, delta("dog"), delta(reason="stop"), usage(6), DONE))

    assert ("dog", "hm " * 5) == (sample.text, sample.reasoning)
    channels = [each.channel for each in sample.chunks if each.characters]
    assert [*[Channel.REASONING] * 5, Channel.TEXT] == channels
    assert sample.first_token_ns <= sample.first_text_ns
    assert 6 == sample.generated_tokens


def test_empty_pieces_are_kept_and_are_no_tokens() -> None:
    """
    A role comes before the first token.
    """
    sample = sampled(
        streams(delta("", role="assistant"), delta("dog"), delta(reason="stop"), usage(1), DONE)
    )

    assert [0, 3, 0, 0, 0][: len(sample.chunks)] == [each.characters for each in sample.chunks]
    assert 3 == sum(1 for each in sample.chunks if not each.has_tokens)


def test_what_a_server_had_kept_is_told() -> None:
    """
    Cached tokens of the prompt, where it counts them.
    """
    told = usage(1, prompt_tokens_details={"cached_tokens": 17})
    sample = sampled(streams(delta("dog", reason="stop"), told, DONE))

    assert 17 == sample.usage.cached_tokens


def test_without_a_usage_nothing_is_counted() -> None:
    """
    Pieces are no tokens.
    """
    sample = sampled(streams(delta("a "), delta("dog", reason="stop"), DONE))

    assert sample.usage is None
    assert measure(sample, "rate/1").value is None


@pytest.mark.parametrize(
    ("script", "kind", "text"),
    [
        (streams(delta("a "), event({"error": {"message": "broke"}})), "server_error", "a "),
        (lambda _: [STREAM, chunk(delta("a ")), END], "truncated_stream", "a "),
        (lambda _: [STREAM, chunk(delta("a ")), HANG_UP], "truncated_stream", "a "),
        (lambda _: [STREAM, chunk(b"data: {broken\n\n"), END], "protocol", ""),
        (refuses(503), "server_error", ""),
        (refuses(500), "server_error", ""),
        (refuses(400), "refused", ""),
        (refuses(404), "refused", ""),
        (refuses(429), "refused", ""),
        (says(b"<html>", kind="text/html"), "protocol", ""),
    ],
)
def test_what_fails_is_a_sample_that_says_why(script: Script, kind: str, text: str) -> None:
    """
    With what had come until then; nothing is asked twice.
    """
    sample = sampled(script)

    assert kind == sample.failure.kind.value
    assert (text, 1) == (sample.text, sample.attempts)
    assert f"failed: {kind}" == sample.excluded


def test_a_server_that_is_not_there_is_unreachable() -> None:
    """
    It is no fault of the request.
    """
    with serving(model) as server:
        url = server.url
    asked = request()
    asker = ServerAsker(TracedServer(url, model="m", timeout_s=5, clock_ns=asked.clock_ns))
    sample = asker.ask(asked)

    assert FailureKind.UNREACHABLE is sample.failure.kind
    assert sample.prepared_ns is not None
    assert sample.sent_ns is None


def test_the_deadline_is_of_all_of_a_request() -> None:
    """
    A byte now and then does not put it off.
    """

    def drips(_: Asked) -> Iterator[bytes]:
        yield STREAM
        while True:
            yield chunk(delta("a"))
            time.sleep(0.05)

    sample = sampled(drips, timeout_s=0.5)

    assert FailureKind.TIMEOUT is sample.failure.kind
    assert measure(sample, "e2e/1").value is None
    assert 400e6 < sample.closed_ns - sample.request_ns < 3e9


def test_an_image_that_cannot_be_read_is_not_asked_about() -> None:
    """
    It is the fault of nobody but the image.
    """

    def broken() -> Prompt:
        raise MediaError("dog.png", "is cut")

    asked = request(broken)
    with serving(model) as server:
        traced = TracedServer(server.url, model="m", timeout_s=5, clock_ns=asked.clock_ns)
        sample = ServerAsker(traced).ask(asked)
        assert not server.asked

    assert FailureKind.REFUSED is sample.failure.kind
    assert "dog.png: is cut" in sample.failure.message


def test_an_answer_in_one_piece_is_measured_as_that() -> None:
    """
    It has no first token of its own.
    """
    sample = sampled(model, streamed=False)

    assert "You asked: What is it?" == sample.text
    assert not sample.streamed
    assert "not streamed: the first token came with the last" == measure(sample, "ttft/1").reason
    assert measure(sample, "e2e/1").value > 0


def test_a_connection_is_kept_for_the_next_request() -> None:
    """
    Dialling is paid for once.
    """
    with serving(model) as server:
        asked = request()
        traced = TracedServer(server.url, model="m", timeout_s=5, clock_ns=asked.clock_ns)
        asker = ServerAsker(traced)
        texts = {asker.ask(asked).text for _ in range(4)}
        asker.close()

        assert {"You asked: What is it?"} == texts
        assert 1 == server.connections


def test_the_end_of_an_answer_may_come_late_and_the_connection_is_kept() -> None:
    """
    All was said; that no more comes is known a moment later, which is when the request closed.
    """

    def late(asked: Asked) -> Iterator[bytes]:
        *parts, end = answers("a dog")(asked)
        yield from parts
        time.sleep(0.2)
        yield end

    with serving(late) as server:
        asked = request()
        traced = TracedServer(server.url, model="m", timeout_s=5, clock_ns=asked.clock_ns)
        samples = [ServerAsker(traced).ask(asked) for _ in range(3)]
        traced.close()

        assert 1 == server.connections
    assert ["a dog"] * 3 == [each.text for each in samples]
    assert all(measure(each, "tail/1").value > 150 for each in samples)


def test_halves_of_characters_are_marked_and_not_lost() -> None:
    """
    An artifact holds characters only.
    """
    sample = sampled(streams(event_of("\\ud83d"), delta("!", reason="stop"), DONE))

    assert "\ufffd!" == sample.text


def event_of(escaped: str) -> bytes:
    document = json.dumps({"choices": [{"index": 0, "delta": {"content": "X"}}]})
    return b"data: " + document.replace("X", escaped).encode() + b"\n\n"
