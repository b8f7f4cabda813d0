"""Tests of `vlmcore_robotics.servers.zeromq`, asked over real sockets as stock clients ask."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import attrs
import numpy as np
import pytest
import zmq
from hypothesis import given
from hypothesis import strategies as st

from vlmcore.errors import ContractError, EndpointError, PolicyError
from vlmcore.limits import WireLimits
from vlmcore.policy.interface import PolicyInfo
from vlmcore.secrets import Secret
from vlmcore.testing import ScriptedPolicy
from vlmcore_robotics.servers.runtime import PolicyRuntime
from vlmcore_robotics.servers.threads import serve_in_thread
from vlmcore_robotics.servers.zeromq import GrootServer
from vlmcore_robotics.wire.frames import FrameKind, encode_frame
from vlmcore_robotics.wire.groot_calls import read_modalities
from vlmcore_robotics.wire.groot_dialects import GrootDialect
from vlmcore_robotics.wire.groot_modalities import ModalityConfig
from zeromq_cases import (
    CODEC,
    CODECS,
    INFO,
    LAYOUT,
    MODALITIES,
    NAMES,
    PLAN,
    SEEN,
    Peer,
    client,
    echoing,
    seen_at,
    serving,
)

REQUEST = CODEC.encode_request(SEEN)
TOKEN = Secret("tok-123456")


class Slow:
    """A policy that answers when it is let."""

    info = INFO

    def __init__(self) -> None:
        self.go = threading.Event()
        self.busy = threading.Event()
        self.resets = 0

    def infer(self, observation: Any, /) -> Any:
        self.busy.set()
        assert self.go.wait(10)
        return ScriptedPolicy([PLAN], info=INFO).infer(observation)

    def reset(self) -> None:
        self.resets += 1

    def close(self) -> None:
        self.go.set()


@pytest.mark.parametrize("dialect", [GrootDialect.N1_6, GrootDialect.N1_7])
def test_answers_tell_how_long_things_took_where_that_is_asked_for(dialect: GrootDialect) -> None:
    """
    Beside the actions, where a client of GR00T passes over it; each answer has its own.
    """
    with (
        serving(dialect=dialect, tell_timings=True) as url,
        client(url) as policy,
    ):
        told = [policy.infer(seen_at(float(n))) for n in range(3)]
    assert [0.0, 1.0, 2.0] == [chunk.values[0, 0] for chunk in told]
    timings = [chunk.metadata["info"]["server_timing"] for chunk in told]
    assert [{"queue_ms", "infer_ms"}] * 3 == [set(each) for each in timings]
    assert all(0.0 <= value for each in timings for value in each.values())
    assert len({tuple(each.values()) for each in timings}) > 1


def test_nothing_is_told_beside_the_actions_unless_asked_for() -> None:
    """
    Answers that differ in their numbers only are read faster; those of N1.5 have no place.
    """
    with serving() as url, Peer(url) as peer:
        assert {} == peer.send(REQUEST)[1]
    with serving(dialect=GrootDialect.N1_5, tell_timings=True) as url, client(url) as policy:
        assert {"info": {}} == policy.infer(SEEN).metadata


def test_a_ping_is_answered_to_the_letter() -> None:
    """
    And what the policy says of itself stands beside it, where stock clients do not look.
    """
    with serving() as url, Peer(url) as peer:
        said = peer.ask("ping")
    assert ("ok", "Server is running") == (said["status"], said["message"])
    assert ["rad", "rad", "rad"] == said["policy_info"]["action_units"]


@pytest.mark.parametrize("dialect", GrootDialect)
def test_the_modalities_tell_the_generation(dialect: GrootDialect) -> None:
    """
    A client that asks for them first knows what to speak.
    """
    with serving(dialect=dialect) as url, Peer(url) as peer:
        peer.socket.send(encode_frame({"endpoint": "get_modality_config"}, kind=FrameKind.REQUEST))
        frame = peer.socket.recv()
    modalities, said = read_modalities(frame, policy="scripted")
    assert dialect is said
    assert ("single_arm", "gripper") == modalities.action.modality_keys
    assert (0, 1) == modalities.action.delta_indices


@pytest.mark.parametrize("dialect", GrootDialect)
def test_an_action_comes_back_in_the_generation_of_the_server(dialect: GrootDialect) -> None:
    """
    N1.5 has flat keys and nothing beside the actions.
    """
    codec = CODECS[dialect]
    with serving(dialect=dialect) as url, Peer(url) as peer:
        said = peer.send(codec.encode_request(seen_at(0.5)))
    actions = said if dialect is GrootDialect.N1_5 else said[0]
    arm = actions["action.single_arm" if dialect is GrootDialect.N1_5 else "single_arm"]
    assert (np.float32, (1, 2, 2)) == (arm.dtype, arm.shape)
    assert [[0.5, 0.0], [0.5, 0.0]] == arm[0].tolist()


def test_flat_keys_are_read_and_written_where_the_server_is_told_to() -> None:
    """
    As servers of N1.6 and N1.7 do that wrap the policy for a simulator.
    """
    codec = attrs.evolve(CODEC, flat=True)
    with serving(flat=True) as url, Peer(url) as peer:
        actions, _ = peer.send(codec.encode_request(SEEN))
    assert {"action.single_arm", "action.gripper"} == set(actions)


@pytest.mark.parametrize("sent", [GrootDialect.N1_6, GrootDialect.N1_7])
def test_arrays_are_read_in_every_spelling(sent: GrootDialect) -> None:
    """
    Clients that always send files of NumPy are understood by all servers.
    """
    with serving(dialect=GrootDialect.N1_7) as url, Peer(url) as peer:
        assert 2 == len(peer.send(CODECS[sent].encode_request(SEEN)))


def test_pings_are_answered_while_an_inference_runs() -> None:
    """
    The stock server answers nobody meanwhile: one thread, one request.
    """
    policy = Slow()
    with serving(policy) as url, Peer(url) as asking, Peer(url) as other:
        asking.socket.send(REQUEST)
        assert policy.busy.wait(10)
        assert "ok" == other.ask("ping")["status"]
        assert "video" in other.ask("get_modality_config")
        assert not asking.socket.poll(0)
        policy.go.set()
        assert 2 == len(asking.receive())


def test_a_reset_reaches_the_policy() -> None:
    """
    In the form of N1.6 and N1.7, with options that nobody reads.
    """
    policy = Slow()
    with serving(policy) as url, Peer(url) as peer:
        assert {} == peer.ask("reset", {"options": None})
        assert {} == peer.ask("reset", {"options": {"episode_index": 3}})
    assert 2 == policy.resets


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({"endpoint": "kill"}, "request['endpoint']: got 'kill', expected one of ping"),
        ({"endpoint": "eval"}, "got 'eval', expected one of"),
        ({"endpoint": 7}, "got 'int', expected one of"),
        ({"endpoint": "get_action"}, "observation: got NoneType, expected a map"),
        ({}, "observation: got NoneType, expected a map"),
        ({"endpoint": "get_action", "data": {"observation": {}}}, "video['ego_view']: got nothing"),
        ([1], "request: got list, expected a map"),
        ({"endpoint": "get_action", "data": {"observation": [1]}}, "got list, expected a map"),
        ({"endpoint": "get_action", "data": {"eval": 1}}, "got other data"),
        ({"endpoint": "get_action", "data": 5}, "got other data"),
        ({"endpoint": "reset", "data": "x"}, "got other data"),
    ],
)
def test_a_request_that_is_none_is_answered_with_what_is_wrong_with_it(
    request_: Any, words: str
) -> None:
    """
    And so is one to end the server; the next one is served.
    """
    policy = echoing()
    with serving(policy) as url, Peer(url) as peer:
        said = peer.send(encode_frame(request_, kind=FrameKind.REQUEST))
        assert "ok" == peer.ask("ping")["status"]
    assert ["error"] == list(said)
    assert words in said["error"]
    assert () == policy.shown


@pytest.mark.parametrize(
    ("frames", "words"),
    [
        ([b""], "frame"),
        ([b"\xc1"], "a code that has no meaning"),
        ([b"ERROR"], "after the value"),
        ([b"\x81" * 40], "no text"),
        ([b"\x91" * 100_000], "max_depth"),
        ([b"\xdd\xff\xff\xff\xff"], "max_entries"),
        ([b"\xdc\xff\xff" * 60_000], "max_nodes"),
        ([b"\xdd\x00\x00\xff\xff" + b"\x92\x90\x90" * 0xFFFF], "max_nodes"),
        ([REQUEST, REQUEST], "request: got 2 frames, expected one"),
        ([REQUEST, b""], "request: got 2 frames, expected one"),
        ([b"", b"", b""], "request: got 3 frames, expected one"),
        ([REQUEST[:-1]], "cut"),
    ],
)
def test_no_frame_leaves_a_socket_dead(frames: list[bytes], words: str) -> None:
    """
    A REP socket that raised while it read would answer nobody any more.
    """
    with serving() as url, Peer(url) as peer:
        said = peer.send(*frames)
        assert "ok" == peer.ask("ping")["status"]
    assert words in said["error"]


def test_a_peer_that_is_no_req_socket_is_answered_too() -> None:
    """
    With an envelope of several hops, with an empty frame only, or with none.
    """
    ping = encode_frame({"endpoint": "ping"}, kind=FrameKind.REQUEST)
    with serving() as url, Peer(url, zmq.DEALER) as peer:
        assert "ok" == peer.send(b"", ping)["status"]
        assert "ok" == peer.send(ping)["status"]
        peer.socket.send_multipart([b"hop", b"", ping])
        assert [b"hop", b""] == peer.socket.recv_multipart()[:2]


def test_one_that_sends_a_frame_that_is_too_large_is_hung_up_on() -> None:
    """
    It is not held in memory first; others are served.
    """
    limits = WireLimits(max_request_bytes=1000)
    with serving(limits=limits) as url, Peer(url) as large, Peer(url) as small:
        news = large.socket.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        large.socket.send(bytes(100_000))
        assert news.poll(10_000)
        assert "ok" == small.ask("ping")["status"]


@pytest.mark.parametrize(
    "junk", [b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"SSH-2.0-x\r\n", b"\xff" * 64, b""]
)
def test_one_that_speaks_another_protocol_holds_nobody_up(junk: bytes) -> None:
    """
    Also one that says nothing.
    """
    with serving() as url, Peer(url) as peer:
        host, port = url.removeprefix("tcp://").split(":")
        with socket.create_connection((host, int(port)), timeout=5) as other:
            other.sendall(junk)
            assert "ok" == peer.ask("ping")["status"]


def test_one_that_leaves_before_its_answer_harms_nobody() -> None:
    """
    Its answer is dropped.
    """
    policy = Slow()
    with serving(policy) as url:
        with Peer(url) as leaving:
            leaving.socket.send(REQUEST)
            assert policy.busy.wait(10)
        policy.go.set()
        with Peer(url) as peer:
            assert 2 == len(peer.send(REQUEST))


def test_no_traceback_leaves() -> None:
    """
    The stock server answers with the text of any exception.
    """
    for raised, words in (
        (KeyError("/home/me/x.py"), "the policy failed with KeyError; its log says more"),
        (PolicyError("scripted", "no camera"), "no camera"),
        (PolicyError("scripted", "api_token=sk-secret-123"), "[REDACTED]"),
    ):
        with serving(ScriptedPolicy([raised], info=INFO)) as url, Peer(url) as peer:
            said = peer.send(REQUEST)["error"]
            assert words in said
            assert "/home" not in said
            assert "sk-secret" not in said


def test_the_token_is_asked_for_at_every_endpoint() -> None:
    """
    The words are those of the stock server; the token is in none of them.
    """
    refused = {"error": "Unauthorized: Invalid API token"}
    with serving(api_token=TOKEN) as url, Peer(url) as peer:
        for endpoint in ("ping", "get_modality_config", "get_action", "reset", "kill"):
            assert refused == peer.ask(endpoint)
            for wrong in ("tok-12345", "tok-1234567", "", None, 7, b"tok-123456", "tök"):
                assert refused == peer.ask(endpoint, api_token=wrong)
        assert "ok" == peer.ask("ping", api_token="tok-123456")["status"]


@given(st.text(min_size=1, max_size=40))
def test_the_token_is_in_no_error(text: str) -> None:
    """
    Whatever a client sends beside it, and whatever it is.
    """
    token = f"s3cr3t-{text.encode().hex()}"
    with serving(api_token=Secret(token)) as url, Peer(url) as peer:
        said = [
            peer.ask(token, api_token=token),
            peer.ask("get_action", {token: 1}, api_token=token),
            peer.ask("get_action", {"observation": {"video": token}}, api_token=token),
        ]
    assert token not in repr(said)
    assert all("error" in each for each in said)


def test_too_many_requests_are_refused_at_once() -> None:
    """
    An answer to an old observation is worth little.
    """
    policy = Slow()
    with serving(policy, max_requests=1) as url, Peer(url) as asking, Peer(url) as other:
        asking.socket.send(REQUEST)
        assert policy.busy.wait(10)
        assert {"error": "busy: 1 in hand"} == other.ask("ping")
        policy.go.set()
        assert 2 == len(asking.receive())


def test_64_clients_at_once_get_their_own_answers() -> None:
    """
    None gets that of another, and none an error.
    """

    def ask(number: int) -> float:
        with Peer(url) as peer:
            actions, _ = peer.send(CODEC.encode_request(seen_at(float(number))))
            return float(actions["single_arm"][0, 0, 0])

    with serving(max_waiting=64) as url, ThreadPoolExecutor(64) as threads:
        assert list(map(float, range(64))) == list(threads.map(ask, range(64)))


def test_each_connection_is_a_session_of_its_own() -> None:
    """
    A shared policy: reset by one client cleared the queue of another.
    """

    class Counting:
        info = INFO

        def __init__(self) -> None:
            self.count = 0

        def fork(self) -> Counting:
            return Counting()

        def infer(self, observation: Any, /) -> Any:
            self.count += 1
            return ScriptedPolicy([[[self.count, 0, 0]] * 2], info=INFO).infer(observation)

        def reset(self) -> None:
            self.count = 0

        def close(self) -> None:
            """Nothing to give back."""

    def count(peer: Peer) -> float:
        return float(peer.send(REQUEST)[0]["single_arm"][0, 0, 0])

    with serving(Counting()) as url, Peer(url) as one, Peer(url) as other:
        assert [1, 2, 1] == [count(one), count(one), count(other)]
        one.ask("reset")
        assert [1, 2] == [count(one), count(other)]


def test_states_of_the_past_reach_a_policy_that_wants_them() -> None:
    """
    All steps that were sent, joined to one, oldest first; else the newest.
    """
    config = ModalityConfig(modality_keys=("single_arm", "gripper"), delta_indices=(-1, 0))
    modalities = attrs.evolve(MODALITIES, state=config)
    request = attrs.evolve(CODEC, modalities=modalities).encode_request(
        seen_at(2.0), past=[seen_at(1.0)]
    )
    for join_states, states in ((True, [1, 0, 0, 2, 0, 0]), (False, [2, 0, 0])):
        policy = ScriptedPolicy([PLAN], info=attrs.evolve(INFO, state_names=None))
        options: dict[str, Any] = {"modalities": modalities, "join_states": join_states}
        with serving(policy, **options) as url, Peer(url) as peer:
            assert 2 == len(peer.send(request))
        assert states == policy.shown[0].state.tolist()


def test_a_policy_that_names_a_joined_state_is_served_and_another_one_is_refused() -> None:
    """
    Each request was refused later, or each client: one has a state of one step, not of all.
    """
    config = ModalityConfig(modality_keys=("single_arm", "gripper"), delta_indices=(-1, 0))
    modalities = attrs.evolve(MODALITIES, state=config)
    options: dict[str, Any] = {"modalities": modalities, "join_states": True}
    joined = [f"{name}@{step}" for step in (-1, 0) for name in "abc"]
    request = attrs.evolve(CODEC, modalities=modalities).encode_request(
        seen_at(2.0), past=[seen_at(1.0)]
    )
    policy = ScriptedPolicy([PLAN], info=attrs.evolve(INFO, state_names=joined))
    with serving(policy, **options) as url, Peer(url) as peer:
        assert "state_names" not in str(peer.ask("ping"))
        assert 2 == len(peer.send(request))
    assert [1, 0, 0, 2, 0, 0] == policy.shown[0].state.tolist()
    alone = ScriptedPolicy([PLAN], info=attrs.evolve(INFO, state_names=joined[:3]))
    words = "3 state_names, expected 6: 2 steps of 3 numbers"
    with pytest.raises(ContractError, match=words), serving(alone, **options):
        pass


def test_it_listens_on_ipv6() -> None:
    """
    ZeroMQ dials and binds IPv4 only unless it is told.
    """
    with serving(host="::1") as url, Peer(url) as peer:
        assert url.startswith("tcp://[::1]:")
        assert "ok" == peer.ask("ping")["status"]


def test_a_port_in_use_is_told_when_it_starts() -> None:
    """
    With where, and why.
    """
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        words = f"tcp://127.0.0.1:{port}: cannot listen there"
        with pytest.raises(EndpointError, match=words), serving(port=port):
            pass


def test_the_port_is_free_once_it_is_stopped() -> None:
    """
    A server that is restarted finds its place.
    """
    with serving() as url:
        port = int(url.rpartition(":")[2])
    for _ in range(3):
        with serving(port=port) as url, Peer(url) as peer:
            assert "ok" == peer.ask("ping")["status"]


def test_stopping_answers_what_is_in_hand_and_refuses_the_rest() -> None:
    """
    A stock client has no time limit of its own: unanswered, it waits for ever.
    """
    policy = Slow()

    async def serve() -> list[Any]:
        with PolicyRuntime(policy) as runtime:
            server = GrootServer(runtime, layout=LAYOUT, port=0)
            await server.start()
            with Peer(server.url) as asking, Peer(server.url) as late:
                await asyncio.to_thread(late.ask, "ping")
                asking.socket.send(REQUEST)
                assert await asyncio.to_thread(policy.busy.wait, 10)
                stopping = asyncio.ensure_future(server.stop())
                await asyncio.sleep(0)
                refused = await asyncio.to_thread(late.send, REQUEST)
                policy.go.set()
                answered = await asyncio.to_thread(asking.receive)
                await stopping
                return [refused, len(answered)]

    assert [{"error": "the server stops"}, 2] == asyncio.run(serve())


def test_stopping_gives_up_an_answer_that_takes_too_long() -> None:
    """
    After the time of grace.
    """
    policy = Slow()

    async def serve() -> float:
        with PolicyRuntime(policy) as runtime:
            server = GrootServer(runtime, layout=LAYOUT, port=0)
            await server.start()
            with Peer(server.url) as asking:
                asking.socket.send(REQUEST)
                assert await asyncio.to_thread(policy.busy.wait, 10)
                began_at_s = time.monotonic()
                await server.stop(grace_s=0.1)
                took_s = time.monotonic() - began_at_s
                policy.go.set()
                return took_s

    assert asyncio.run(serve()) < 5


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"host": "0.0.0.0"}, "host"),
        ({"host": "*"}, "host"),
        ({"host": "example.org"}, "host"),
        ({"port": -1}, "port"),
        ({"port": True}, "port"),
        ({"api_token": "tok-123456"}, "api_token"),
        ({"max_requests": 0}, "max_requests"),
        ({"dialect": "N1.7"}, "dialect"),
        ({"layout": 1}, "layout"),
        ({"layout": attrs.evolve(LAYOUT, state=())}, "layout"),
        ({"layout": attrs.evolve(LAYOUT, language=None)}, "layout"),
        ({"layout": attrs.evolve(LAYOUT, action=LAYOUT.action[:1])}, "layout"),
        ({"modalities": attrs.evolve(MODALITIES, language=None)}, "layout"),
        ({"modalities": 5}, "modalities"),
        ({"flat": 1}, "flat"),
    ],
)
def test_what_it_is_made_with_is_checked(options: dict[str, Any], field: str) -> None:
    """
    Before it listens; a token is not shown.
    """
    refused = pytest.raises(ContractError, match=f"^{field}: ")
    with PolicyRuntime(echoing()) as runtime, refused as caught:
        GrootServer(runtime, **{"layout": LAYOUT, **options})
    assert "tok-123456" not in str(caught.value)


@pytest.mark.parametrize(
    ("info", "words"),
    [
        (PolicyInfo(name="mute"), "without action_names"),
        (PolicyInfo(name="vague", action_names=NAMES), "without horizon"),
    ],
)
def test_a_policy_that_does_not_say_enough_is_not_served(info: PolicyInfo, words: str) -> None:
    """
    Clients are told beforehand what comes, and hold it against the robot.
    """
    policy = ScriptedPolicy(lambda _: PLAN, info=info)
    with PolicyRuntime(policy) as runtime, pytest.raises(ContractError, match=words):
        GrootServer(runtime, layout=LAYOUT)


def test_other_machines_reach_it_only_if_it_is_told_to() -> None:
    """
    The stock server listens at all addresses.
    """
    with PolicyRuntime(echoing()) as runtime:
        server = GrootServer(runtime, layout=LAYOUT, host="0.0.0.0", port=0, allow_remote=True)
        with serve_in_thread(server) as url, Peer(url) as peer:
            assert url.startswith("tcp://127.0.0.1:")
            assert "ok" == peer.ask("ping")["status"]
