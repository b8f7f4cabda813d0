"""Tests of the HTTP clients against servers that drip, lie, vanish, or are something else."""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import attrs
import pytest
import trustme
from hypothesis import given, settings
from hypothesis import strategies as st

from client_cases import (
    PROXIES,
    Remote,
    Script,
    asked_once,
    certified,
    drain,
    half,
    hear_request,
    remotes,
    reset,
    said,
    trusting,
)
from http_cases import (
    ANSWER,
    METADATA,
    NEW,
    acting,
    answering,
    async_http_client,
    hear,
    http_client,
    http_peer,
    introduced,
    response,
)
from http_server_cases import serving
from openpi_cases import PLAN, SEEN, with_eyes
from vlmcore.errors import (
    PolicyError,
    PolicyProtocolError,
    PolicyRefusedError,
    PolicyStatusError,
    PolicyTimeoutError,
    PolicyUnavailableError,
)
from vlmcore.limits import HttpLimits
from vlmcore.secrets import Secret

Ask = Callable[..., Any]

ask_once, ask_once_async = asked_once(http_client, async_http_client, SEEN)
both = pytest.mark.parametrize("ask", [ask_once, ask_once_async], ids=["sync", "async"])
remote = remotes(http_client, async_http_client)


def waiting(connection: socket.socket) -> None:
    """Be asked for an action, and say nothing."""
    introduced(connection)
    hear(connection)
    time.sleep(5)


def dripping(data: bytes) -> Script:
    """Send *data* by the byte, one each 100 ms."""

    def script(connection: socket.socket) -> None:
        introduced(connection)
        hear(connection)
        for byte in data:
            connection.sendall(bytes((byte,)))
            time.sleep(0.1)

    return script


@both
@pytest.mark.parametrize(
    "script",
    [
        dripping(ANSWER),
        dripping(b"HTTP/1.1 103 Early Hints\r\n\r\n" * 9),
        lambda c: (introduced(c), hear(c), c.sendall(half(ANSWER)), time.sleep(5)),
        waiting,
    ],
    ids=["answer", "hints", "half", "silence"],
)
def test_an_answer_that_drips_or_never_ends_ends_at_the_deadline(ask: Ask, script: Script) -> None:
    """
    A timeout of half a second returned after 6.2 s, with an answer of a byte each 100 ms.
    """
    with http_peer(script) as url:
        began_at_s = time.monotonic()
        with pytest.raises(PolicyTimeoutError, match=r"no answer within 0.5 s"):
            ask(url, timeout_s=0.5)
    assert time.monotonic() - began_at_s < 4


@both
@pytest.mark.parametrize(
    "script",
    [
        lambda _: time.sleep(5),
        lambda c: (hear(c), time.sleep(5)),
        lambda c: (hear(c), c.sendall(half(METADATA)), time.sleep(5)),
    ],
    ids=["nothing", "silence", "half"],
)
def test_a_server_that_does_not_say_what_it_is_does_not_hang_the_client(
    ask: Ask, script: Script
) -> None:
    """
    It is of the same call, and has no time of its own.
    """
    with http_peer(script) as url, pytest.raises(PolicyTimeoutError, match="no metadata within"):
        ask(url, timeout_s=0.5)


def test_the_late_chunk_of_the_old_observation_is_not_taken_for_the_next(
    remote: Callable[..., Remote],
) -> None:
    """
    Receiving timed out, the client was used again, and the next call returned the late chunk.
    """
    go = threading.Event()

    def late(connection: socket.socket) -> None:
        introduced(connection)
        hear(connection)
        go.wait(5)
        connection.sendall(response({"actions": [[9.0, 9.0]]}))
        drain(connection)

    with http_peer(late, answering) as url:
        policy = remote(url, timeout_s=0.5)
        with pytest.raises(PolicyTimeoutError, match=r"no answer within"):
            policy.infer(SEEN)
        go.set()
        assert PLAN == policy.infer(SEEN).values.tolist()


@both
def test_an_answer_to_another_request_is_not_taken(ask: Ask) -> None:
    """
    What stands before the server may mix them up.
    """
    late = response({"actions": PLAN}, headers={"X-Request-Id": "another"})
    with http_peer(acting(late)) as url, pytest.raises(PolicyProtocolError, match="a late answer"):
        ask(url)


def test_a_second_answer_to_one_request_is_nobodys(remote: Callable[..., Remote]) -> None:
    """
    It would be taken for that to the next.
    """

    def twice(connection: socket.socket) -> None:
        introduced(connection)
        hear(connection)
        connection.sendall(ANSWER + response({"actions": [[9.0, 9.0]]}))
        drain(connection)

    with http_peer(twice, answering) as url:
        policy = remote(url)
        for _ in range(2):
            assert PLAN == policy.infer(SEEN).values.tolist()


def test_what_comes_between_two_calls_is_nobodys_answer(remote: Callable[..., Remote]) -> None:
    """
    Servers say 408 to a connection that nobody uses, and then close it.
    """

    def impatient(connection: socket.socket) -> None:
        introduced(connection)
        hear(connection)
        connection.sendall(ANSWER)
        connection.sendall(response(b"", "408 Request Timeout", {"Connection": "close"}))

    with http_peer(impatient, answering) as url:
        policy = remote(url)
        policy.infer(SEEN)
        policy.wait(0.1)
        assert PLAN == policy.infer(SEEN).values.tolist()


@pytest.mark.parametrize("ending", [lambda _: None, reset], ids=["closed", "reset"])
def test_a_kept_connection_that_the_server_closed_is_noticed_before_anything_is_sent(
    remote: Callable[..., Remote], ending: Script
) -> None:
    """
    Servers close what is idle for five seconds; a policy may think for longer.
    """
    done = threading.Event()

    def once(connection: socket.socket) -> None:
        introduced(connection)
        hear(connection)
        connection.sendall(ANSWER)
        done.wait(5)
        ending(connection)

    with http_peer(once, answering) as url:
        policy = remote(url)
        policy.infer(SEEN)
        done.set()
        policy.wait(0.2)
        assert PLAN == policy.infer(SEEN).values.tolist()


def at_once(connection: socket.socket) -> None:
    """Right after the connection was accepted."""


def in_the_first_request(connection: socket.socket) -> None:
    connection.recv(9)


def before_the_metadata(connection: socket.socket) -> None:
    hear(connection)


def in_the_head_of_the_metadata(connection: socket.socket) -> None:
    hear(connection)
    connection.sendall(METADATA[:20])


def in_the_metadata(connection: socket.socket) -> None:
    hear(connection)
    connection.sendall(METADATA[:-1])


def in_the_request(connection: socket.socket) -> None:
    introduced(connection)
    connection.recv(9)


def before_the_answer(connection: socket.socket) -> None:
    introduced(connection)
    hear(connection)


def in_the_head_of_the_answer(connection: socket.socket) -> None:
    before_the_answer(connection)
    connection.sendall(ANSWER[:20])


def in_the_answer(connection: socket.socket) -> None:
    before_the_answer(connection)
    connection.sendall(ANSWER[:-1])


def in_a_chunk(connection: socket.socket) -> None:
    before_the_answer(connection)
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    connection.sendall(head + b"2f\r\n{")


POINTS = {
    at_once: PolicyUnavailableError,
    in_the_first_request: PolicyUnavailableError,
    before_the_metadata: PolicyUnavailableError,
    in_the_head_of_the_metadata: PolicyUnavailableError,
    in_the_metadata: PolicyUnavailableError,
    in_the_request: PolicyProtocolError,
    before_the_answer: PolicyProtocolError,
    in_the_head_of_the_answer: PolicyProtocolError,
    in_the_answer: PolicyProtocolError,
    in_a_chunk: PolicyProtocolError,
}


@pytest.mark.parametrize("ending", [lambda _: None, reset], ids=["closed", "reset"])
@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.__name__)
def test_a_server_that_is_killed_at_any_point_of_a_call_is_reached_again_by_the_next(
    remote: Callable[..., Remote], point: Script, ending: Script
) -> None:
    """
    The call fails in words of ours, and says whether anything was asked; nothing is asked twice.
    """

    def killed(connection: socket.socket) -> None:
        point(connection)
        ending(connection)

    with http_peer(killed, answering) as url:
        policy = remote(url)
        with pytest.raises(POINTS[point], match="hung up"):
            policy.infer(SEEN)
        assert PLAN == policy.infer(SEEN).values.tolist()


def test_a_server_that_is_restarted_on_the_same_port_is_reached_again(
    remote: Callable[..., Remote],
) -> None:
    """
    While nothing listens there, that is what is said.
    """
    with http_peer(answering) as url:
        policy = remote(url)
        policy.infer(SEEN)
    with pytest.raises(PolicyUnavailableError, match="nothing listens there"):
        policy.infer(SEEN)
    with http_peer(answering, port=int(url.rpartition(":")[2])):
        assert PLAN == policy.infer(SEEN).values.tolist()


def test_a_request_is_never_repeated_once_a_byte_of_it_was_sent(
    remote: Callable[..., Remote],
) -> None:
    """
    A policy with a queue would be asked twice for one frame.
    """
    heard = []

    def dying(connection: socket.socket) -> None:
        introduced(connection)
        heard.append(hear(connection)[0])

    with http_peer(dying) as url, pytest.raises(PolicyProtocolError):
        remote(url).infer(SEEN)
    assert ["POST /v1/infer HTTP/1.1"] == heard


@both
@pytest.mark.parametrize(
    ("script", "error", "words"),
    [
        (lambda c: c.sendall(b"SSH-2.0-OpenSSH_9.6\r\n"), PolicyProtocolError, "SSH-2.0"),
        (
            lambda c: c.sendall(b"\xff\0\0\0\0\0\0\0\1\x7f\3\0NULL"),
            PolicyProtocolError,
            "expected HTTP",
        ),
        (
            lambda c: c.sendall(b"\x15\3\1\0\2\2F"),
            PolicyProtocolError,
            "expected HTTP",
        ),
        (lambda c: c.sendall(b"\n" * 999), PolicyProtocolError, "expected HTTP"),
        (
            acting(response(b"Upgrade required", "426 Upgrade", {"Content-Type": "text/plain"})),
            PolicyStatusError,
            "HTTP 426",
        ),
        (
            acting(response({}, "101 Switching Protocols")),
            PolicyProtocolError,
            "broke the protocol",
        ),
        (acting(response(b"<html>", headers={"Content-Type": "text/html"})), PolicyError, "html"),
        (acting(response({}, "404 Not Found"), response({}, "404 No")), PolicyStatusError, "404"),
    ],
    ids=["ssh", "zeromq", "tls", "lines", "websocket", "switch", "page", "another"],
)
def test_another_protocol_on_the_port_is_told_as_such(
    ask: Ask, script: Script, error: type[PolicyError], words: str
) -> None:
    """
    At once, and not by a client that waits for the end of a line.
    """
    with (
        http_peer(lambda c: (script(c), time.sleep(2))) as url,  # type: ignore[func-returns-value]
        pytest.raises(error, match=words),
    ):
        ask(url)


IN_CHUNKS = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    b'c;x=1\r\n{"actions": \r\n1a\r\n[[0.1, 0.2], [0.3, 0.4]] }\r\n0\r\nTrailer: 1\r\n\r\n'
)


@both
@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 100 Continue\r\n\r\n" + ANSWER,
        b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nLink: </b>\r\n\r\n" + ANSWER,
        IN_CHUNKS,
        response({"actions": PLAN}, headers={"Content-Encoding": "identity"}),
        response({"actions": PLAN}, headers={"Content-Type": "application/json; charset=utf-8"}),
        response({"actions": PLAN}, headers={"Content-Type": None}),  # type: ignore[dict-item]
        response({"actions": PLAN}, headers={"Set-Cookie": "a=1\r\nSet-Cookie: b=2"}),
        response({"actions": PLAN}, version="1.0"),
    ],
    ids=["continue", "hints", "chunked", "identity", "charset", "untyped", "cookies", "1.0"],
)
def test_an_answer_may_be_written_in_any_way_that_http_has(ask: Ask, answer: bytes) -> None:
    """
    Other people's servers, and what stands before them, use all of them.
    """
    with http_peer(acting(answer)) as url:
        assert PLAN == ask(url).values.tolist()


@both
def test_an_answer_without_a_length_ends_with_its_connection(ask: Ask) -> None:
    """
    As those of HTTP/1.0 may.
    """
    metadata = response({}, headers={"Content-Length": None}, version="1.0")  # type: ignore[dict-item]
    answer = metadata.replace(b"{}", b'{"actions": [[0.1, 0.2]]}')

    def once(connection: socket.socket) -> None:
        first, _, _ = hear(connection)
        connection.sendall(metadata if first.startswith("GET") else answer)

    with http_peer(once) as url:
        assert [[0.1, 0.2]] == ask(url).values.tolist()


LONG = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1099511627776\r\n\r\n"
ENDLESS = r"Receive buffer too long|max_head_bytes"  # as it comes in one piece or in more
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def flooding(start: bytes, more: bytes) -> Script:
    """Answer without an end."""

    def script(connection: socket.socket) -> None:
        introduced(connection)
        hear(connection)
        connection.sendall(start)
        while more:
            connection.sendall(more)
        time.sleep(3)

    return script


@both
@pytest.mark.parametrize(
    ("script", "words"),
    [
        (flooding(LONG, b""), "max_response_bytes: got 1099511627776"),
        (flooding(CHUNKED, b"10000\r\n" + b" " * 0x10000 + b"\r\n"), "max_response_bytes"),
        (flooding(b"HTTP/1.0 200 OK\r\n\r\n", b" " * 0x10000), "max_response_bytes"),
        (flooding(CHUNKED + b"1;", b"x" * 0x1000), "broke the protocol"),
        (flooding(b"HTTP/1.1 200 OK\r\nA: ", b"x" * 0x1000), "broke the protocol"),
        (flooding(b"HTTP/1.1 200 OK\r\n", b"A: b\r\n" * 99), ENDLESS),
        (flooding(b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 4000 + b"\r\n", b""), ENDLESS),
        (flooding(CHUNKED + b"0\r\n", b"A: b\r\n" * 99), "broke the protocol"),
        (flooding(b"HTTP/1.1 2", b"0" * 0x1000), "broke the protocol"),
    ],
    ids=[
        "declared",
        "chunks",
        "no length",
        "extension",
        "header",
        "headers",
        "whole headers",
        "trailers",
        "status",
    ],
)
def test_an_answer_without_an_end_is_not_held(ask: Ask, script: Script, words: str) -> None:
    """
    What is declared is refused before it is read, and what is not while it is.
    """
    limits = HttpLimits(max_response_bytes=1 << 20)
    with http_peer(script) as url, pytest.raises(PolicyProtocolError, match=words):
        ask(url, limits=limits, timeout_s=20)


@both
@pytest.mark.parametrize(
    "script",
    [
        flooding(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n" * 9999),
        flooding(b"", b"HTTP/1.1 103 Early Hints\r\n\r\n" * 9999),
    ],
    ids=["chunks", "hints"],
)
def test_a_flood_of_small_pieces_breaks_the_protocol(ask: Ask, script: Script) -> None:
    """
    A quarter of a megabyte of them took seconds to read, whatever the deadline.
    """
    with (
        http_peer(script) as url,
        pytest.raises(PolicyProtocolError, match="too many small pieces at once"),
    ):
        ask(url, timeout_s=60)


@both
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (response({}, headers={"Content-Encoding": "gzip"}), "content-encoding: got 'gzip'"),
        (response({}, headers={"Content-Length": "-1"}), "broke the protocol"),
        (response({}, headers={"Content-Length": "9" * 9999}), "broke the protocol"),
        (response({}, headers={"Content-Length": "2\r\nContent-Length: 3"}), "broke the protocol"),
        (response({}, headers={"Content-Type": "a/b\r\nContent-Type: c/d"}), "got two"),
        (response({}, headers={"X-Request-Id": "a\r\nX-Request-Id: b"}), "got two"),
        (response({}, headers={"Transfer-Encoding": "gzip"}), "broke the protocol"),
        (response({}, "999 Odd"), "status: got 999"),
        (b"HTTP/1.1 200 OK\r\nA\0: b\r\n\r\n", "broke the protocol"),
        (b"HTTP/1.1 OK\r\n\r\n", "broke the protocol"),
        (b"HTTP/1.9999 200 OK\r\n\r\n", "broke the protocol"),
        (CHUNKED + b"-1\r\n", "broke the protocol"),
        (CHUNKED + b"fffffffffffffffffffffffff\r\n", "broke the protocol"),
        (response({"a": "x" * 2_000_000}), "max_metadata_bytes"),
    ],
)
def test_metadata_that_is_written_as_nothing_we_read_is_refused(
    ask: Ask, answer: bytes, words: str
) -> None:
    """
    What may be read in two ways is read in none.
    """
    with (
        http_peer(acting(ANSWER, answer)) as url,
        pytest.raises(PolicyProtocolError, match=words),
    ):
        ask(url)


def test_a_server_that_refuses_a_request_before_it_has_read_it_is_heard(
    remote: Callable[..., Remote],
) -> None:
    """
    It reads no more, so all that can be sent was sent long ago.
    """
    robot, seen = with_eyes(1, height_px=1500, width_px=1500)
    refusal = response({"error": "too large"}, "413 Large", {"Connection": "close"})

    def refusing(connection: socket.socket) -> None:
        introduced(connection, response({"http": NEW}))
        hear_request(connection)
        connection.sendall(refusal)
        time.sleep(5)

    with (
        http_peer(refusing, rcvbuf=4096) as url,
        pytest.raises(PolicyStatusError, match=r"too large; the request has 9\d+ bytes"),
    ):
        remote(url, embodiment=robot).infer(seen)


def test_a_refusal_is_heard_on_a_connection_that_was_closed_after_it(
    remote: Callable[..., Remote],
) -> None:
    """
    Sending fails then, and what the server said last is still there.
    """
    robot, seen = with_eyes(1, height_px=1500, width_px=1500)
    refusal = response({"error": "too large"}, "413 Large", {"Connection": "close"})

    def refusing(connection: socket.socket) -> None:
        introduced(connection, response({"http": NEW}))
        hear_request(connection)
        connection.sendall(refusal)

    with http_peer(refusing) as url, pytest.raises(PolicyStatusError, match="too large"):
        remote(url, embodiment=robot).infer(seen)


def test_a_peer_that_takes_nothing_more_does_not_hang_the_client(
    remote: Callable[..., Remote],
) -> None:
    """
    A request of some megabytes does not fit into what the kernel holds.
    """
    robot, seen = with_eyes(1, height_px=1500, width_px=1500)

    def deaf(connection: socket.socket) -> None:
        introduced(connection, response({"http": NEW}))
        time.sleep(5)

    with http_peer(deaf, rcvbuf=4096) as url:
        policy = remote(url, embodiment=robot, timeout_s=1.5)
        with pytest.raises(PolicyTimeoutError, match=r"no (room for the request|answer)"):
            policy.infer(seen)


@both
def test_no_proxy_of_the_environment_is_asked(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Camera frames and the token would go through it.
    """
    asked = []
    with http_peer(asked.append) as proxy, http_peer(answering) as url:  # type: ignore[arg-type]
        for name in PROXIES:
            monkeypatch.setenv(name, proxy)
        assert PLAN == ask(url).values.tolist()
    assert [] == asked


@both
def test_a_redirect_is_not_followed(ask: Ask) -> None:
    """
    The token and the frames would go where nobody agreed to.
    """
    asked: list[socket.socket] = []
    with http_peer(asked.append) as elsewhere:  # type: ignore[arg-type]
        moved = response(b"", "307 Moved", {"Location": f"{elsewhere}/v1/infer"})
        with http_peer(acting(moved, moved)) as url, pytest.raises(PolicyStatusError, match="307"):
            ask(url)
    assert [] == asked


class StuckResolver:
    """A resolver that answers when it is let."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.go = threading.Event()
        self.asked = threading.Event()
        self.real = socket.getaddrinfo
        monkeypatch.setattr(socket, "getaddrinfo", self)

    def __call__(self, host: Any, port: Any, *rest: Any, **options: Any) -> Any:
        if host != "policies.example.org":
            return self.real(host, port, *rest, **options)
        if options.get("flags", 0) & socket.AI_NUMERICHOST:
            raise socket.gaierror(socket.EAI_NONAME, "no address")
        self.asked.set()
        self.go.wait(10)
        raise socket.gaierror(socket.EAI_NONAME, "unknown")


def test_a_resolver_that_does_not_answer_ends_at_the_deadline(
    remote: Callable[..., Remote], monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    The system's own lookup takes as long as it likes.
    """
    resolver = StuckResolver(monkeypatch)
    policy = remote("https://policies.example.org", allow_remote=True, timeout_s=0.3)
    began_at_s = time.monotonic()
    with pytest.raises(PolicyUnavailableError, match=r"no connection within 0.3 s"):
        policy.infer(SEEN)
    assert time.monotonic() - began_at_s < 4
    resolver.go.set()


def test_closing_ends_a_lookup_that_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    As it ends everything else that a call waits for.
    """
    resolver = StuckResolver(monkeypatch)
    policy = http_client("https://policies.example.org", allow_remote=True, timeout_s=30)
    failed = []

    def ask() -> None:
        with pytest.raises(PolicyError) as caught:
            policy.infer(SEEN)
        failed.append(str(caught.value))

    thread = threading.Thread(target=ask)
    thread.start()
    assert resolver.asked.wait(5)
    policy.close()
    thread.join(5)
    resolver.go.set()
    assert ["https://policies.example.org:8787: it was closed during the call"] == failed


def test_a_name_that_nobody_knows_is_told_as_such(
    remote: Callable[..., Remote], monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    In words, not in a number of the resolver.
    """
    StuckResolver(monkeypatch).go.set()
    policy = remote("https://policies.example.org", allow_remote=True)
    with pytest.raises(PolicyUnavailableError, match="its name is not known to the resolver"):
        policy.infer(SEEN)


def test_the_wait_for_another_call_is_part_of_the_time() -> None:
    """
    Or a call would take twice as long as was allowed.
    """
    asked = threading.Event()

    def script(connection: socket.socket) -> None:
        introduced(connection)
        hear(connection)
        asked.set()
        time.sleep(5)

    with http_peer(script) as url, http_client(url, timeout_s=2.0) as policy:
        first = threading.Thread(target=failing, args=(policy,))
        first.start()
        assert asked.wait(5)
        policy._terms = attrs.evolve(policy._terms, timeout_s=0.2)
        with pytest.raises(PolicyTimeoutError, match="no end of another call"):
            policy.infer(SEEN)
        first.join()


def failing(policy: Any) -> None:
    with pytest.raises(PolicyError):
        policy.infer(SEEN)


def test_closing_from_another_thread_ends_a_call_that_waits() -> None:
    """
    At once, and in words of ours.
    """
    with http_peer(waiting) as url:
        policy = http_client(url, timeout_s=30)
        threading.Timer(0.2, policy.close).start()
        began_at_s = time.monotonic()
        with pytest.raises(PolicyError, match="it was closed during the call"):
            policy.infer(SEEN)
        assert time.monotonic() - began_at_s < 4
        with pytest.raises(PolicyError, match="this policy is closed"):
            policy.infer(SEEN)


def test_closing_ends_an_async_call_that_waits() -> None:
    """
    As it ends a plain one.
    """

    async def ask() -> None:
        policy = async_http_client(url, timeout_s=30)
        call = asyncio.ensure_future(policy.infer(SEEN))
        await asyncio.sleep(0.2)
        await policy.aclose()
        with pytest.raises(PolicyError, match="it was closed during the call"):
            await call

    with http_peer(waiting) as url:
        asyncio.run(ask())


def test_a_call_that_is_cancelled_leaves_no_answer_behind() -> None:
    """
    The answer to it would be taken for that to the next.
    """
    asked, go = threading.Event(), threading.Event()

    def slow_once(connection: socket.socket) -> None:
        introduced(connection)
        hear(connection)
        asked.set()
        go.wait(5)
        connection.sendall(response({"actions": [[9.0, 9.0]]}))
        drain(connection)

    async def ask() -> Any:
        async with async_http_client(url) as policy:
            call = asyncio.ensure_future(policy.infer(SEEN))
            await asyncio.to_thread(asked.wait, 5)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            go.set()
            return await policy.infer(SEEN)

    with http_peer(slow_once, answering) as url:
        assert PLAN == asyncio.run(ask()).values.tolist()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no signals here")
def test_an_interrupt_within_a_call_leaves_no_answer_behind() -> None:
    """
    Ctrl-C in a notebook, and the next cell got the answer to the cell before.
    """

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with http_peer(waiting, answering) as url, http_client(url) as policy:
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            with pytest.raises(KeyboardInterrupt):
                policy.infer(SEEN)
            assert PLAN == policy.infer(SEEN).values.tolist()
    finally:
        signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    """Make somebody who signs certificates."""
    return trustme.CA()


@both
def test_an_encrypted_server_is_asked_if_its_certificate_is_right(
    ask: Ask, authority: trustme.CA
) -> None:
    """
    With the token, which goes over it; frames of more than one record too.
    """
    token = Secret("sk-123456")
    robot, seen = with_eyes(1, height_px=480, width_px=640)

    def asked(url: str, **options: Any) -> Any:
        with http_client(url, embodiment=robot, **options) as policy:
            return policy.infer(seen)

    with serving(tls=certified(authority, "127.0.0.1"), token=token) as url:
        assert url.startswith("https://")
        trust = trusting(authority)
        chunk = ask(url, tls=trust, token=token)
        with pytest.raises(PolicyStatusError, match="401"):
            ask(url, tls=trust, token=Secret("another"))
        with pytest.raises(PolicyRefusedError, match="401"):
            ask(url, tls=trust)
    assert [0.0, 0.0] == chunk.values[0].tolist()


@both
def test_encryption_on_one_side_only_is_told_as_such(ask: Ask, authority: trustme.CA) -> None:
    """
    In either direction.
    """
    with (
        http_peer(lambda c: (c.recv(4096), c.sendall(METADATA))) as url,  # type: ignore[arg-type]
        pytest.raises(PolicyError, match=r"does not speak TLS|hung up before anything was asked"),
    ):
        ask(url.replace("http://", "https://"))
    with (
        serving(tls=certified(authority, "127.0.0.1")) as url,
        pytest.raises((PolicyProtocolError, PolicyUnavailableError)),
    ):
        ask(url.replace("https://", "http://"))


def test_a_tls_server_that_says_nothing_does_not_hang_the_client(
    remote: Callable[..., Remote],
) -> None:
    """
    The handshake is of the same call.
    """
    with http_peer(lambda _: time.sleep(5), scheme="https") as url:
        policy = remote(url, timeout_s=0.5)
        with pytest.raises(PolicyUnavailableError, match="no connection within"):
            policy.infer(SEEN)


TOKEN = "Zk9-secret_token.42"
SHAPES = (
    lambda words: response({"error": words}, "403 Forbidden"),
    lambda words: response({"error": words}, "500 Oops"),
    lambda words: response({"error": words}, "503 Busy"),
    lambda words: response({"error": words}),
    lambda words: response({"error": [words]}, "400 Bad"),
    lambda words: response({words: [[1]], "actions": words}),
    lambda words: response({"actions": [[words, 0.0]]}),
    lambda words: response(words.encode()),
    lambda words: response({}, headers={"Content-Encoding": words}),
    lambda words: response({"actions": PLAN}, headers={"X-Request-Id": words}),
    lambda words: response({"actions": PLAN}, headers={"Content-Type": words}),
    lambda words: response({}, f"302 {words}", {"Location": f"http://127.0.0.1/{words}"}),
    lambda words: words.encode() + b"\r\n",
    lambda words: f"HTTP/1.1 {words}\r\n\r\n".encode(),
)


@settings(max_examples=25)
@given(
    token=st.text("abcdefXYZ0123456789-_.~+/=", min_size=8, max_size=40),
    before=st.text("abc :", max_size=9),
    place=st.sampled_from(["metadata", "answer"]),
    data=st.data(),
)
def test_the_token_is_in_no_text_whatever_the_server_says(
    token: str, before: str, place: str, data: st.DataObject
) -> None:
    """
    Servers tell what they were sent, in their errors.
    """
    told = data.draw(st.sampled_from(SHAPES))(f"{before}{token}")
    script = acting(ANSWER, told) if place == "metadata" else acting(told)
    with http_peer(script) as url:
        if token in url:
            return
        policy = http_client(url, token=Secret(token, source="VLA_POLICY_TOKEN"))
        try:
            shown = repr(policy.infer(SEEN))
        except PolicyError as error:
            shown = said(error)
        shown += repr(policy) + (repr(policy._info) if policy._info else "")
        policy.close()
    assert token not in shown


def test_a_call_leaves_no_socket_behind() -> None:
    """
    Whether it works or not; an open one would be a warning, which fails the test.
    """
    for ask in (ask_once, ask_once_async):
        with http_peer(answering) as url:
            ask(url)
        with http_peer(acting(response({}, "500 Oops"))) as url, pytest.raises(PolicyStatusError):
            ask(url)
        with http_peer(at_once) as url, pytest.raises(PolicyUnavailableError):
            ask(url)
    gc.collect()


@settings(max_examples=60)
@given(garbage=st.binary(max_size=200), is_headed=st.booleans())
def test_any_bytes_are_an_answer_or_an_error_of_ours(
    garbage: bytes,
    is_headed: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    """
    No other exception reaches the caller, and no call hangs.
    """
    told = b"HTTP/1.1 200 OK\r\n" + garbage if is_headed else garbage

    def script(connection: socket.socket) -> None:
        hear(connection)
        connection.sendall(told)

    with http_peer(script) as url:
        policy = http_client(url)
        with suppress(PolicyError):
            policy.connect()
        policy.close()
