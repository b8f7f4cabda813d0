"""Tests of `vlmcore_robotics.clients.http`, and of its twin: what is said, and to whom."""

from __future__ import annotations

import asyncio
import base64
import http.server
import json
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import attrs
import numpy as np
import pytest

from client_cases import Remote, asked_once, hear_request, most_memory, remotes, skip
from http_cases import (
    ANSWER,
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
from openpi_cases import NAMES, PLAN, ROBOT, SEEN, seen_at, with_eyes
from vlmcore.errors import (
    ContractError,
    EndpointError,
    LimitExceededError,
    PolicyError,
    PolicyProtocolError,
    PolicyStatusError,
    PolicyTimeoutError,
    PolicyUnavailableError,
)
from vlmcore.limits import HttpLimits
from vlmcore.policy.interface import PolicyInfo
from vlmcore.secrets import Secret
from vlmcore.testing import ScriptedPolicy
from vlmcore_robotics.wire.http_frames import WireEncoding
from vlmcore_robotics.wire.http_messages import ContentType

Ask = Callable[..., Any]

ask_once, ask_once_async = asked_once(http_client, async_http_client, SEEN)
both = pytest.mark.parametrize("ask", [ask_once, ask_once_async], ids=["sync", "async"])
remote = remotes(http_client, async_http_client)


@both
def test_a_chunk_has_the_robots_names_and_the_time_of_its_observation(ask: Ask) -> None:
    """
    Not the time of the answer: with that, an old view would look fresh.
    """
    with http_peer(answering) as url:
        chunk = ask(url, name="act")
    assert (PLAN, NAMES, "act", 7.5) == (
        chunk.values.tolist(),
        chunk.names,
        chunk.source,
        chunk.observed_at_s,
    )


@contextmanager
def stock(*, metadata: bool = True) -> Iterator[str]:
    """Serve as the first server of the protocol does: HTTP/1.0, a thread for each connection."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

        def answer(self, status: int, document: Any) -> None:
            body = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self) -> None:
            self.answer(*(200, {"policy_contract": {}}) if metadata else (404, {"error": "no"}))

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            frames = asked["cameras"]["front"]
            assert base64.b64decode(frames[0]["data"]).startswith(b"\xff\xd8")
            self.answer(200, {"actions": [asked["state"]] * 2})

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("metadata", [True, False])
def test_a_server_of_the_first_version_works(
    remote: Callable[..., Remote], *, metadata: bool
) -> None:
    """
    It is of HTTP/1.0, closes the connection after each answer, and may not say what it is.
    """
    with stock(metadata=metadata) as url:
        policy = remote(url)
        for i in range(3):
            assert [[i, 0.0]] * 2 == policy.infer(seen_at(float(i))).values.tolist()
        policy.reset()


def test_one_connection_serves_all_calls_and_what_the_server_is_is_asked_once(
    remote: Callable[..., Remote],
) -> None:
    """
    A connection and an encryption for each call cost more than the call.
    """
    heard = []

    def counting(connection: socket.socket) -> None:
        heard.append("connected")
        while True:
            first, _, _ = hear(connection)
            heard.append(first)
            connection.sendall(response({}) if first.startswith("GET") else ANSWER)

    with http_peer(counting) as url:
        policy = remote(url)
        for _ in range(3):
            policy.infer(SEEN)
    assert ["connected", "GET /v1/metadata HTTP/1.1", *["POST /v1/infer HTTP/1.1"] * 3] == heard


@both
def test_a_request_is_what_servers_of_old_read(ask: Ask) -> None:
    """
    JSON and JPEG in base64; what is newer stands in headers, which they pass over.
    """
    heard: list[Any] = []

    def listening(connection: socket.socket) -> None:
        introduced(connection)
        heard.append(hear(connection))
        connection.sendall(ANSWER)

    with http_peer(listening) as url:
        ask(url, token=Secret("sk-123456"))
    first, headers, body = heard[0]
    assert "POST /v1/infer HTTP/1.1" == first
    assert url.removeprefix("http://") == headers["host"]
    assert "bearer sk-123456" == headers["authorization"]
    assert "application/json" == headers["content-type"]
    assert {"host", "accept", "accept-encoding", "authorization", "x-request-id"} | {
        "content-type",
        "content-length",
    } == set(headers)
    document = json.loads(body)
    assert ["base64-jpeg"] == [each["encoding"] for each in document["cameras"]["front"]]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("", "/v1/infer"),
        ("/", "/v1/infer"),
        ("/v1/infer", "/v1/infer"),
        ("/v1/infer/", "/v1/infer"),
        ("/arm", "/arm/v1/infer"),
        ("/arm/v1/infer", "/arm/v1/infer"),
        ("/v1", "/v1/v1/infer"),
    ],
)
def test_the_path_of_the_protocol_is_appended_unless_it_is_there(path: str, expected: str) -> None:
    """
    People write either; what the server is, is asked below the same prefix.
    """
    heard = []

    def listening(connection: socket.socket) -> None:
        for answer in (response({}), ANSWER):
            heard.append(hear(connection)[0].split()[1])
            connection.sendall(answer)

    with http_peer(listening) as url:
        ask_once(f"{url}{path}")
    assert [expected.replace("infer", "metadata"), expected] == heard


@pytest.mark.parametrize(
    ("endpoint", "origin"),
    [
        ("localhost", "http://localhost:8787"),
        ("127.0.0.1:9000", "http://127.0.0.1:9000"),
        ("https://[::1]", "https://[::1]:8787"),
    ],
)
def test_an_address_without_a_scheme_or_a_port_has_those_of_the_protocol(
    endpoint: str, origin: str
) -> None:
    """
    As a person writes it.
    """
    assert f"HttpPolicy({origin!r})" == repr(http_client(endpoint))


@pytest.mark.parametrize(
    "endpoint",
    ["http://example.com", "https://example.com", "ws://localhost", "localhost:0", "http://a:b@c"],
)
def test_an_address_that_may_not_be_dialled_is_refused_at_construction(endpoint: str) -> None:
    """
    Another host takes a word and encryption.
    """
    with pytest.raises(EndpointError):
        http_client(endpoint)
    with pytest.raises(EndpointError, match="not encrypted"):
        http_client("http://example.com", allow_remote=True)
    http_client("https://example.com", allow_remote=True, token=Secret("sk-1")).close()


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"embodiment": "arm"}, "embodiment"),
        ({"name": " "}, "name"),
        ({"token": "sk-1"}, "token"),
        ({"timeout_s": 0}, "timeout_s"),
        ({"timeout_s": float("nan")}, "timeout_s"),
        ({"tls": True}, "tls"),
        ({"tls": ssl.create_default_context()}, "tls"),
        ({"encoding": "raw"}, "encoding"),
        ({"content_type": "application/json"}, "content_type"),
        ({"session": "two words"}, "session"),
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
        http_client("localhost", **options)
    assert field == caught.value.field


def telling(**said: Any) -> bytes:
    """Write what a server says about itself."""
    return response(said)


@pytest.mark.parametrize(
    ("speech", "expected"),
    [
        ({}, ("base64-jpeg", "application/json")),
        ({"http": NEW}, ("base64-raw", "application/json")),
        ({"http": {**NEW, "encodings": ["jpeg", "png"]}}, ("base64-png", "application/json")),
        ({"http": {**NEW, "encodings": ["jpeg", "avif"]}}, ("base64-jpeg", "application/json")),
    ],
)
def test_frames_are_sent_without_loss_where_the_server_knows_how(
    speech: dict[str, Any], expected: tuple[str, str]
) -> None:
    """
    JPEG shows a policy other pixels than those it was trained with.
    """
    heard: list[Any] = []

    def listening(connection: socket.socket) -> None:
        introduced(connection, telling(**speech))
        heard.append(hear(connection))
        connection.sendall(ANSWER)

    with http_peer(listening) as url:
        ask_once(url)
    _, headers, body = heard[0]
    frame = json.loads(body)["cameras"]["front"][0]
    assert expected == (frame["encoding"], headers["content-type"])


@both
def test_our_server_is_spoken_to_in_messagepack_with_plain_pixels(ask: Ask) -> None:
    """
    Nothing is encoded, so nothing is lost and no time either.
    """
    shown = []

    def look(seen: Any) -> Any:
        shown.append(seen)
        return PLAN

    with serving(ScriptedPolicy(look, info=PolicyInfo(name="s", action_names=NAMES))) as url:
        ask(url)
        ask(url, encoding=WireEncoding.JPEG, content_type=ContentType.JSON)
    assert np.array_equal(SEEN.images["front"], shown[0].images["front"])
    assert not np.array_equal(SEEN.images["front"], shown[1].images["front"])


@both
@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"encoding": WireEncoding.PNG}, "encoding"),
        ({"content_type": ContentType.MESSAGEPACK}, "content_type"),
    ],
)
def test_what_is_asked_for_and_not_known_to_the_server_is_refused(
    ask: Ask, options: dict[str, Any], field: str
) -> None:
    """
    Another way would be a guess.
    """
    with http_peer(answering) as url, pytest.raises(ContractError) as caught:
        ask(url, **options)
    assert field == caught.value.field


@both
@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        (
            {"policy_info": {"action_names": ["elbow", "shoulder"]}},
            "action_names is elbow, shoulder, expected",
        ),
        ({"policy_info": {"state_names": ["a", "b"]}}, "state_names is a, b, expected"),
        ({"policy_info": {"rate_hz": 10.0}}, "rate_hz is 10.0, expected"),
        (
            {"policy_info": {"action_names": list(NAMES), "action_units": ["deg", "rad"]}},
            "action_units has 'deg' for 'shoulder', expected 'rad'",
        ),
        (
            {"policy_info": {"cameras": [{"name": "wrist"}]}},
            "cameras has 'wrist', expected one of front",
        ),
        (
            {"policy_info": {"cameras": [{"name": "front", "height_px": 9, "width_px": 8}]}},
            "cameras has 'front' with 9 x 8 pixels, expected 8 x 8",
        ),
        ({"policy_info": {"horizon": 9}}, "got 2 steps, expected the 9 of its metadata"),
        ({"policy_info": {"horizon": "2"}}, "horizon: got '2'"),
        (
            {"policy_contract": {"output_features": {"action": {"type": "ACTION", "shape": [7]}}}},
            "'action' has 7 numbers, expected the 2 actions of the robot",
        ),
        ({"http": 3}, "http: got int, expected an object"),
        ([], "metadata: got list, expected an object"),
    ],
)
def test_a_server_for_another_robot_is_found_out_before_the_first_action(
    ask: Ask, metadata: Any, words: str
) -> None:
    """
    Keys and their order were guessed, and the robot moved.
    """
    with (
        http_peer(acting(ANSWER, response(metadata))) as url,
        pytest.raises(PolicyProtocolError, match=words),
    ):
        ask(url)


def test_info_is_what_the_server_says_and_what_the_robot_says_where_it_does_not() -> None:
    """
    A server of old says nothing, or what its checkpoint is made of.
    """
    with stock() as url, http_client(url, name="act") as policy:
        assert policy.info == PolicyInfo(
            name="act",
            action_names=NAMES,
            state_names=NAMES,
            cameras=ROBOT.cameras,
            metadata={"policy_contract": {}},
        )
    with serving() as url, http_client(url) as policy:
        info = policy.info
    assert (url, 2, 20.0) == (info.name, info.horizon, info.rate_hz)


def test_an_observation_without_a_camera_that_the_policy_looks_at_is_not_sent() -> None:
    """
    The server would have to refuse it, or to show the policy nothing.
    """
    wrist = attrs.evolve(ROBOT.cameras[0], name="wrist")
    both_eyes = attrs.evolve(ROBOT, cameras=[*ROBOT.cameras, wrist])
    said = {"policy_info": {"cameras": [{"name": "front"}, {"name": "wrist"}]}}
    with (
        http_peer(acting(ANSWER, response(said))) as url,
        http_client(url, embodiment=both_eyes) as policy,
        pytest.raises(ContractError, match="images: got none of wrist"),
    ):
        policy.infer(SEEN)


def test_an_observation_of_another_robot_is_refused_before_anything_is_sent() -> None:
    """
    And the connection is kept.
    """
    with http_peer(answering, lambda _: None) as url, http_client(url) as policy:
        policy.infer(SEEN)
        for wrong in (
            attrs.evolve(SEEN, state=[0.0]),
            attrs.evolve(SEEN, images={"wrist": SEEN.images["front"]}),
            None,
        ):
            with pytest.raises(ContractError):
                policy.infer(wrong)  # type: ignore[arg-type]
        policy.infer(SEEN)


def test_an_observation_that_is_too_large_is_not_sent() -> None:
    """
    Nor is the connection given up for it.
    """
    limits = HttpLimits(max_frame_bytes=99)
    with http_peer(answering, lambda _: None) as url:
        policy = http_client(url, limits=limits)
        for _ in range(2):
            with pytest.raises(LimitExceededError, match="max_frame_bytes"):
                policy.infer(SEEN)
        policy.close()


def queued() -> ScriptedPolicy:
    """Make a policy that keeps a queue between calls, one for each session."""
    return ScriptedPolicy(
        [[[0.1, 0.0]], [[0.2, 0.0]], [[0.3, 0.0]]], info=PolicyInfo(name="q", action_names=NAMES)
    )


def test_two_clients_do_not_clear_each_others_queue(remote: Callable[..., Remote]) -> None:
    """
    A reset by one client cleared that of another.
    """
    with serving(queued()) as url:
        left, right = remote(url), remote(url)
        told = [left.infer(SEEN), right.infer(SEEN), left.infer(SEEN)]
        left.reset()
        told += [right.infer(SEEN), left.infer(SEEN)]
    assert [0.1, 0.1, 0.2, 0.2, 0.1] == [chunk.values[0, 0] for chunk in told]


def test_a_session_that_is_given_goes_on_where_it_was(remote: Callable[..., Remote]) -> None:
    """
    In another process, as after a restart of a robot's program.
    """
    with serving(queued()) as url:
        first = remote(url, session="arm-1").infer(SEEN)
        second = remote(url, session="arm-1").infer(SEEN)
    assert [0.1, 0.2] == [first.values[0, 0], second.values[0, 0]]


def test_a_server_of_old_is_not_told_of_a_reset(remote: Callable[..., Remote]) -> None:
    """
    It knows none, and would forget what is another client's.
    """
    heard = []

    def listening(connection: socket.socket) -> None:
        while True:
            heard.append(hear(connection)[0])
            connection.sendall(response({}))

    with http_peer(listening) as url:
        remote(url).reset()
    assert ["GET /v1/metadata HTTP/1.1"] == heard


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        (response({"error": "busy"}, "500 Oops"), PolicyStatusError, r"busy \(HTTP 500\)"),
        (response({}, "404 Not Found"), PolicyProtocolError, "answers a reset with HTTP 404"),
        (response({"status": "no"}), PolicyProtocolError, "status: got another answer"),
        (b"", PolicyProtocolError, "hung up before it answered"),
    ],
)
def test_a_reset_that_is_not_done_is_told(
    remote: Callable[..., Remote], answer: bytes, error: type[PolicyError], words: str
) -> None:
    """
    Or the chunk of the last episode would be executed in the next.
    """

    def refusing(connection: socket.socket) -> None:
        introduced(connection, telling(http=NEW))
        hear(connection)
        connection.sendall(answer)

    with http_peer(refusing) as url, pytest.raises(error, match=words):
        remote(url).reset()


def test_a_reset_that_is_not_answered_ends_at_the_deadline(remote: Callable[..., Remote]) -> None:
    """
    A robot waits between two episodes too.
    """

    def silent(connection: socket.socket) -> None:
        introduced(connection, telling(http=NEW))
        hear(connection)
        time.sleep(5)

    with http_peer(silent) as url, pytest.raises(PolicyTimeoutError, match="no answer within"):
        remote(url, timeout_s=0.5).reset()


@both
@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        (response({"error": "KeyError: 7"}, "500 Oops"), PolicyStatusError, "KeyError: 7"),
        (response({"error": "x"}, "400 Bad Request"), PolicyStatusError, r"x \(HTTP 400\)"),
        (response({"error": "no token"}, "401 No"), PolicyStatusError, "no token"),
        (response({"error": "no"}, "403 No"), PolicyStatusError, "HTTP 403"),
        (response(b"<html>", "404 No"), PolicyStatusError, "error without words of the policy's"),
        (
            response({"error": "too large"}, "413 Large"),
            PolicyStatusError,
            r"too large; the request has \d+ bytes",
        ),
        (
            response(b"", "302 Found", {"Location": "http://127.0.0.1:1/"}),
            PolicyStatusError,
            "no redirect is followed",
        ),
        (response({"error": "busy"}, "429 Many"), PolicyUnavailableError, "HTTP 429: busy"),
        (response(b"<html>", "502 Bad"), PolicyUnavailableError, "answers HTTP 502"),
        (response({"error": "full"}, "503 Busy"), PolicyUnavailableError, "HTTP 503: full"),
        (response(b"", "504 Late"), PolicyUnavailableError, "answers HTTP 504"),
    ],
)
def test_an_error_has_the_status_and_the_servers_words(
    ask: Ask, answer: bytes, error: type[PolicyError], words: str
) -> None:
    """
    They were lost: "Server error '500 Internal Server Error' for url ...".
    """
    with http_peer(acting(answer)) as url, pytest.raises(error, match=words) as caught:
        ask(url)
    if error is PolicyStatusError:
        assert int(answer.split()[1]) == caught.value.status  # type: ignore[attr-defined]


def test_an_error_of_the_policy_is_told_once_and_the_next_call_works(
    remote: Callable[..., Remote],
) -> None:
    """
    What failed once may work with the next frame.
    """
    failing = acting(response({"error": "KeyError: 7"}, "500 Oops"))
    with http_peer(failing, answering) as url:
        policy = remote(url)
        with pytest.raises(PolicyStatusError):
            policy.infer(SEEN)
        assert PLAN == policy.infer(SEEN).values.tolist()


@both
@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"error": "KeyError: 7", "actions": PLAN}, "KeyError: 7"),
        (b'{"actions": [[NaN, 0], [0, 0]]}', "NaN"),
        ({"actions": [[0.0]] * 2}, "shape"),
        ({"actions": [[0.0] * 3] * 2}, "shape"),
        ({"actions": [0.0, 0.0]}, "shape"),
        ({"actions": [["1.5", 0.0]] * 2}, "actions"),
        ({"actions": PLAN, "action_names": ["elbow", "shoulder"]}, "action_names"),
        ({"actions": PLAN, "action": PLAN}, "action"),
        ({}, "actions"),
        (b"[" * 99_999, "nested more than"),
        (b'{"actions": [[0, 0]], "actions": [[1, 1]]}', "twice"),
        (b"\xff", "UTF-8"),
        (b"", "JSON"),
    ],
)
def test_an_answer_that_is_none_is_refused_and_never_mended(
    ask: Ask, body: Any, words: str
) -> None:
    """
    Short vectors were padded with 0.0, an error beside actions was passed over: the arm moved.
    """
    with http_peer(acting(response(body))) as url, pytest.raises(PolicyError, match=words):
        ask(url)


def test_another_policy_behind_the_same_port_is_not_taken_for_the_first(
    remote: Callable[..., Remote],
) -> None:
    """
    The horizon differed after a restart: shaking at each chunk.
    """

    def once(horizon: int) -> Any:
        def script(connection: socket.socket) -> None:
            introduced(connection, telling(policy_info={"horizon": horizon}))
            hear(connection)
            connection.sendall(ANSWER)

        return script

    with http_peer(once(2), once(3), once(2)) as url:
        policy = remote(url)
        policy.infer(SEEN)
        policy.wait(0.1)
        with pytest.raises(PolicyProtocolError, match="horizon: got 3, before 2"):
            policy.infer(SEEN)
        policy.infer(SEEN)


@pytest.mark.parametrize(
    ("later", "words"),
    [
        ({}, "encoding: got raw, which the server does not know"),
        ({"http": {**NEW, "sessions": False}}, "it keeps no sessions any more"),
    ],
)
def test_a_server_that_knows_less_after_a_restart_is_not_spoken_to_as_before(
    remote: Callable[..., Remote], later: dict[str, Any], words: str
) -> None:
    """
    It would read pixels as something else, or share what was one robot's.
    """

    def once(connection: socket.socket) -> None:
        introduced(connection, telling(http=NEW))
        hear(connection)
        connection.sendall(ANSWER)

    with http_peer(once, acting(ANSWER, telling(**later))) as url:
        policy = remote(url)
        policy.infer(SEEN)
        policy.wait(0.1)
        with pytest.raises(PolicyProtocolError, match=words):
            policy.infer(SEEN)


def test_threads_take_turns_and_each_gets_its_own_answer() -> None:
    """
    Two at once on one connection would get each other's.
    """
    with serving() as url, http_client(url) as policy, ThreadPoolExecutor(4) as threads:
        states = [float(i) for i in range(40)]
        chunks = list(threads.map(lambda state: policy.infer(seen_at(state)), states))
    assert states == [chunk.values[0, 0] for chunk in chunks]
    assert states == [chunk.observed_at_s for chunk in chunks]


def test_tasks_take_turns_and_each_gets_its_own_answer() -> None:
    """
    As threads do.
    """

    async def ask() -> list[Any]:
        async with async_http_client(url) as policy:
            return await asyncio.gather(*(policy.infer(seen_at(float(i))) for i in range(20)))

    with serving() as url:
        chunks = asyncio.run(ask())
    assert [float(i) for i in range(20)] == [chunk.values[0, 0] for chunk in chunks]


def test_a_call_takes_no_more_memory_than_twice_what_is_sent(
    remote: Callable[..., Remote],
) -> None:
    """
    Three cameras of 480 x 640 in plain pixels; copies of frames starved a small computer.
    """
    robot, seen = with_eyes(3, height_px=480, width_px=640)
    speech = {**NEW, "content_types": ["application/json", "application/msgpack"]}

    def counting(connection: socket.socket) -> None:
        introduced(connection, telling(http=speech))
        while True:
            head, _, body = hear_request(connection).partition(b"\r\n\r\n")
            skip(connection, int(re.findall(rb"content-length: (\d+)", head)[0]) - len(body))
            connection.sendall(ANSWER)

    with http_peer(counting) as url:
        policy = remote(url, embodiment=robot, timeout_s=30)
        policy.infer(seen)
        assert most_memory(lambda: policy.infer(seen)) < 2 * 3 * 480 * 640 * 3
