"""How answers of servers end: what is an answer, what only looks like one, and when it is over."""

from __future__ import annotations

import asyncio
import json
import signal
import threading
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any

import pytest

from model_server_cases import (
    DONE,
    QUICK,
    STREAM,
    Asked,
    Script,
    chunk,
    delta,
    event,
    refuses,
    says,
    serving,
    streams,
)
from vlmcore.errors import ModelServerError, ModelServerProtocolError
from vlmcore.vlm.generation import Generation, StopReason
from vlmcore.vlm.prompt import Prompt
from vlmcore.vlm.remote import _calls
from vlmcore.vlm.remote.async_predictors import AsyncOpenAICompatiblePredictor
from vlmcore.vlm.remote.listing import list_models
from vlmcore.vlm.remote.predictors import OpenAICompatiblePredictor, OpenAIResponsesPredictor

PROMPT = Prompt(text="What is this?")
KEY = "sk-ends-0123456789"
Ask = Callable[[str], Generation]


def blocking(url: str) -> Generation:
    with OpenAICompatiblePredictor(url, model="m", retries=QUICK) as predictor:
        return predictor.generate(PROMPT)


def awaited(url: str) -> Generation:
    async def ask() -> Generation:
        async with AsyncOpenAICompatiblePredictor(url, model="m", retries=QUICK) as predictor:
            return await predictor.generate(PROMPT)

    return asyncio.run(ask())


both = pytest.mark.parametrize("ask", [blocking, awaited])


def goes_on(*events: bytes, then: bytes = b"") -> Script:
    """Stream events, and keep the connection, with more of *then* for as long as it is taken."""

    def script(asked: Asked) -> Iterator[bytes]:
        yield STREAM + b"".join(map(chunk, events))
        while not asked.closing.wait(0.01):
            if then:
                yield chunk(then)

    return script


@both
@pytest.mark.parametrize("then", [b"", b": still here\n\n"])
def test_an_answer_that_was_told_to_be_whole_is_not_waited_for_any_longer(
    ask: Ask, then: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Some servers never send the last event, and keep the connection, silent or not.
    """
    monkeypatch.setattr(_calls, "_LAST_WORDS_S", 0.1)
    with serving(goes_on(delta("A dog."), delta(reason="stop"), then=then)) as server:
        answer = ask(server.url)
    assert ("A dog.", StopReason.END) == (answer.text, answer.stop_reason)


def whole(**message: Any) -> Script:
    choice = {"message": message, "finish_reason": message.pop("reason", "stop")}
    return says(json.dumps({"choices": [choice]}).encode())


CALL = [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]


@both
@pytest.mark.parametrize(
    ("script", "told"),
    [
        (streams(delta("A do"), delta(reason="abort"), DONE), "no whole answer"),
        (streams(delta("A do"), delta(reason="error"), DONE), "no whole answer"),
        (streams(delta("A do"), delta(reason="abort")), "no whole answer"),
        (whole(content="A do", reason="insufficient_system_resource"), "no whole answer"),
        (whole(content=None, reason="MALFORMED_FUNCTION_CALL"), "no whole answer"),
        (streams(delta(tool_calls=CALL), delta(reason="tool_calls"), DONE), "called a tool"),
        (whole(content=None, tool_calls=CALL, reason="tool_calls"), "called a tool"),
        (streams(DONE), "sent none"),
        (streams(delta("", role="assistant"), DONE), "sent none"),
        (says(b'{"choices": [{"text": "A dog.", "finish_reason": "stop"}]}'), "none of the fields"),
        (says(b""), "sent nothing"),
    ],
)
def test_what_only_looks_like_a_whole_answer_is_an_error(
    ask: Ask, script: Script, told: str
) -> None:
    """
    Given up by the server, a call of a tool, nothing at all: each would pass for an answer.
    """
    with serving(script) as server, pytest.raises(ModelServerProtocolError, match=told):
        ask(server.url)


@pytest.mark.parametrize(
    ("status", "expected"),
    [("completed", "end"), ("incomplete", "length"), ("queued", None), ("cancelled", None)],
)
def test_a_response_ends_as_its_status_says(status: str, expected: str | None) -> None:
    """
    Also where it does not say why it is incomplete, or is yet to be written.
    """
    output = [{"type": "message", "content": [{"type": "output_text", "text": "A do"}]}]
    response = {"object": "response", "status": status, "output": output}
    script = says(json.dumps(response).encode())
    with serving(script) as server, OpenAIResponsesPredictor(server.url, model="m") as predictor:
        if expected is None:
            with pytest.raises(ModelServerProtocolError, match=status):
                predictor.generate(PROMPT)
        else:
            assert expected == predictor.generate(PROMPT).stop_reason.value


def test_a_response_that_calls_a_function_is_no_answer() -> None:
    """
    Whole and in a stream: it is completed, and empty.
    """
    call = {"type": "function_call", "name": "f", "arguments": "{}"}
    response = {"object": "response", "status": "completed", "output": [call]}
    whole = says(json.dumps(response).encode())
    stream = streams(
        event({"type": "response.output_item.added", "item": call}),
        event({"type": "response.completed", "response": response}),
    )
    with serving(whole, stream) as server:
        for _ in range(2):
            with (
                OpenAIResponsesPredictor(server.url, model="m") as predictor,
                pytest.raises(ModelServerProtocolError, match="called a tool"),
            ):
                predictor.generate(PROMPT)


@both
def test_an_answer_beside_a_call_of_a_tool_is_one(ask: Ask) -> None:
    """
    The text is what was asked for.
    """
    with serving(whole(content="A dog.", tool_calls=CALL, reason="tool_calls")) as server:
        assert "A dog." == ask(server.url).text


@pytest.mark.parametrize(
    "reason", ["SAFETY", "RECITATION", "PROHIBITED_CONTENT", "BLOCKLIST", "SPII", "IMAGE_SAFETY"]
)
def test_an_answer_that_gemini_withheld_is_none_that_is_whole(reason: str) -> None:
    """
    It passes its own words for that on, in capitals.
    """
    with serving(streams(delta("A"), delta(reason=reason), DONE)) as server:
        assert StopReason.FILTERED is blocking(server.url).stop_reason


def test_of_several_answers_at_once_the_first_is_taken() -> None:
    """
    Their pieces come in any order, and are not mixed.
    """
    first, second = ({"index": i, "delta": {"content": text}} for i, text in enumerate("AB"))
    end = {"index": 0, "delta": {}, "finish_reason": "stop"}
    script = streams(
        *(event({"choices": choices}) for choices in ([second], [first, second], [second], [end])),
        DONE,
    )
    with serving(script) as server:
        assert "A" == blocking(server.url).text


def test_half_characters_of_thoughts_are_joined_and_those_of_names_marked() -> None:
    """
    What is given out can be written to any file.
    """
    smile = "\N{GRINNING FACE}".encode("utf-16-be", "surrogatepass")
    high, low = (smile[i : i + 2].decode("utf-16-be", "surrogatepass") for i in (0, 2))
    choices = [{"delta": {"reasoning": text}} for text in (high, low)]
    events = [{"id": high, "model": high, "choices": [choice]} for choice in choices]
    script = streams(
        *(b"data: " + json.dumps(each).encode() + b"\n\n" for each in events),
        delta("A"),
        delta(reason="stop"),
        DONE,
    )
    with serving(script) as server:
        answer = blocking(server.url)
    assert "\N{GRINNING FACE}" == answer.reasoning
    assert answer.served is not None
    assert answer.served.model.encode()


@pytest.mark.parametrize("count", [-1, True, 1.5, 1 << 60, "7", None])
def test_a_count_that_is_none_is_not_passed_on(count: object) -> None:
    """
    A lie of a thousand digits would break whoever adds up.
    """
    usage = {"prompt_tokens": count, "completion_tokens": count}
    end = event({"choices": [], "usage": usage})
    with serving(streams(delta("A"), delta(reason="stop"), end, DONE)) as server:
        answer = blocking(server.url)
    assert (None, None) == (answer.prompt_tokens, answer.new_tokens)


def models(url: str) -> Any:
    return list_models(url)


@pytest.mark.parametrize("ask", [blocking, awaited, models])
@pytest.mark.parametrize(
    "script",
    [
        refuses(401, f"no such key: {KEY}", code=KEY),
        says(f"<p>{KEY}</p>".encode(), kind=KEY),
        says(b'{"' + KEY.encode() + b'" "a": 1}'),
        lambda _: [b"HTTP/1.1 2" + KEY.encode() + b" X\r\n\r\n"],
        lambda _: [b"HTTP/1.1 200 X\r\ncontent-encoding: " + KEY.encode() + b"\r\n\r\n"],
    ],
)
def test_a_traceback_with_its_variables_has_no_key_in_it(
    ask: Ask, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Collectors of errors send the variables of each frame along, and servers repeat keys.
    """
    monkeypatch.setenv("CUSTOM_API_KEY", KEY)
    with serving(script) as server, pytest.raises(ModelServerError) as raised:
        ask(server.url)
    assert KEY not in "".join(_variables(raised.value.__traceback__))


def _variables(traceback: TracebackType | None) -> Iterator[str]:
    while traceback is not None:
        frame, traceback = traceback.tb_frame, traceback.tb_next
        if "vlmcore" in frame.f_globals["__name__"]:
            yield from map(repr, frame.f_locals.values())


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Let Ctrl-C interrupt, also where a shell has told its background jobs to ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_ends_many_at_once() -> None:
    """
    Whoever types Ctrl-C does not wait for the prompts that are left.
    """

    def script(asked: Asked) -> Iterator[bytes]:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        yield STREAM
        while not asked.closing.wait(0.01):
            yield chunk(b": wait\n\n")

    with serving(script) as server, OpenAICompatiblePredictor(server.url, model="m") as predictor:
        with pytest.raises(KeyboardInterrupt):
            predictor.generate_many([PROMPT] * 3, batch_size=1)
        assert server.left.wait(10)
    assert 1 == len(server.asked)
