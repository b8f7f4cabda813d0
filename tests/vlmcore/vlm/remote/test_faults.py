"""What goes wrong with servers of models: each fault is one clear error, with the text so far."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import trustme
from hypothesis import given
from hypothesis import strategies as st

from model_server_cases import (
    DONE,
    END,
    HANG_UP,
    QUICK,
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
)
from vlmcore.errors import (
    ContractError,
    EndpointError,
    LimitExceededError,
    ModelAccessError,
    ModelError,
    ModelNotServedError,
    ModelServerBusyError,
    ModelServerError,
    ModelServerKeyError,
    ModelServerProtocolError,
    ModelServerRateLimitError,
    ModelServerRefusedError,
    ModelServerTimeoutError,
    ModelServerUnavailableError,
)
from vlmcore.limits import ModelServerLimits
from vlmcore.vlm.generation import CancelToken, Generation, GenerationOptions, StopReason
from vlmcore.vlm.prompt import Prompt
from vlmcore.vlm.remote.async_predictors import AsyncOpenAICompatiblePredictor
from vlmcore.vlm.remote.predictors import OpenAICompatiblePredictor
from vlmcore.vlm.remote.retrying import Retries

PROMPT = Prompt(text="What is this?")
OPTIONS = GenerationOptions()
Ask = Callable[..., Generation]


def blocking(
    url: str,
    prompt: Prompt = PROMPT,
    options: GenerationOptions = OPTIONS,
    *,
    cancel: CancelToken | None = None,
    **kwargs: Any,
):
    with OpenAICompatiblePredictor(url, model="m", **{"retries": QUICK, **kwargs}) as predictor:
        return predictor.generate(prompt, options, cancel=cancel)


def awaited(
    url: str,
    prompt: Prompt = PROMPT,
    options: GenerationOptions = OPTIONS,
    *,
    cancel: CancelToken | None = None,
    **kwargs: Any,
) -> Generation:
    async def ask() -> Generation:
        terms = {"retries": QUICK, **kwargs}
        async with AsyncOpenAICompatiblePredictor(url, model="m", **terms) as predictor:
            return await predictor.generate(prompt, options, cancel=cancel)

    return asyncio.run(ask())


both = pytest.mark.parametrize("ask", [blocking, awaited])

PAGE = b"<!DOCTYPE html><html><head><style>p{}</style></head><body><h1>Welcome</h1></body></html>"
BEGUN = (delta("A red"), delta(" square"))
HALF = [STREAM, *map(chunk, BEGUN)]
HINT = b"HTTP/1.1 100 Continue\r\n\r\n"


def drips(first: list[bytes], more: bytes = b"") -> Script:
    """Send *more* again and again."""

    def script(asked: Asked) -> Iterator[bytes]:
        yield from first
        while not asked.closing.wait(0.02):
            yield more

    return script


@both
@pytest.mark.parametrize(
    ("script", "error", "words", "text"),
    [
        (lambda _: [*HALF, HANG_UP], ModelServerProtocolError, "hung up", "A red square"),
        (streams(*BEGUN), ModelServerProtocolError, "ended before the answer was", "A red square"),
        (lambda _: [HANG_UP], ModelServerProtocolError, "hung up", ""),
        (lambda _: [STREAM, HANG_UP], ModelServerProtocolError, "hung up", ""),
        (
            streams(*BEGUN, event({"error": {"message": "out of memory", "code": 500}})),
            ModelServerBusyError,
            "out of memory",
            "A red square",
        ),
        (
            streams(event({"error": "overloaded"})),
            ModelServerRefusedError,
            "overloaded",
            "",
        ),
        (
            streams(*BEGUN, b"data: {broken\n\n"),
            ModelServerProtocolError,
            "no JSON",
            "A red square",
        ),
        (streams(*BEGUN, b"data: [1]\n\n"), ModelServerProtocolError, "list", "A red square"),
        (says(PAGE, kind="text/html"), ModelServerProtocolError, "text/html", ""),
        (says(PAGE), ModelServerProtocolError, "expected an answer in JSON", ""),
        (says(PAGE, kind="text/html", status=502), ModelServerBusyError, "Welcome", ""),
        (says(b"", kind="text/html", status=404), ModelServerRefusedError, "says nothing", ""),
        (says(b""), ModelServerProtocolError, "expected an answer in JSON", ""),
        (says(b"{}"), ModelServerProtocolError, "none of the fields", ""),
        (
            says(b'{"object": "error", "message": "bad", "code": 400}'),
            ModelServerRefusedError,
            "bad",
            "",
        ),
        (says(b'{"error": {"message": "no such thing"}}'), ModelServerRefusedError, "no such", ""),
        (refuses(401, "wrong key"), ModelServerKeyError, "wrong key", ""),
        (refuses(403, "not you"), ModelServerKeyError, "not you", ""),
        (refuses(404, "The model `m` does not exist."), ModelNotServedError, "does not exist", ""),
        (refuses(400, "what?", code="model_not_found"), ModelNotServedError, "what", ""),
        (says(b'{"detail": "Not Found"}', status=404), ModelServerRefusedError, "Not Found", ""),
        (
            says(b'{"detail": [{"loc": ["body", "x"], "msg": "Field required"}]}', status=422),
            ModelServerRefusedError,
            "body.x: Field required",
            "",
        ),
        (refuses(429, "slow down"), ModelServerRateLimitError, "slow down", ""),
        (refuses(500, "oh"), ModelServerBusyError, "oh", ""),
        (refuses(503, "oh"), ModelServerBusyError, "oh", ""),
        (refuses(529, "oh"), ModelServerBusyError, "oh", ""),
        (refuses(400, "too long"), ModelServerRefusedError, "too long", ""),
        (
            says(b"moved", status=307, more="location: http://127.0.0.1:1/\r\n"),
            ModelServerRefusedError,
            "no redirect is followed",
            "",
        ),
        (lambda _: [b"SSH-2.0-OpenSSH_9.6\r\n"], ModelServerProtocolError, "expected HTTP", ""),
        (lambda _: [b"HTTP/1.1 OK\r\n\r\n"], ModelServerProtocolError, "broke the protocol", ""),
        (
            says(b"{}", more="content-encoding: gzip\r\n"),
            ModelServerProtocolError,
            "content-encoding",
            "",
        ),
    ],
)
def test_a_fault_is_one_error_that_says_what_is_wrong_with_the_text_so_far(
    ask: Ask, script: Script, error: type[ModelServerError], words: str, text: str
) -> None:
    """
    Never an answer that is cut, and never an exception of somebody else.
    """
    with serving(script) as server, pytest.raises(error, match=words) as caught:
        ask(server.url)
    assert type(caught.value) is error
    assert text == caught.value.text
    assert "m" == caught.value.model
    assert None is caught.value.__cause__
    assert None is caught.value.__context__


def test_a_model_that_is_not_there_is_the_error_of_local_models_too() -> None:
    """
    ``except ModelAccessError`` holds wherever a model is.
    """
    with serving(refuses(404, "model 'm' not found")) as server, pytest.raises(ModelAccessError):
        blocking(server.url)


@both
@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, 529])
def test_a_busy_server_is_asked_again(ask: Ask, status: int) -> None:
    """
    Three times no, then an answer, which says how often it took.
    """
    no = refuses(status, "busy")
    with serving(no, no, no, answers("Here it is")) as server:
        answer = ask(server.url)
    assert ("Here it is", 4) == (answer.text, answer.served.attempts)


@both
@pytest.mark.parametrize(
    "script",
    [
        refuses(400),
        refuses(401),
        refuses(404),
        refuses(422),
        refuses(429, "no money", code="insufficient_quota"),
    ],
)
def test_what_will_not_pass_is_not_asked_again(ask: Ask, script: Script) -> None:
    """
    A wrong key is not tried five times.
    """
    with serving(script) as server, pytest.raises(ModelServerRefusedError):
        ask(server.url)
    assert 1 == len(server.asked)


@both
def test_a_server_that_refuses_a_request_before_it_has_read_it_is_asked_on_another_connection(
    ask: Ask,
) -> None:
    """
    On the same one the rest of the first request would come before the second.
    """
    more = {"padding": "x" * 8_000_000}  # beyond what the sockets hold
    with serving(refuses(429, "busy"), answers("Here it is")) as server:
        server.reads_first_body = False
        answer = ask(server.url, request_fields=more)
    assert ("Here it is", 2) == (answer.text, answer.served.attempts)
    assert more["padding"] == server.asked[1].document["padding"]
    assert [1, 2] == [each.connection for each in server.asked]


@both
def test_an_answer_that_has_begun_is_not_asked_for_again(ask: Ask) -> None:
    """
    Its pieces were shown already.
    """
    broken = streams(*BEGUN, event({"error": {"message": "overloaded", "code": 503}}))
    with serving(broken, answers("again")) as server, pytest.raises(ModelServerBusyError):
        ask(server.url)
    assert 1 == len(server.asked)


@both
def test_an_overload_in_a_stream_that_has_not_begun_is_asked_again(ask: Ask) -> None:
    """
    Status 200 comes before the server knows.
    """
    busy = streams(event({"error": {"message": "overloaded", "type": "overloaded_error"}}))
    with serving(busy, answers("Here it is")) as server:
        assert "Here it is" == ask(server.url).text


@both
def test_a_wait_that_ends_after_the_deadline_is_not_waited_for(ask: Ask) -> None:
    """
    The error comes at once, and says when the server may be asked.
    """
    began_s = time.monotonic()
    with (
        serving(refuses(429, more="retry-after: 300\r\n")) as server,
        pytest.raises(ModelServerRateLimitError) as caught,
    ):
        ask(server.url, timeout_s=60)
    assert (300.0, 1) == (caught.value.retry_after_s, len(server.asked))
    assert time.monotonic() - began_s < 30


@both
@pytest.mark.parametrize(
    "script",
    [
        drips([STREAM]),
        drips([b"HTTP/1.1 2"]),
        drips(HALF, b"3\r\n: \n\r\n"),
        drips(HALF, chunk(b": ping\n\n")),
        drips([HINT], HINT),
    ],
    ids=["head", "status line", "comments", "pings", "hints"],
)
def test_an_answer_that_drips_or_never_ends_ends_at_the_deadline(ask: Ask, script: Script) -> None:
    """
    One deadline for all of a call, whatever comes meanwhile.
    """
    with serving(script) as server, pytest.raises(ModelServerTimeoutError) as caught:
        ask(server.url, timeout_s=0.4)
    assert ("answer", 0.4) == (caught.value.wait, caught.value.waited_s)
    assert caught.value.text in ("", "A red square")


@both
@pytest.mark.parametrize(
    ("script", "limits", "words"),
    [
        (streams(delta("x" * 5000), DONE), {"max_event_bytes": 4000}, "max_event_bytes"),
        (says(b'{"a": "' + b"x" * 5000), {"max_event_bytes": 4000}, "max_event_bytes"),
        (
            streams(*(delta(f"{i} ") for i in range(90)), DONE),
            {"max_answer_bytes": 9000},
            "max_answer_bytes",
        ),
        (
            says(b"{}", more="a: " + "x" * 5000 + "\r\n"),
            {"max_head_bytes": 4000},
            "max_head_bytes|l",
        ),
        (lambda _: [STREAM, *[chunk(b"x" * 0x10000)] * 400], {}, "expected an answer in JSON"),
        (lambda _: [STREAM, *[chunk(b"data: " + b"x" * 0x10000)] * 400], {}, "max_event_bytes"),
    ],
)
def test_an_answer_that_is_too_large_is_not_held(
    ask: Ask, script: Script, limits: dict[str, int], words: str
) -> None:
    """
    Memory is bounded whatever a server sends.
    """
    with serving(script) as server, pytest.raises(ModelServerProtocolError, match=words):
        ask(server.url, limits=ModelServerLimits(**limits))


@both
def test_an_error_without_an_end_is_not_read_to_its_end(ask: Ask) -> None:
    """
    What is shown of it is short; what is read of it, too.
    """

    def endless_error(_: Asked) -> Iterator[bytes]:
        yield b"HTTP/1.1 400 No\r\ntransfer-encoding: chunked\r\n\r\n"
        while True:
            yield chunk(b"x" * 0x10000)

    with serving(endless_error) as server, pytest.raises(ModelServerRefusedError) as caught:
        ask(server.url)
    assert len(str(caught.value)) < 500


@both
def test_a_request_that_is_too_large_is_not_sent(ask: Ask) -> None:
    """
    The limit is named, and the server is not asked.
    """
    with serving(model) as server, pytest.raises(LimitExceededError, match="max_request_bytes"):
        ask(server.url, Prompt(text="x" * 9000), limits=ModelServerLimits(max_request_bytes=8000))
    assert [] == server.asked


@both
def test_a_port_where_nothing_listens_is_told_as_such(ask: Ask) -> None:
    """
    At once, and not after four tries.
    """
    with serving(model) as server:
        url = server.url
    with pytest.raises(ModelServerUnavailableError, match="nothing listens there") as caught:
        ask(url)
    assert isinstance(caught.value, ConnectionError)


def test_a_kept_connection_that_the_server_gave_up_is_made_anew() -> None:
    """
    Servers close what is idle, and say nothing.
    """

    def once(asked: Asked) -> Iterator[bytes]:
        yield from model(asked)
        yield HANG_UP

    with serving(once) as server, OpenAICompatiblePredictor(server.url, model="m") as predictor:
        texts = [predictor.generate(PROMPT).text for _ in range(3)]
    assert ["You asked: What is this?"] * 3 == texts
    assert 3 == server.connections


def test_a_kept_connection_that_is_given_up_when_the_request_arrives_is_made_anew() -> None:
    """
    Nothing of an answer had come.
    """

    def at_once(asked: Asked) -> Iterator[bytes]:
        yield b"".join(model(asked))  # no end of it is still to come, whatever the machine does

    with (
        serving(at_once, lambda _: [HANG_UP], model) as server,
        OpenAICompatiblePredictor(server.url, model="m") as predictor,
    ):
        texts = [predictor.generate(PROMPT).text for _ in range(2)]
    assert ["You asked: What is this?"] * 2 == texts
    assert (2, 3) == (server.connections, len(server.asked))


def test_connections_are_kept_for_the_next_call() -> None:
    """
    Also where the end of an answer comes a little after what is said to be its last event.
    """

    def late(asked: Asked) -> Iterator[bytes]:
        *parts, end = model(asked)
        yield from parts
        time.sleep(0.02)
        yield end

    with serving(late) as server, OpenAICompatiblePredictor(server.url, model="m") as predictor:
        for _ in range(4):
            predictor.generate(PROMPT)
            time.sleep(0.1)
    assert (1, 4) == (server.connections, len(server.asked))


@both
def test_a_server_that_proves_who_it_is_is_asked_and_no_other(ask: Ask) -> None:
    """
    Over TLS, with an authority of one's own; without it the certificate is not trusted.
    """
    authority = trustme.CA()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(tls)
    trusted = ssl.create_default_context()
    authority.configure_trust(trusted)
    with serving(model, tls=tls) as server:
        assert "You asked: What is this?" == ask(server.url, tls=trusted).text
        with pytest.raises(ModelServerUnavailableError, match="certificate is not trusted"):
            ask(server.url)


# --- ending calls


def waiting(asked: Asked) -> Iterator[bytes]:
    """Begin, and then say nothing."""
    yield from HALF
    asked.closing.wait(20)


def silent(asked: Asked) -> Iterator[bytes]:
    """Say nothing."""
    asked.closing.wait(20)
    yield END


def endless(asked: Asked) -> Iterator[bytes]:
    """Write on and on."""
    yield STREAM
    while not asked.closing.wait(0.005):
        yield chunk(delta("more "))


@pytest.mark.parametrize(
    ("script", "text"),
    [
        (waiting, "A red square"),
        (silent, ""),
        (refuses(503, more="retry-after: 30\r\n"), ""),
    ],
    ids=["within the answer", "before it", "while waiting to ask again"],
)
@pytest.mark.parametrize("kind", ["blocking", "awaited"])
def test_a_call_that_is_cancelled_ends_at_once_with_the_text_so_far(
    script: Script, text: str, kind: str
) -> None:
    """
    In each phase, from another thread; the connection is closed, so that the server stops.
    """
    token = CancelToken()
    with serving(script) as server:
        timer = threading.Timer(0.3, token.cancel)
        timer.start()
        began_s = time.monotonic()
        if kind == "blocking":
            with OpenAICompatiblePredictor(server.url, model="m") as predictor:
                answer = predictor.generate(PROMPT, cancel=token)
        else:

            async def ask() -> Generation:
                async with AsyncOpenAICompatiblePredictor(server.url, model="m") as predictor:
                    return await predictor.generate(PROMPT, cancel=token)

            answer = asyncio.run(ask())
        took_s = time.monotonic() - began_s
        timer.join()
    assert (text, StopReason.CANCELLED) == (answer.text, answer.stop_reason)
    assert took_s < 5


@both
def test_a_call_that_is_cancelled_while_its_request_is_sent_ends_at_once(ask: Ask) -> None:
    """
    To a server that does not read it.
    """
    token = CancelToken()
    more = {"padding": "x" * 8_000_000}  # beyond what the sockets hold
    with serving(silent) as server:
        server.reads_first_body = False
        timer = threading.Timer(0.3, token.cancel)
        timer.start()
        began_s = time.monotonic()
        answer = ask(server.url, request_fields=more, cancel=token)
        took_s = time.monotonic() - began_s
        timer.join()
    assert ("", StopReason.CANCELLED) == (answer.text, answer.stop_reason)
    assert took_s < 5


def test_leaving_a_stream_closes_the_connection() -> None:
    """
    That is how a server hears that it may stop.
    """

    with serving(endless) as server, OpenAICompatiblePredictor(server.url, model="m") as predictor:
        with predictor.stream(PROMPT) as stream:
            assert "more" == next(stream)
        assert server.left.wait(10)


def test_a_task_that_is_cancelled_closes_the_connection() -> None:
    """
    As any cancelled task, it ends with ``CancelledError``, and nothing is left open.
    """

    async def ask(url: str) -> None:
        async with AsyncOpenAICompatiblePredictor(url, model="m") as predictor:
            task = asyncio.ensure_future(predictor.generate(PROMPT))
            await asyncio.sleep(0.2)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    with serving(endless) as server:
        asyncio.run(ask(server.url))
        assert server.left.wait(10)


def test_closing_ends_the_calls_of_other_threads() -> None:
    """
    They end as if they were cancelled; later ones are refused.
    """
    with serving(waiting) as server:
        predictor = OpenAICompatiblePredictor(server.url, model="m")
        with contextlib.closing(predictor):
            found: list[Generation] = []
            thread = threading.Thread(target=lambda: found.append(predictor.generate(PROMPT)))
            thread.start()
            while not server.asked:
                time.sleep(0.01)
            predictor.close()
            thread.join(10)
        assert [StopReason.CANCELLED] == [answer.stop_reason for answer in found]
        with pytest.raises(ModelError, match="closed"):
            predictor.generate(PROMPT)


# --- what is refused before anything is sent


@both
@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/v1",
        "http://user:secret@localhost/v1",
        "http://localhost/v1?key=secret",
        "http://localhost/../v1",
        "ftp://localhost/v1",
        "http://127.1/v1",
        "http://localhost:0/v1",
    ],
)
def test_an_address_that_may_not_be_dialled_is_refused(ask: Ask, url: str) -> None:
    """
    By the rules for every endpoint; and nothing that may be a password is shown.
    """
    with pytest.raises(EndpointError) as caught:
        ask(url)
    assert "secret" not in str(caught.value)


@both
def test_a_name_that_leads_into_a_private_network_is_not_dialled(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Unless the caller says that the server is there.
    """
    found = [(2, 1, 6, "", ("10.0.0.5", 443))]
    monkeypatch.setattr(
        "vlmcore._net.lookup.Lookup._asked", lambda _, flags: _only_names(flags, found)
    )
    with pytest.raises(EndpointError, match="private network"):
        ask("https://models.example/v1")


def _only_names(flags: int, found: list[Any]) -> list[Any]:
    if flags & socket.AI_NUMERICHOST:
        raise socket.gaierror
    return found


# --- secrets


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> str:
    secret = "sk-Zx9+q/7=Kw'3\"d"
    monkeypatch.setenv("CUSTOM_API_KEY", secret)
    return secret


@both
def test_the_key_of_a_server_of_ones_own_goes_to_this_machine(ask: Ask, key: str) -> None:
    """
    As a bearer, where the environment has one.
    """
    with serving(model) as server:
        ask(server.url)
    assert f"Bearer {key}" == server.asked[0].headers["authorization"]


@given(words=st.text(max_size=40), place=st.sampled_from(["message", "stream", "page", "detail"]))
def test_the_key_is_in_no_text_whatever_the_server_says(words: str, place: str) -> None:
    """
    Servers repeat what they were sent.
    """
    secret = "sk-Zx9+q/7=Kw'3\"d"
    said = f"{words} {secret} {json.dumps(secret)} {words}"
    script = {
        "message": refuses(400, said, code=secret),
        "stream": streams(delta(said), event({"error": {"message": said, "type": secret}})),
        "page": says(said.encode("utf-8", "replace"), kind="text/html", status=500),
        "detail": says(json.dumps({"detail": said}).encode(), status=422),
    }[place]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUSTOM_API_KEY", secret)
        with serving(script) as server, pytest.raises(ModelServerError) as caught:
            blocking(server.url, retries=Retries(times=0))
    error = caught.value
    shown = f"{error} {error!r} {error.args} {error.__cause__!r} {error.__context__!r}"
    assert secret not in shown
    assert json.dumps(secret)[1:-1] not in shown


def test_what_a_predictor_shows_of_itself_has_no_key_in_it(key: str) -> None:
    """
    Whatever is printed or logged.
    """
    predictor = OpenAICompatiblePredictor("http://localhost:9", model="m")
    shown = f"{predictor!r} {predictor.info} {vars(predictor)}"
    assert key not in shown


# --- anything


@given(data=st.binary(max_size=300), is_stream=st.booleans())
def test_any_bytes_are_an_answer_or_an_error_of_ours(data: bytes, *, is_stream: bool) -> None:
    """
    Nothing that a server sends raises anything else.
    """
    head = STREAM if is_stream else b""
    body = chunk(data) + END if is_stream and data else data
    with (
        serving(lambda _: [head + body, HANG_UP]) as server,
        contextlib.suppress(ModelServerError),
    ):
        blocking(server.url, timeout_s=5, retries=Retries(times=0))


def test_options_that_a_server_has_no_field_for_are_refused_before_it_is_asked() -> None:
    """
    Nothing that was asked for is left out in silence.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "sk-test-123456")
        predictor = OpenAICompatiblePredictor(provider="openai", model="m")
        for options in (GenerationOptions(top_k=5), GenerationOptions(repetition_penalty=1.1)):
            with pytest.raises(ContractError, match="expected none"):
                predictor.generate(PROMPT, options)
