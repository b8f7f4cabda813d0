"""Tests of `vlmcore_robotics.wire.zmtp`, byte by byte, and over sockets with libzmq as the peer."""

from __future__ import annotations

import re
import socket
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import starmap

import pytest
import zmq
from hypothesis import given
from hypothesis import strategies as st

from vlmcore.errors import PolicyProtocolError, PolicyRefusedError, VlmcoreError
from vlmcore_robotics.wire._zmtp_frames import COMMAND, MORE, frame_head
from vlmcore_robotics.wire.zmtp import Message, SocketKind, ZmtpConnection, encode_message
from zmtp_cases import GREETING, command, ready, said_before, written

# As a REQ socket of libzmq 4.3.5 writes them, seen at a socket on 2026-11-30.
LIBZMQ_GREETING = b"\xff" + bytes(7) + b"\x01\x7f\x03\x01NULL" + bytes(48)
LIBZMQ_READY = b"\x04\x26\x05READY\x0bSocket-Type\x00\x00\x00\x03REQ\x08Identity\x00\x00\x00\x00"
START = LIBZMQ_GREETING + LIBZMQ_READY
MOST_BYTES = 1 << 21
SIZES = (0, 1, 255, 256, (1 << 16) - 3, 1 << 16, 1 << 20)


def connection(
    kind: SocketKind = SocketKind.ROUTER, *, said: bytes = START, max_bytes: int = MOST_BYTES
) -> ZmtpConnection:
    """Make an end that has heard what stands before messages."""
    made = ZmtpConnection(kind, policy="arm", max_bytes=max_bytes)
    made.accept()
    assert [] == heard(made, said)
    made.unsent.clear()
    return made


def heard(end: ZmtpConnection, data: bytes, *, most: int = 1 << 30) -> list[Message]:
    """Let an end hear *data*, at most so much at a time; return the messages in it."""
    messages, rest = [], memoryview(data)
    while rest:
        part = rest[: min(most, len(end.room()))]
        end.feed(part)
        rest = rest[len(part) :]
        while (message := end.take()) is not None:
            messages.append(message)
    return messages


def refused(end: ZmtpConnection, data: bytes) -> str:
    """Say what is wrong with *data*."""
    with pytest.raises(PolicyProtocolError) as caught:
        heard(end, data)
    assert "theirs" == caught.value.side
    return caught.value.problem


def test_what_is_said_before_messages_is_to_the_letter() -> None:
    """
    As libzmq says it, but for the last byte of the padding, which version 1 has a meaning for.
    """
    assert GREETING == LIBZMQ_GREETING[:8] + b"\0" + LIBZMQ_GREETING[9:]
    assert GREETING + LIBZMQ_READY == said_before(SocketKind.REQ)


@pytest.mark.parametrize(
    ("frames", "bytes_"),
    [
        ([b""], b"\x00\x00"),
        ([b"", b"a"], b"\x01\x00\x00\x01a"),
        ([b"a" * 255], b"\x00\xff" + b"a" * 255),
        ([b"a" * 256], b"\x02\0\0\0\0\0\0\x01\x00" + b"a" * 256),
        ([b"a" * 256, b""], b"\x03\0\0\0\0\0\0\x01\x00" + b"a" * 256 + b"\x00\x00"),
    ],
)
def test_a_message_is_written_to_the_letter(frames: list[bytes], bytes_: bytes) -> None:
    """
    A size of one byte up to 255, of eight from 256 on.
    """
    assert bytes_ == written(*frames)


@given(
    st.lists(
        st.lists(st.sampled_from(SIZES) | st.integers(0, 600), min_size=1, max_size=4),
        max_size=4,
    ),
    st.integers(1, 1 << 17),
)
def test_messages_are_read_as_they_were_written_however_they_come(
    sizes: list[list[int]], most: int
) -> None:
    """
    In one piece, in many, and several in one.
    """
    messages = [tuple(bytes((i,)) * size for i, size in enumerate(each)) for each in sizes]
    data = b"".join(starmap(written, messages))
    end = connection(max_bytes=1 << 23)
    assert messages == heard(end, data, most=max(most, len(data) // 500))
    assert not end.is_within


def test_a_greeting_that_comes_byte_by_byte_is_understood() -> None:
    """
    And a message after it.
    """
    end = ZmtpConnection(SocketKind.ROUTER, policy="arm", max_bytes=9)
    assert [(b"", b"hello")] == heard(end, START + written(*[b"", b"hello"]), most=1)


def test_what_is_large_is_held_once() -> None:
    """
    It is written to the bytes that are returned, and nothing as large stands beside them.
    """
    body = bytes(8 << 20)
    end = connection(max_bytes=len(body))
    heads = b"".join(encode_message([b"", body])[:-1])
    tracemalloc.start()
    try:
        heard(end, heads)
        for _ in range(len(body) >> 16):
            room = end.room()
            room[: 1 << 16] = body[: 1 << 16]
            end.filled(1 << 16)  # while `room` is still held, as event loops do
        taken = end.take()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (b"", body) == taken
    assert peak < 1.05 * len(body)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (frame_head(357), "a message of 357 bytes or more, expected at most 100"),
        (frame_head((1 << 64) - 1), "a message of 18446744073709551615 bytes"),
        (frame_head(90, MORE) + bytes(90) + frame_head(270), "a message of 360 bytes or more"),
        ((frame_head(0, MORE)) * 33, "a message of more than 32 frames"),
        (frame_head(1025, COMMAND), "a command of 1025 bytes, expected at most 1024"),
        (command(b"\x07NOTHING") * 1025, "too many small frames at once"),
        (command(b"\x04PING\0\0") * 1025, "it pings and does not take the answers"),
        (frame_head(1, COMMAND | MORE), "the flags 5, which has no meaning"),
        (b"\x08\x00", "the flags 8, which has no meaning"),
        (b"\x80\x00", "the flags 128, which has no meaning"),
        (command(b""), "a command without a name"),
        (command(b"\x05PING"), "a command without a name"),
        (command(b"\x04PING"), "a ping of 0 bytes, expected 2 to 18"),
        (command(b"\x04PING" + bytes(19)), "a ping of 19 bytes, expected 2 to 18"),
    ],
)
def test_what_has_no_end_or_no_meaning_is_refused_before_it_is_held(
    data: bytes, words: str
) -> None:
    """
    libzmq holds a message of endless frames whole; its limit is for each of them.
    """
    end = connection(max_bytes=100)
    tracemalloc.start()
    try:
        assert words in refused(end, data)
        assert tracemalloc.get_traced_memory()[1] < 1 << 18
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"GET / HTTP/1.1\r\n", "it sends b'GET / HT', expected the greeting of ZeroMQ"),
        (b"H", "it sends b'H', expected the greeting of ZeroMQ"),
        (b"\xff" * 10, "expected the greeting of ZeroMQ"),
        (b"\x01\x00", "expected the greeting of ZeroMQ"),  # ZMTP 1.0
        (LIBZMQ_GREETING[:10] + b"\x01", "a version of ZMTP before 3.0"),  # ZMTP 2.0
        (LIBZMQ_GREETING[:12] + b"CURVE".ljust(52, b"\0"), "the mechanism 'CURVE'"),
        (LIBZMQ_GREETING[:12] + b"PLAIN".ljust(52, b"\0"), "the mechanism 'PLAIN'"),
        (LIBZMQ_GREETING + written(*[b"", b"x"]), "a message before it says what it is"),
        (LIBZMQ_GREETING + command(b"\x04PING\0\0"), "b'PING' before it says what it is"),
        (LIBZMQ_GREETING + command(b"\x05READY"), "of the kind '', expected REQ or DEALER"),
        (LIBZMQ_GREETING + ready(b"PUB"), "of the kind 'PUB', expected REQ or DEALER or ROUTER"),
        (LIBZMQ_GREETING + ready(b"REP"), "of the kind 'REP'"),
        (LIBZMQ_GREETING + ready(b"req"), "of the kind 'req'"),
        (LIBZMQ_GREETING + command(b"\x05READY\x0bSocket"), "a command that is cut"),
        (LIBZMQ_GREETING + command(b"\x05READY\x01a\xff\xff\xff\xff"), "a command that is cut"),
    ],
)
def test_a_peer_that_is_none_is_told_what_it_is(data: bytes, words: str) -> None:
    """
    As soon as that is known: who waits for the rest of a greeting waits for ever.
    """
    assert words in refused(ZmtpConnection(SocketKind.ROUTER, policy="arm", max_bytes=9), data)


@pytest.mark.parametrize("minor", [0, 1, 2, 255])
def test_newer_versions_are_understood(minor: int) -> None:
    """
    They step down to ours.
    """
    for major in (3, 4, 255):
        greeting = LIBZMQ_GREETING[:10] + bytes((major, minor)) + LIBZMQ_GREETING[12:]
        assert connection(said=greeting + LIBZMQ_READY).is_greeted


@pytest.mark.parametrize("name", [b"Socket-Type", b"socket-type", b"SOCKET-TYPE"])
def test_names_of_properties_are_read_whatever_their_case(name: bytes) -> None:
    """
    As the specification wants it.
    """
    assert connection(said=LIBZMQ_GREETING + ready(name=name)).is_greeted


def test_kinds_of_sockets_speak_to_each_other_as_specified() -> None:
    """
    And to no others.
    """
    for kind in SocketKind:
        for other in SocketKind:
            said = LIBZMQ_GREETING + ready(other.value.encode())
            is_fine = (other.value in kind.peers, kind.value in other.peers)
            assert is_fine[0] == is_fine[1]
            end = ZmtpConnection(kind, policy="arm", max_bytes=9)
            if is_fine[0]:
                heard(end, said)
            else:
                refused(end, said)
            assert is_fine[0] == end.is_greeted


def test_a_ping_is_answered_also_within_a_message() -> None:
    """
    With what it holds: libzmq puts one between two frames.
    """
    end = connection()
    data = written(*[b"a", b"b"])
    ping = command(b"\x04PING\x00\x64context")
    assert [(b"a", b"b")] == heard(end, data[:3] + ping + data[3:])
    assert [command(b"\x04PONGcontext")] == end.unsent


def test_commands_that_nobody_knows_mean_nothing() -> None:
    """
    Those of later versions, and answers to pings that were not sent.
    """
    end = connection()
    said = command(b"\x09SUBSCRIBEx") + command(b"\x04PONG") + LIBZMQ_READY
    assert [(b"a",)] == heard(end, said + written(*[b"a"]))
    assert [] == end.unsent


def test_answers_to_pings_that_nobody_takes_are_not_kept_for_ever() -> None:
    """
    They would be memory.
    """
    end = connection()
    for _ in range(10):
        heard(end, command(b"\x04PING\0\0") * 100)
    assert "it pings and does not take" in refused(end, command(b"\x04PING\0\0") * 100)


@pytest.mark.parametrize("is_greeted", [False, True])
def test_a_refusal_is_told_in_the_words_of_the_peer(*, is_greeted: bool) -> None:
    """
    Of a connection, at any time; also where there are none.
    """
    for words, shown in (("busy", "busy"), ("", "without words"), ("x" * 300, "x" * 255)):
        said = connection(SocketKind.REP)
        said.refuse(words)
        end = connection(said=START if is_greeted else LIBZMQ_GREETING)
        with pytest.raises(PolicyRefusedError) as caught:
            heard(end, said.unsent[-1])
        assert shown == caught.value.problem


@given(data=st.binary(max_size=200), most=st.integers(1, 50), is_greeted=st.booleans())
def test_any_bytes_give_messages_or_our_error_however_they_come(
    *, data: bytes, most: int, is_greeted: bool
) -> None:
    """
    And the same ones.
    """
    assert outcome(data, 1 << 30, is_greeted=is_greeted) == outcome(
        data, most, is_greeted=is_greeted
    )


def outcome(data: bytes, most: int, *, is_greeted: bool) -> tuple[list[Message], str]:
    """Say what an end makes of *data*, up to what it refuses."""
    end = connection() if is_greeted else ZmtpConnection(SocketKind.REQ, policy="x", max_bytes=9)
    messages: list[Message] = []
    try:
        for i in range(0, len(data), most):
            end.feed(data[i : i + most])
            while (message := end.take()) is not None:
                messages.append(message)
    except VlmcoreError as error:
        shows_bytes = re.search("b['\"]", str(error))  # which are fewer in smaller pieces
        return messages, "" if shows_bytes else str(error)
    return messages, ""


class End:
    """One of our ends at a real socket."""

    def __init__(self, connection: socket.socket, kind: SocketKind) -> None:
        connection.settimeout(10)
        self.socket = connection
        self.zmtp = ZmtpConnection(kind, policy="arm", max_bytes=1 << 22)
        self.zmtp.accept()
        self.flush()
        while not self.zmtp.is_greeted:
            self.hear()
            assert self.zmtp.take() is None
            self.flush()

    def send(self, *frames: bytes) -> None:
        self.socket.sendall(written(*frames))

    def receive(self) -> Message:
        while (message := self.zmtp.take()) is None:
            self.flush()
            self.hear()
        return message

    def hear(self) -> None:
        count = self.socket.recv_into(self.zmtp.room())
        assert count, "it hung up"
        self.zmtp.filled(count)

    def flush(self) -> None:
        self.socket.sendall(b"".join(self.zmtp.unsent))
        self.zmtp.unsent.clear()


@contextmanager
def libzmq(kind: int, **options: int) -> Iterator[zmq.Socket[bytes]]:
    with zmq.Context() as context, context.socket(kind) as made:
        made.linger = 0
        made.rcvtimeo = made.sndtimeo = 10_000
        for name, value in options.items():
            made.setsockopt(getattr(zmq, name), value)
        yield made


PAIRS = [
    (SocketKind.REQ, zmq.REP),
    (SocketKind.REQ, zmq.ROUTER),
    (SocketKind.DEALER, zmq.REP),
    (SocketKind.DEALER, zmq.DEALER),
    (SocketKind.DEALER, zmq.ROUTER),
    (SocketKind.REP, zmq.REQ),
    (SocketKind.REP, zmq.DEALER),
    (SocketKind.ROUTER, zmq.REQ),
    (SocketKind.ROUTER, zmq.DEALER),
    (SocketKind.ROUTER, zmq.ROUTER),
]


@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
@pytest.mark.parametrize("is_dialling", [True, False], ids=["dials", "listens"])
def test_every_kind_of_ours_speaks_to_every_kind_of_libzmq(
    ours: SocketKind, theirs: int, *, is_dialling: bool
) -> None:
    """
    Messages of no bytes, and of sizes at which the head changes, there and back.
    """
    with libzmq(theirs) as peer, connected(peer, ours, is_dialling=is_dialling) as end:
        is_asked_first = theirs in (zmq.REP, zmq.ROUTER) or ours is SocketKind.DEALER
        leads = [b""] if theirs in (zmq.REP, zmq.REQ) else []
        for size in SIZES:
            body = bytes(size)
            if is_asked_first:
                end.send(*leads, b"ask", body)
                came = peer.recv_multipart()
                assert [b"ask", body] == came[-2:]
                peer.send_multipart(came)
                assert (*leads, b"ask", body) == end.receive()
            else:
                peer.send_multipart([b"ask", body])
                came_here = end.receive()
                assert (*leads, b"ask", body) == came_here
                end.send(*came_here)
                assert [b"ask", body] == peer.recv_multipart()


@contextmanager
def connected(peer: zmq.Socket[bytes], kind: SocketKind, *, is_dialling: bool) -> Iterator[End]:
    """Connect our end and theirs, either of them first."""
    if is_dialling:
        port = peer.bind_to_random_port("tcp://127.0.0.1")
        with socket.create_connection(("127.0.0.1", port)) as dialled:
            yield End(dialled, kind)
        return
    with socket.create_server(("127.0.0.1", 0)) as listener:
        peer.connect(f"tcp://127.0.0.1:{listener.getsockname()[1]}")
        accepted, _ = listener.accept()
        with accepted:
            yield End(accepted, kind)


def test_the_heartbeats_of_libzmq_are_answered() -> None:
    """
    It hangs up on who does not: here it would, ten times, before the answer.
    """
    options = {"HEARTBEAT_IVL": 20, "HEARTBEAT_TIMEOUT": 200, "HEARTBEAT_TTL": 1000}
    with (
        libzmq(zmq.REQ, **options) as peer,
        connected(peer, SocketKind.REP, is_dialling=False) as end,
    ):
        peer.send(b"ask")
        assert (b"", b"ask") == end.receive()
        pings = 0
        while pings < 20:
            end.hear()
            assert end.zmtp.take() is None
            pings += len(end.zmtp.unsent)
            end.flush()
        end.send(b"", b"answer")
        assert b"answer" == peer.recv()


def test_libzmq_says_what_is_written_here() -> None:
    """
    The golden bytes are those of the version that is installed.
    """
    with libzmq(zmq.REQ) as peer, socket.create_server(("127.0.0.1", 0)) as listener:
        peer.connect(f"tcp://127.0.0.1:{listener.getsockname()[1]}")
        accepted, _ = listener.accept()
        with accepted:
            accepted.settimeout(10)
            accepted.sendall(LIBZMQ_GREETING)
            said = b""
            while len(said) < len(START):
                said += accepted.recv(len(START) - len(said))
    assert START == said
