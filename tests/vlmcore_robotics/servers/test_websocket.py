"""Tests of `vlmcore_robotics.servers.websocket`, asked over real sockets by the package itself."""

from __future__ import annotations

import asyncio
import http.client
import logging
import re
import socket
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Any

import attrs
import numpy as np
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from client_cases import hear_request
from http_server_cases import address, rest_of, until
from openpi_cases import (
    INFO,
    LAYOUT,
    NAMES,
    PLAN,
    ROBOT,
    SEEN,
    client,
    echoing,
    serving,
)
from vlmcore.errors import ContractError, EndpointError, PolicyError, PolicyRefusedError
from vlmcore.limits import WireLimits
from vlmcore.policy.interface import PolicyInfo
from vlmcore.secrets import Secret
from vlmcore.testing import ScriptedPolicy
from vlmcore_robotics.servers import _websocket_listener
from vlmcore_robotics.servers._websocket_listener import _Due
from vlmcore_robotics.servers.runtime import PolicyRuntime
from vlmcore_robotics.servers.threads import serve_in_thread
from vlmcore_robotics.servers.websocket import OpenPIServer
from vlmcore_robotics.wire.frames import FrameKind, decode_frame, encode_frame
from vlmcore_robotics.wire.openpi import OpenPICodec

CODEC = OpenPICodec(policy="scripted", layout=LAYOUT, action_names=NAMES)
REQUEST = CODEC.encode_request(SEEN)
KEY = Secret("sk-123456")
HANDSHAKE = (
    b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


def dial(url: str, **options: Any) -> ClientConnection:
    """Connect as openpi-client does."""
    return connect(url, **{"compression": None, "max_size": None, "proxy": None, **options})


def ask(peer: ClientConnection, request: bytes | str = REQUEST) -> dict[str, Any]:
    peer.send(request)
    answer = peer.recv(10)
    assert isinstance(answer, bytes)
    return dict(decode_frame(answer, kind=FrameKind.RESPONSE))


def has_room(url: str) -> bool:
    """Whether one more client is served."""
    try:
        with dial(url):
            return True
    except InvalidStatus:
        return False


def fetch(url: str, path: str = "/healthz", **headers: str) -> tuple[int, str]:
    """Ask in plain HTTP."""
    host, port = re.findall(r"//(.*):(\d+)", url)[0]
    connection = http.client.HTTPConnection(host, int(port), timeout=10)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def refusal(url: str, **options: Any) -> tuple[int, str]:
    with pytest.raises(InvalidStatus) as caught:
        dial(url, **options)
    response = caught.value.response
    return response.status_code, (response.body or b"").decode().strip()


class Slow:
    """A policy that answers when it is let."""

    info = INFO

    def __init__(self) -> None:
        self.go = threading.Event()
        self.busy = threading.Event()
        self.asked = 0

    def infer(self, observation: Any, /) -> Any:
        self.asked += 1
        self.busy.set()
        assert self.go.wait(10)
        return ScriptedPolicy([PLAN], info=INFO).infer(observation)

    def reset(self) -> None:
        """Nothing to forget."""

    def close(self) -> None:
        self.go.set()


def test_a_client_hears_first_what_the_policy_says_about_itself() -> None:
    """
    Its metadata where peers look for it, and the rest under one key.
    """
    info = attrs.evolve(INFO, metadata={"reset_pose": [0.5, -1.5]})
    with serving(ScriptedPolicy([PLAN], info=info)) as url, dial(url) as peer:
        said = decode_frame(peer.recv(10), kind=FrameKind.METADATA)
    assert [0.5, -1.5] == said["reset_pose"]
    assert {
        "name": "scripted",
        "action_names": list(NAMES),
        "state_names": list(NAMES),
        "cameras": [{"name": "front", "height_px": 8, "width_px": 8}],
        "horizon": 2,
        "rate_hz": 20.0,
    } == said["policy_info"]


def test_each_request_is_answered_with_actions_and_timings() -> None:
    """
    The turn-around of the request before is there from the second one on.
    """
    with serving(echoing(delay_s=0.01)) as url, dial(f"{url}/any/path") as peer:
        peer.recv(10)
        first, second = ask(peer), ask(peer)
    assert (2, 2) == first["actions"].shape
    assert 10 <= first["policy_timing"]["infer_ms"] <= first["server_timing"]["infer_ms"]
    assert "prev_total_ms" not in first["server_timing"]
    assert second["server_timing"]["prev_total_ms"] >= 10


def test_health_is_answered_while_an_inference_runs() -> None:
    """
    Inference blocked the event loop: other clients, health and pings starved.
    """
    policy = Slow()
    with serving(policy) as url, dial(url) as peer:
        peer.recv(10)
        peer.send(REQUEST)
        assert policy.busy.wait(10)
        began_at_s = time.perf_counter()
        assert (200, "OK\n") == fetch(url)
        assert peer.ping().wait(5)
        with dial(url) as other:
            assert other.recv(10)
        assert time.perf_counter() - began_at_s < 2
        policy.go.set()
        assert peer.recv(10)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (PolicyError("scripted", "no camera"), "no camera"),
        (ContractError("state", "got 1 number"), "state: got 1 number"),
        (KeyError("/home/me/x.py"), "the policy failed with KeyError; its log says more"),
        (PolicyError("scripted", "Authorization: Bearer abc"), "Authorization: [REDACTED]"),
    ],
)
def test_an_error_is_one_line_of_text_and_then_the_server_hangs_up(
    answer: Exception, words: str
) -> None:
    """
    Traceback text went to clients: paths, versions, values.
    """
    with serving(ScriptedPolicy([answer], info=INFO)) as url, dial(url) as peer:
        peer.recv(10)
        peer.send(REQUEST)
        assert words == peer.recv(10)
        with pytest.raises(ConnectionClosed) as caught:
            peer.recv(10)
    assert caught.value.rcvd is not None
    assert 1011 == caught.value.rcvd.code


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ("hello", "request: got text, expected a binary frame"),
        (b"", "frame: got a frame that is cut"),
        (b"\xc1", "frame: got a code that has no meaning"),
        (b"\x80", "request['observation/image']: got nothing, expected a frame"),
        (b"\x81" * 40, "got a key that is no text"),
        (encode_frame([1], kind=FrameKind.REQUEST), "request: got list, expected a map"),
        (b"\xdd\xff\xff\xff\xff", "max_entries"),
    ],
)
def test_a_request_that_is_none_is_answered_with_what_is_wrong_with_it(
    request_: Any, words: str
) -> None:
    """
    And the policy is not asked.
    """
    policy = echoing()
    with serving(policy) as url, dial(url) as peer:
        peer.recv(10)
        peer.send(request_)
        answer = peer.recv(10)
    assert isinstance(answer, str)
    assert words in answer
    assert () == policy.shown


def test_a_request_that_is_too_large_ends_the_connection_and_not_the_server() -> None:
    """
    It is not held in memory first.
    """
    limits = WireLimits(max_request_bytes=1000)
    with serving(limits=limits) as url, dial(url) as peer:
        peer.recv(10)
        with pytest.raises(ConnectionClosed):
            ask(peer, b"x" * 100_000)
        with dial(url) as other:
            other.recv(10)
            assert ask(other)


def test_a_page_in_a_browser_cannot_connect() -> None:
    """
    Any page could open ws://127.0.0.1:8000: no Origin was checked.
    """
    with serving() as url:
        for origin in ("https://evil.example", "http://localhost:3000", "null"):
            assert (403, "pages in browsers may not speak to this server") == refusal(
                url, origin=origin
            )
        assert 403 == fetch(url, Origin="https://evil.example")[0]


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8000", 200),
        ("localhost", 200),
        ("LOCALHOST.:1", 200),
        ("arm.localhost:8000", 200),
        ("[::1]:8000", 200),
        ("0.0.0.0:8000", 200),
        ("192.168.1.5:8000", 200),
        ("gateway.example", 200),
        ("evil.example:8000", 421),
        ("127.0.0.1.evil.example", 421),
        ("localhost.evil.example", 421),
        ("evil.example:127.0.0.1", 421),
        ("", 421),
        ("a b", 421),
    ],
)
def test_a_name_that_was_made_to_lead_here_is_refused(host: str, status: int) -> None:
    """
    The name of a page in a browser, looked up to be this machine.
    """
    with serving(hosts=["Gateway.example"]) as url:
        assert status == fetch(url, Host=host)[0]


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Api-Key",
        "Api-Key sk-12345",
        "Api-Key sk-1234567",
        "Bearer sk-123456",
        "Api-Key sk-12345\xe9",
        "sk-123456",
    ],
)
def test_a_client_without_the_key_is_refused(header: str | None) -> None:
    """
    A key of other letters than ASCII ended the connection without an answer.
    """
    with serving(api_key=KEY) as url:
        host, port = re.findall(r"//(.*):(\d+)", url)[0]
        with socket.create_connection((host, int(port)), timeout=10) as peer:
            line = (
                b"" if header is None else b"Authorization: " + header.encode("latin-1") + b"\r\n"
            )
            peer.sendall(
                b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
                b"Connection: Upgrade\r\n"
                b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n"
                + line
                + b"\r\n"
            )
            answer = peer.recv(1000)
        assert answer.startswith(b"HTTP/1.1 401 ")
        assert b"sk-" not in answer
        assert (200, "OK\n") == fetch(url)


def test_a_client_with_the_key_is_served() -> None:
    """
    Sent as openpi-client sends it; two keys are none.
    """
    with serving(api_key=KEY) as url:
        right = ("Authorization", "Api-Key sk-123456")
        with dial(url, additional_headers=[right]) as peer:
            peer.recv(10)
            assert ask(peer)
        assert 401 == refusal(url, additional_headers=[right, right])[0]


def test_a_client_is_refused_when_too_many_are_connected() -> None:
    """
    And served once one of them has left; health is always told.
    """
    with serving(max_clients=1) as url:
        with dial(url) as peer:
            peer.recv(10)
            assert (503, "busy: 1 clients are connected") == refusal(url)
            assert 200 == fetch(url)[0]
        time.sleep(0.2)
        with dial(url) as other:
            assert other.recv(10)


def test_a_request_is_refused_when_too_many_wait() -> None:
    """
    In words that say that it is busy.
    """
    policy = Slow()
    with serving(policy, max_waiting=0) as url, dial(url) as one, dial(url) as two:
        one.recv(10)
        two.recv(10)
        one.send(REQUEST)
        assert policy.busy.wait(10)
        two.send(REQUEST)
        assert "busy: 1 requests are in hand" == two.recv(10)
        policy.go.set()
        assert isinstance(one.recv(10), bytes)


def test_the_request_of_a_client_that_left_is_not_computed() -> None:
    """
    It waits behind another one, and nobody wants its answer.
    """
    policy = Slow()
    with serving(policy) as url, dial(url) as one:
        one.recv(10)
        one.send(REQUEST)
        assert policy.busy.wait(10)
        with dial(url) as two:
            two.recv(10)
            two.send(REQUEST)
            time.sleep(0.2)
        time.sleep(0.2)
        policy.go.set()
        assert one.recv(10)
        time.sleep(0.1)
        assert 1 == policy.asked


def test_pings_are_not_read_without_end_while_their_answers_are_not_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """
    The answers filled the memory of the server.
    """

    def hold_little(connection: Any) -> None:
        for option, size in ((socket.SO_RCVBUF, 32_768), (socket.SO_SNDBUF, 4096)):
            connection.setsockopt(socket.SOL_SOCKET, option, size)

    monkeypatch.setattr(_websocket_listener, "watch_peer", hold_little)
    pings = 100 * b"\x89\xfd\0\0\0\0".ljust(131, b"x")
    most = 8 << 20  # what the kernel keeps of them is less
    with serving() as url, socket.socket() as peer:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        peer.connect(address(url))
        peer.sendall(HANDSHAKE)
        hear_request(peer)
        peer.settimeout(1)
        sent = 0
        with suppress(TimeoutError):
            while sent < most:
                sent += peer.send(pings[sent % len(pings) :])
        assert sent < most


@pytest.mark.parametrize(
    "first_byte", [0x89, 0x8A, 0x02, 0x82], ids=["ping", "pong", "part", "whole"]
)
def test_a_flood_of_small_frames_is_hung_up_on(first_byte: int) -> None:
    """
    To read six megabytes of them took nine seconds, in which nobody else was served.
    """
    rest = 0x00 if first_byte == 0x02 else first_byte
    flood = b"".join(bytes((each, 0x80, 0, 0, 0, 0)) for each in (first_byte, *[rest] * 20_000))
    with serving() as url, socket.create_connection(address(url), timeout=10) as peer:
        peer.sendall(HANDSHAKE)
        hear_request(peer)
        with suppress(ConnectionError):
            peer.sendall(flood)
        assert b"too many small frames at once" in rest_of(peer)
        with dial(url) as other:
            other.recv(10)
            assert [[0.0, 0.0]] * 2 == ask(other)["actions"].tolist()


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Make a server expect one thing at once, or as late as ever."""

    def hurry(due: _Due, within_s: float = 0.3) -> None:
        monkeypatch.setitem(_websocket_listener._WITHIN_S, due, within_s)

    return hurry


BEGUN = b"\x82\xfe\x10\0\0\0\0\0"  # the head of a frame of four thousand bytes


@pytest.mark.parametrize("comes", ["with the handshake", "after it"])
@pytest.mark.parametrize(
    "begun",
    [BEGUN[:1], BEGUN, BEGUN + bytes(100), b"\x02\x81\0\0\0\0\x80", b"\x02\x80\0\0\0\0\x89"],
    ids=["a byte", "a head", "half", "a part", "a part and a byte"],
)
def test_one_that_does_not_end_its_request_is_hung_up_on(
    begun: bytes, comes: str, hurried: Callable[..., None]
) -> None:
    """
    A drip kept a connection, and the memory of what it had announced, for ever.
    """
    hurried(_Due.MESSAGE)
    with serving() as url, socket.create_connection(address(url), timeout=20) as peer:
        peer.sendall(HANDSHAKE + begun if comes == "with the handshake" else HANDSHAKE)
        hear_request(peer)
        if comes == "after it":
            peer.sendall(begun)
        assert b"\x03\xf0the request did not come in time" in rest_of(peer)  # 1008


def test_a_request_that_drips_is_late_although_something_comes(
    hurried: Callable[..., None],
) -> None:
    """
    A byte now and then is no reason to wait on.
    """
    hurried(_Due.MESSAGE)
    with serving() as url, socket.create_connection(address(url), timeout=20) as peer:
        peer.sendall(HANDSHAKE + BEGUN)
        hear_request(peer)
        with suppress(ConnectionError):
            for _ in range(3000):
                peer.sendall(b"\0")
                time.sleep(0.01)
            raise AssertionError("it went on reading")


def test_one_that_is_idle_is_not_hung_up_on(hurried: Callable[..., None]) -> None:
    """
    A robot that is switched off asks nothing for hours. What came in time is over.
    """
    for due in _Due:
        hurried(due)
    with serving() as url, dial(url) as peer:
        peer.recv(10)
        for _ in range(2):
            with pytest.raises(TimeoutError):
                peer.recv(0.5)
            assert [[0.0, 0.0]] * 2 == ask(peer)["actions"].tolist()


def test_a_request_that_comes_while_another_is_answered_has_its_time_afterwards(
    hurried: Callable[..., None],
) -> None:
    """
    It is not read meanwhile, for which its client can do nothing.
    """
    hurried(_Due.MESSAGE)
    policy = Slow()
    with serving(policy) as url, dial(url) as peer:
        peer.recv(10)
        peer.send(REQUEST)
        assert policy.busy.wait(10)
        peer.socket.sendall(b"\x02\x80\0\0\0\0")  # the first part of another one
        with pytest.raises(TimeoutError):
            peer.recv(0.5)
        hurried(_Due.MESSAGE, 30.0)
        policy.go.set()
        assert isinstance(peer.recv(10), bytes)
        peer.socket.sendall(b"\x80\x81\0\0\0\0\x80")  # and its end: an empty map
        assert isinstance(peer.recv(10), str)


def test_one_that_takes_no_answers_is_hung_up_on(
    monkeypatch: pytest.MonkeyPatch, hurried: Callable[..., None]
) -> None:
    """
    Its place was never free again.
    """

    def hold_little(connection: Any) -> None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)

    monkeypatch.setattr(_websocket_listener, "watch_peer", hold_little)
    hurried(_Due.TAKING)
    policy = ScriptedPolicy(lambda _: np.zeros((4096, 2)), info=attrs.evolve(INFO, horizon=4096))
    with serving(policy, max_clients=1) as url, socket.socket() as peer:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        peer.connect(address(url))
        peer.sendall(HANDSHAKE)
        hear_request(peer)
        asked = b"\x82\xfe" + len(REQUEST).to_bytes(2, "big") + bytes(4) + REQUEST
        with suppress(ConnectionError):
            peer.sendall(20 * asked)
        until(lambda: has_room(url))


@pytest.mark.parametrize("last", [b"\x88\x82\0\0\0\0\x03\xe8", b"\xff" * 9], ids=["close", "junk"])
def test_a_peer_that_stays_after_the_farewell_is_hung_up_on(last: bytes) -> None:
    """
    Its place was never free again.
    """
    with serving(max_clients=1) as url, socket.create_connection(address(url)) as peer:
        peer.sendall(HANDSHAKE + last)
        until(lambda: has_room(url))


def test_a_connection_without_a_handshake_gives_way_when_many_come() -> None:
    """
    A thousand of them used up the files of the process, and a stop waited ten seconds for them.
    """
    with ExitStack() as stack:
        url = stack.enter_context(serving())
        silent = [socket.create_connection(address(url), timeout=5) for _ in range(100)]
        assert b"" == rest_of(silent[0])
        assert (200, "OK\n") == fetch(url)
        began_at_s = time.monotonic()
    assert time.monotonic() - began_at_s < 5
    for each in silent:
        each.close()


def test_clients_of_one_policy_get_their_own_answers() -> None:
    """
    From several connections at once.
    """
    with serving(max_waiting=20) as url:
        answers: dict[int, list[float]] = {}

        def loop(number: int) -> None:
            with client(url) as policy:
                seen = attrs.evolve(SEEN, state=[float(number), 0.0])
                answers[number] = [policy.infer(seen).values[0, 0] for _ in range(10)]

        threads = [threading.Thread(target=loop, args=(i,)) for i in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
    assert {i: [float(i)] * 10 for i in range(6)} == answers


def test_a_stop_answers_what_is_in_hand_and_hangs_up_on_the_others() -> None:
    """
    With the code that says that the server goes away.
    """
    policy = Slow()
    with ExitStack() as stack:
        runtime = stack.enter_context(PolicyRuntime(policy))
        with serve_in_thread(OpenPIServer(runtime, layout=LAYOUT, port=0)) as url:
            busy, idle = stack.enter_context(dial(url)), stack.enter_context(dial(url))
            for peer in (busy, idle):
                peer.recv(10)
            busy.send(REQUEST)
            assert policy.busy.wait(10)
            threading.Timer(0.3, policy.go.set).start()
        assert isinstance(busy.recv(10), bytes)
        for peer in (busy, idle):
            with pytest.raises(ConnectionClosed) as caught:
                peer.recv(10)
            assert caught.value.rcvd is not None
            assert 1001 == caught.value.rcvd.code


def test_a_stop_does_not_wait_for_an_answer_for_ever() -> None:
    """
    A model may never come back.
    """

    async def started() -> float:
        async with OpenPIServer(runtime, layout=LAYOUT, port=0) as server:
            asking = asyncio.to_thread(ask_in_vain, server.url)
            task = asyncio.ensure_future(asking)
            await asyncio.to_thread(policy.busy.wait, 10)
            began_at_s = time.perf_counter()
            await server.stop(grace_s=0.2)
            taken_s = time.perf_counter() - began_at_s
            await task
            return taken_s

    def ask_in_vain(url: str) -> None:
        with dial(url) as peer:
            peer.recv(10)
            with pytest.raises(ConnectionClosed):
                ask(peer)

    policy = Slow()
    runtime = PolicyRuntime(policy)
    assert asyncio.run(started()) < 5
    policy.go.set()
    runtime.close()


def test_a_port_that_is_in_use_is_told_as_such() -> None:
    """
    Where the server is started, not on the thread that nobody looks at.
    """
    with serving() as url:
        port = int(url.rpartition(":")[2])
        with pytest.raises(EndpointError, match="cannot listen there: "), serving(port=port):
            pytest.fail("two servers at one port")


def test_an_instruction_that_is_not_sent_is_the_default_one() -> None:
    """
    A server of one task needs none from its clients.
    """
    request = {key: value for key, value in LAYOUT.request_from(SEEN).items() if key != "prompt"}
    policy = echoing()
    with serving(policy, default_prompt="fold the shirt") as url, dial(url) as peer:
        peer.recv(10)
        assert ask(peer, encode_frame(request, kind=FrameKind.REQUEST))
    assert "fold the shirt" == policy.shown[0].instruction


def test_a_chunk_of_other_names_than_announced_is_not_sent() -> None:
    """
    Whoever gets it would take it for the other one.
    """
    chunk = ScriptedPolicy([PLAN], info=PolicyInfo(name="x", action_names=("a", "b"))).infer(SEEN)
    with (
        serving(ScriptedPolicy([chunk], info=INFO)) as url,
        client(url) as policy,
        pytest.raises(PolicyRefusedError, match="got the names"),
    ):
        policy.infer(SEEN)


def test_a_fault_of_the_server_is_told_by_its_class_and_logged_whole(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """
    A bug of ours must not be silent, and tells nothing of this machine.
    """

    def broken(*_: Any, **__: Any) -> Any:
        raise MemoryError("/home/me")

    with serving() as url, dial(url) as peer:
        peer.recv(10)
        monkeypatch.setattr(OpenPICodec, "decode_request", broken)
        peer.send(REQUEST)
        assert "the server failed with MemoryError; its log says more" == peer.recv(10)
    assert "/home/me" in caplog.text


def test_nothing_is_printed_about_peers_that_speak_other_protocols(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """
    A scanner of ports filled the log with tracebacks.
    """
    caplog.set_level(logging.DEBUG)
    with serving(api_key=KEY) as url:
        port = int(url.rpartition(":")[2])
        for data in (b"", b"\x00" * 99, b"GET / HTTP/1.1\r\n\r\n", b"SSH-2.0\r\n"):
            with socket.create_connection(("127.0.0.1", port)) as peer:
                peer.sendall(data)
        time.sleep(0.2)
        assert 200 == fetch(url)[0]
    assert "Traceback" not in caplog.text
    assert KEY.reveal() not in caplog.text


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda o: o.update(runtime="x"), "runtime"),
        (lambda o: o.update(layout="x"), "layout"),
        (lambda o: o.update(host="0.0.0.0"), "host"),
        (lambda o: o.update(host="::"), "host"),
        (lambda o: o.update(host="example.com"), "host"),
        (lambda o: o.update(host=None), "host"),
        (lambda o: o.update(port=-1), "port"),
        (lambda o: o.update(port=70_000), "port"),
        (lambda o: o.update(port=True), "port"),
        (lambda o: o.update(api_key="sk-1"), "key"),
        (lambda o: o.update(max_clients=0), "max_clients"),
        (lambda o: o.update(tls=True), "tls"),
        (lambda o: o.update(default_prompt=" "), "default_prompt"),
        (lambda o: o.update(hosts=["a", "a"]), "hosts"),
    ],
)
def test_what_cannot_work_is_refused_at_construction(
    change: Callable[[dict[str, Any]], None], field: str
) -> None:
    """
    An address that others reach takes a word: the server bound 0.0.0.0 unasked.
    """
    with PolicyRuntime(echoing()) as runtime:
        options: dict[str, Any] = {"runtime": runtime, "layout": LAYOUT}
        change(options)
        with pytest.raises(ContractError) as caught:
            OpenPIServer(**options)
    assert field == caught.value.field


def test_a_policy_that_does_not_say_its_action_names_is_not_served() -> None:
    """
    Its answers would have none.
    """
    policy = ScriptedPolicy(lambda _: np.zeros((1, 2)), info=PolicyInfo(name="mute"))
    with (
        PolicyRuntime(policy) as runtime,
        pytest.raises(ContractError, match="without action_names"),
    ):
        OpenPIServer(runtime, layout=LAYOUT)


def test_an_address_that_others_reach_is_taken_when_asked_for() -> None:
    """
    And is named by one that this machine reaches.
    """
    with serving(host="0.0.0.0", allow_remote=True) as url, client(url) as policy:
        assert url.startswith("ws://127.0.0.1:")
        assert ROBOT.actions.names == policy.infer(SEEN).names
