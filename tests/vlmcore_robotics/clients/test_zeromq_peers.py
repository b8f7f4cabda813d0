"""Tests of what `vlmcore_robotics.clients.zeromq` says to whom, byte by byte, and to libzmq."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import attrs
import numpy as np
import pytest
import zmq
from hypothesis import given
from hypothesis import strategies as st

from client_cases import Script, exactly, misbehaving, most_memory, remotes, reset
from vlmcore.errors import PolicyError, PolicyProtocolError, PolicyUnavailableError
from vlmcore.limits import WireLimits
from vlmcore_robotics.clients._boundary import HangUpError, Stage
from vlmcore_robotics.clients._line import rest_after, views_of
from vlmcore_robotics.clients._zmq_line import ZmqLine
from vlmcore_robotics.wire._blobs import Parts
from vlmcore_robotics.wire._zmtp_frames import MORE, frame_head
from vlmcore_robotics.wire.frames import FrameKind, encode_frame
from vlmcore_robotics.wire.zmtp import SocketKind
from zeromq_cases import CODEC, PLAN, ROBOT, SEEN, Scripted, action, async_client, client
from zmtp_cases import GREETING, command, replied, said_before, written

remote = remotes(client, async_client)
Make = Callable[..., Any]


START = said_before(SocketKind.REP)
ANSWERS = [CODEC.encode_modalities(), CODEC.encode_pong()]


def says(*answers: bytes, before: bytes = START) -> Script:
    """Play a server that says one thing after each request that it hears."""

    def play(connection: socket.socket) -> None:
        connection.sendall(before)
        exactly(connection, len(START))
        for answer in answers:
            hear(connection)
            connection.sendall(answer)

    return play


def hear(connection: socket.socket) -> bytes:
    """Read a request, whatever its size."""
    assert b"\x01\x08" == exactly(connection, 2)
    exactly(connection, 8)
    assert b"\x01\x00" == exactly(connection, 2)
    flags = exactly(connection, 1)[0]
    return exactly(connection, int.from_bytes(exactly(connection, 8 if flags & 2 else 1), "big"))


def answers(*then: bytes) -> Script:
    """Play a server that answers the questions, and then says something else."""
    return says(*(replied(i, each) for i, each in enumerate(ANSWERS, 1)), *then)


@contextmanager
def served(script: Script) -> Iterator[str]:
    with misbehaving(script, scheme="tcp") as url:
        yield url


def test_what_a_client_says_is_to_the_letter(remote: Make) -> None:
    """
    As a REQ socket that numbers its requests: the greeting and what it is, and after the server's
    the number of the request and an empty frame each time.
    """
    heard: list[bytes] = []

    def listen(connection: socket.socket) -> None:
        heard.append(exactly(connection, 12))
        connection.sendall(START)
        heard.append(exactly(connection, len(START) - 12))
        heard.append(hear(connection))

    with served(listen) as url, pytest.raises(PolicyUnavailableError):
        remote(url).connect()
    before = said_before(SocketKind.REQ)
    assert [before[:12], before[12:], b"\x81\xa8endpoint\xb3get_modality_config"] == heard


def test_nothing_is_asked_before_it_is_known_who_is_there(remote: Make) -> None:
    """
    A token is in the first request.
    """
    heard: list[bytes] = []

    def listen(connection: socket.socket) -> None:
        connection.sendall(START[:64])
        with suppress(OSError):
            while data := connection.recv(1 << 16):
                heard.append(data)

    with served(listen) as url, pytest.raises(PolicyError, match="no end of the handshake"):
        remote(url, timeout_s=0.3).connect()
    assert said_before(SocketKind.REQ) == b"".join(heard)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (
            GREETING[:12] + b"CURVE".ljust(52, b"\0"),
            "it wants the mechanism 'CURVE'",
        ),
        (
            GREETING[:12] + b"PLAIN".ljust(52, b"\0"),
            "it wants the mechanism 'PLAIN'",
        ),
        (START[:10] + b"\x01\x04\0\0", "a version of ZMTP before 3.0"),
        (b"\x01\x00", "expected the greeting of ZeroMQ"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "it sends b'HTTP/1.1', expected the greeting"),
        (b"\x15\x03\x03\x00\x02\x02\x46", "expected the greeting of ZeroMQ"),  # TLS
        (said_before(SocketKind.DEALER), "of the kind 'DEALER', expected REP or ROUTER"),
        (START + written(b"", b"\x80"), "it answers before it was asked"),
    ],
)
def test_a_server_that_is_none_is_told_what_it_is(remote: Make, said: bytes, words: str) -> None:
    """
    At once: it was a time-out, after as long as a call may take.
    """

    def other(connection: socket.socket) -> None:
        connection.sendall(said)
        while connection.recv(1 << 16):
            pass

    with served(other) as url, pytest.raises(PolicyProtocolError) as caught:
        remote(url, timeout_s=60).connect()
    assert "theirs" == caught.value.side
    assert words in str(caught.value)


@pytest.mark.parametrize("kind", ["CURVE", "PLAIN"])
def test_a_server_of_libzmq_that_wants_more_is_told_so(remote: Make, kind: str) -> None:
    """
    A key, or a password.
    """
    with zmq.Context() as context, context.socket(zmq.REP) as server:
        if kind == "CURVE":
            server.curve_publickey, server.curve_secretkey = zmq.curve_keypair()
            server.curve_server = True
        else:
            server.plain_server = True
        port = server.bind_to_random_port("tcp://127.0.0.1")
        with pytest.raises(PolicyProtocolError, match=f"it wants the mechanism '{kind}'"):
            remote(f"127.0.0.1:{port}", timeout_s=60).connect()


def test_a_server_that_refuses_is_told_in_its_words(remote: Make) -> None:
    """
    Nothing was asked: trying again later is sensible.
    """
    said = START[:64] + command(b"\x05ERROR\x04busy")
    with served(says(before=said)) as url:
        words = r"hung up before anything was asked \(busy\)"
        with pytest.raises(PolicyUnavailableError, match=words):
            remote(url).connect()


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (written(action()), "got an answer of the frames"),
        (written(b"x", action()), "got an answer of the frames"),
        (replied(3, action(), b""), "got an answer of the frames"),
        (written(b"", action()), "got an answer of the frames [0, "),
        (written(b""), "got an answer of the frames [0], expected [8, 0, its bytes]"),
        (replied(2, action()), "it answers '0000000000000002', expected '0000000000000003'"),
        (replied(4, action()), "it answers '0000000000000004', expected '0000000000000003'"),
        (frame_head(0, MORE) + frame_head(1 << 62), "a message of 4611686018427387904 bytes"),
        (frame_head(0, MORE) * 40, "a message of more than 32 frames"),
        (b"\x08\x00", "a frame with the flags 8, which has no meaning"),
        (replied(3, action()) * 2, "nobody waited for"),
        (b"\x04\x02\x01a" * 5000, "too many small frames at once"),
    ],
)
def test_what_is_no_answer_of_zeromq_is_refused(remote: Make, said: bytes, words: str) -> None:
    """
    With a connection of its own for the next call, which is served.
    """
    action_ = replied(3, action())
    with misbehaving(answers(said), answers(action_), scheme="tcp") as url:
        policy = remote(url, timeout_s=60)
        try:
            policy.infer(SEEN)
        except PolicyProtocolError as error:
            assert words in str(error)  # noqa: PT017 - the answer may be whole before the fault
        else:
            assert "nobody waited for" == words
        assert PLAN == policy.infer(SEEN).values.tolist()


def test_an_answer_without_end_takes_no_memory(remote: Make) -> None:
    """
    libzmq holds it whole; its limit is for one frame.
    """

    def endless(connection: socket.socket) -> None:
        answers(frame_head(0, MORE))(connection)
        while True:
            connection.sendall(frame_head(1 << 18, MORE) + bytes(1 << 18))

    limits = WireLimits(max_response_bytes=1 << 20)
    with served(endless) as url:
        policy = remote(url, limits=limits, timeout_s=60)
        with pytest.raises(PolicyProtocolError, match="expected at most 1048576"):
            policy.infer(SEEN)


def after_a_greeting(connection: socket.socket) -> None:
    connection.sendall(START[:70])


def before_the_modalities(connection: socket.socket) -> None:
    connection.sendall(START)
    exactly(connection, len(START))
    hear(connection)


def in_the_modalities(connection: socket.socket) -> None:
    before_the_modalities(connection)
    connection.sendall(replied(1, ANSWERS[0])[:40])


def in_the_request(connection: socket.socket) -> None:
    answers()(connection)
    exactly(connection, 20)


def before_the_answer(connection: socket.socket) -> None:
    answers()(connection)
    hear(connection)


def in_the_answer(connection: socket.socket) -> None:
    before_the_answer(connection)
    connection.sendall(replied(3, action())[:40])


POINTS: dict[Script, type[PolicyError]] = {
    after_a_greeting: PolicyUnavailableError,
    before_the_modalities: PolicyUnavailableError,
    in_the_modalities: PolicyUnavailableError,
    in_the_request: PolicyProtocolError,
    before_the_answer: PolicyProtocolError,
    in_the_answer: PolicyProtocolError,
}


@pytest.mark.parametrize("ending", [lambda _: None, reset], ids=["closed", "reset"])
@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.__name__)
def test_a_server_that_is_killed_at_any_point_of_a_call_is_reached_again_by_the_next(
    remote: Make, point: Script, ending: Script
) -> None:
    """
    Also while the request, which is larger than what the kernel holds, is being sent.
    """
    camera = attrs.evolve(ROBOT.cameras[0], height_px=1024, width_px=1024)
    robot = attrs.evolve(ROBOT, cameras=[camera])
    seen = attrs.evolve(SEEN, images={"front": np.zeros((1024, 1024, 3), np.uint8)})

    def killed(connection: socket.socket) -> None:
        point(connection)
        ending(connection)

    with misbehaving(killed, answers(replied(3, action())), scheme="tcp", rcvbuf=1 << 11) as url:
        policy = remote(url, embodiment=robot, timeout_s=60)
        with pytest.raises(POINTS[point], match="it hung up before"):
            policy.infer(seen)
        assert PLAN == policy.infer(seen).values.tolist()


def test_a_second_answer_that_comes_late_is_not_taken_for_the_next(remote: Make) -> None:
    """
    It comes when the next answer is awaited: nothing but its number tells that it is none.
    """

    def twice(connection: socket.socket) -> None:
        answers(replied(3, action()))(connection)
        hear(connection)
        connection.sendall(replied(3, action([[1.0] * 3] * 2)))

    with misbehaving(twice, answers(replied(3, action())), scheme="tcp") as url:
        policy = remote(url, timeout_s=60)
        assert PLAN == policy.infer(SEEN).values.tolist()
        with pytest.raises(PolicyProtocolError, match="an answer that came late, or twice"):
            policy.infer(SEEN)
        assert PLAN == policy.infer(SEEN).values.tolist()


@pytest.mark.parametrize("kind", [zmq.REP, zmq.ROUTER], ids=["REP", "ROUTER"])
def test_a_server_of_libzmq_gives_the_number_of_a_request_back(remote: Make, kind: int) -> None:
    """
    GR00T's own server is a REP socket, which never sees the number.
    """
    with zmq.Context() as context, context.socket(kind) as server:
        port = server.bind_to_random_port("tcp://127.0.0.1")

        def serve() -> None:
            for answer in (*ANSWERS, action(), action()):
                *envelope, _ = server.recv_multipart()
                server.send_multipart([*envelope, answer])

        thread = threading.Thread(target=serve)
        thread.start()
        policy = remote(f"127.0.0.1:{port}", timeout_s=60)
        assert [PLAN] * 2 == [policy.infer(SEEN).values.tolist() for _ in range(2)]
        thread.join(10)


@pytest.mark.parametrize("most", [1, 7, 4000])
def test_an_answer_may_come_in_any_pieces(most: int) -> None:
    """
    And with pings between them, which are answered.
    """
    body = bytes(range(256)) * 20 * most
    ping = command(b"\x04PING\0\0x")
    line = ZmqLine("arm", max_bytes=len(body))
    line.ask(Parts((b"\x80",)))
    sent = all_of(line)
    answer = replied(1, body)
    said = START + ping + answer[:10] + ping + answer[10:]
    for i in range(0, len(said), most):
        assert line.take() is None
        line.feed(said[i : i + most])
        sent += all_of(line)
    pong, asked = command(b"\x04PONGx"), replied(1, b"\x80")
    assert body == line.take()
    assert sent.startswith(said_before(SocketKind.REQ))
    assert (2, 1) == (sent.count(pong), sent.count(asked))
    assert line.is_usable


@given(
    size=st.sampled_from([0, 1, 254, 255, 256, 300]),
    at=st.integers(0, 320),
    put=st.binary(max_size=2),
    drop=st.integers(0, 2),
    asked=st.integers(0, 2),
)
def test_what_comes_at_once_means_the_same_as_byte_by_byte(
    size: int, at: int, put: bytes, drop: int, asked: int
) -> None:
    """
    An answer that comes alone and whole is read by a shorter way, with the same limits.
    """
    said = replied(max(asked, 1), bytes(size))
    said = said[:at] + put + said[at + drop :]

    def outcome(step: int) -> tuple[object, bool]:
        line = ZmqLine("arm", max_bytes=255)
        line.feed(START)
        for number in range(1, asked + 1):
            line.ask(Parts((b"\x80",)))
            list(line.outgoing())
            if number < asked:
                line.feed(replied(number, b"x"))
                assert b"x" == line.take()
        for i in range(0, len(said), step):
            line.feed(said[i : i + step])
        try:
            return line.take(), line.is_usable
        except (PolicyError, HangUpError) as error:
            return str(error), line.is_usable

    assert outcome(1) == outcome(1000)


def test_a_large_request_leaves_in_one_piece_and_is_not_copied() -> None:
    """
    With its head and what is small about it; frames leave from where the camera put them.
    """
    pixels = memoryview(bytes(1 << 20))
    request = Parts((b"front", pixels, b"", b"left", b"state", pixels, b"end"))
    line = ZmqLine("arm", max_bytes=1)
    line.feed(START)
    list(line.outgoing())
    line.ask(request)
    (piece,) = line.outgoing()
    assert replied(1, b"".join(request)) == b"".join(piece)
    assert [10 + 2 + 9 + 5, 1 << 20, 9, 1 << 20, 3] == [*map(len, piece)]
    assert piece[1] is pixels


@given(st.lists(st.integers(0, 5), max_size=6), st.integers(0, 40))
def test_what_is_left_after_a_part_was_sent_is_the_rest(sizes: list[int], sent: int) -> None:
    """
    However many parts that was.
    """
    views = views_of(Parts(bytes(range(size)) for size in sizes))
    whole = b"".join(views)
    left = rest_after(min(sent, len(whole)), views)
    assert whole[sent:] == b"".join(left)
    assert not left or left[0]


def all_of(line: ZmqLine) -> bytes:
    """Take all that is to be sent."""
    return b"".join(view for piece in line.outgoing() for view in views_of(piece))


def test_what_a_line_is_told_last_is_what_it_raises() -> None:
    """
    Once lost it stays so.
    """
    line = ZmqLine("arm", max_bytes=1)
    assert Stage.HANDSHAKE is line.stage
    line.feed(START)
    assert Stage.METADATA is line.stage
    line.feed(b"")
    line.feed(replied(1, b"x"))
    with pytest.raises(HangUpError, match="it closed the connection"):
        line.take()
    assert not line.is_usable


def test_a_server_of_libzmq_with_heartbeats_keeps_a_client_that_waits(remote: Make) -> None:
    """
    Its pings are answered while an inference runs, or it would hang up.
    """
    is_beaten = threading.Event()

    def late() -> bytes:
        assert is_beaten.wait(20)
        return action()

    with Scripted({"get_action": [late]}) as server:
        server._router.setsockopt(zmq.HEARTBEAT_IVL, 20)
        server._router.setsockopt(zmq.HEARTBEAT_TIMEOUT, 150)
        threading.Timer(0.6, is_beaten.set).start()
        assert PLAN == remote(server.url, timeout_s=30).infer(SEEN).values.tolist()
        assert 1 == len(server.peers)


def test_a_call_holds_at_most_twice_what_is_sent_and_comes(remote: Make) -> None:
    """
    What is sent is the request itself, and what came is written once; then it is read.
    """
    camera = attrs.evolve(ROBOT.cameras[0], height_px=960, width_px=1280)
    robot = attrs.evolve(ROBOT, cameras=[camera])
    frames = {"front": np.zeros((960, 1280, 3), np.uint8)}
    seen = attrs.evolve(SEEN, images=frames)
    info = encode_frame(
        [
            {"single_arm": np.float32(PLAN)[None, :, :2], "gripper": np.float32(PLAN)[None, :, 2:]},
            {"padding": bytes(8 << 20)},
        ],
        kind=FrameKind.RESPONSE,
        spelling=CODEC.dialect.spelling,
    )
    with served(answers(replied(3, info), replied(4, info))) as url:
        policy = remote(url, embodiment=robot, timeout_s=60)
        policy.infer(seen)
        peak = most_memory(lambda: policy.infer(seen))
    assert peak < 2 * (frames["front"].nbytes + len(info))
