"""What is made of bytes: the odds of event streams, thoughts apart, and all three protocols."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_server_cases import DONE, delta, event, said, usage
from vlmcore._net.http_parts import Head
from vlmcore.limits import ModelServerLimits
from vlmcore.vlm.generation import Generation, GenerationOptions, StopReason
from vlmcore.vlm.remote._chat import ChatCodec
from vlmcore.vlm.remote._codecs import Codec
from vlmcore.vlm.remote._draft import Draft
from vlmcore.vlm.remote._messages import MessagesCodec
from vlmcore.vlm.remote._reading import AnswerReader, BadAnswerError, RefusedError
from vlmcore.vlm.remote._responses import ResponsesCodec

CHAT, MESSAGES, RESPONSES = ChatCodec(), MessagesCodec(), ResponsesCodec()


def read(
    *parts: bytes,
    codec: Codec = CHAT,
    options: GenerationOptions | None = None,
    kind: str = "text/event-stream",
) -> Generation:
    draft = Draft(options or GenerationOptions(), clock=lambda: 0.0, began_s=0.0)
    draft.sent()
    reader = AnswerReader(codec, draft, ModelServerLimits())
    pieces = list(reader.take(Head(status=200, headers={"content-type": kind})))
    for part in parts:
        pieces += reader.take(part)
    if not draft.is_over:
        pieces += reader.finish()
    pieces += draft.finish()
    answer = draft.generation(attempts=1, left_out=())
    assert answer.text == "".join(pieces)
    return answer


def json_of(text: str, reason: str | None = None) -> str:
    choice = {"delta": {"content": text}, "finish_reason": reason}
    return json.dumps({"choices": [choice]}, ensure_ascii=False)


STOP = b"data: " + json_of("", "stop").encode() + b"\n\n"


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (f": ping\n\ndata: {json_of('a dog')}\n\n: ping\n\n", "a dog"),
        (f"data:{json_of('a dog')}\n\n", "a dog"),
        (f"data: {json_of('a dog')}\r\n\r\n", "a dog"),
        (f"data: {json_of('a dog')}\r\r", "a dog"),
        (f"event: chunk\nid: 7\nretry: 100\ndata: {json_of('a dog')}\n\n", "a dog"),
        (f"\ufeffdata: {json_of('a dog')}\n\n", "a dog"),
        ("data: " + json_of("a\u2028dog") + "\n\n", "a\u2028dog"),
        ("data: " + json_of("a\u0085dog") + "\n\n", "a\u0085dog"),
        ('data: {"choices": [{"delta":\ndata: {"content": "a dog"}}]}\n\n', "a dog"),
        (f"\n\n\ndata: {json_of('a dog')}\n\n\n\n", "a dog"),
        (f"data: {json_of('a ')}\n\ndata:\n\ndata: {json_of('dog')}\n\n", "a dog"),
    ],
    ids=[
        "comments",
        "no space",
        "crlf",
        "cr",
        "names",
        "bom",
        "u2028",
        "u0085",
        "two lines",
        "blank lines",
        "empty data",
    ],
)
@pytest.mark.parametrize("size", [1, 3, 10_000])
def test_the_odds_of_event_streams_are_read_right(stream: str, expected: str, size: int) -> None:
    """
    Wherever the bytes are cut.
    """
    data = stream.encode() + STOP + DONE
    parts = [data[at : at + size] for at in range(0, len(data), size)]
    assert expected == read(*parts).text


@pytest.mark.parametrize(
    ("deltas", "expected"),
    [
        ((r"a \ud83d", r"\udc36!"), "a 🐶!"),
        ((r"a \ud83d\udc36!",), "a 🐶!"),
        ((r"a \ud83d", "!"), "a �!"),
        ((r"a \ud83d",), "a �"),
        ((r"\udc36 a",), "� a"),
    ],
)
def test_a_character_that_is_cut_between_its_escapes_is_whole(
    deltas: tuple[str, ...], expected: str
) -> None:
    """
    Each piece can be printed; half a character that stays alone is marked.
    """
    events = [
        f'data: {{"choices": [{{"delta": {{"content": "{each}"}}}}]}}\n\n'.encode()
        for each in deltas
    ]
    assert expected == read(*events, STOP, DONE).text


@pytest.mark.parametrize(
    "data",
    [
        b"\xff",
        b"[" * 9999,
        b'{"a": 1' + b"0" * 5000 + b"}",
        b"{},{}",
        b"[]" * 10,
        b"{" * 3_000_000,
    ],
    ids=["no UTF-8", "deep", "digits", "two", "lists", "nodes"],
)
def test_hostile_json_is_no_answer(data: bytes) -> None:
    """
    In an event, and as a whole answer.
    """
    with pytest.raises(BadAnswerError):
        read(b"data: " + data + b"\n\n", DONE)
    with pytest.raises(BadAnswerError):
        read(data if data.startswith(b"{") else b"{" + data)


def test_what_a_stream_is_called_is_not_looked_at() -> None:
    """
    A stream may come as plain text, and a document as a stream.
    """
    choice = {"message": {"content": "a dog"}, "finish_reason": "stop"}
    whole = json.dumps({"choices": [choice]}).encode()
    assert "a dog" == read(delta("a dog"), STOP, DONE, kind="text/plain").text
    assert "a dog" == read(whole, kind="text/event-stream").text


def test_an_unfinished_last_event_is_dropped_and_the_reason_says_that_it_is_whole() -> None:
    """
    As the standard has it.
    """
    assert "a dog" == read(delta("a dog"), STOP, b"data: [DONE]").text
    with pytest.raises(BadAnswerError, match="ended before"):
        read(delta("a dog"), b"data: [DONE]")


@pytest.mark.parametrize(
    "stream",
    [
        [delta(reasoning="Fur. "), delta(reasoning="Tail."), delta("A dog")],
        [delta(reasoning_content="Fur. "), delta(reasoning_content="Tail."), delta("A dog")],
        [delta(reasoning="Fur. Tail.", reasoning_content="Fur. Tail."), delta("A dog")],
        [delta("<think>Fur. "), delta("Tail.</thi"), delta("nk>\n\nA dog")],
        [
            event(
                {
                    "choices": [
                        {
                            "delta": {
                                "content": [
                                    {
                                        "type": "thinking",
                                        "thinking": [{"type": "text", "text": "Fur. Tail."}],
                                    },
                                    {"type": "text", "text": "A dog"},
                                ]
                            }
                        }
                    ]
                }
            )
        ],
    ],
    ids=["reasoning", "reasoning_content", "both", "tags", "parts"],
)
def test_thoughts_are_kept_apart_however_they_come(stream: list[bytes]) -> None:
    """
    One channel, beside the answer.
    """
    answer = read(*stream, STOP, DONE)
    assert ("A dog", "Fur. Tail.") == (answer.text, answer.reasoning)


def test_usage_may_come_with_the_last_piece_or_after_it() -> None:
    """
    And in the place where Groq puts it.
    """
    counts = {"prompt_tokens": 21, "completion_tokens": 2}
    last = {"choices": [{"delta": {}, "finish_reason": "stop"}]}
    for events in (
        [delta("a dog"), STOP, usage(2), DONE],
        [delta("a dog"), event({**last, "usage": counts}), DONE],
        [delta("a dog"), event({**last, "x_groq": {"usage": counts}}), DONE],
        [delta("a dog"), event({**last, "usage": None}), usage(2), DONE],
    ):
        answer = read(*events)
        assert (21, 2) == (answer.prompt_tokens, answer.new_tokens)


# --- Anthropic


MESSAGE = [
    said(
        "message_start",
        message={
            "id": "msg_1",
            "model": "claude",
            "usage": {"input_tokens": 5, "cache_read_input_tokens": 16, "output_tokens": 1},
        },
    ),
    said("content_block_start", index=0, content_block={"type": "thinking", "thinking": ""}),
    said("ping"),
    said("content_block_delta", index=0, delta={"type": "thinking_delta", "thinking": "Fur."}),
    said("content_block_delta", index=0, delta={"type": "signature_delta", "signature": "x"}),
    said("content_block_stop", index=0),
    said("content_block_start", index=1, content_block={"type": "text", "text": ""}),
    said("content_block_delta", index=1, delta={"type": "text_delta", "text": "A "}),
    said("content_block_delta", index=1, delta={"type": "text_delta", "text": "dog"}),
    said("content_block_stop", index=1),
]


def ended(reason: str) -> list[bytes]:
    return [
        said("message_delta", delta={"stop_reason": reason}, usage={"output_tokens": 9}),
        said("message_stop"),
    ]


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("end_turn", StopReason.END),
        ("stop_sequence", StopReason.END),
        ("max_tokens", StopReason.LENGTH),
        ("refusal", StopReason.FILTERED),
        ("model_context_window_exceeded", StopReason.LENGTH),
    ],
)
def test_a_message_of_anthropic_is_read(reason: str, expected: StopReason) -> None:
    """
    Tokens that were cached are tokens of the prompt, too.
    """
    answer = read(*MESSAGE, *ended(reason), codec=MESSAGES)
    assert ("A dog", "Fur.", expected) == (answer.text, answer.reasoning, answer.stop_reason)
    assert (21, 9) == (answer.prompt_tokens, answer.new_tokens)
    assert answer.served is not None
    assert ("claude", "msg_1", 16) == (
        answer.served.model,
        answer.served.response_id,
        answer.served.cached_tokens,
    )


def test_a_message_of_anthropic_that_came_whole_is_read() -> None:
    """
    The same answer.
    """
    content = [{"type": "thinking", "thinking": "Fur."}, {"type": "text", "text": "A dog"}]
    counts = {"input_tokens": 21, "output_tokens": 9}
    document = {"type": "message", "content": content, "stop_reason": "end_turn", "usage": counts}
    answer = read(json.dumps(document).encode(), codec=MESSAGES)
    assert ("A dog", "Fur.", 21, 9) == (
        answer.text,
        answer.reasoning,
        answer.prompt_tokens,
        answer.new_tokens,
    )


def test_an_error_of_anthropic_within_a_stream_is_one() -> None:
    """
    With its own name.
    """
    error = said("error", error={"type": "overloaded_error", "message": "Overloaded"})
    with pytest.raises(RefusedError) as caught:
        read(*MESSAGE, error, codec=MESSAGES)
    refusal = caught.value.refusal
    assert ("overloaded_error", "Overloaded", True) == (
        refusal.code,
        refusal.words,
        refusal.may_pass,
    )


def test_a_message_of_anthropic_that_was_cut_is_none() -> None:
    """
    There is no reason and no end.
    """
    with pytest.raises(BadAnswerError, match="ended before"):
        read(*MESSAGE, codec=MESSAGES)


# --- OpenAI's responses


def response(status: str, **fields: Any) -> dict[str, Any]:
    counts = {
        "input_tokens": 21,
        "input_tokens_details": {"cached_tokens": 16},
        "output_tokens": 9,
        "output_tokens_details": {"reasoning_tokens": 4},
    }
    about = {"object": "response", "id": "resp_1", "model": "gpt", "error": None}
    return {**about, "status": status, "usage": counts, **fields}


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        (response("completed"), StopReason.END),
        (
            response("incomplete", incomplete_details={"reason": "max_output_tokens"}),
            StopReason.LENGTH,
        ),
        (
            response("incomplete", incomplete_details={"reason": "content_filter"}),
            StopReason.FILTERED,
        ),
    ],
)
def test_a_response_of_openai_is_read(end: dict[str, Any], expected: StopReason) -> None:
    """
    It has an end of its own, and no [DONE].
    """
    answer = read(
        said("response.created", response=response("in_progress", usage=None)),
        said("response.reasoning_summary_text.delta", delta="Fur."),
        said("response.output_text.delta", delta="A "),
        said("response.output_text.delta", delta="dog"),
        said("response.output_text.done", text="A dog"),
        said(f"response.{end['status']}", response=end),
        codec=RESPONSES,
    )
    assert ("A dog", "Fur.", expected, 21, 9) == (
        answer.text,
        answer.reasoning,
        answer.stop_reason,
        answer.prompt_tokens,
        answer.new_tokens,
    )
    assert answer.served is not None
    assert (16, 4) == (answer.served.cached_tokens, answer.served.reasoning_tokens)


def test_a_response_that_failed_is_an_error() -> None:
    """
    Though its status of HTTP is 200.
    """
    failed = response("failed", error={"code": "server_error", "message": "It broke"})
    with pytest.raises(RefusedError) as caught:
        read(said("response.failed", response=failed), codec=RESPONSES)
    assert "It broke" == caught.value.refusal.words


def test_a_response_that_came_whole_is_read_and_a_refusal_is_none_that_is_whole() -> None:
    """
    What the model says instead is its text.
    """
    parts = [{"type": "refusal", "refusal": "I cannot."}]
    document = response("completed", output=[{"type": "message", "content": parts}])
    answer = read(json.dumps(document).encode(), codec=RESPONSES)
    assert ("I cannot.", StopReason.FILTERED) == (answer.text, answer.stop_reason)


# --- anything

NAMES = [
    "choices",
    "delta",
    "message",
    "content",
    "reasoning",
    "finish_reason",
    "usage",
    "error",
    "code",
    "type",
    "text",
    "thinking",
    "output",
    "response",
    "status",
    "summary",
    "detail",
    "object",
    "x_groq",
    "stop_reason",
    "prompt_tokens",
]
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner),
    max_leaves=12,
)


@given(
    documents=st.lists(st.dictionaries(st.sampled_from(NAMES), JSON_VALUES), max_size=4),
    codec=st.sampled_from([CHAT, MESSAGES, RESPONSES]),
    kind=st.sampled_from(["", "error", "message_start", "message_delta", "response.completed"]),
)
def test_any_documents_are_an_answer_or_an_error(
    documents: list[dict[str, Any]], codec: Codec, kind: str
) -> None:
    """
    Fields of another kind are as if they were not there.
    """
    events = [event({"type": kind, **document}) for document in documents]
    try:
        read(*events, DONE, codec=codec)
        read(*(json.dumps(document).encode() for document in documents[:1]), codec=codec)
    except (BadAnswerError, RefusedError):
        pass


@given(text=st.text(max_size=60), sizes=st.lists(st.integers(1, 9), min_size=1, max_size=20))
def test_how_bytes_are_cut_makes_no_difference(text: str, sizes: list[int]) -> None:
    """
    The pieces are whole characters, and together the answer.
    """
    data = delta(text.encode("utf-8", "ignore").decode()) + STOP + DONE
    parts, at = [], 0
    while at < len(data):
        size = sizes[at % len(sizes)]
        parts.append(data[at : at + size])
        at += size
    assert read(data).text == read(*parts).text
