"""Tests of `vlmcore_robotics.wire.groot`: both ends, in three generations, by golden bytes."""

from __future__ import annotations

import contextlib
import io
import math
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden.wire.groot_messages import LANGUAGE, TASK, actions
from golden.wire.messages import golden
from groot_cases import (
    ARM,
    CODEC,
    CODECS,
    LAYOUT,
    MODALITIES,
    NAMES,
    seen,
    step,
    with_deltas,
)
from vlmcore.contracts.actions import ActionChunk
from vlmcore.errors import (
    ContractError,
    LimitExceededError,
    PolicyError,
    PolicyProtocolError,
    PolicyRefusedError,
    VlmcoreError,
)
from vlmcore.limits import WireLimits
from vlmcore.secrets import Secret
from vlmcore_robotics.wire.frames import FrameKind, decode_frame, encode_frame
from vlmcore_robotics.wire.groot import GrootCall, GrootCodec
from vlmcore_robotics.wire.groot_calls import GrootEndpoint, encode_call
from vlmcore_robotics.wire.groot_dialects import GrootDialect
from vlmcore_robotics.wire.histories import MissingHistory
from vlmcore_robotics.wire.ndarrays import ArraySpelling

TOKEN = Secret("sekret-token-1234", source="GROOT_API_TOKEN")
N1_5, N1_6, N1_7 = GrootDialect


def call_of(frame: bytes, codec: GrootCodec = CODEC) -> GrootCall:
    return codec.decode_call(frame, captured_at_s=7.5, frame_rate_hz=20.0)


def answer(value: Any, spelling: ArraySpelling = ArraySpelling.MSGPACK_NUMPY) -> bytes:
    return encode_frame(value, kind=FrameKind.RESPONSE, spelling=spelling)


def read(frame: Any, codec: GrootCodec = CODEC) -> ActionChunk:
    return codec.decode_answer(frame, observed_at_s=7.5)


def chunk(values: Any, names: tuple[str, ...] = NAMES) -> ActionChunk:
    return ActionChunk(values=values, names=names, source="groot", observed_at_s=7.5)


def protocol_error(frame: Any, codec: GrootCodec = CODEC) -> str:
    with pytest.raises(PolicyProtocolError) as caught:
        read(frame, codec)
    assert ("groot", "theirs") == (caught.value.policy, caught.value.side)
    return caught.value.problem


@pytest.mark.parametrize("dialect", GrootDialect)
def test_a_request_is_to_the_byte_what_the_packages_write(dialect: GrootDialect) -> None:
    """
    Flat keys and files of NumPy for N1.5, maps for N1.6, arrays of msgpack-numpy for N1.7.
    """
    expected = golden(f"groot-{dialect.value.lower()}-request")

    assert expected == CODECS[dialect].encode_request(seen())


@pytest.mark.parametrize("dialect", GrootDialect)
def test_a_request_is_read_at_the_servers_end(dialect: GrootDialect) -> None:
    """
    With the states of all steps beside the observation.
    """
    call = call_of(golden(f"groot-{dialect.value.lower()}-request"), CODECS[dialect])

    assert GrootEndpoint.GET_ACTION is call.endpoint
    assert call.observation is not None
    assert seen() == call.observation
    assert call.states is not None
    assert [seen().state.tolist()] == call.states.tolist()


@pytest.mark.parametrize("dialect", GrootDialect)
def test_an_answer_is_read_and_written_to_the_byte(dialect: GrootDialect) -> None:
    """
    Streams are joined in the declared order; ``info`` is kept as metadata.
    """
    frame, codec = golden(f"groot-{dialect.value.lower()}-answer"), CODECS[dialect]
    found = read(frame, codec)
    sent = actions()

    assert np.concatenate([sent["single_arm"], sent["gripper"]], -1)[0].tolist() == (
        found.values.tolist()
    )
    assert (NAMES, "groot", 7.5) == (found.names, found.source, found.observed_at_s)
    info = {} if dialect is N1_5 else {"current_step": 3}
    assert info == dict(found.metadata.get("info", {}))
    assert frame == codec.encode_answer(found, info=info)


def test_streams_are_joined_in_the_declared_order_whatever_order_they_come_in() -> None:
    """
    Stream order was dict order from the wire; nothing tied it to the names.
    """
    backwards = dict(reversed(actions().items()))
    assert read(answer([actions(), {}])) == read(answer([backwards, {}]))


@pytest.mark.parametrize("spelling", ArraySpelling)
def test_arrays_are_read_in_every_spelling_whatever_the_dialect(spelling: ArraySpelling) -> None:
    """
    One version of N1.7 answers in the spelling of the one before it.
    """
    assert (3, 6) == read(answer([actions(), {}], spelling)).values.shape


def test_pixels_are_views_of_the_frame_that_came() -> None:
    """
    They are not copied at the server's end.
    """
    frame = golden("groot-n1.7-request")
    observation = call_of(frame).observation

    assert observation is not None
    assert np.shares_memory(observation.images["cam_front"], np.frombuffer(frame, np.uint8))


def test_two_frames_are_taken_twenty_steps_apart_not_one_after_the_other() -> None:
    """
    The gaps of delta_indices were ignored, and the state was repeated as if nothing moved.
    """
    codec = attrs.evolve(CODEC, modalities=with_deltas("video", -20, 0))
    past = [step(number) for number in range(100, 120)]
    sent = decode_frame(codec.encode_request(step(120), past=past), kind=FrameKind.REQUEST)

    assert 20 == codec.steps_back
    video = sent["data"]["observation"]["video"]["front"]
    assert ((1, 2, 2, 3, 3), [100, 120]) == (video.shape, video[0, :, 0, 0, 0].tolist())


def test_states_of_the_past_are_sent_as_they_were() -> None:
    """
    A repeated state is a robot without velocity.
    """
    codec = attrs.evolve(CODEC, modalities=with_deltas("state", -2, -1, 0))
    frame = codec.encode_request(step(9), past=[step(7), step(8)])
    call = call_of(frame, codec)

    assert call.states is not None
    assert [7.0, 8.0, 9.0] == call.states[:, 0].tolist()
    assert call.observation is not None
    assert [9.0] * 6 == call.observation.state.tolist()


def test_a_history_that_nobody_kept_is_refused_or_repeated_if_asked() -> None:
    """
    What is missing is not invented.
    """
    codec = attrs.evolve(CODEC, modalities=with_deltas("video", -20, 0))
    with pytest.raises(ContractError, match=r"got 2 of 21 steps, expected those -20, 0 steps"):
        codec.encode_request(step(1), past=[step(0)])
    codec = attrs.evolve(codec, missing_history=MissingHistory.REPEAT_OLDEST)
    sent = decode_frame(codec.encode_request(step(1), past=[step(0)]), kind=FrameKind.REQUEST)
    assert [0, 1] == sent["data"]["observation"]["video"]["front"][0, :, 0, 0, 0].tolist()


def test_a_layout_that_does_not_fit_makes_no_codec_and_all_differences_are_listed() -> None:
    """
    Keys and order were guessed: degraded actions instead of an error.
    """
    layout = attrs.evolve(LAYOUT, video=LAYOUT.video[:1], language="task")
    with pytest.raises(ContractError) as caught:
        attrs.evolve(CODEC, layout=layout)
    assert [
        "video: the policy has wrist, the tables have not",
        f"language: ours is task, the policy's is {LANGUAGE}",
    ] == [line.strip() for line in caught.value.problem.splitlines()[1:]]


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (b"ERROR", "an error without words"),
        ({"error": "'side'"}, "'side'"),
        ({"error": "no camera", "single_arm": [[1.0]]}, "no camera"),
        ([{"error": "no camera", **actions()}, {}], "no camera"),
        ([actions(), {"error": "too late"}], "too late"),
        ({"error": "Unauthorized: Invalid API token"}, "Unauthorized: Invalid API token"),
        (
            {"error": f'Traceback:\n{9999 * " "}\n  File "/me", line 1\nKeyError: 0\n'},
            "KeyError: 0",
        ),
        ({"error": 7}, "an error that is no text: 7"),
        ({"error": ""}, "an error without words"),
        ({"error": "a\x1b[31mred\u202e" + "x" * 5000}, "a [31mred " + "x" * 987 + "..."),
    ],
)
def test_an_error_wins_over_everything_beside_it(said: Any, words: str) -> None:
    """
    {"error": ..., "actions": ...} executed the actions.
    """
    for codec in CODECS.values():
        with pytest.raises(PolicyRefusedError) as caught:
            read(said if isinstance(said, bytes) else answer(said), codec)
        assert words == caught.value.problem


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ([actions()], "expected [action, info]"),
        (actions(), "expected [action, info]"),
        ([actions(), 7], "expected maps"),
        ([[1.0], {}], "expected maps"),
        ([{**actions(), "head": np.zeros((1, 3, 2))}, {}], "numbers under 'head'"),
        ([{"single_arm": actions()["single_arm"]}, {}], "without ['gripper']"),
        ([{**actions(), "gripper": np.zeros((1, 2, 1))}, {}], "the same of each"),
        ([{**actions(), "gripper": np.zeros((2, 3, 1))}, {}], "got a batch of 2"),
        ([{**actions(), "gripper": np.zeros((3, 1))}, {}], "got a batch of 3"),
        ([{**actions(), "single_arm": np.zeros((1, 3, 4))}, {}], "with 5 dimensions"),
        ([{**actions(), "single_arm": np.zeros((1, 0, 5))}, {}], "response"),
        ([{**actions(), "single_arm": "1.5"}, {}], "single_arm"),
        ([{**actions(), "single_arm": np.zeros((1, 3, 5), np.uint8)}, {}], "got uint8"),
        (None, "expected [action, info]"),
    ],
)
def test_what_is_no_answer_of_the_declared_streams_is_the_peers_fault(
    said: Any, problem: str
) -> None:
    """
    Nothing is padded, cut or guessed.
    """
    assert problem in protocol_error(answer(said))


def test_a_gripper_may_come_without_its_axis_where_one_dimension_is_declared() -> None:
    """
    ``(B, T)`` for a stream of width 1, and for no other.
    """
    squeezed = {**actions(), "gripper": actions()["gripper"][..., 0]}
    assert [0.0, 0.5, 1.0] == read(answer([squeezed, {}])).values[:, 5].tolist()
    squeezed = {**actions(), "single_arm": np.zeros((1, 3))}
    assert "expected axes [1, H, D]" in protocol_error(answer([squeezed, {}]))


def test_flat_keys_of_a_policy_that_is_wrapped_for_a_simulator_are_spoken() -> None:
    """
    ``video.k``, ``state.k``, ``action.k``, within the maps of N1.6 and N1.7.
    """
    codec = attrs.evolve(CODEC, flat=True)
    frame = codec.encode_request(seen())
    sent = decode_frame(frame, kind=FrameKind.REQUEST)["data"]["observation"]

    assert {"video.front", "video.wrist", "state.single_arm", "state.gripper", LANGUAGE} == (
        sent.keys()
    )
    assert [TASK] == sent[LANGUAGE]
    observation = call_of(frame, codec).observation
    assert observation is not None
    assert seen() == observation
    flat = {f"action.{key}": value for key, value in actions().items()}
    assert (3, 6) == read(answer([flat, {}]), codec).values.shape
    both = {**flat, "gripper": actions()["gripper"]}
    assert "before them and without" in protocol_error(answer([both, {}]), codec)


def test_numbers_under_unknown_keys_of_n1_5_are_refused_too() -> None:
    """
    Any unknown array became an action.
    """
    flat = {f"action.{key}": value for key, value in actions().items()}
    extra = {**flat, "state.head": np.zeros((1, 3, 2))}
    assert "numbers under 'state.head'" in protocol_error(answer(extra), CODECS[N1_5])


def test_nan_is_handed_on_for_the_gate_to_find() -> None:
    """
    A policy that says NaN is not hidden behind an error of the wire.
    """
    found = read(CODEC.encode_answer(chunk([[math.nan] * 6])))
    assert not found.is_finite


@pytest.mark.parametrize("dialect", GrootDialect)
def test_ping_reset_and_modalities_go_both_ways(dialect: GrootDialect) -> None:
    """
    Those of N1.5 know no reset.
    """
    codec = CODECS[dialect]
    assert {"status": "ok", "message": "Server is running"} == decode_frame(
        codec.encode_pong(), kind=FrameKind.RESPONSE
    )
    assert golden(f"groot-{dialect.value.lower()}-modalities") == codec.encode_modalities()
    for endpoint in (GrootEndpoint.PING, GrootEndpoint.GET_MODALITY_CONFIG):
        assert endpoint is call_of(encode_call(endpoint), codec).endpoint
    if dialect is N1_5:
        with pytest.raises(ContractError, match=r"servers of N1\.5 know none"):
            codec.encode_reset()
        return
    call = call_of(codec.encode_reset({"episode_index": 2}), codec)
    assert (GrootEndpoint.RESET, {"episode_index": 2}) == (call.endpoint, dict(call.options))
    assert {} == dict(call_of(codec.encode_reset(), codec).options)
    assert {"episode": 2} == codec.decode_reset(codec.encode_reset_done({"episode": 2}))
    with pytest.raises(PolicyProtocolError, match="expected a map"):
        codec.decode_reset(answer([1]))


def test_options_are_sent_and_read_but_not_to_n1_5() -> None:
    """
    Its one argument is the observation.
    """
    options = {"rtc_overlap_steps": 4}
    assert options == dict(call_of(CODEC.encode_request(seen(), options=options)).options)
    with pytest.raises(ContractError, match=r"servers of N1\.5 take none"):
        CODECS[N1_5].encode_request(seen(), options=options)


def test_kill_is_neither_written_nor_read() -> None:
    """
    Anybody could end a server with it, without a token.
    """
    assert "kill" not in {endpoint.value for endpoint in GrootEndpoint}
    frame = encode_frame({"endpoint": "kill"}, kind=FrameKind.REQUEST)
    with pytest.raises(ContractError, match="got 'kill', expected one of ping, get_action"):
        call_of(frame)


def test_a_server_with_a_token_lets_in_who_knows_it_and_nobody_else() -> None:
    """
    It says what GR00T's own server says.
    """
    guarded = attrs.evolve(CODEC, token=TOKEN)
    assert call_of(guarded.encode_request(seen()), guarded).observation is not None
    for wrong in (
        {},
        {"api_token": ""},
        {"api_token": "sekret"},
        {"api_token": 7},
        {"api_token": ["sekret-token-1234"]},
        {"api_token": "\xfcber"},
    ):
        frame = encode_frame({"endpoint": "ping", **wrong}, kind=FrameKind.REQUEST)
        with pytest.raises(PolicyRefusedError) as caught:
            call_of(frame, guarded)
        assert "Unauthorized: Invalid API token" == caught.value.problem
        reply = guarded.encode_failure(caught.value.problem)
        with pytest.raises(PolicyRefusedError, match="Unauthorized: Invalid API token"):
            read(reply)
    assert call_of(guarded.encode_request(seen())).observation is not None  # a server without


@pytest.mark.parametrize(
    "echo",
    [
        lambda token: {"error": f"wrong token {token!r}"},
        lambda token: {"error": {"api_token": token}},
        lambda token: {token: [1.0]},
        lambda token: [{token: np.zeros((1, 3, 2)), **actions()}, {}],
        lambda token: [{"actions": {"error": token}}, {}],
        lambda token: [actions(), {"you": {"said": [token]}, token: 1}],
        lambda token: [actions(), {"text": f"api_token={token}"}],
        lambda token: token,
    ],
)
def test_the_token_is_in_no_text_even_if_the_server_repeats_it(echo: Any) -> None:
    """
    It travels in the message: whoever prints messages prints it.
    """
    codec = attrs.evolve(CODEC, token=TOKEN)
    secret = TOKEN.reveal()
    assert secret not in repr(codec)
    try:
        found = read(answer(echo(secret)), codec)
    except PolicyError as error:
        texts = [error, error.__cause__, error.__context__, error.args]
    else:
        texts = [found, dict(found.metadata)]
    assert secret not in " ".join(f"{each} {each!r}" for each in texts)


def test_a_token_that_is_no_secret_is_refused_without_being_shown() -> None:
    """
    The error of a wrong type would show it.
    """
    with pytest.raises(ContractError) as caught:
        attrs.evolve(CODEC, token="sekret-token-1234")
    assert "sekret" not in str(caught.value)
    assert "token" == caught.value.field


@pytest.mark.parametrize(
    ("part", "value", "problem"),
    [
        (
            "video",
            np.zeros((1, 1, 4, 5, 3), np.uint8),
            r"expected uint8 of shape \[1, 2, H, W, 3\]",
        ),
        (
            "video",
            np.zeros((2, 2, 4, 5, 3), np.uint8),
            r"expected uint8 of shape \[1, 2, H, W, 3\]",
        ),
        (
            "video",
            np.zeros((1, 2, 4, 5, 4), np.uint8),
            r"expected uint8 of shape \[1, 2, H, W, 3\]",
        ),
        ("video", np.zeros((1, 2, 4, 5, 3), np.float32), r"got float32"),
        ("video", [[1]], r"got list"),
        ("state", np.zeros((1, 1, 5)), r"got float64 of shape \[1, 1, 5\], expected float32"),
        ("state", np.zeros((1, 1, 6), np.float32), r"of shape \[1, 1, 5\]"),
        ("state", np.full((1, 1, 5), np.nan, np.float32), r"state\[0\].* got nan"),
        ("state", None, r"got NoneType"),
        ("language", TASK, r"expected one text"),
        ("language", [TASK], r"expected one text"),
        ("language", [[TASK], [TASK]], r"expected one text"),
        ("language", [["  "]], r"got blank text"),
    ],
)
def test_a_request_that_the_policy_would_stumble_over_is_refused(
    part: str, value: Any, problem: str
) -> None:
    """
    The server's answer was as short as ``'side'``, or NaN went into the model.
    """
    request = LAYOUT.request_from([seen()], MODALITIES)
    key = next(iter(request[part]))
    request[part][key] = value
    frame = encode_call(GrootEndpoint.GET_ACTION, {"observation": request, "options": None})
    with pytest.raises(ContractError, match=problem):
        call_of(frame)
    del request[part][key]
    frame = encode_call(GrootEndpoint.GET_ACTION, {"observation": request})
    with pytest.raises(ContractError, match="got nothing"):
        call_of(frame)


@pytest.mark.parametrize(
    "request_",
    [
        None,
        7,
        [],
        {"endpoint": 7},
        {"endpoint": "get_action"},
        {"data": 1},
        {"data": {"observation": 1}},
        {"data": {"observation": {}, "strict": False}},
        {"data": {"observation": {"video": 1}}},
        {"endpoint": "reset", "data": {"options": 1}},
        {"endpoint": "reset", "data": []},
    ],
)
def test_what_is_no_request_is_refused(request_: Any) -> None:
    """
    With one clear error each.
    """
    frame = encode_frame(request_, kind=FrameKind.REQUEST)
    for codec in CODECS.values():
        with pytest.raises(ContractError):
            call_of(frame, codec)


@pytest.mark.parametrize(
    ("values", "names", "problem"),
    [
        ([[0.0] * 6], (*ARM, "hand"), "got the names"),
        ([[1e39] + [0.0] * 5], NAMES, "float32 cannot hold"),
    ],
)
def test_a_chunk_that_the_wire_cannot_say_is_not_sent(
    values: Any, names: tuple[str, ...], problem: str
) -> None:
    """
    1e39 became infinite.
    """
    with pytest.raises(ContractError, match=problem):
        CODEC.encode_answer(chunk(values, names))


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"state": [0.0] * 5}, "state: got 5 numbers, expected 6: 5 for single_arm, 1 for gripper"),
        ({"state": [1e39] + [0.0] * 5}, "float32 cannot hold"),
        ({"images": {"cam_front": np.zeros((2, 2, 2, 3), np.uint8)}}, "expected 'cam_wrist' among"),
        (
            {"images": {**seen().images, "side": np.zeros((2, 2, 2, 3), np.uint8)}},
            "others are not looked at",
        ),
    ],
)
def test_an_observation_that_is_not_the_layouts_is_not_sent(
    changes: dict[str, Any], problem: str
) -> None:
    """
    Extra cameras were ignored, missing ones ended in a text of the server's.
    """
    with pytest.raises(ContractError, match=problem):
        CODEC.encode_request(seen(**changes))


def test_what_is_no_observation_and_no_chunk_is_refused() -> None:
    """
    Among those of the past too.
    """
    wrong: Any = {"task": "wait"}
    for steps in ((wrong, ()), (seen(), [wrong])):
        with pytest.raises(ContractError, match=r"got dict, expected Observation"):
            CODEC.encode_request(steps[0], past=steps[1])
    with pytest.raises(ContractError, match="expected the observation of now"):
        LAYOUT.request_from([], MODALITIES)
    with pytest.raises(ContractError, match="chunk: got dict"):
        CODEC.encode_answer(wrong)


def test_messages_are_bounded_both_ways() -> None:
    """
    GR00T's own ends have no limit of size.
    """
    codec = attrs.evolve(CODEC, limits=WireLimits(max_request_bytes=100, max_response_bytes=100))
    with pytest.raises(LimitExceededError, match="max_request_bytes"):
        codec.encode_request(seen())
    with pytest.raises(LimitExceededError, match="max_request_bytes"):
        call_of(golden("groot-n1.7-request"), codec)
    assert "max_response_bytes" in protocol_error(golden("groot-n1.7-answer"), codec)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("policy", ""),
        ("policy", 7),
        ("layout", None),
        ("modalities", {}),
        ("dialect", "N1.7"),
        ("flat", 1),
        ("missing_history", "refuse"),
        ("limits", None),
    ],
)
def test_a_codec_of_other_things_is_refused(field: str, value: Any) -> None:
    """
    With the name of the field.
    """
    with pytest.raises(ContractError) as caught:
        attrs.evolve(CODEC, **{field: value})
    assert field == caught.value.field


@given(frame=st.binary(max_size=200), dialect=st.sampled_from(GrootDialect))
def test_any_bytes_are_an_answer_a_request_or_our_error(
    frame: bytes, dialect: GrootDialect
) -> None:
    """
    Nothing else comes out of either end.
    """
    for decode in (read, call_of):
        with contextlib.suppress(VlmcoreError):
            decode(frame, CODECS[dialect])


@given(data=st.data(), dialect=st.sampled_from(GrootDialect))
def test_any_change_of_one_byte_is_an_answer_a_request_or_our_error(
    data: st.DataObject, dialect: GrootDialect
) -> None:
    """
    Bytes that are nearly right go furthest.
    """
    for part, decode in (("request", call_of), ("answer", read)):
        frame = bytearray(golden(f"groot-{dialect.value.lower()}-{part}"))
        at = data.draw(st.integers(0, len(frame) - 1))
        frame[at] = data.draw(st.integers(0, 255))
        with contextlib.suppress(VlmcoreError):
            decode(bytes(frame), CODECS[dialect])


@given(
    values=st.lists(st.lists(st.floats(width=32), min_size=6, max_size=6), min_size=1, max_size=5),
    dialect=st.sampled_from(GrootDialect),
)
def test_actions_go_there_and_back_unchanged(
    values: list[list[float]], dialect: GrootDialect
) -> None:
    """
    NaN and infinity too, in every dialect.
    """
    sent = chunk(values)
    found = read(CODECS[dialect].encode_answer(sent), CODECS[dialect])
    assert np.array_equal(sent.values, found.values, equal_nan=True)


def test_golden_files_of_numpy_can_be_read_by_numpy() -> None:
    """
    What is in our frames is what ``numpy.load`` takes.
    """
    frame = CODECS[N1_6].encode_request(seen())
    start = frame.index(b"\x93NUMPY")
    assert (1, 2, 4, 5, 3) == np.load(io.BytesIO(frame[start:]), allow_pickle=False).shape
