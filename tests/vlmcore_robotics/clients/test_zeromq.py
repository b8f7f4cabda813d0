"""Tests of `vlmcore_robotics.clients.zeromq`, and of its twin, over real sockets."""

from __future__ import annotations

import asyncio
import gc
import socket
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client_cases import misbehaving
from vlmcore.contracts.observation import Observation
from vlmcore.errors import (
    ContractError,
    EndpointError,
    PolicyError,
    PolicyProtocolError,
    PolicyRefusedError,
    PolicyTimeoutError,
    PolicyUnavailableError,
)
from vlmcore.limits import WireLimits
from vlmcore.secrets import Secret
from vlmcore.testing import ScriptedPolicy, check_policy
from vlmcore_robotics.wire.frames import FrameKind, encode_frame
from vlmcore_robotics.wire.groot_dialects import GrootDialect, modalities_to_answer
from vlmcore_robotics.wire.groot_modalities import ModalityConfig, PolicyModalities
from vlmcore_robotics.wire.histories import MissingHistory
from zeromq_cases import (
    CODEC,
    INFO,
    LAYOUT,
    MODALITIES,
    NAMES,
    PLAN,
    ROBOT,
    SEEN,
    STEP_S,
    Remote,
    Scripted,
    action,
    async_client,
    client,
    dies,
    seen_at,
    serving,
)

Make = Callable[..., Remote]
TOKEN = Secret("tok-123456")
RESPONSE = FrameKind.RESPONSE


@pytest.fixture(params=["sync", "async"])
def remote(request: pytest.FixtureRequest) -> Iterator[Make]:
    """Make clients of both kinds, and close them."""
    made: list[Remote] = []

    def make(url: str, **options: Any) -> Remote:
        made.append(Remote(request.param, url, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()
        each.loop.close()


def looking_back(*deltas: int, name: str = "video") -> PolicyModalities:
    """Make modalities of a policy that looks back."""
    config = attrs.evolve(getattr(MODALITIES, name), delta_indices=deltas)
    return attrs.evolve(MODALITIES, **{name: config})


def saying(modalities: PolicyModalities, **options: Any) -> Scripted:
    """Make a server whose policy has these modalities."""
    said = modalities_to_answer(modalities, GrootDialect.N1_7)
    return Scripted({"get_modality_config": [encode_frame(said, kind=RESPONSE)]}, **options)


def test_the_client_keeps_every_promise_of_a_policy() -> None:
    """
    Asked by the kit that anybody's policy is asked by, with our server between.
    """
    with serving() as url:
        report = check_policy(
            lambda: client(url), SEEN, embodiment=ROBOT, deterministic=True, patience_s=30
        )
    assert len(report.passed) > 15


def test_the_async_client_keeps_every_promise_too() -> None:
    """
    Once it is connected: a property cannot wait.
    """

    async def connected() -> Any:
        policy = async_client(url)
        await policy.connect()
        return policy

    with serving() as url:
        report = check_policy(connected, SEEN, embodiment=ROBOT, deterministic=True, patience_s=30)
    assert len(report.passed) > 15


@pytest.mark.parametrize("dialect", GrootDialect)
def test_the_generation_is_found_before_the_first_action(
    remote: Make, dialect: GrootDialect
) -> None:
    """
    The server says it itself; nobody has to know.
    """
    with Scripted(dialect=dialect) as server:
        policy = remote(server.url, name="groot")
        chunk = policy.infer()
        assert ["get_modality_config", "ping", "get_action"] == server.asked
    assert (PLAN, NAMES, "groot", 7.5) == (
        chunk.values.tolist(),
        chunk.names,
        chunk.source,
        chunk.observed_at_s,
    )
    assert {"dialect": dialect.value} == dict(policy.policy.info.metadata)


@pytest.mark.parametrize("dialect", GrootDialect)
def test_a_server_of_ours_is_asked_in_its_generation(remote: Make, dialect: GrootDialect) -> None:
    """
    Both ends in one, with the state there and back.
    """
    with serving(dialect=dialect) as url:
        assert [[0.5, 0.0, 0.0]] * 2 == remote(url).infer(seen_at(0.5)).values.tolist()


def test_flat_keys_are_sent_where_they_are_asked_for(remote: Make) -> None:
    """
    As a wrapper for a simulator takes them.
    """
    with serving(flat=True) as url:
        assert 2 == remote(url, flat=True).infer().horizon


def test_one_connection_serves_all_calls(remote: Make) -> None:
    """
    A handshake each call costs more than the call.
    """
    with Scripted() as server:
        policy = remote(server.url)
        for _ in range(5):
            policy.infer()
        assert 1 == len(server.peers)


def test_the_late_chunk_of_the_old_observation_is_not_taken_for_the_next(remote: Make) -> None:
    """
    Receiving timed out, the client was used again, and the next call returned the late chunk.
    """
    is_given_up = threading.Event()

    def late() -> bytes:
        assert is_given_up.wait(10)
        return action([[1.0] * 3] * 2)

    with Scripted({"get_action": [late, action()]}) as server:
        policy = remote(server.url, timeout_s=0.5)
        with pytest.raises(PolicyTimeoutError, match=r"no answer within 0\.5 s"):
            policy.infer()
        is_given_up.set()
        policy.policy._terms = attrs.evolve(policy.policy._terms, timeout_s=5.0)
        assert PLAN == policy.infer().values.tolist()


@pytest.mark.parametrize(
    ("endpoint", "wait"),
    [("get_modality_config", "metadata"), ("ping", "metadata"), ("get_action", "answer")],
)
def test_a_server_that_accepts_and_never_answers_ends_at_the_deadline(
    remote: Make, endpoint: str, wait: str
) -> None:
    """
    The stock client waits for ever before N1.7.
    """
    with Scripted({endpoint: [None]}) as server:
        policy = remote(server.url, timeout_s=0.5)
        began_at_s = time.monotonic()
        with pytest.raises(PolicyTimeoutError, match=f"no {wait} within 0.5 s"):
            policy.infer()
        assert time.monotonic() - began_at_s < 5


def test_one_deadline_holds_for_all_of_a_call(remote: Make) -> None:
    """
    It is not given to each part anew.
    """

    def slowly() -> bytes:
        time.sleep(0.3)
        return CODEC.encode_modalities()

    with Scripted({"get_modality_config": [slowly], "ping": [None]}) as server:
        began_at_s = time.monotonic()
        with pytest.raises(PolicyTimeoutError):
            remote(server.url, timeout_s=0.5).infer()
        assert time.monotonic() - began_at_s < 0.8 + 2


def test_nothing_listens_there(remote: Make) -> None:
    """
    That is known at once, and not after a time of silence.
    """
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    began_at_s = time.monotonic()
    with pytest.raises(PolicyUnavailableError, match="nothing listens there"):
        remote(f"127.0.0.1:{port}", timeout_s=30).infer()
    assert time.monotonic() - began_at_s < 15


@pytest.mark.parametrize(
    ("said", "error"),
    [
        (b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", PolicyProtocolError),
        (b"SSH-2.0-OpenSSH_9.6\r\n", PolicyProtocolError),
        (b"", PolicyTimeoutError),
        (b"\xff" * 64, PolicyProtocolError),
        (None, PolicyUnavailableError),
    ],
    ids=["http", "ssh", "silence", "almost", "hangs up"],
)
def test_somebody_else_on_the_port_is_told_and_not_waited_for(
    remote: Make, said: bytes | None, error: type[PolicyError]
) -> None:
    """
    What is no ZeroMQ is not asked anything.
    """
    over = threading.Event()

    def other(connection: socket.socket) -> None:
        if said is None:
            connection.close()
            return
        connection.sendall(said)
        over.wait(10)

    with misbehaving(other) as url:
        with pytest.raises(error) as caught:
            remote(url.replace("ws:", "tcp:"), timeout_s=0.5).infer()
        over.set()
    if error is PolicyTimeoutError:
        assert "no end of the handshake within 0.5 s" in str(caught.value)


@pytest.mark.parametrize(
    ("endpoint", "error"),
    [
        ("get_modality_config", PolicyUnavailableError),
        ("ping", PolicyUnavailableError),
        ("get_action", PolicyProtocolError),
    ],
)
def test_a_server_that_is_killed_is_told_at_once_and_found_again(
    remote: Make, endpoint: str, error: type[PolicyError]
) -> None:
    """
    At each point of a call. Nothing was asked before the action: trying again is sensible.
    """
    first = Scripted({endpoint: [dies]})
    policy = remote(first.url, timeout_s=30)
    began_at_s = time.monotonic()
    with pytest.raises(error, match="it hung up before"):
        policy.infer()
    assert time.monotonic() - began_at_s < 15
    first.dead()
    with Scripted(port=first.port) as again:
        assert PLAN == policy.infer().values.tolist()
        assert 1 == again.asked.count("get_action")


def test_a_server_that_is_restarted_between_calls_is_found_again(remote: Make) -> None:
    """
    Before anything is sent: no call is lost.
    """
    first = Scripted()
    policy = remote(first.url)
    policy.infer()
    first.stop()
    with Scripted(port=first.port):
        assert PLAN == policy.infer().values.tolist()


def test_another_policy_after_a_restart_is_not_taken_for_the_same(remote: Make) -> None:
    """
    Robot and history would go on with it.
    """
    first = Scripted()
    policy = remote(first.url)
    policy.infer()
    first.stop()
    other = pytest.raises(PolicyProtocolError, match="another policy answers now")
    with saying(looking_back(-1, 0), port=first.port), other:
        policy.infer()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (encode_frame({"error": "'side'"}, kind=RESPONSE), "'side'"),
        (encode_frame({"error": 5}, kind=RESPONSE), "an error that is no text: 5"),
        (encode_frame([{"error": "no"}, {}], kind=RESPONSE), "no"),
        (encode_frame({"error": "no", "single_arm": [[1.0]]}, kind=RESPONSE), "no"),
        (b"ERROR", "an error without words"),
    ],
)
def test_an_error_is_raised_in_the_words_of_the_server(
    remote: Make, answer: bytes, words: str
) -> None:
    """
    Also of one that sends actions with it; the next call is asked.
    """
    with Scripted({"get_action": [answer, action()]}) as server:
        policy = remote(server.url)
        with pytest.raises(PolicyRefusedError) as caught:
            policy.infer()
        assert words == caught.value.problem
        assert PLAN == policy.infer().values.tolist()


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\xc1",
        b"\x91" * 100_000,
        b"\xdd\xff\xff\xff\xff",
        b"\xdc\xff\xff" * 60_000,
        b"\xc6\xff\xff\xff\xff",
        encode_frame(None, kind=RESPONSE),
        encode_frame({}, kind=RESPONSE),
        encode_frame([{}, {}], kind=RESPONSE),
        encode_frame([{"single_arm": [[1.0]]}, {}], kind=RESPONSE),
        action([[0.1] * 3]),
        action([[0.1] * 3] * 3),
        action([[0.1] * 2] * 2),
        action([[0.1] * 4] * 2),
        [action(), action()],
        [action(), b""],
        [b"", action()],
    ],
    ids=[
        "empty",
        "meaningless",
        "deep",
        "long",
        "many",
        "promised",
        "nothing",
        "no list",
        "no streams",
        "a stream missing",
        "one step",
        "three steps",
        "too narrow",
        "too wide",
        "two frames",
        "an empty second",
        "an empty first",
    ],
)
def test_what_is_no_answer_is_refused(remote: Make, answer: Any) -> None:
    """
    Nothing is padded, cut or guessed, and the next call gets its own answer.
    """
    with Scripted({"get_action": [answer, action()]}) as server:
        policy = remote(server.url)
        with pytest.raises(PolicyProtocolError) as caught:
            policy.infer()
        assert "theirs" == caught.value.side
        assert PLAN == policy.infer().values.tolist()


def test_a_number_that_is_none_is_left_to_the_gate(remote: Make) -> None:
    """
    It says that the policy is lost, and which of its dimensions.
    """
    with Scripted({"get_action": [action([[np.nan, 0.5, 0.0], PLAN[1]])]}) as server:
        assert np.isnan(remote(server.url).infer().values[0, 0])


def test_an_answer_that_is_too_large_ends_the_connection(remote: Make) -> None:
    """
    It is not held in memory first.
    """
    limits = WireLimits(max_response_bytes=1000, max_metadata_bytes=1000)
    with Scripted({"get_action": [bytes(100_000), action()]}) as server:
        policy = remote(server.url, limits=limits)
        with pytest.raises(PolicyProtocolError, match="a message of 100008 bytes or more"):
            policy.infer()
        assert PLAN == policy.infer().values.tolist()


@pytest.mark.parametrize("question", ["get_modality_config", "ping"])
def test_what_a_server_says_of_itself_is_held_to_its_own_limit_before_it_is_held_in_memory(
    remote: Make, question: str
) -> None:
    """
    The limit of answers, which are larger, is for what comes after it.
    """
    limits = WireLimits(max_metadata_bytes=2000)
    with Scripted({question: [bytes(100_000)]}) as server:
        with pytest.raises(PolicyProtocolError, match="a message of 100008 bytes or more"):
            remote(server.url, limits=limits).infer()
        assert "get_action" not in server.asked


def test_an_answer_may_be_larger_than_what_a_server_says_of_itself(remote: Make) -> None:
    """
    It is held to the limit of answers.
    """
    large = encode_frame({"error": "x" * 5000}, kind=RESPONSE)
    with Scripted({"get_action": [large]}) as server:
        policy = remote(server.url, limits=WireLimits(max_metadata_bytes=2000))
        with pytest.raises(PolicyRefusedError, match="xxx"):
            policy.infer()


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (encode_frame({}, kind=RESPONSE), "expected modality configs"),
        (encode_frame({"video": 5}, kind=RESPONSE), "expected a modality config"),
        (encode_frame([1], kind=RESPONSE), "expected modality configs"),
        (b"\xc1", "no meaning"),
    ],
)
def test_what_says_no_modalities_is_no_server_of_groot(
    remote: Make, said: bytes, words: str
) -> None:
    """
    Nobody knows what it would do with an observation.
    """
    with Scripted({"get_modality_config": [said]}) as server:
        with pytest.raises(PolicyProtocolError, match=words):
            remote(server.url).infer()
        assert "get_action" not in server.asked


def test_the_layout_is_held_against_the_policy_before_the_first_action(remote: Make) -> None:
    """
    Keys were guessed; a missing camera came back as the text "'side'". All that differs is told.
    """
    config = ModalityConfig(modality_keys=("side",), delta_indices=(0,))
    with saying(attrs.evolve(MODALITIES, video=config, state=config)) as server:
        with pytest.raises(PolicyProtocolError) as caught:
            remote(server.url).infer()
        assert "get_action" not in server.asked
    for words in (
        "video: the policy has side, the tables have not",
        "video: the tables have ego_view, the policy has not",
        "state: the tables have single_arm, gripper, the policy has not",
    ):
        assert words in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"action_units": ("rad", "deg", "rad")}, "action_units has 'deg' for 'elbow'"),
        ({"rate_hz": 30}, "rate_hz is 30.0, expected that of 'small arm', 20.0"),
        ({"state_names": ("a", "b", "c")}, "state_names is a, b, c"),
        (
            {"cameras": [attrs.evolve(ROBOT.cameras[0], height_px=224, width_px=224)]},
            "cameras has 'front' with 224 x 224 pixels, expected 8 x 8",
        ),
        (
            {"cameras": [attrs.evolve(ROBOT.cameras[0], name="wrist")]},
            "cameras has 'wrist', expected one of front",
        ),
    ],
)
def test_what_a_server_of_ours_says_of_its_policy_is_held_against_the_robot(
    remote: Make, changes: dict[str, Any], words: str
) -> None:
    """
    Servers of GR00T say neither units nor rate; ours do, beside the answer to a ping.
    """
    policy = ScriptedPolicy([PLAN], info=attrs.evolve(INFO, **changes))
    with serving(policy) as url, pytest.raises(PolicyProtocolError) as caught:
        remote(url).infer()
    assert words in str(caught.value)
    assert () == policy.shown


def test_what_a_server_says_twice_must_agree(remote: Make) -> None:
    """
    Modalities and what stands beside the ping.
    """
    pong = CODEC.encode_pong({"policy_info": {"name": "x", "horizon": 5}})
    refused = pytest.raises(PolicyProtocolError, match=r"'horizon'.*got 5, expected 2")
    with Scripted({"ping": [pong]}) as server, refused:
        remote(server.url).infer()


def test_frames_of_steps_before_are_sent_at_the_policys_deltas(remote: Make) -> None:
    """
    Two frames that are three steps apart, not two that follow each other.
    """
    with saying(looking_back(-3, 0)) as server:
        policy = remote(server.url)
        for number in range(3):
            policy.policy.observe(painted(number))
        policy.infer(painted(3))
        video = server.requests[-1]["data"]["observation"]["video"]["ego_view"]
    assert (1, 2, 8, 8, 3) == video.shape
    assert [0, 3] == video[0, :, 0, 0, 0].tolist()


def test_states_of_steps_before_are_sent_too(remote: Make) -> None:
    """
    The state was repeated for all steps: a robot that stands still.
    """
    with saying(looking_back(-1, 0, name="state")) as server:
        policy = remote(server.url, missing_history=MissingHistory.REPEAT_OLDEST)
        policy.infer(painted(0))
        policy.infer(painted(1))
        first, second = [
            request["data"]["observation"]["state"]["single_arm"][0, :, 0].tolist()
            for request in server.requests
            if request["endpoint"] == "get_action"
        ]
    assert ([0.0, 0.0], [0.0, 1.0]) == (first, second)


def test_a_past_that_is_not_there_is_refused_unless_told_otherwise(remote: Make) -> None:
    """
    The first frame is not taken for one of three steps ago.
    """
    with saying(looking_back(-3, 0)) as server:
        policy = remote(server.url)
        for number in range(3):
            with pytest.raises(ContractError, match=f"got {number + 1} of 4 steps"):
                policy.infer(painted(number))
        assert 2 == policy.infer(painted(3)).horizon


def test_a_gap_is_not_taken_for_a_step(remote: Make) -> None:
    """
    A loop that asks at every fourth step only has not seen the three between.
    """
    with saying(looking_back(-1, 0)) as server:
        policy = remote(server.url)
        for number in (0, 4, 8):
            with pytest.raises(ContractError, match="got 1 of 2 steps"):
                policy.infer(painted(number))
        assert 2 == policy.infer(painted(9)).horizon


@given(st.lists(st.floats(-0.2, 0.2), min_size=12, max_size=12))
def test_steps_are_found_by_their_time_although_a_loop_is_never_quite_on_time(
    early: list[float],
) -> None:
    """
    A fifth of a step early or late changes nothing.
    """
    from vlmcore_robotics.clients._history import History  # noqa: PLC0415

    history = History(rate_hz=20, most_steps=8)
    seen = [painted(i + off) for i, off in enumerate(early)]
    for each in seen:
        history.add(each)
    history.look_back(5)
    assert [6, 7, 8, 9, 10] == [seen.index(each) for each in history.before(seen[11])]


@given(st.integers(1, 30), st.integers(0, 30), st.integers(1, 30))
def test_nothing_of_an_episode_before_whose_time_began_anew_is_taken_for_a_step(
    before: int, begin: int, now: int
) -> None:
    """
    Also where nobody says reset.
    """
    from vlmcore_robotics.clients._history import History  # noqa: PLC0415

    history = History(rate_hz=20, most_steps=5)
    for number in range(before):
        history.add(painted(number))
    again = [attrs.evolve(painted(begin + i), instruction="again") for i in range(now)]
    for each in again:
        history.add(each)
    since = [each for each in history.before(again[-1]) if each.captured_at_s >= begin * STEP_S]
    assert again[:-1][-5:] == since


def test_frames_that_an_observation_brings_are_its_history(remote: Make) -> None:
    """
    Nothing else is looked for.
    """
    two = attrs.evolve(
        SEEN, images={"front": np.stack([np.full((8, 8, 3), i, np.uint8) for i in (7, 9)])}
    )
    with saying(looking_back(-1, 0)) as server:
        remote(server.url).infer(two)
        video = server.requests[-1]["data"]["observation"]["video"]["ego_view"]
    assert [7, 9] == video[0, :, 0, 0, 0].tolist()


def test_a_server_cannot_make_a_client_keep_everything(remote: Make) -> None:
    """
    Four thousand steps of frames would be its memory.
    """
    words = "looks 4000 steps back, expected at most 64"
    refused = pytest.raises(PolicyProtocolError, match=words)
    with saying(looking_back(-4000, 0)) as server, refused:
        remote(server.url).infer()
    with saying(looking_back(-65, 0)) as server:
        policy = remote(server.url, max_steps_back=65, missing_history=MissingHistory.REPEAT_OLDEST)
        assert 2 == policy.infer().horizon


def test_nothing_is_kept_for_a_policy_that_does_not_look_back() -> None:
    """
    Frames are large.
    """
    with Scripted() as server, client(server.url) as policy:
        policy.infer(SEEN)
        assert 0 == len(policy._words.history._seen)


def test_reset_forgets_what_was_seen_and_tells_the_server(remote: Make) -> None:
    """
    The chunk of the last episode was executed in the next.
    """
    with saying(looking_back(-1, 0)) as server:
        policy = remote(server.url, missing_history=MissingHistory.REPEAT_OLDEST)
        policy.infer(painted(0))
        policy.reset()
        policy.infer(painted(1))
        video = server.requests[-1]["data"]["observation"]["video"]["ego_view"]
        assert 1 == server.asked.count("reset")
    assert [1, 1] == video[0, :, 0, 0, 0].tolist()


def test_a_server_of_n1_5_is_not_told_of_resets(remote: Make) -> None:
    """
    It knows no such endpoint, and keeps nothing.
    """
    with Scripted(dialect=GrootDialect.N1_5) as server:
        policy = remote(server.url)
        policy.reset()
        policy.infer()
        assert "reset" not in server.asked


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (encode_frame({"error": "no episode"}, kind=RESPONSE), PolicyRefusedError),
        (encode_frame([1], kind=RESPONSE), PolicyProtocolError),
        (None, PolicyTimeoutError),
    ],
)
def test_a_reset_that_fails_is_told(
    remote: Make, answer: bytes | None, error: type[PolicyError]
) -> None:
    """
    An episode must not begin in the state of the one before.
    """
    with Scripted({"reset": [answer]}) as server:
        policy = remote(server.url, timeout_s=0.5)
        policy.connect()
        with pytest.raises(error):
            policy.reset()


def test_the_token_opens_a_server_and_its_absence_is_told(remote: Make) -> None:
    """
    In the words of the server.
    """
    with serving(api_token=TOKEN) as url:
        assert 2 == remote(url, api_token=TOKEN).infer().horizon
        for wrong in (None, Secret("tok-654321")):
            with pytest.raises(PolicyRefusedError, match="Unauthorized: Invalid API token"):
                remote(url, api_token=wrong).infer()


@settings(max_examples=20)
@given(st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=6, max_size=40))
def test_the_token_is_in_no_text(text: str) -> None:
    """
    Also of a server that repeats it wherever it can.
    """
    token = f"t0k{text}"
    said, pong = CODEC.encode_modalities(), CODEC.encode_pong()
    names = {"policy_info": {"state_names": [token, "b", "c"]}}
    answers = {
        "get_modality_config": [encode_frame({token: token}, kind=RESPONSE), said],
        "ping": [pong, CODEC.encode_pong(names), CODEC.encode_pong({"policy_info": token}), pong],
        "get_action": [
            encode_frame({"error": f"bad {token}"}, kind=RESPONSE),
            encode_frame([{token: [[1.0]]}, {}], kind=RESPONSE),
            encode_frame([1, token], kind=RESPONSE),
        ],
    }
    with Scripted(answers) as server:
        policy = client(server.url, api_token=Secret(token))
        for _ in range(6):
            with pytest.raises(PolicyError) as caught:
                policy.infer(SEEN)
            chain: BaseException | None = caught.value
            while chain is not None:
                assert token not in f"{chain} {chain!r} {vars(chain)}"
                chain = chain.__cause__ or chain.__context__
        assert token not in repr(policy)
        assert 3 == server.asked.count("get_action")
        policy.close()


def test_a_token_goes_to_another_host_only_if_the_caller_says_so() -> None:
    """
    It is in clear text, in every request.
    """
    for kind in (client, async_client):
        with pytest.raises(ContractError, match=r"^api_token: got one, expected none"):
            kind("192.0.2.1:5555", api_token=TOKEN, allow_remote=True)
        kind("192.0.2.1:5555", api_token=TOKEN, allow_remote=True, allow_readable_token=True)
        kind("192.0.2.1:5555", allow_remote=True)


@pytest.mark.parametrize(
    "endpoint",
    [
        "192.0.2.1:5555",
        "policies.example.org",
        "http://127.0.0.1:5555",
        "ipc:///tmp/groot",
        "tcp://127.0.0.1:5555/path",
        "127.0.0.1:0",
        "127.0.0.1:99999",
        "tcp://u:p@127.0.0.1:5555",
        "127.0.0.1;srcip:5555",
        "::1",
        "",
    ],
)
def test_what_may_not_be_dialled_is_refused(endpoint: str) -> None:
    """
    Before there is a socket.
    """
    with pytest.raises(EndpointError):
        client(endpoint)


def test_the_port_is_that_of_groot_where_none_is_written() -> None:
    """
    And the scheme is the only one there is.
    """
    assert "ZmqPolicy('tcp://localhost:5555')" == repr(client("localhost"))
    assert "tcp://[::1]:5555" == str(async_client("[::1]").endpoint)


def test_a_server_at_an_address_of_ipv6_is_reached(remote: Make) -> None:
    """
    It was built as tcp://::1:5555, without ZMQ_IPV6: a healthy server timed out.
    """
    with serving(host="::1") as url:
        assert 2 == remote(url).infer().horizon


@pytest.mark.parametrize("timeout_s", [np.nan, -1, 0, 0.05, np.inf, 601, "1", None, True])
def test_a_time_that_is_none_is_refused_when_a_client_is_made(timeout_s: Any) -> None:
    """
    It reached the socket: a healthy server was unreachable.
    """
    for kind in (client, async_client):
        with pytest.raises(ContractError, match="timeout_s"):
            kind("localhost", timeout_s=timeout_s)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"embodiment": 1}, "embodiment"),
        ({"layout": 1}, "layout"),
        ({"layout": attrs.evolve(LAYOUT, state=LAYOUT.state[:1])}, "layout"),
        ({"layout": attrs.evolve(LAYOUT, action=LAYOUT.action[::-1])}, "layout"),
        (
            {"layout": attrs.evolve(LAYOUT, video=[attrs.evolve(LAYOUT.video[0], camera="up")])},
            "layout",
        ),
        ({"api_token": "tok-123456"}, "api_token"),
        ({"name": ""}, "name"),
        ({"flat": "yes"}, "flat"),
        ({"missing_history": "refuse"}, "missing_history"),
        ({"max_steps_back": -1}, "max_steps_back"),
        ({"limits": 5}, "limits"),
    ],
)
def test_what_a_client_is_made_with_is_checked(options: dict[str, Any], field: str) -> None:
    """
    Before there is a socket; a token is not shown.
    """
    for kind in (client, async_client):
        with pytest.raises(ContractError, match=f"^{field}: ") as caught:
            kind("localhost", **options)
        assert "tok-123456" not in str(caught.value)


def test_an_observation_of_another_robot_is_refused_before_anything_is_sent(remote: Make) -> None:
    """
    A short state was padded, and sent.
    """
    with Scripted() as server:
        policy = remote(server.url)
        for wrong in (attrs.evolve(SEEN, state=[1.0, 2.0]), 5):
            with pytest.raises(ContractError):
                policy.infer(wrong)
        assert [] == server.asked


def test_closing_from_another_thread_ends_a_call() -> None:
    """
    Sockets of ZeroMQ belong to one thread; nothing is called on them from another.
    """
    is_asked = threading.Event()

    def silent() -> None:
        is_asked.set()

    with Scripted({"get_action": [silent]}) as server, ThreadPoolExecutor(1) as thread:
        policy = client(server.url, timeout_s=60)
        asking = thread.submit(policy.infer, SEEN)
        assert is_asked.wait(10)
        began_at_s = time.monotonic()
        policy.close()
        with pytest.raises(PolicyError, match="it was closed during the call"):
            asking.result(10)
        assert time.monotonic() - began_at_s < 10
        with pytest.raises(PolicyError, match="this policy is closed"):
            policy.infer(SEEN)
        policy.close()


def test_closing_from_another_task_ends_a_call() -> None:
    """
    And it is over when closing is.
    """

    async def close() -> None:
        is_asked = asyncio.Event()
        loop = asyncio.get_running_loop()

        def silent() -> None:
            loop.call_soon_threadsafe(is_asked.set)

        with Scripted({"get_action": [silent]}) as server:
            policy = async_client(server.url, timeout_s=60)
            asking = asyncio.ensure_future(policy.infer(SEEN))
            await asyncio.wait_for(is_asked.wait(), 10)
            await policy.aclose()
            with pytest.raises(PolicyError, match="it was closed during the call"):
                await asyncio.wait_for(asking, 10)
            with pytest.raises(PolicyError, match="this policy is closed"):
                await policy.infer(SEEN)
            await policy.aclose()

    asyncio.run(close())


def test_a_call_that_is_cancelled_gives_up_the_connection() -> None:
    """
    Its answer, should it come, is nobody's.
    """

    async def cancel() -> Any:
        is_asked = asyncio.Event()
        loop = asyncio.get_running_loop()
        is_cancelled = threading.Event()

        def late() -> bytes:
            loop.call_soon_threadsafe(is_asked.set)
            assert is_cancelled.wait(10)
            return action([[1.0] * 3] * 2)

        with Scripted({"get_action": [late, action()]}) as server:
            async with async_client(server.url, timeout_s=30) as policy:
                asking = asyncio.ensure_future(policy.infer(SEEN))
                await asyncio.wait_for(is_asked.wait(), 10)
                asking.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await asking
                is_cancelled.set()
                return (await policy.infer(SEEN)).values.tolist()

    assert PLAN == asyncio.run(cancel())


def test_threads_take_turns_and_get_their_own_answers() -> None:
    """
    The stock client is not safe for threads.
    """
    with serving() as url, client(url, timeout_s=30) as policy, ThreadPoolExecutor(8) as threads:
        answers = threads.map(lambda i: policy.infer(seen_at(float(i))).values[0, 0], range(40))
        assert list(map(float, range(40))) == list(answers)


def test_tasks_take_turns_and_get_their_own_answers() -> None:
    """
    Of one event loop.
    """

    async def ask() -> list[float]:
        async with async_client(url, timeout_s=30) as policy:
            chunks = await asyncio.gather(*(policy.infer(seen_at(float(i))) for i in range(40)))
            return [float(each.values[0, 0]) for each in chunks]

    with serving() as url:
        assert list(map(float, range(40))) == asyncio.run(ask())


def test_64_clients_at_once_get_their_own_answers() -> None:
    """
    Each with a connection of its own.
    """

    def ask(number: int) -> float:
        with client(url, timeout_s=60) as policy:
            return float(policy.infer(seen_at(float(number))).values[0, 0])

    with serving(max_waiting=64) as url, ThreadPoolExecutor(64) as threads:
        assert list(map(float, range(64))) == list(threads.map(ask, range(64)))


@pytest.mark.skipif(sys.platform != "linux", reason="counts files as Linux does")
def test_no_socket_and_no_thread_is_left_after_an_error(remote: Make) -> None:
    """
    The stock client makes a new socket after a time-out, and leaves the old one open.
    """

    def fail(times: int) -> tuple[int, int]:
        for _ in range(times):
            with pytest.raises(PolicyRefusedError):
                policy.infer()
        gc.collect()
        process = Path("/proc/self")
        return len([*(process / "fd").iterdir()]), len([*(process / "task").iterdir()])

    with Scripted({"get_action": [b"ERROR"]}) as server:
        policy = remote(server.url)
        before, after = fail(2), fail(10)
    # A thread of the test before this one may just end, or one of this one's servers just begin.
    assert [0, 0] == [max(0, there - was) // 5 for was, there in zip(before, after, strict=True)]


def test_frames_are_sent_without_a_copy() -> None:
    """
    From where the camera put them: a request was held in memory as large as they are.
    """
    frames = {"front": np.zeros((3, 480, 640, 3), np.uint8)}
    camera = attrs.evolve(ROBOT.cameras[0], height_px=480, width_px=640)
    robot = attrs.evolve(ROBOT, cameras=[camera])
    seen = Observation(
        instruction="pick up the cup",
        state=[0.0] * 3,
        images=frames,
        frame_rate_hz=20,
        captured_at_s=0.0,
    )
    said = modalities_to_answer(looking_back(-2, -1, 0), GrootDialect.N1_7)
    answers = [encode_frame(said, kind=RESPONSE), CODEC.encode_pong(), action(), action()]
    script = (
        "import sys, zmq; rep = zmq.Context().socket(zmq.REP); "
        "print(rep.bind_to_random_port('tcp://127.0.0.1'), flush=True)\n"
        "for said in sys.argv[1:]: rep.recv(); rep.send(bytes.fromhex(said))\n"
        "sys.stdin.read()"
    )
    command = [sys.executable, "-c", script, *(answer.hex() for answer in answers)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        with client(f"127.0.0.1:{port}", embodiment=robot, timeout_s=30) as policy:
            policy.infer(seen)
            tracemalloc.start()
            try:
                policy.infer(seen)
                peak = tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()
        server.communicate()
    assert peak < 0.1 * frames["front"].nbytes


def painted(number: float) -> Observation:
    """Make the observation of a step, which its state, its pixels and its time tell."""
    return attrs.evolve(
        SEEN,
        state=[number, 0.0, 0.0],
        images={"front": np.full((8, 8, 3), int(abs(number)), np.uint8)},
        captured_at_s=number * STEP_S,
    )
