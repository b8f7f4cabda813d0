"""Tests of `vlmcore_robotics.servers.http`: what no good client sends, over real sockets."""

from __future__ import annotations

import json
import logging
import random
import select
import socket
import threading
from contextlib import suppress
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from http_server_cases import (
    CODEC,
    INFER,
    KEY,
    RESET,
    Slow,
    ask,
    changed,
    connected,
    dial,
    failure,
    head,
    is_well,
    numbers,
    rest_of,
    serving,
    until,
)
from openpi_cases import INFO, SEEN, echoing
from vlmcore.errors import (
    ContractError,
    PolicyError,
    PolicyStatusError,
    PolicyTimeoutError,
    PolicyUnavailableError,
)
from vlmcore.limits import HttpLimits
from vlmcore.testing import ScriptedPolicy
from vlmcore_robotics.servers.http import HttpPolicyServer
from vlmcore_robotics.servers.runtime import PolicyRuntime
from vlmcore_robotics.servers.threads import serve_in_thread
from vlmcore_robotics.wire.http_messages import ContentType, HttpEndpoint, HttpRequest
from vlmcore_robotics.wire.http_v1 import HttpCodec

HEALTH = CODEC.ask(HttpEndpoint.HEALTH)
METADATA = CODEC.ask(HttpEndpoint.METADATA)
JSON = "Content-Type: application/json"
DOCUMENT = json.loads(INFER.body)


def body(**changes: Any) -> HttpRequest:
    """Ask with a document that is another one."""
    return attrs.evolve(INFER, body=json.dumps({**DOCUMENT, **changes}).encode())


@pytest.mark.parametrize(
    ("request_", "status", "words"),
    [
        (attrs.evolve(INFER, body=b""), 400, "JSON"),
        (attrs.evolve(INFER, body=b"{"), 400, "JSON"),
        (attrs.evolve(INFER, body=b"\xff"), 400, "JSON"),
        (attrs.evolve(INFER, body=b'{"state": NaN}'), 400, "NaN"),
        (attrs.evolve(INFER, body=b'{"a": 1, "a": 2}'), 400, "twice"),
        (attrs.evolve(INFER, body=b"[" * 5000), 400, "JSON"),
        (changed(INFER, content_type="application/msgpack"), 400, "frame"),
        (changed(INFER, x_session_id="a b"), 400, "x-session-id"),
        (changed(INFER, x_request_id="x" * 129), 400, "x-request-id"),
        (attrs.evolve(RESET, body=b"{"), 400, "JSON"),
        (attrs.evolve(RESET, body=b"[null]"), 422, "reset: got list, expected an object"),
        (attrs.evolve(INFER, path="/v1/kill"), 404, "path"),
        (attrs.evolve(INFER, path="/v1/../v1/infer"), 404, "path"),
        (attrs.evolve(INFER, path="/v1/%69nfer"), 404, "path"),
        (attrs.evolve(INFER, method="GET"), 405, "method"),
        (attrs.evolve(HEALTH, method="POST"), 405, "method"),
        (attrs.evolve(HEALTH, method="DELETE"), 405, "method"),
        (changed(INFER, content_type=None), 415, "content-type"),
        (changed(INFER, content_type="image/jpeg"), 415, "content-type"),
        (changed(INFER, content_encoding="gzip"), 415, "content-encoding"),
        (attrs.evolve(INFER, body=b"[]"), 422, "expected an object"),
        (attrs.evolve(INFER, body=b"{}"), 422, "task"),
        (body(state=[True]), 422, "state"),
        (body(cameras={}), 422, "cameras"),
        (body(cameras={"front": [{"encoding": "gif", "data": "AA=="}]}), 422, "encoding"),
        (body(cameras={"front": [{"encoding": "base64-jpeg", "data": "AA=="}]}), 422, "JPEG"),
        (body(version=2), 422, "version"),
    ],
)
def test_what_is_no_request_is_told_with_its_code(
    request_: HttpRequest, status: int, words: str
) -> None:
    """
    Data that is missing was a 500, and so was JSON that is deep. The policy is not asked.
    """
    policy = echoing()
    with serving(policy) as url:
        answer = failure(ask(url, request_))
    assert (status, ()) == (answer[0], policy.shown)
    assert words in answer[1]


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (body(state=[0.0]), "state: got 1 numbers, expected 2: shoulder, elbow"),
        (
            body(cameras={"wrist": DOCUMENT["cameras"]["front"]}),
            "images: got wrist, expected 'front' too",
        ),
        (
            CODEC.encode_request(
                attrs.evolve(SEEN, images={"front": np.zeros((16, 8, 3), np.uint8)})
            ),
            "images['front']: got 16 x 8 pixels, expected 8 x 8 (height x width)",
        ),
    ],
)
def test_an_observation_of_another_robot_is_refused_with_the_difference(
    request_: HttpRequest, words: str
) -> None:
    """
    By the server, before the policy is asked: this one does not look itself.
    """
    policy = Slow()
    policy.go.set()
    with serving(policy) as url:
        assert (422, words) == failure(ask(url, request_))
    assert 0 == policy.asked


@pytest.mark.parametrize(
    ("answer", "status", "words"),
    [
        (ContractError("state", "is odd"), 422, "state: is odd"),
        (PolicyError("scripted", "no weights"), 500, "no weights"),
        (
            PolicyUnavailableError("behind", "nobody listens"),
            503,
            "behind this server, behind: nobody listens",
        ),
        (
            PolicyTimeoutError("behind", "reply", 1.0),
            500,
            "behind this server, behind: no reply within 1 s",
        ),
        (PolicyStatusError("behind", "who are you", 401), 500, "who are you"),
        (KeyError("/home/me/x.py"), 500, "the policy failed with KeyError; its log says more"),
        (SystemExit(3), 500, "the policy failed with SystemExit; its log says more"),
        (PolicyError("scripted", f"key {KEY.reveal()}"), 500, "key [REDACTED]"),
    ],
)
def test_what_the_policy_fails_at_is_told_without_a_traceback(
    answer: BaseException, status: int, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    """
    The status of a policy behind this one is not ours; the log has what is not told.
    """

    def failing(_: Any) -> Any:
        raise answer

    with serving(ScriptedPolicy(failing, info=INFO), token=KEY) as url:
        with caplog.at_level(logging.ERROR):
            said = ask(url, changed(INFER, authorization=f"Bearer {KEY.reveal()}"))
        assert (status, words) == failure(said)
        assert ("retry-after" in said.headers) == (status == 503)
    assert ("/home/me" in caplog.text) == isinstance(answer, KeyError)


def test_a_chunk_that_json_cannot_hold_is_told_as_such() -> None:
    """
    What is not finite arrives in MessagePack, for the gate to find.
    """
    packed = attrs.evolve(CODEC, content_type=ContentType.MESSAGEPACK)
    with serving(ScriptedPolicy([[[np.nan, 0.0]]], info=INFO)) as url:
        status, words = failure(ask(url, INFER))
        chunk = packed.decode_answer(ask(url, packed.encode_request(SEEN)), observed_at_s=0.0)
    assert (500, True) == (status, "finite" in words)
    assert np.isnan(chunk.values[0, 0])


def test_a_fault_of_the_server_is_told_by_its_class_and_logged_whole(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """
    A bug of ours must not be silent, and tells nothing of this machine.
    """

    def broken(*_: Any, **__: Any) -> Any:
        raise MemoryError("/home/me")

    with serving() as url:
        monkeypatch.setattr(HttpCodec, "decode_request", broken)
        assert (500, "the server failed with MemoryError; its log says more") == failure(
            ask(url, INFER)
        )
    assert "/home/me" in caplog.text


@pytest.mark.parametrize("endpoint", [INFER, RESET, METADATA])
@pytest.mark.parametrize(
    "header", [None, "", "Bearer", "Bearer sk-12345", "Bearer sk-12345\xe9", "Api-Key sk-123456"]
)
def test_a_client_without_the_token_is_refused(endpoint: HttpRequest, header: str | None) -> None:
    """
    A token of other letters than ASCII ended the connection without an answer.
    """
    policy = echoing()
    with serving(policy, token=KEY) as url:
        answer = ask(url, changed(endpoint, authorization=header))
        assert 401 == failure(answer)[0]
        assert "Bearer" == answer.headers["www-authenticate"]
        assert b"sk-" not in answer.body
        assert 200 == ask(url, HEALTH).status
    assert (0, ()) == (policy.resets, policy.shown)


def test_a_client_with_the_token_is_served_and_two_tokens_are_none() -> None:
    """
    Nobody knows which of them whoever is between would look at.
    """
    codec = attrs.evolve(CODEC, token=KEY)
    with serving(token=KEY) as url:
        assert 200 == ask(url, codec.encode_request(SEEN)).status
        with dial(url) as peer:
            right = f"Authorization: Bearer {KEY.reveal()}"
            peer.sendall(head("/v1/metadata", right, right, "Connection: close", method="GET"))
            assert rest_of(peer).startswith(b"HTTP/1.1 401 ")


@pytest.mark.parametrize("request_", [INFER, RESET, METADATA, HEALTH])
def test_a_page_in_a_browser_is_refused(request_: HttpRequest) -> None:
    """
    Any page could ask a server without a token on the same machine, and move the robot.
    """
    policy = echoing()
    with serving(policy) as url:
        for origin in ("https://evil.example", "http://localhost:3000", "null"):
            answer = failure(ask(url, changed(request_, origin=origin)))
            assert (403, "pages in browsers may not speak to this server") == answer
        assert 403 == ask(url, attrs.evolve(changed(INFER, origin="x"), method="OPTIONS")).status
    assert (0, ()) == (policy.resets, policy.shown)


@pytest.mark.parametrize(
    "content_type",
    ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""],
)
def test_what_a_page_can_send_without_asking_first_is_refused(content_type: str) -> None:
    """
    A simple request needs no permission of the server's.
    """
    policy = echoing()
    with serving(policy) as url:
        for request in (INFER, RESET):
            assert 415 == failure(ask(url, changed(request, content_type=content_type)))[0]
    assert (0, ()) == (policy.resets, policy.shown)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8787", 200),
        ("LOCALHOST.:1", 200),
        ("[::1]:8787", 200),
        ("gateway.example", 200),
        ("evil.example:8787", 421),
        ("127.0.0.1.evil.example", 421),
        ("", 421),
    ],
)
def test_a_name_that_was_made_to_lead_here_is_refused(host: str, status: int) -> None:
    """
    The name of a page in a browser, looked up to be this machine.
    """
    with serving(hosts=["Gateway.example"]) as url:
        assert status == ask(url, changed(INFER, host=host)).status
        assert status == ask(url, changed(HEALTH, host=host)).status


def test_a_request_is_refused_when_too_many_wait() -> None:
    """
    At once, with the word when to try again.
    """
    policy = Slow()
    with serving(policy, runtime={"max_waiting": 0}) as url:
        first = threading.Thread(target=ask, args=(url, INFER))
        first.start()
        assert policy.busy.wait(10)
        for request in (INFER, RESET):
            answer = ask(url, request)
            assert (503, "busy: 1 requests are in hand") == failure(answer)
            assert "1" == answer.headers["retry-after"]
        policy.go.set()
        first.join(10)
        assert 200 == ask(url, INFER).status


def test_a_connection_too_many_is_told_that_it_is_busy() -> None:
    """
    And taken once another one is gone.
    """
    with serving(max_clients=1, patience_s=5) as url:
        with connected(url) as first:
            assert 200 == ask(first, HEALTH).status
            with dial(url) as second:
                answer = rest_of(second)
            assert answer.startswith(b"HTTP/1.1 503 ")
            assert b"retry-after: 1\r\n" in answer
            assert 200 == ask(first, INFER).status
        until(lambda: is_well(url))


CHUNK = b"200\r\n" + b" " * 0x200 + b"\r\n"


@pytest.mark.parametrize(
    ("length", "begun"),
    [("Content-Length: 99999999999", b""), ("Transfer-Encoding: chunked", CHUNK * 2)],
)
def test_a_body_that_is_too_large_is_refused_before_it_is_read(length: str, begun: bytes) -> None:
    """
    By the length that it declares; where it declares none, once it is longer.
    """
    limits = HttpLimits(max_request_bytes=1000)
    with serving(limits=limits, patience_s=0.2) as url, dial(url) as peer:
        peer.sendall(head("/v1/infer", JSON, length) + begun)
        answer = rest_of(peer)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"max_request_bytes: got " in answer


def test_a_client_that_sends_too_much_hears_why_and_may_go_on() -> None:
    """
    Hung up on at once, it would hear that the connection was reset.
    """
    limits = HttpLimits(max_request_bytes=100_000)
    with serving(limits=limits) as url, connected(url) as connection:
        answer = failure(ask(connection, attrs.evolve(INFER, body=b" " * 5_000_000)))
        assert (413, "max_request_bytes: got 5000000, limit is 100000") == answer
        assert 200 == ask(connection, INFER).status


def test_too_many_large_bodies_at_once_are_refused() -> None:
    """
    Each is within its limit, and all of them would fill the memory.
    """
    limits = HttpLimits(max_request_bytes=1000)
    with serving(limits=limits) as url:
        peers = [dial(url) for _ in range(6)]
        for peer in peers:
            lines = (JSON, "Content-Length: 1000", "Connection: close")
            peer.sendall(head("/v1/infer", *lines) + b" " * 999)
        answer = rest_of(select.select(peers, [], [], 10)[0][0])
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert b"too many large requests" in answer
        for peer in peers:
            peer.close()
        until(lambda: ask(url, RESET).status == 200)


def test_a_body_without_a_length_is_none() -> None:
    """
    A client that forgot it hears so.
    """
    with serving() as url, dial(url) as peer:
        peer.sendall(head("/v1/infer", JSON, "Connection: close"))
        assert rest_of(peer).startswith(b"HTTP/1.1 411 ")


def drip(peer: socket.socket, data: bytes) -> None:
    """Send a byte after the other until the server hangs up."""
    waiting = threading.Event()
    try:
        for i in range(len(data)):
            peer.sendall(data[i : i + 1])
            waiting.wait(0.02)
    except OSError:
        pass


def test_a_flood_of_small_chunks_is_hung_up_on() -> None:
    """
    To read four megabytes of them took ten seconds, in which nobody else was served.
    """
    with serving() as url, dial(url) as peer:
        begun = head("/v1/infer", "Content-Type: application/json", "Transfer-Encoding: chunked")
        with suppress(ConnectionError):
            peer.sendall(begun + b"1\r\nx\r\n" * 20_000)
        assert rest_of(peer).startswith(b"HTTP/1.1 400 ")
        assert is_well(url)


@pytest.mark.parametrize("order", [1, -1])
def test_a_length_beside_chunks_is_no_request(order: int) -> None:
    """
    A gateway may take the one for the end, and the server the other: what is between is smuggled.
    """
    lines = ("Content-Length: 4", "Transfer-Encoding: chunked")[::order]
    smuggled = head("/healthz", method="GET")
    with serving() as url, dial(url) as peer:
        peer.sendall(head("/v1/reset", "Content-Type: application/json", *lines))
        peer.sendall(b"2\r\n{}\r\n0\r\n\r\n" + smuggled)
        heard = rest_of(peer)
    assert heard.startswith(b"HTTP/1.1 400 ")
    assert 1 == heard.count(b"HTTP/1.1 ")


@pytest.mark.parametrize("begun", [b"", head("/healthz", method="GET")])
def test_headers_that_drip_are_given_up(begun: bytes) -> None:
    """
    On a new connection, and on one that was kept; others are served meanwhile.
    """
    with serving(patience_s=0.3) as url, dial(url) as peer:
        peer.sendall(begun)
        dripping = threading.Thread(
            target=drip, args=(peer, b"GET /healthz HTTP/1.1\r\nA: " + b"b" * 9000)
        )
        dripping.start()
        assert 200 == ask(url, INFER).status
        answer = rest_of(peer)
        dripping.join(10)
    assert b"HTTP/1.1 408 " in answer


def test_a_body_that_drips_is_given_up() -> None:
    """
    A slow body held a thread for ever.
    """
    policy = echoing()
    with serving(policy, patience_s=0.3) as url, dial(url) as peer:
        peer.sendall(head("/v1/infer", JSON, f"Content-Length: {len(INFER.body)}"))
        dripping = threading.Thread(target=drip, args=(peer, INFER.body))
        dripping.start()
        assert 200 == ask(url, RESET).status
        answer = rest_of(peer)
        dripping.join(10)
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"body: got a part within 0.3 s, expected the whole" in answer
    assert () == policy.shown


def test_a_connection_that_says_nothing_is_hung_up_on() -> None:
    """
    Without a word: there was no request.
    """
    with serving(patience_s=0.1) as url, dial(url) as peer:
        assert b"" == rest_of(peer)


def test_what_comes_after_a_refusal_is_not_read_for_ever() -> None:
    """
    A body without an end, of which nothing is wanted.
    """
    with serving(patience_s=0.2) as url, dial(url) as peer:
        peer.sendall(head("/v1/infer", "Content-Type: text/plain", "Transfer-Encoding: chunked"))
        assert peer.recv(1000).startswith(b"HTTP/1.1 415 ")
        drip(peer, CHUNK * 10_000)  # ends only if it is hung up on


def test_an_answer_that_nobody_takes_is_given_up() -> None:
    """
    It would be held in memory as long as the client likes.
    """
    plan = np.zeros((4096, 1000))
    info = attrs.evolve(INFO, action_names=[f"joint {i}" for i in range(1000)], horizon=None)
    options = {"patience_s": 0.5, "max_clients": 1}
    with serving(ScriptedPolicy([plan], info=info), **options) as url, dial(url) as peer:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        lines = ("Accept: application/msgpack", f"Content-Length: {len(INFER.body)}")
        peer.sendall(head("/v1/infer", JSON, *lines) + INFER.body)
        assert peer.recv(15).startswith(b"HTTP/1.1 200")
        until(lambda: is_well(url))  # there is room for one connection only
        assert len(rest_of(peer)) < plan.nbytes


GARBAGE = (
    b"",
    b"\r\n" * 99,
    b"\x00" * 5000,
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"SSH-2.0-OpenSSH_9.6\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET /\r\n\r\n",
    b"GET http://[::1/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET * HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n",
    b"GET /healthz HTTP/9.9\r\nHost: localhost\r\n\r\n",
    b"POST /v1/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
    b"POST /v1/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
    b"POST /v1/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n",
    b"POST /v1/infer HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n",
    head("/v1/infer", JSON, "Transfer-Encoding: chunked") + b"xyz\r\n",
    head("/v1/infer", JSON, "Transfer-Encoding: chunked") + b"ffffffffffffffffffff\r\n",
    head("/healthz", "Upgrade: websocket", "Connection: Upgrade", method="GET"),
    head("/healthz", "Upgrade: h2c", "Connection: Upgrade", method="GET"),
    head("/healthz", "A: " + "b" * 100_000, method="GET"),
    head("/healthz", *(f"A{i}: b" for i in range(2000)), method="GET"),
    head("/" + "a" * 10_000, method="GET"),
    head("/%ff%00", method="GET"),
    head("/healthz", "X: \xff\xfe", method="GET"),
)


def test_garbage_is_answered_or_hung_up_on_and_the_next_client_is_served(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """
    A hundred times, with nothing of this machine in what is told, and nothing in the log.
    """
    chance = random.Random(0)
    whole = head("/v1/infer", JSON, f"Content-Length: {len(INFER.body)}") + INFER.body
    sent = [*GARBAGE]
    while len(sent) < 100:
        mutated = bytearray(whole[: chance.randrange(1, len(whole))])
        for _ in range(chance.randrange(20)):
            mutated[chance.randrange(len(mutated))] = chance.randrange(256)
        sent.append(bytes(mutated))
    caplog.set_level(logging.WARNING)
    with serving(patience_s=2) as url:
        for data in sent:
            with dial(url) as peer:
                try:
                    peer.sendall(data)
                    peer.shutdown(socket.SHUT_WR)
                except OSError:
                    pass
                answer = rest_of(peer)
            assert b"" == answer or answer.startswith(b"HTTP/1.1 ")
            for word in (b"Traceback", b".py", b"uvicorn", b"h11", b"Internal Server Error"):
                assert word not in answer
        assert 200 == ask(url, INFER).status
    assert "" == caplog.text


@pytest.mark.parametrize("before", [b"", head("/healthz", method="GET")])
def test_what_is_no_http_is_told_so_also_after_a_request_that_was(before: bytes) -> None:
    """
    In JSON, as every other refusal.
    """
    with serving() as url, dial(url) as peer:
        peer.sendall(before)
        if before:
            assert peer.recv(15) == b"HTTP/1.1 200 OK"
        peer.sendall(b"what?\r\n\r\n")
        answer = rest_of(peer)
    assert b"HTTP/1.1 400 Bad Request\r\n" in answer
    assert answer.endswith(b'{"error": "the request is none of HTTP"}')


@pytest.fixture(scope="module")
def where() -> Any:
    """Serve for as long as the examples take."""
    with serving(token=KEY) as url:
        yield url


@given(data=st.binary(max_size=200), path=st.sampled_from(["/v1/infer", "/v1/reset"]))
def test_any_body_is_answered(where: str, data: bytes, path: str) -> None:
    """
    In JSON, with a code that says whose fault it is, whichever type it says that it is.
    """
    for content_type in ContentType:
        headers = {
            "content-type": content_type.value,
            "authorization": f"Bearer {KEY.reveal()}",
        }
        answer = ask(where, HttpRequest(method="POST", path=path, headers=headers, body=data))
        assert answer.status in (200, 400, 413, 422)
        assert KEY.reveal().encode() not in answer.body


def test_a_client_that_leaves_in_the_middle_leaves_nothing_behind() -> None:
    """
    In its headers, in its body, and while its answer is computed.
    """
    whole = head("/v1/infer", JSON, f"Content-Length: {len(INFER.body)}") + INFER.body
    runtime = PolicyRuntime(echoing())
    with runtime, serve_in_thread(HttpPolicyServer(runtime, port=0)) as url:
        for size in (10, len(whole) - 10, len(whole)):
            with dial(url) as peer:
                peer.sendall(whole[:size])
        assert [[0.0, 0.0]] * 2 == numbers(ask(url, INFER))
        assert 0 == runtime.health.in_hand
