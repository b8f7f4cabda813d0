"""Tests of `vlmcore_robotics.clients.websocket`, and of its twin, over real sockets."""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
import ssl
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import attrs
import numpy as np
import pytest
import trustme

from client_cases import (
    PROXIES,
    Remote,
    Script,
    asked_once,
    certified,
    drain,
    half,
    hear_request,
    misbehaving,
    most_memory,
    remotes,
    reset,
    said,
    trusting,
)
from openpi_cases import (
    ANSWER,
    CLOSE,
    LAYOUT,
    METADATA,
    NAMES,
    PLAN,
    ROBOT,
    SEEN,
    TEXT,
    answering,
    async_client,
    client,
    framed,
    greet,
    read_frame,
    seen_at,
    serving,
    shake_hands,
    skip_message,
    with_eyes,
)
from vlmcore.errors import (
    ContractError,
    EndpointError,
    PolicyError,
    PolicyProtocolError,
    PolicyRefusedError,
    PolicyTimeoutError,
    PolicyUnavailableError,
)
from vlmcore.policy.interface import PolicyInfo
from vlmcore.secrets import Secret
from vlmcore.testing import ScriptedPolicy
from vlmcore_robotics.wire.frames import FrameKind, encode_frame
from vlmcore_robotics.wire.observation_layout import CameraKey

Ask = Callable[..., Any]

ask_once, ask_once_async = asked_once(client, async_client, SEEN)
both = pytest.mark.parametrize("ask", [ask_once, ask_once_async], ids=["sync", "async"])
remote = remotes(client, async_client)


@both
def test_a_chunk_has_the_robots_names_and_the_time_of_its_observation(ask: Ask) -> None:
    """
    Not the time of the answer: with that, an old view would look fresh.
    """
    with misbehaving(answering) as url:
        chunk = ask(url, name="pi05")
    assert (PLAN, NAMES, "pi05", 7.5) == (
        chunk.values.tolist(),
        chunk.names,
        chunk.source,
        chunk.observed_at_s,
    )


def test_one_connection_serves_all_calls(remote: Callable[..., Remote]) -> None:
    """
    A handshake each call costs more than the call.
    """
    handshakes = []

    def counting(connection: socket.socket) -> None:
        handshakes.append(connection)
        answering(connection)

    with misbehaving(counting) as url:
        policy = remote(url)
        for _ in range(5):
            policy.infer(SEEN)
    assert 1 == len(handshakes)


def test_the_late_chunk_of_the_old_observation_is_not_taken_for_the_next(
    remote: Callable[..., Remote],
) -> None:
    """
    Receiving timed out, the client was used again, and the next call returned the late chunk.
    """

    def late(connection: socket.socket) -> None:
        greet(connection)
        read_frame(connection)
        time.sleep(1.4)
        connection.sendall(
            framed(encode_frame({"actions": np.ones((2, 2))}, kind=FrameKind.RESPONSE))
        )
        time.sleep(5)

    with misbehaving(late, answering) as url:
        policy = remote(url, timeout_s=1)
        with pytest.raises(PolicyTimeoutError, match=r"no answer within 1 s"):
            policy.infer(SEEN)
        time.sleep(0.8)
        assert PLAN == policy.infer(SEEN).values.tolist()


@both
def test_a_server_that_accepts_and_never_answers_does_not_hang_the_client(ask: Ask) -> None:
    """
    Receiving had no deadline.
    """
    with misbehaving(lambda _: time.sleep(5)) as url:
        began_at_s = time.monotonic()
        with pytest.raises(PolicyTimeoutError, match="no end of the handshake within"):
            ask(url, timeout_s=1)
    assert time.monotonic() - began_at_s < 4


@both
def test_a_server_that_does_not_say_what_it_is_does_not_hang_the_client(ask: Ask) -> None:
    """
    The metadata has to come first, within the same deadline.
    """

    def silent(connection: socket.socket) -> None:
        shake_hands(connection)
        time.sleep(5)

    with misbehaving(silent) as url, pytest.raises(PolicyTimeoutError, match="no metadata within"):
        ask(url, timeout_s=1)


@pytest.mark.parametrize(
    "timeout_s", [-1, 0, 0.05, 601, float("nan"), float("inf"), True, "1", None]
)
def test_a_timeout_that_is_none_is_refused_at_construction(timeout_s: Any) -> None:
    """
    It reached the socket: a healthy server was "unreachable".
    """
    with pytest.raises(ContractError, match="timeout_s"):
        client("localhost", timeout_s=timeout_s)


@both
def test_a_reply_that_drips_ends_at_the_deadline(ask: Ask) -> None:
    """
    A byte each 50 ms kept a call alive for 6 seconds, with a timeout of half a second.
    """

    def dripping(connection: socket.socket) -> None:
        greet(connection)
        read_frame(connection)
        for byte in framed(ANSWER):
            connection.sendall(bytes((byte,)))
            time.sleep(0.05)

    with misbehaving(dripping) as url:
        began_at_s = time.monotonic()
        with pytest.raises(PolicyTimeoutError, match=r"no answer within 1 s"):
            ask(url, timeout_s=1)
    assert time.monotonic() - began_at_s < 4


@both
def test_a_handshake_that_drips_ends_at_the_deadline(ask: Ask) -> None:
    """
    It is of the same call, and has no time of its own.
    """

    def dripping(connection: socket.socket) -> None:
        hear_request(connection)
        for byte in b"HTTP/1.1 101 Switching Protocols\r\n" * 10:
            connection.sendall(bytes((byte,)))
            time.sleep(0.05)

    with misbehaving(dripping) as url, pytest.raises(PolicyTimeoutError, match="handshake"):
        ask(url, timeout_s=1)


def test_a_peer_that_takes_nothing_more_does_not_hang_the_client(
    remote: Callable[..., Remote],
) -> None:
    """
    A request of some megabytes does not fit into what the kernel holds.
    """
    camera = attrs.evolve(ROBOT.cameras[0], height_px=2000, width_px=2000)
    large = attrs.evolve(SEEN, images={"front": np.zeros((2000, 2000, 3), np.uint8)})

    def deaf(connection: socket.socket) -> None:
        greet(connection)
        time.sleep(5)

    with misbehaving(deaf, rcvbuf=4096) as url:
        policy = remote(url, embodiment=attrs.evolve(ROBOT, cameras=[camera]), timeout_s=1)
        with pytest.raises(PolicyTimeoutError):
            policy.infer(large)


def answer_http(status: str, body: str = "") -> Script:
    """Answer as a server of HTTP."""

    def script(connection: socket.socket) -> None:
        hear_request(connection)
        connection.sendall(
            f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
        )

    return script


@both
@pytest.mark.parametrize(
    ("script", "error", "words"),
    [
        (
            answer_http("200 OK", "<html>"),
            PolicyProtocolError,
            "answers HTTP 200: <html>; expected",
        ),
        (answer_http("404 Not Found"), PolicyProtocolError, "answers HTTP 404: Not Found"),
        (answer_http("302 Found"), PolicyProtocolError, "answers HTTP 302"),
        (answer_http("401 Unauthorized", "no key"), PolicyRefusedError, "answers HTTP 401: no key"),
        (answer_http("403 Forbidden"), PolicyRefusedError, "answers HTTP 403"),
        (answer_http("502 Bad Gateway"), PolicyUnavailableError, "answers HTTP 502"),
        (answer_http("503 Busy"), PolicyUnavailableError, "answers HTTP 503"),
        (lambda c: c.sendall(b"SSH-2.0-OpenSSH_9.6\r\n"), PolicyProtocolError, "SSH-2.0"),
        (lambda c: c.sendall(b"\x00\xff" * 999), PolicyProtocolError, "expected HTTP"),
        (lambda c: c.sendall(b"\xff\x00" * 9 + b"\n"), PolicyProtocolError, "expected HTTP"),
        (answer_http("101 Switching Protocols"), PolicyProtocolError, "Connection"),
    ],
)
def test_another_protocol_on_the_port_is_told_as_such(
    ask: Ask, script: Script, error: type[PolicyError], words: str
) -> None:
    """
    An answer of a proxy or of another server was an InvalidMessage.
    """
    with misbehaving(script) as url, pytest.raises(error, match=words):
        ask(url)


def at_once(connection: socket.socket) -> None:
    hear_request(connection)


def in_the_handshake(connection: socket.socket) -> None:
    hear_request(connection)
    connection.sendall(b"HTTP/1.1 101 Switch")


def before_the_metadata(connection: socket.socket) -> None:
    shake_hands(connection)


def in_the_metadata(connection: socket.socket) -> None:
    shake_hands(connection)
    connection.sendall(half(framed(b"x" * 99)))


def in_the_request(connection: socket.socket) -> None:
    greet(connection)
    connection.recv(9)


def before_the_answer(connection: socket.socket) -> None:
    greet(connection)
    read_frame(connection)


def in_the_answer(connection: socket.socket) -> None:
    before_the_answer(connection)
    connection.sendall(half(framed(ANSWER)))


def after_a_farewell(connection: socket.socket) -> None:
    before_the_answer(connection)
    connection.sendall(framed(b"\x03\xe9bye", CLOSE))


POINTS = {
    at_once: PolicyUnavailableError,
    in_the_handshake: PolicyUnavailableError,
    before_the_metadata: PolicyUnavailableError,
    in_the_metadata: PolicyUnavailableError,
    in_the_request: PolicyProtocolError,
    before_the_answer: PolicyProtocolError,
    in_the_answer: PolicyProtocolError,
    after_a_farewell: PolicyProtocolError,
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

    with misbehaving(killed, answering) as url:
        policy = remote(url)
        with pytest.raises(POINTS[point]):
            policy.infer(SEEN)
        assert PLAN == policy.infer(SEEN).values.tolist()


def test_a_server_that_restarts_between_two_calls_is_no_error(
    remote: Callable[..., Remote],
) -> None:
    """
    Nothing of the second one was sent when the loss was noticed.
    """

    def twice(connection: socket.socket) -> None:
        greet(connection)
        read_frame(connection)
        connection.sendall(framed(ANSWER) + framed(b"\x03\xe9", CLOSE))

    with misbehaving(twice, twice, answering) as url:
        policy = remote(url)
        for _ in range(4):
            assert PLAN == policy.infer(SEEN).values.tolist()
            policy.wait(0.05)


@pytest.mark.parametrize("what", [framed(ANSWER), framed(b"late", TEXT)])
def test_what_comes_between_two_calls_is_nobodys_answer(
    remote: Callable[..., Remote], what: bytes
) -> None:
    """
    A second answer to one request would be taken for that to the next.
    """

    def chatty(connection: socket.socket) -> None:
        greet(connection)
        read_frame(connection)
        connection.sendall(framed(ANSWER) + what)
        time.sleep(5)

    with misbehaving(chatty, answering) as url:
        policy = remote(url)
        policy.infer(SEEN)
        policy.wait(0.1)
        assert PLAN == policy.infer(SEEN).values.tolist()


def test_a_flood_between_two_calls_does_not_hold_the_next_one() -> None:
    """
    Pings without an end: what came is heard until the deadline only.
    """

    def flooding(connection: socket.socket) -> None:
        greet(connection)
        read_frame(connection)
        connection.sendall(framed(ANSWER))
        threading.Thread(target=drain, args=(connection,), daemon=True).start()
        while True:
            connection.sendall(framed(b"x" * 99, 9) * 100)

    with misbehaving(flooding, answering) as url, client(url, timeout_s=1) as policy:
        policy.infer(SEEN)
        time.sleep(0.1)
        began_at_s = time.monotonic()
        try:
            policy.infer(SEEN)
        except PolicyError:
            assert PLAN == policy.infer(SEEN).values.tolist()
        assert time.monotonic() - began_at_s < 5


@both
@pytest.mark.parametrize("first_byte", [0x89, 0x8A, 0x02], ids=["ping", "pong", "part"])
def test_a_flood_of_small_frames_breaks_the_protocol(ask: Ask, first_byte: int) -> None:
    """
    A quarter of a megabyte of them took seconds to read, whatever the deadline.
    """

    def flooding(connection: socket.socket) -> None:
        greet(connection)
        read_frame(connection)
        connection.sendall(bytes((first_byte, 0)))
        connection.sendall(bytes((first_byte if first_byte != 0x02 else 0, 0)) * 50_000)
        drain(connection)

    with (
        misbehaving(flooding) as url,
        pytest.raises(PolicyProtocolError, match="too many small frames at once"),
    ):
        ask(url)


@both
def test_answers_to_pings_that_nobody_takes_are_not_piled_up(ask: Ask) -> None:
    """
    They filled the memory until the deadline.
    """

    def flooding(connection: socket.socket) -> None:
        greet(connection)
        while True:
            connection.sendall(framed(b"x" * 125, 9) * 100)
            time.sleep(0.002)

    with (
        misbehaving(flooding, rcvbuf=4096) as url,
        pytest.raises(PolicyProtocolError, match=r"does not take the answers|too many small"),
    ):
        ask(url, timeout_s=60)


def test_pings_between_two_calls_do_not_pile_up_in_an_async_client() -> None:
    """
    It hears them at once, and there is no deadline then.
    """
    hung_up = threading.Event()

    def flooding(connection: socket.socket) -> None:
        greet(connection)
        read_frame(connection)
        connection.sendall(framed(ANSWER))
        try:
            while True:
                connection.sendall(framed(b"x" * 125, 9) * 100)
                time.sleep(0.002)
        finally:
            hung_up.set()

    async def ask_and_rest(url: str) -> None:
        async with async_client(url) as policy:
            await policy.infer(SEEN)
            assert await asyncio.to_thread(hung_up.wait, 60)
            assert PLAN == (await policy.infer(SEEN)).values.tolist()

    with misbehaving(flooding, answering, rcvbuf=4096) as url:
        asyncio.run(ask_and_rest(url))


def test_an_error_of_the_policy_is_told_once_and_the_next_call_works(
    remote: Callable[..., Remote],
) -> None:
    """
    The server hangs up after an error; every later call failed, for ever.
    """

    def failing(connection: socket.socket) -> None:
        greet(connection)
        read_frame(connection)
        text = b'Traceback:\n  File "/home/me/p.py", line 3\nKeyError: 7\n'
        connection.sendall(framed(text, TEXT) + framed(b"\x03\xf3", CLOSE))

    with misbehaving(failing, answering) as url:
        policy = remote(url)
        with pytest.raises(PolicyRefusedError, match=f"^{url}: KeyError: 7$"):
            policy.infer(SEEN)
        assert PLAN == policy.infer(SEEN).values.tolist()


@both
def test_metadata_that_is_too_large_is_not_taken(ask: Ask) -> None:
    """
    Of two megabytes, where one is the limit.
    """

    def boastful(connection: socket.socket) -> None:
        shake_hands(connection)
        connection.sendall(framed(encode_frame({"a": b"x" * (2 << 20)}, kind=FrameKind.RESPONSE)))
        time.sleep(2)

    with (
        misbehaving(boastful) as url,
        pytest.raises(PolicyProtocolError, match="max_metadata_bytes"),
    ):
        ask(url)


@both
def test_an_answer_without_an_end_is_not_held(ask: Ask) -> None:
    """
    The size that it declares is over the limit, before any of it has come.
    """

    def endless(connection: socket.socket) -> None:
        greet(connection)
        read_frame(connection)
        connection.sendall(b"\x82\x7f" + (1 << 40).to_bytes(8, "big"))
        time.sleep(2)

    with misbehaving(endless) as url, pytest.raises(PolicyProtocolError, match="exceeds limit"):
        ask(url)


@both
def test_an_answer_in_parts_is_one_answer(ask: Ask) -> None:
    """
    With a ping between two of them, as the protocol allows.
    """

    def in_parts(connection: socket.socket) -> None:
        greet(connection)
        read_frame(connection)
        connection.sendall(b"\x02" + framed(ANSWER[:9])[1:] + framed(b"hi", 9))
        connection.sendall(b"\x00" + framed(b"")[1:] + b"\x80" + framed(ANSWER[9:])[1:])
        time.sleep(2)

    with misbehaving(in_parts) as url:
        assert PLAN == ask(url).values.tolist()


@both
def test_a_short_action_vector_is_refused_and_never_padded(ask: Ask) -> None:
    """
    It was padded with 0.0 and sent as absolute goals: the arm drove to zero.
    """

    def short(connection: socket.socket) -> None:
        greet(connection)
        read_frame(connection)
        answer = encode_frame({"actions": np.zeros((2, 1))}, kind=FrameKind.RESPONSE)
        connection.sendall(framed(answer))
        time.sleep(1)

    with misbehaving(short) as url, pytest.raises(PolicyProtocolError, match="shape"):
        ask(url)


def telling(**said: Any) -> Script:
    """Be a server that says this about its policy, and answers."""
    metadata = encode_frame({"policy_info": said}, kind=FrameKind.METADATA)

    def script(connection: socket.socket) -> None:
        shake_hands(connection)
        connection.sendall(framed(metadata))
        read_frame(connection)
        connection.sendall(framed(ANSWER))
        time.sleep(1)

    return script


@both
@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"action_names": ["elbow", "shoulder"]}, "action_names is elbow, shoulder, expected"),
        ({"state_names": ["a", "b"]}, "state_names is a, b, expected"),
        ({"rate_hz": 10.0}, "rate_hz is 10.0, expected"),
        (
            {"action_names": list(NAMES), "action_units": ["deg", "rad"]},
            "action_units has 'deg' for 'shoulder', expected 'rad'",
        ),
        ({"cameras": [{"name": "wrist"}]}, "cameras has 'wrist', expected one of front"),
        (
            {"cameras": [{"name": "front", "height_px": 9, "width_px": 8}]},
            "cameras has 'front' with 9 x 8 pixels, expected 8 x 8",
        ),
        ({"horizon": "2"}, "its metadata: horizon: got '2'"),
        ({"cameras": 3}, "its metadata: cameras: got int, expected a list"),
        ({"horizon": 9}, "got 2 steps, expected the 9 of its metadata"),
    ],
)
def test_a_server_for_another_robot_is_found_out_before_the_first_action(
    ask: Ask, said: dict[str, Any], words: str
) -> None:
    """
    Keys and their order were guessed: LIBERO keys went to another robot, which moved.
    """
    with misbehaving(telling(**said)) as url, pytest.raises(PolicyProtocolError, match=words):
        ask(url)


def test_info_is_what_the_server_says_and_what_the_robot_says_where_it_does_not() -> None:
    """
    A server of openpi says nothing, or the pose to start from.
    """
    metadata = encode_frame({"reset_pose": np.array([0.5, -1.5])}, kind=FrameKind.METADATA)

    def posing(connection: socket.socket) -> None:
        shake_hands(connection)
        connection.sendall(framed(metadata))
        time.sleep(2)

    with misbehaving(posing) as url, client(url, name="pi05") as policy:
        assert policy.info == PolicyInfo(
            name="pi05",
            action_names=NAMES,
            state_names=NAMES,
            cameras=ROBOT.cameras,
            metadata={"reset_pose": [0.5, -1.5]},
        )
    with serving() as url, client(url) as policy:
        info = policy.info
    assert (url, 2, 20.0) == (info.name, info.horizon, info.rate_hz)


def test_another_policy_behind_the_same_port_is_not_taken_for_the_first(
    remote: Callable[..., Remote],
) -> None:
    """
    The horizon differed after a restart: shaking at each chunk.
    """
    with misbehaving(telling(horizon=2), telling(horizon=3), telling(horizon=2)) as url:
        policy = remote(url)
        policy.infer(SEEN)
        policy.wait(1.2)
        with pytest.raises(PolicyProtocolError, match="horizon: got 3, before 2"):
            policy.infer(SEEN)
        policy.infer(SEEN)


@both
def test_an_inference_that_takes_longer_than_the_keepalive_is_answered(ask: Ask) -> None:
    """
    One of 48 seconds ended in "sent 1011 keepalive ping timeout", in small.
    """

    def impatient(connection: socket.socket) -> None:
        greet(connection)
        read_frame(connection)
        connection.settimeout(0.3)
        for _ in range(4):
            connection.sendall(framed(b"there?", 9))
            assert read_frame(connection)[0] == 0x8A
            time.sleep(0.1)
        connection.sendall(framed(ANSWER))
        time.sleep(1)

    with misbehaving(impatient) as url:
        assert PLAN == ask(url).values.tolist()


@both
def test_no_proxy_of_the_environment_sees_a_frame(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    A client sent CONNECT to it, and would have sent frames and the key.
    """
    for name in PROXIES:
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    with misbehaving(answering) as url:
        assert PLAN == ask(url).values.tolist()


def test_threads_take_turns_and_each_gets_its_own_answer() -> None:
    """
    Two at once on one connection would get each other's.
    """
    with serving() as url, client(url) as policy, ThreadPoolExecutor(4) as threads:
        states = [float(i) for i in range(40)]
        chunks = list(threads.map(lambda state: policy.infer(seen_at(state)), states))
    assert states == [chunk.values[0, 0] for chunk in chunks]
    assert states == [chunk.observed_at_s for chunk in chunks]


def test_tasks_take_turns_and_each_gets_its_own_answer() -> None:
    """
    As threads do.
    """

    async def ask() -> list[Any]:
        async with async_client(url) as policy:
            return await asyncio.gather(*(policy.infer(seen_at(float(i))) for i in range(20)))

    with serving() as url:
        chunks = asyncio.run(ask())
    assert [float(i) for i in range(20)] == [chunk.values[0, 0] for chunk in chunks]


def test_the_wait_for_another_call_is_part_of_the_time() -> None:
    """
    Or a call would take twice as long as was allowed.
    """
    with misbehaving(greet_and_wait) as url, client(url, timeout_s=1.0) as policy:
        first = threading.Thread(target=failing, args=(policy,))
        first.start()
        time.sleep(0.1)
        policy._terms = attrs.evolve(policy._terms, timeout_s=0.2)
        with pytest.raises(PolicyTimeoutError, match="no end of another call"):
            policy.infer(SEEN)
        first.join()


def failing(policy: Any) -> None:
    with pytest.raises(PolicyError):
        policy.infer(SEEN)


def greet_and_wait(connection: socket.socket) -> None:
    greet(connection)
    time.sleep(5)


def test_closing_from_another_thread_ends_a_call_that_waits() -> None:
    """
    At once, and in words of ours.
    """
    with misbehaving(greet_and_wait) as url:
        policy = client(url, timeout_s=30)
        threading.Timer(0.2, policy.close).start()
        began_at_s = time.monotonic()
        with pytest.raises(PolicyError, match="it was closed during the call"):
            policy.infer(SEEN)
        assert time.monotonic() - began_at_s < 3
        with pytest.raises(PolicyError, match="this policy is closed"):
            policy.infer(SEEN)


def test_closing_ends_an_async_call_that_waits() -> None:
    """
    As it ends a plain one.
    """

    async def ask() -> None:
        policy = async_client(url, timeout_s=30)
        call = asyncio.ensure_future(policy.infer(SEEN))
        await asyncio.sleep(0.2)
        await policy.aclose()
        with pytest.raises(PolicyError, match="it was closed during the call"):
            await call

    with misbehaving(greet_and_wait) as url:
        asyncio.run(ask())


def test_a_call_that_is_cancelled_leaves_no_answer_behind() -> None:
    """
    The answer to it would be taken for that to the next.
    """

    def slow_once(connection: socket.socket) -> None:
        greet(connection)
        read_frame(connection)
        time.sleep(0.3)
        connection.sendall(
            framed(encode_frame({"actions": np.ones((2, 2))}, kind=FrameKind.RESPONSE))
        )
        time.sleep(2)

    async def ask() -> Any:
        async with async_client(url) as policy:
            call = asyncio.ensure_future(policy.infer(SEEN))
            await asyncio.sleep(0.1)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            await asyncio.sleep(0.4)
            return await policy.infer(SEEN)

    with misbehaving(slow_once, answering) as url:
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
        with misbehaving(greet_and_wait, answering) as url, client(url) as policy:
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            with pytest.raises(KeyboardInterrupt):
                policy.infer(SEEN)
            assert PLAN == policy.infer(SEEN).values.tolist()
    finally:
        signal.signal(signal.SIGALRM, before)


def test_two_clients_do_not_clear_each_others_queue(remote: Callable[..., Remote]) -> None:
    """
    A connection is a session of our server, and a reset makes another.
    """
    steps = [[[0.1, 0.0]], [[0.2, 0.0]], [[0.3, 0.0]]]
    with serving(ScriptedPolicy(steps, info=PolicyInfo(name="q", action_names=NAMES))) as url:
        left, right = remote(url), remote(url)
        left.reset()
        told = [left.infer(SEEN), right.infer(SEEN), left.infer(SEEN)]
        left.reset()
        told += [right.infer(SEEN), left.infer(SEEN)]
    assert [0.1, 0.1, 0.2, 0.2, 0.1] == [chunk.values[0, 0] for chunk in told]


def test_an_observation_of_another_robot_is_refused_before_anything_is_sent() -> None:
    """
    And the connection is kept.
    """
    with misbehaving(answering, lambda _: None) as url, client(url) as policy:
        policy.infer(SEEN)
        for wrong in (
            attrs.evolve(SEEN, state=[0.0]),
            attrs.evolve(SEEN, images={"wrist": SEEN.images["front"]}),
            attrs.evolve(SEEN, images={"front": np.zeros((4, 4, 3), np.uint8)}),
            None,
        ):
            with pytest.raises(ContractError):
                policy.infer(wrong)
        policy.infer(SEEN)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"embodiment": "arm"}, "embodiment"),
        ({"layout": None}, "layout"),
        (
            {"layout": attrs.evolve(LAYOUT, state=[attrs.evolve(LAYOUT.state[0], count=3)])},
            "layout",
        ),
        (
            {"layout": attrs.evolve(LAYOUT, cameras=[attrs.evolve(LAYOUT.cameras[0], camera="x")])},
            "layout",
        ),
        ({"name": " "}, "name"),
        ({"api_key": "sk-1"}, "api_key"),
        ({"tls": True}, "tls"),
        ({"tls": ssl.create_default_context()}, "tls"),
        ({"limits": 3}, "limits"),
    ],
)
def test_an_argument_that_cannot_work_is_refused_at_construction(
    options: dict[str, Any], field: str
) -> None:
    """
    Not at the first call, next to a robot.
    """
    with pytest.raises(ContractError) as caught:
        client("localhost", **options)
    assert field == caught.value.field


@pytest.mark.parametrize(
    "endpoint",
    [
        "ws://example.com",
        "wss://example.com",
        "http://localhost",
        "localhost:0",
        "ws://a:b@localhost",
    ],
)
def test_an_address_that_may_not_be_dialled_is_refused_at_construction(endpoint: str) -> None:
    """
    Another host takes a word and encryption.
    """
    with pytest.raises(EndpointError):
        client(endpoint)
    with pytest.raises(EndpointError, match="not encrypted"):
        client("ws://example.com", allow_remote=True)
    client("wss://example.com", allow_remote=True, api_key=Secret("sk-1")).close()


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    """Make somebody who signs certificates."""
    return trustme.CA()


@both
def test_an_encrypted_server_is_asked_if_its_certificate_is_right(
    ask: Ask, authority: trustme.CA
) -> None:
    """
    With the key of openpi, which goes over it.
    """
    key = Secret("sk-123456")
    with serving(tls=certified(authority, "127.0.0.1"), api_key=key) as url:
        assert url.startswith("wss://")
        chunk = ask(url, tls=trusting(authority), api_key=key)
    assert [0.0, 0.0] == chunk.values[0].tolist()


@both
def test_encryption_on_one_side_only_is_told_as_such(ask: Ask, authority: trustme.CA) -> None:
    """
    In either direction.
    """
    with (
        misbehaving(
            lambda c: (c.recv(4096), c.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n"))
        ) as url,
        pytest.raises(PolicyError, match=r"does not speak TLS|hung up before anything was asked"),
    ):
        ask(url.replace("ws://", "wss://"))
    with (
        serving(tls=certified(authority, "127.0.0.1")) as url,
        pytest.raises((PolicyProtocolError, PolicyUnavailableError)),
    ):
        ask(url.replace("wss://", "ws://"))


TOKEN = "Zk9-secret_token.42"


@both
@pytest.mark.parametrize(
    "script",
    [
        answer_http("403 Forbidden", f"bad key {TOKEN}"),
        answer_http("500 Oops", f"{TOKEN}"),
        lambda c: c.sendall(f"{TOKEN}\r\n".encode()),
        lambda c: (shake_hands(c), c.sendall(framed(TOKEN.encode(), TEXT))),
        lambda c: (shake_hands(c), c.sendall(framed(b"\x03\xf3" + TOKEN.encode(), CLOSE))),
        lambda c: (shake_hands(c), c.sendall(framed(TOKEN.encode()))),
        lambda c: (greet(c), read_frame(c), c.sendall(framed(TOKEN.encode(), TEXT))),
        lambda c: (
            greet(c),
            read_frame(c),
            c.sendall(
                framed(encode_frame({TOKEN: [[1]], "actions": TOKEN}, kind=FrameKind.RESPONSE))
            ),
        ),
    ],
)
def test_the_key_is_in_no_text_whatever_the_server_says(ask: Ask, script: Script) -> None:
    """
    Servers tell what they were sent, in their errors.
    """
    heard = []

    def listening(connection: socket.socket) -> None:
        script(connection)
        time.sleep(0.2)

    with misbehaving(listening) as url:
        with pytest.raises(PolicyError) as caught:
            ask(url, api_key=Secret(TOKEN, source="OPENPI_API_KEY"))
        heard.append(said(caught.value))
    assert TOKEN not in heard[0]


@both
def test_the_key_is_sent_as_openpi_sends_it(ask: Ask) -> None:
    """
    And no other header says anything about the caller.
    """
    heard = []

    def listening(connection: socket.socket) -> None:
        heard.append(shake_hands(connection).decode())
        connection.sendall(framed(METADATA))
        read_frame(connection)
        connection.sendall(framed(ANSWER))
        time.sleep(1)

    with misbehaving(listening) as url:
        ask(f"{url}/v1/arm", api_key=Secret(TOKEN))
        ask(url)
    assert heard[0].startswith("GET /v1/arm HTTP/1.1\r\n")
    assert f"\r\nAuthorization: Api-Key {TOKEN}\r\n" in heard[0]
    assert "Authorization" not in heard[1]
    for name in ("Origin", "Cookie", "User-Agent", "Sec-WebSocket-Extensions"):
        assert name not in heard[0]


def test_a_call_leaves_no_socket_behind() -> None:
    """
    Whether it works or not; an open one would be a warning, which fails the test.
    """
    with misbehaving(answering) as url:
        ask_once(url)
    with misbehaving(answer_http("404 Not Found")) as url:
        for ask in (ask_once, ask_once_async):
            with pytest.raises(PolicyProtocolError):
                ask(url)
    gc.collect()


@pytest.mark.parametrize(("height_px", "width_px"), [(480, 640), (224, 224)])
def test_a_call_takes_no_more_memory_than_twice_what_is_sent(
    remote: Callable[..., Remote], height_px: int, width_px: int
) -> None:
    """
    Three cameras; a frame was joined, masked and joined again, and parts were half of a small one.
    """
    robot, seen = with_eyes(3, height_px=height_px, width_px=width_px)
    layout = attrs.evolve(
        LAYOUT, cameras=[CameraKey(camera=f"eye{i}", key=f"eye{i}") for i in range(3)]
    )

    def counting(connection: socket.socket) -> None:
        greet(connection)
        while True:
            skip_message(connection)
            connection.sendall(framed(ANSWER))

    with misbehaving(counting) as url:
        policy = remote(url, embodiment=robot, layout=layout, timeout_s=30)
        policy.infer(seen)
        assert most_memory(lambda: policy.infer(seen)) < 2 * 3 * height_px * width_px * 3


def test_a_request_in_parts_is_one_request(remote: Callable[..., Remote]) -> None:
    """
    Large ones are sent in parts; the server that is asked puts them together.
    """
    robot, seen = with_eyes(1, height_px=480, width_px=640)
    layout = attrs.evolve(LAYOUT, cameras=[CameraKey(camera="eye0", key="eye")])
    shown = []

    def look(observation: Any) -> Any:
        shown.append(observation)
        return PLAN

    info = PolicyInfo(name="looking", action_names=NAMES)
    slope = np.arange(480 * 640 * 3, dtype=np.uint32).astype(np.uint8).reshape(480, 640, 3)
    seen = attrs.evolve(seen, images={"eye0": slope})
    with serving(ScriptedPolicy(look, info=info), layout=layout) as url:
        remote(url, embodiment=robot, layout=layout).infer(seen)
    assert np.array_equal(slope[np.newaxis], shown[0].images["eye0"])
