"""Tests of `vlmcore_robotics.servers.http`: what clients ask in good faith, over real sockets."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import ssl
import threading
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
import pytest
import trustme

from http_server_cases import (
    CODEC,
    INFER,
    KEY,
    RESET,
    Slow,
    address,
    ask,
    changed,
    connected,
    dial,
    failure,
    head,
    numbers,
    rest_of,
    serving,
    until,
)
from openpi_cases import INFO, NAMES, PLAN, SEEN, echoing, seen_at
from vlmcore.errors import ContractError, EndpointError
from vlmcore.policy.interface import PolicyInfo
from vlmcore.testing import ScriptedPolicy
from vlmcore_robotics.servers.http import HttpPolicyServer
from vlmcore_robotics.servers.runtime import PolicyRuntime
from vlmcore_robotics.servers.threads import serve_in_thread
from vlmcore_robotics.wire.http_frames import WireEncoding
from vlmcore_robotics.wire.http_messages import ContentType, HttpEndpoint

HEALTH = CODEC.ask(HttpEndpoint.HEALTH)
METADATA = CODEC.ask(HttpEndpoint.METADATA)
STEPS = [[[float(i), 0.0]] * 2 for i in range(5)]


def test_a_client_asks_for_actions_and_hears_how_long_they_took() -> None:
    """
    And of which policy they are.
    """
    with serving(echoing(delay_s=0.01)) as url:
        answer = ask(url, CODEC.encode_request(seen_at(0.5)))
    said = json.loads(answer.body)
    assert (200, [[0.5, 0.0]] * 2) == (answer.status, numbers(answer))
    assert {"name": "scripted"} == said["policy"]
    assert {"preprocess_ms", "queue_ms", "infer_ms"} == said["server_timing"].keys()
    assert said["server_timing"]["infer_ms"] >= 10


def test_a_client_of_old_is_served_as_ever() -> None:
    """
    JSON with base64 of JPEG, no id, no session, and the content type with a charset.
    """
    old = changed(INFER, accept="*/*", content_type="application/json; charset=utf-8")
    with serving() as url:
        answer = ask(url, old)
    assert (200, "application/json") == (answer.status, answer.headers["content-type"])
    assert NAMES == tuple(json.loads(answer.body)["action_names"])


@pytest.mark.parametrize("encoding", WireEncoding)
@pytest.mark.parametrize("content_type", ContentType)
def test_every_encoding_that_the_metadata_names_is_read(
    encoding: WireEncoding, content_type: ContentType
) -> None:
    """
    What was sent without loss arrives as it was.
    """
    codec = attrs.evolve(CODEC, encoding=encoding, content_type=content_type)
    policy = echoing()
    with serving(policy) as url:
        server = codec.decode_metadata(ask(url, codec.ask(HttpEndpoint.METADATA)))
        server.require_speaks(encoding=encoding, content_type=content_type)
        answer = ask(url, codec.encode_request(SEEN))
    assert content_type.value == answer.headers["content-type"]
    assert [[0.0, 0.0]] * 2 == numbers(answer)
    if encoding is not WireEncoding.JPEG:
        assert np.array_equal(SEEN.images["front"], policy.shown[0].images["front"])


def test_the_metadata_say_what_the_policy_is() -> None:
    """
    So that a client can compare it with the robot before the first action.
    """
    info = attrs.evolve(INFO, metadata={"policy_contract": {"chunk_size": 2}})
    with serving(ScriptedPolicy([PLAN], info=info)) as url:
        answer = ask(url, METADATA)
    server = CODEC.decode_metadata(answer)
    assert (NAMES, 20.0, 2) == (
        server.policy.action_names,
        server.policy.rate_hz,
        server.policy.horizon,
    )
    assert (True, True) == (server.has_sessions, server.keeps_sessions_apart)
    assert {"chunk_size": 2} == json.loads(answer.body)["policy_contract"]


def test_a_policy_that_can_be_had_once_only_is_reset_by_every_session() -> None:
    """
    Its queue leaked across episodes where nobody reset it, as it cannot be had for each.
    """
    policy = Slow()
    with serving(policy) as url:
        said = CODEC.decode_metadata(ask(url, METADATA))
        assert (True, False) == (said.has_sessions, said.keeps_sessions_apart)
        for session in ("a", "b", None):
            assert CODEC.decode_reset(ask(url, CODEC.encode_reset(session=session)))
    assert 3 == policy.resets


def test_requests_share_a_connection() -> None:
    """
    The server of old hung up after each.
    """
    with serving() as url, connected(url) as connection:
        for request in (HEALTH, METADATA, INFER, RESET, INFER):
            assert 200 == ask(connection, request).status
            assert connection.sock is not None
            first = connection.sock.getsockname()
        assert first == connection.sock.getsockname()


def test_two_requests_that_are_sent_at_once_are_answered_in_their_order() -> None:
    """
    As HTTP allows, though few clients do it.
    """
    with serving(ScriptedPolicy(STEPS, info=INFO)) as url, dial(url) as peer:
        length = f"Content-Length: {len(INFER.body)}"
        one = head("/v1/infer", "Content-Type: application/json", length) + INFER.body
        peer.sendall(one + head("/healthz", "Connection: close", method="GET"))
        first, second = rest_of(peer).split(b"HTTP/1.1 200 OK\r\n")[1:]
    assert (b"actions" in first, b'{"status": "ok"}' in second) == (True, True)


def test_a_client_of_http_1_0_is_answered_and_hung_up_on() -> None:
    """
    It reads until the end.
    """
    with serving() as url, dial(url) as peer:
        peer.sendall(head("/healthz", method="GET", version="1.0"))
        assert rest_of(peer).endswith(b'{"status": "ok"}')


def test_a_client_that_asks_whether_to_go_on_is_told() -> None:
    """
    As curl does before it sends more than a kilobyte.
    """
    with serving() as url, dial(url) as peer:
        length = f"Content-Length: {len(RESET.body)}"
        peer.sendall(
            head("/v1/reset", "Content-Type: application/json", length, "Expect: 100-continue")
        )
        assert peer.recv(1000).startswith(b"HTTP/1.1 100 ")
        peer.sendall(RESET.body)
        assert peer.recv(1000).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("status", [200, 400, 404, 422])
def test_the_id_of_a_request_is_repeated(status: int) -> None:
    """
    Also where it failed.
    """
    request = {
        200: INFER,
        400: attrs.evolve(INFER, body=b"{"),
        404: attrs.evolve(INFER, path="/v2/infer"),
        422: attrs.evolve(INFER, body=b"{}"),
    }[status]
    with serving() as url:
        answer = ask(url, changed(request, x_request_id="a-1"))
    assert (status, "a-1") == (answer.status, answer.headers["x-request-id"])


def test_two_sessions_do_not_clear_each_others_queue() -> None:
    """
    A shared policy was reset by one client, and another one's queue was gone.
    """
    with serving(ScriptedPolicy(STEPS, info=INFO)) as url:

        def count(session: str | None) -> float:
            return numbers(ask(url, CODEC.encode_request(SEEN, session=session)))[0][0]

        assert [0, 1, 0, 0] == [count(session) for session in ("a", "a", "b", None)]
        assert CODEC.decode_reset(ask(url, CODEC.encode_reset(session="a")))
        assert [0, 1, 1] == [count(session) for session in ("a", "b", None)]


def test_a_reset_forgets_the_episode() -> None:
    """
    Of those without a session, as of one with.
    """
    policy = ScriptedPolicy(STEPS, info=INFO)
    with serving(policy) as url:
        assert [0, 1] == [numbers(ask(url, INFER))[0][0] for _ in range(2)]
        assert CODEC.decode_reset(ask(url, RESET))
        assert 0 == numbers(ask(url, INFER))[0][0]
    assert 1 == policy.resets


def test_health_is_answered_while_an_inference_is_blocked() -> None:
    """
    One lock held everything; so did the event loop. Metadata and refusals do not wait either.
    """
    policy = Slow()
    with serving(policy) as url:
        asking = threading.Thread(target=ask, args=(url, INFER))
        asking.start()
        assert policy.busy.wait(10)
        assert [200, 200, 415] == [
            ask(url, request).status
            for request in (HEALTH, METADATA, changed(INFER, content_type="text/plain"))
        ]
        assert not policy.go.is_set()
        policy.go.set()
        asking.join(10)


def test_health_says_when_the_policy_is_closed() -> None:
    """
    Something that watches it starts another one then.
    """
    runtime = PolicyRuntime(echoing())
    with serve_in_thread(HttpPolicyServer(runtime, port=0)) as url:
        CODEC.decode_health(ask(url, HEALTH))
        runtime.close()
        assert (503, "the policy is closed") == failure(ask(url, HEALTH))
        assert (500, "this policy is closed: make it again") == failure(ask(url, INFER))


def test_the_request_of_a_client_that_left_is_not_computed() -> None:
    """
    It waits behind another one, and nobody wants its answer.
    """
    policy = Slow()
    runtime = PolicyRuntime(policy)
    with runtime, serve_in_thread(HttpPolicyServer(runtime, port=0)) as url:
        first = threading.Thread(target=ask, args=(url, INFER))
        first.start()
        assert policy.busy.wait(10)
        with connected(url) as second:
            second.request(INFER.method, INFER.path, INFER.body, dict(INFER.headers))
            until(lambda: runtime.health.in_hand == 2)
        until(lambda: runtime.health.in_hand == 1)
        policy.go.set()
        first.join(10)
    assert 1 == policy.asked


def test_clients_of_one_policy_get_their_own_answers() -> None:
    """
    From several connections at once.
    """
    with serving(runtime={"max_waiting": 20}) as url:
        answers: dict[int, list[float]] = {}

        def loop(number: int) -> None:
            request = CODEC.encode_request(seen_at(float(number)))
            with connected(url) as connection:
                answers[number] = [numbers(ask(connection, request))[0][0] for _ in range(5)]

        threads = [threading.Thread(target=loop, args=(i,)) for i in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
    assert {i: [float(i)] * 5 for i in range(6)} == answers


def test_a_stop_answers_what_is_in_hand_and_hangs_up_on_the_others() -> None:
    """
    A client that keeps a connection does not hold the stop.
    """
    policy = Slow()
    answers: list[int] = []
    with PolicyRuntime(policy) as runtime:
        with serve_in_thread(HttpPolicyServer(runtime, port=0)) as url:
            idle, half = dial(url), dial(url)
            half.sendall(b"POST /v1/infer HTTP/1.1\r\n")
            asking = threading.Thread(target=lambda: answers.append(ask(url, INFER).status))
            asking.start()
            assert policy.busy.wait(10)
            threading.Timer(0.2, policy.go.set).start()
        asking.join(10)
        assert [200] == answers
        assert b"" == rest_of(idle) == rest_of(half)
        idle.close()
        half.close()
        with pytest.raises(ConnectionError):
            dial(url)


def test_a_stop_does_not_wait_for_an_answer_for_ever() -> None:
    """
    A model may never come back; whoever waits for it is hung up on, or told that it failed.
    """
    policy = Slow()
    heard: list[bytes] = []

    async def stopping() -> None:
        server = HttpPolicyServer(runtime, port=0)
        await server.start()

        def asking() -> None:
            with dial(server.url) as peer:
                length = f"Content-Length: {len(INFER.body)}"
                peer.sendall(head("/v1/infer", "Content-Type: application/json", length))
                peer.sendall(INFER.body)
                heard.append(rest_of(peer))

        asked = asyncio.ensure_future(asyncio.to_thread(asking))
        assert await asyncio.to_thread(policy.busy.wait, 10)
        await server.stop(grace_s=0.1)
        await asked

    runtime = PolicyRuntime(policy)
    asyncio.run(stopping())
    policy.go.set()
    runtime.close()
    assert b"actions" not in heard[0]
    assert b"Traceback" not in heard[0]


def test_signals_stay_those_of_the_program_and_the_environment_is_not_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """
    The package took SIGINT and SIGTERM, and workers and proxies from variables.
    """
    monkeypatch.setenv("WEB_CONCURRENCY", "many")
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "*")

    async def handlers() -> list[Any]:
        with PolicyRuntime(echoing()) as runtime:
            async with HttpPolicyServer(runtime, port=0):
                return [signal.getsignal(number) for number in numbers_]

    numbers_ = (signal.SIGINT, signal.SIGTERM)
    outside = [signal.getsignal(number) for number in numbers_]
    inside = asyncio.run(handlers())
    assert outside[1] == inside[1]
    assert "uvicorn" not in repr(inside[0])


def test_nothing_of_a_request_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """
    Neither that it came, nor what it held.
    """
    caplog.set_level(logging.DEBUG)
    with serving(token=KEY) as url:
        for key in (KEY.reveal(), "sk-999"):
            ask(url, changed(INFER, authorization=f"Bearer {key}", x_session_id="mine"))
        with dial(url) as peer:
            peer.sendall(b"\x16\x03\x01" * 9)
            rest_of(peer)
    for words in ("sk-", "mine", "infer", "Invalid HTTP", "Traceback"):
        assert words not in caplog.text


def test_the_server_says_no_more_of_itself_than_it_has_to() -> None:
    """
    Neither its name nor its version.
    """
    with serving() as url:
        headers = ask(url, HEALTH).headers
    assert {"content-type", "content-length"} == headers.keys()


@pytest.mark.parametrize("host", ["::1", "localhost"])
def test_it_listens_where_it_is_told(host: str) -> None:
    """
    On the address of this machine of either kind.
    """
    with serving(host=host) as url:
        assert url.startswith("http://[::1]:" if host == "::1" else "http://127.0.0.1:")
        assert 200 == ask(url, HEALTH).status


def test_an_address_that_others_reach_is_taken_when_asked_for() -> None:
    """
    And is named by one that this machine reaches.
    """
    with serving(host="0.0.0.0", allow_remote=True) as url:
        assert url.startswith("http://127.0.0.1:")
        assert 200 == ask(url, HEALTH).status


def test_it_speaks_tls_with_a_certificate() -> None:
    """
    Then its address is one of https.
    """
    authority = trustme.CA()
    there, here = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert("127.0.0.1").configure_cert(there)
    authority.configure_trust(here)
    with serving(tls=there) as url:
        assert url.startswith("https://")
        with here.wrap_socket(dial(url), server_hostname="127.0.0.1") as peer:
            peer.sendall(head("/healthz", "Connection: close", method="GET"))
            assert rest_of(peer).startswith(b"HTTP/1.1 200 ")


def test_a_port_that_is_in_use_is_told_as_such() -> None:
    """
    Where the server is started, not on the thread that nobody looks at.
    """
    with serving() as url:
        port = address(url)[1]
        with pytest.raises(EndpointError, match="cannot listen there: "), serving(port=port):
            pytest.fail("two servers at one port")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda o: o.update(runtime="x"), "runtime"),
        (lambda o: o.update(host="0.0.0.0"), "host"),
        (lambda o: o.update(host="example.com"), "host"),
        (lambda o: o.update(port=70_000), "port"),
        (lambda o: o.update(port=True), "port"),
        (lambda o: o.update(token="sk-1"), "token"),
        (lambda o: o.update(max_clients=0), "max_clients"),
        (lambda o: o.update(patience_s=-1), "patience_s"),
        (lambda o: o.update(patience_s=float("nan")), "patience_s"),
        (lambda o: o.update(limits="x"), "limits"),
        (lambda o: o.update(tls=True), "tls"),
        (lambda o: o.update(hosts=["a", "a"]), "hosts"),
    ],
)
def test_what_cannot_work_is_refused_at_construction(
    change: Callable[[dict[str, Any]], None], field: str
) -> None:
    """
    An address that others reach takes a word.
    """
    with PolicyRuntime(echoing()) as runtime:
        options: dict[str, Any] = {"runtime": runtime}
        change(options)
        with pytest.raises(ContractError) as caught:
            HttpPolicyServer(**options)
    assert field == caught.value.field


def test_a_policy_that_says_too_little_or_too_much_of_itself_is_not_served() -> None:
    """
    Its answers would have no names, or its metadata could not be sent.
    """
    for info, words in (
        (PolicyInfo(name="mute"), "without action_names"),
        (attrs.evolve(INFO, metadata={"log": "x" * 2_000_000}), "max_metadata_bytes"),
    ):
        with (
            PolicyRuntime(ScriptedPolicy(lambda _: PLAN, info=info)) as runtime,
            pytest.raises(ContractError, match=words),
        ):
            HttpPolicyServer(runtime)
