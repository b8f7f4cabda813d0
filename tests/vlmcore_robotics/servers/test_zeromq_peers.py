"""Tests of the connections of `vlmcore_robotics.servers.zeromq`: how many, how long, how much."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest
import zmq

from client_cases import Remote, most_memory
from vlmcore.contracts.actions import ActionChunk
from vlmcore.errors import PolicyRefusedError
from vlmcore.limits import WireLimits
from vlmcore.testing import ScriptedPolicy
from vlmcore_robotics.servers import _zmq_listener
from vlmcore_robotics.servers._zmq_listener import _Due
from vlmcore_robotics.servers.runtime import PolicyRuntime
from vlmcore_robotics.servers.zeromq import GrootServer
from vlmcore_robotics.wire._zmtp_frames import COMMAND, MORE, frame_head
from vlmcore_robotics.wire.frames import FrameKind, decode_frame, encode_frame
from vlmcore_robotics.wire.zmtp import Message, SocketKind, ZmtpConnection
from zeromq_cases import (
    CODEC,
    INFO,
    LAYOUT,
    NAMES,
    PLAN,
    SEEN,
    Peer,
    async_client,
    client,
    echoing,
    seen_at,
    serving,
)
from zmtp_cases import GREETING, command, ready, written

REQUEST = CODEC.encode_request(SEEN)
PING = encode_frame({"endpoint": "ping"}, kind=FrameKind.REQUEST)
LARGE = 1 << 22


class Plain:
    """A peer that says whatever it is told to, byte by byte if need be."""

    def __init__(self, url: str, *, kind: bytes = b"REQ", rcvbuf: int | None = None) -> None:
        host, port = url.removeprefix("tcp://").split(":")
        self.socket = socket.socket()
        if rcvbuf is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
        self.socket.settimeout(20)
        self.socket.connect((host, int(port)))
        self.zmtp = ZmtpConnection(SocketKind.DEALER, policy="plain", max_bytes=LARGE)
        self.greeting = GREETING + ready(kind)

    def greet(self) -> Plain:
        self.socket.sendall(self.greeting)
        while not self.zmtp.is_greeted:
            if not self.hear():
                self.socket.close()
                raise AssertionError("it hung up")
            assert self.zmtp.take() is None
        return self

    def ask(self, *frames: bytes) -> None:
        self.socket.sendall(written(*frames))

    def hear(self) -> int:
        count = self.socket.recv_into(self.zmtp.room())
        self.zmtp.filled(count)
        return count

    def receive(self) -> Message:
        while (message := self.zmtp.take()) is None:
            assert self.hear(), "it hung up"
        return message

    def last_words(self) -> bytes:
        """Wait until it hangs up; return all that it says until then."""
        said = b""
        try:
            while data := self.socket.recv(1 << 16):
                said += data
        except ConnectionError:
            pass
        return said

    def __enter__(self) -> Plain:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()


class Watched:
    """A policy that waits until it is let, and knows its sessions."""

    info = INFO

    def __init__(self) -> None:
        self.go, self.busy = threading.Event(), threading.Event()
        self.asked: list[Any] = []

    def fork(self) -> Watched:
        forked = Watched()
        vars(forked).update(vars(self))
        return forked

    def infer(self, observation: Any, /) -> Any:
        self.asked.append(observation)
        self.busy.set()
        assert self.go.wait(20)
        return ScriptedPolicy([PLAN], info=INFO).infer(observation)

    def reset(self) -> None:
        """Nothing to forget."""

    def close(self) -> None:
        self.go.set()


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> Callable[[_Due], None]:
    """Make a server expect one thing at once."""

    def hurry(due: _Due) -> None:
        monkeypatch.setitem(_zmq_listener._WITHIN_S, due, 0.3)

    return hurry


def test_so_many_clients_are_served_and_no_more(hurried: Callable[[_Due], None]) -> None:
    """
    libzmq takes as many as there are files. The next one is told when it asks.
    """
    busy = {"error": "busy: 2 clients are connected"}
    with serving(max_clients=2) as url, Plain(url).greet() as one, Peer(url) as two:
        assert "ok" == two.ask("ping")["status"]
        hurried(_Due.WELCOME)
        with Plain(url).greet() as third, Peer(url) as stock:
            third.ask(b"", PING)
            assert busy == decode_frame(third.receive()[1], kind=FrameKind.RESPONSE)
            assert busy == stock.ask("ping")
            assert b"" == third.last_words()
        one.socket.close()
        policy = let_in(client(url, timeout_s=20))
        assert 2 == policy.infer(SEEN).horizon
        policy.close()


def let_in(policy: Any) -> Any:
    """Connect until there is room: when a server sees that another left is its business."""
    for _ in range(1000):
        with suppress(PolicyRefusedError):
            policy.connect()
            return policy
    raise AssertionError("it was never let in")


@pytest.mark.parametrize("make", [client, async_client])
def test_a_client_of_ours_says_that_the_server_is_busy(make: Any) -> None:
    """
    In the words of the server.
    """
    with serving(max_clients=1) as url, Plain(url).greet():
        remote = Remote(make(url))
        with pytest.raises(PolicyRefusedError, match="busy: 1 clients are connected"):
            remote.connect()
        remote.close()
        remote.loop.close()


def test_one_too_many_that_asks_nothing_is_hung_up_on(hurried: Callable[[_Due], None]) -> None:
    """
    It would hold a connection that is not counted.
    """
    with serving(max_clients=1) as url, Plain(url).greet():
        hurried(_Due.WELCOME)
        with Plain(url).greet() as second:
            assert b"" == second.last_words()


@pytest.mark.parametrize("said", [b"", b"\xff", None], ids=["silent", "half", "no socket type"])
def test_one_that_does_not_shake_hands_is_hung_up_on(
    hurried: Callable[[_Due], None], said: bytes | None
) -> None:
    """
    In time.
    """
    hurried(_Due.WELCOME)
    with serving() as url, Plain(url) as peer:
        peer.socket.sendall(peer.greeting[:64] if said is None else said)
        assert GREETING.startswith(peer.last_words()[:12])


def test_many_that_do_not_shake_hands_keep_nobody_out() -> None:
    """
    The oldest of them gives way.
    """
    with serving() as url, ExitStack() as stack:
        silent = [stack.enter_context(Plain(url)) for _ in range(70)]
        with Plain(url).greet() as peer:
            peer.ask(b"", PING)
            assert 2 == len(peer.receive())
        silent[0].last_words()


def test_one_that_does_not_end_its_request_is_hung_up_on(hurried: Callable[[_Due], None]) -> None:
    """
    A drip kept a connection, and the memory of what it had announced, for ever.
    """
    hurried(_Due.MESSAGE)
    with serving() as url:
        for cut in (3, 4, len(REQUEST) // 2):
            with Plain(url).greet() as peer:
                peer.socket.sendall(written(b"", REQUEST)[:cut])
                assert b"" == peer.last_words()


def test_one_that_is_idle_is_not_hung_up_on(hurried: Callable[[_Due], None]) -> None:
    """
    A robot that is switched off asks nothing for hours. What came in time is over.
    """
    for due in (_Due.WELCOME, _Due.MESSAGE, _Due.TAKING):
        hurried(due)
    with serving() as url, Plain(url).greet() as peer:
        for _ in range(2):
            peer.socket.settimeout(0.2)
            with pytest.raises(TimeoutError):
                peer.socket.recv(1)
            peer.socket.settimeout(20)
            peer.ask(b"", PING)
            assert 2 == len(peer.receive())


def test_one_that_takes_no_answers_is_hung_up_on(hurried: Callable[[_Due], None]) -> None:
    """
    What it asks meanwhile is not read: answers would fill the memory.
    """
    hurried(_Due.TAKING)
    envelope = [bytes(1 << 18), b""]  # comes back with each answer
    with serving() as url, Plain(url, rcvbuf=1 << 12).greet() as peer, Peer(url) as other:
        with suppress(ConnectionError):
            for _ in range(1000):
                peer.ask(*envelope, PING)
            raise AssertionError("it went on reading")
        assert "ok" == other.ask("ping")["status"]


@pytest.mark.parametrize(
    "flood",
    [
        frame_head(0, MORE) * 64,
        frame_head(1 << 20, MORE) + bytes(1 << 20),
        frame_head(1 << 62),
        frame_head(1 << 20, COMMAND),
        b"\x04\x02\x01a" * 5000,
        b"\xf0\x00",
    ],
    ids=["frames", "parts", "promise", "command", "commands", "nonsense"],
)
def test_one_whose_request_has_no_end_is_hung_up_on(flood: bytes) -> None:
    """
    libzmq holds frames of one message until the last one came, however many there are.
    """
    with serving(limits=WireLimits(max_request_bytes=1 << 20)) as url, Peer(url) as other:
        with Plain(url).greet() as peer, suppress(ConnectionError):
            for _ in range(10_000):
                peer.socket.sendall(flood)
            assert b"" == peer.last_words()
        assert "ok" == other.ask("ping")["status"]


def test_frames_without_end_take_no_memory() -> None:
    """
    They filled the memory of a server, one below the limit after the other.
    """
    part = frame_head(1 << 20, MORE) + bytes(1 << 20)
    with serving(limits=WireLimits(max_request_bytes=4 << 20)) as url:
        before_mib = memory_mib()
        for _ in range(40):
            with Plain(url).greet() as peer, suppress(ConnectionError):
                for _ in range(1000):
                    peer.socket.sendall(part)
                raise AssertionError("it went on reading")
        assert memory_mib() - before_mib < 32


def test_a_request_is_held_once() -> None:
    """
    What came is what is read, and its frames are what the policy is shown.
    """

    class Forgetful:
        info = attrs.evolve(INFO, cameras=None)

        def infer(self, _: Any, /) -> Any:
            return ActionChunk(values=PLAN, names=NAMES, source="scripted", observed_at_s=0.0)

        def reset(self) -> None:
            """Nothing to forget."""

        def close(self) -> None:
            """Nothing to give back."""

    pixels = np.zeros((960, 1280, 3), np.uint8)
    request = CODEC.encode_request(attrs.evolve(SEEN, images={"front": pixels}))
    message = written(b"", request)

    def ask(peer: Plain) -> None:
        peer.socket.sendall(message)
        assert 2 == len(decode_frame(peer.receive()[1], kind=FrameKind.RESPONSE))

    with serving(Forgetful()) as url, Plain(url).greet() as peer:
        ask(peer)
        assert most_memory(lambda: ask(peer)) < 1.2 * len(request)


def memory_mib() -> float:
    """Say how much memory this process has."""
    status = Path("/proc/self/status")
    if not status.exists():
        pytest.skip("no such file on this system")
    return int(status.read_text().split("VmRSS:")[1].split()[0]) / 1024


@pytest.mark.parametrize("kind", [b"PUB", b"REP", b"PULL", b"", b"X" * 40])
def test_a_socket_that_asks_nothing_is_told_so(kind: bytes) -> None:
    """
    In the words that ZeroMQ has for it.
    """
    with serving() as url, Plain(url, kind=kind) as peer:
        peer.socket.sendall(peer.greeting)
        assert b"expected REQ or DEALER or ROUTER" in peer.last_words()


def test_what_a_dealer_sends_at_once_is_answered_in_order() -> None:
    """
    One request is in hand at a time, and one waits: the others stay with the peer.
    """
    with serving() as url, Peer(url, zmq.DEALER) as peer:
        for number in range(300):
            peer.socket.send_multipart([b"", CODEC.encode_request(seen_at(float(number)))])
        for number in range(300):
            assert number == peer.receive()[0]["single_arm"][0, 0, 0]


def test_the_heartbeats_of_a_peer_are_answered_while_an_inference_runs() -> None:
    """
    It would take the server for dead, and ask again elsewhere.
    """
    policy = Watched()
    with serving(policy) as url, Plain(url).greet() as peer:
        peer.ask(b"", REQUEST)
        assert policy.busy.wait(20)
        for number in range(5):
            peer.socket.sendall(command(b"\x04PING\0\0" + bytes((number,))))
            pong = command(b"\x04PONG" + bytes((number,)))
            assert pong == peer.socket.recv(len(pong), socket.MSG_WAITALL)
        policy.go.set()
        assert 2 == len(decode_frame(peer.receive()[1], kind=FrameKind.RESPONSE))


def test_what_a_client_that_left_has_asked_is_not_inferred() -> None:
    """
    Others wait for the policy; and its session ends.
    """
    policy = Watched()
    with serving(policy) as url, Plain(url).greet() as running:
        running.ask(b"", REQUEST)
        assert policy.busy.wait(20)
        with Plain(url).greet() as leaving:
            leaving.ask(b"", REQUEST)
            leaving.socket.shutdown(socket.SHUT_WR)
            assert b"" == leaving.last_words()
        with Peer(url) as peer:  # the server has heard of it by the time that it answers others
            assert "ok" == peer.ask("ping")["status"]
        policy.go.set()
        assert 2 == len(running.receive())
    assert 1 == len(policy.asked)


def test_a_request_that_comes_with_the_end_of_the_connection_harms_nobody() -> None:
    """
    It was asked and the peer is gone, in one piece.
    """
    with serving() as url:
        for _ in range(20):
            with Plain(url) as peer:
                request = written(b"", REQUEST)
                peer.socket.sendall(peer.greeting + request)
        with Peer(url) as other:
            assert "ok" == other.ask("ping")["status"]


def test_stopping_hangs_up_on_everybody_however_far_they_are() -> None:
    """
    Also on who never takes what is left for it, within a second.
    """

    async def stop() -> None:
        with PolicyRuntime(echoing()) as runtime:
            server = GrootServer(runtime, layout=LAYOUT, port=0)
            await server.start()
            with ExitStack() as stack:
                idle = stack.enter_context(await asyncio.to_thread(Plain(server.url).greet))
                silent = stack.enter_context(Plain(server.url))
                deaf = Plain(server.url, rcvbuf=1 << 12)
                stack.enter_context(await asyncio.to_thread(deaf.greet))
                await asyncio.to_thread(deaf.ask, bytes(LARGE), b"", PING)
                await asyncio.wait_for(server.stop(), 20)
                for peer in (idle, silent, deaf):
                    await asyncio.to_thread(peer.last_words)

    asyncio.run(stop())
