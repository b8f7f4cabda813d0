"""Tests of `vlmcore_robotics.wire.openpi`: both ends, by the real bytes."""

from __future__ import annotations

import math
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden.wire.messages import ANSWER, LIBERO, METADATA, golden
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.observation import Observation
from vlmcore.errors import (
    ContractError,
    LimitExceededError,
    PolicyError,
    PolicyProtocolError,
    PolicyRefusedError,
)
from vlmcore.limits import WireLimits
from vlmcore_robotics.wire.frames import FrameKind, encode_frame
from vlmcore_robotics.wire.layouts import aloha_layout, droid_layout, libero_layout
from vlmcore_robotics.wire.ndarrays import ArraySpelling
from vlmcore_robotics.wire.openpi import OpenPICodec

NAMES = ("dx", "dy", "dz", "dax", "day", "daz", "gripper")
CODEC = OpenPICodec(policy="pi05", layout=libero_layout(), action_names=NAMES)
LAYOUTS = {"libero": libero_layout(), "droid": droid_layout(), "aloha": aloha_layout()}
TRACEBACK = """Traceback (most recent call last):
  File "/home/somebody/openpi/serving/websocket_policy_server.py", line 62, in _handler
    action = self._policy.infer(obs)
             ^^^^^^^^^^^^^^^^^^^^^^^
  File "/home/somebody/openpi/policies/libero_policy.py", line 51, in __call__
    base_image = _parse_image(data["observation/image"])
                              ~~~~^^^^^^^^^^^^^^^^^^^^^
KeyError: 'observation/image'
"""


def answer(**parts: Any) -> bytes:
    return encode_frame(parts, kind=FrameKind.RESPONSE)


def read(frame: Any, codec: OpenPICodec = CODEC) -> ActionChunk:
    return codec.decode_answer(frame, observed_at_s=7.5)


def protocol_error(frame: Any) -> PolicyProtocolError:
    with pytest.raises(PolicyProtocolError) as caught:
        read(frame)
    assert ("pi05", "theirs") == (caught.value.policy, caught.value.side)
    return caught.value


def observed() -> Observation:
    return CODEC.decode_request(golden("openpi-libero"), captured_at_s=7.5)


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_request_is_to_the_byte_what_the_real_client_sends(name: str) -> None:
    """
    Read at our server's end, and written at our client's.
    """
    codec = attrs.evolve(CODEC, layout=LAYOUTS[name])
    frame = golden(f"openpi-{name}")
    observation = codec.decode_request(frame, captured_at_s=7.5)

    assert ("pick up the cup", 7.5) == (observation.instruction, observation.captured_at_s)
    assert frame == codec.encode_request(observation)


def test_pixels_are_views_of_the_frame_that_came() -> None:
    """
    They are not copied at the server's end.
    """
    frame = golden("openpi-libero")
    image = CODEC.decode_request(frame, captured_at_s=0.0).images["observation.image"]

    assert np.array_equal(LIBERO["observation/image"][np.newaxis], image)
    assert np.shares_memory(image, np.frombuffer(frame, np.uint8))


def test_an_answer_is_to_the_byte_what_the_real_server_sends() -> None:
    """
    With the timings of the policy and of the server.
    """
    chunk = read(golden("openpi-answer"))

    assert ANSWER["actions"].tolist() == chunk.values.tolist()
    assert (NAMES, "pi05", 7.5) == (chunk.names, chunk.source, chunk.observed_at_s)
    timings = {name: dict(chunk.metadata[name]) for name in ("policy_timing", "server_timing")}
    assert {name: ANSWER[name] for name in timings} == timings
    again = CODEC.encode_answer(chunk, policy_ms=41.5, server_ms=43.25, previous_ms=50.0)
    assert golden("openpi-answer") == again


def test_metadata_is_read_and_written_with_arrays_in_it() -> None:
    """
    As the pose to start from.
    """
    metadata = CODEC.decode_metadata(golden("openpi-metadata"))

    assert ([0.0, -1.5], 2) == (metadata["reset_pose"], metadata["action_horizon"])
    assert np.array_equal(METADATA["mean"], metadata["mean"])
    assert golden("openpi-metadata") == CODEC.encode_metadata(metadata)
    assert {} == CODEC.decode_metadata(CODEC.encode_metadata({}))


@pytest.mark.parametrize("spelling", ArraySpelling)
def test_every_dialect_that_calls_itself_openpi_is_read(spelling: ArraySpelling) -> None:
    """
    Three array dialects: decoding failed with the real client, or gave maps for arrays.
    """
    frame = encode_frame(ANSWER, kind=FrameKind.RESPONSE, spelling=spelling)
    assert ANSWER["actions"].tolist() == read(frame).values.tolist()
    request = encode_frame(LIBERO, kind=FrameKind.REQUEST, spelling=spelling)
    assert observed() == CODEC.decode_request(request, captured_at_s=7.5)


def test_an_error_frame_is_the_policys_refusal_without_the_places_in_its_files() -> None:
    """
    The traceback of the server has its paths in it.
    """
    for call in (read, CODEC.decode_metadata):
        with pytest.raises(PolicyRefusedError) as caught:
            call(TRACEBACK)
        assert "pi05: KeyError: 'observation/image'" == str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "an error without words"),
        (" \n", "an error without words"),
        ("out of memory", "out of memory"),
        ('Traceback:\n  File "a", line 1\n    x\n', "an error without words"),
        ('  File "a"\nValueError: two\n  lines', "ValueError: two   lines"),
        ('  File "a"\nKeyError: 1\n\n  File "b"\nValueError: 2', "ValueError: 2"),
        ("a\x1b[31mred\u202e", "a [31mred"),
        ("x" * 5000, "x" * 997 + "..."),
    ],
)
def test_the_words_of_an_error_are_what_a_person_can_read(text: str, words: str) -> None:
    """
    Cut, and without characters that control a terminal; the same words go out of our server.
    """
    with pytest.raises(PolicyRefusedError) as caught:
        read(text)
    assert words == caught.value.problem
    assert words == CODEC.encode_failure(text)


def test_an_endless_error_is_not_read() -> None:
    """
    It is bounded as everything is.
    """
    assert "max_text_bytes" in protocol_error("x" * (1 << 20) + "x").problem


def test_an_error_beside_actions_wins() -> None:
    """
    {"error": ..., "actions": ...} executed the actions.
    """
    with pytest.raises(PolicyRefusedError, match=r"^pi05: no camera$"):
        read(answer(error="no camera", actions=ANSWER["actions"]))


def test_actions_and_action_together_are_ambiguous() -> None:
    """
    The first one won.
    """
    error = protocol_error(answer(actions=ANSWER["actions"], action=ANSWER["actions"]))
    assert "got what may be 'actions' or 'action', expected one" in error.problem


def test_arrays_beside_the_actions_are_no_actions() -> None:
    """
    State and custom arrays survive the output transforms of some policies.
    """
    frame = answer(actions=ANSWER["actions"], state=np.zeros(8), tokens=np.zeros((2, 9)))
    assert (2, 7) == read(frame).values.shape


@pytest.mark.parametrize("shape", [(7,), (1, 2, 7), (2, 6), (2, 8), (0, 7), (7, 2), ()])
def test_actions_have_two_axes_and_as_many_dimensions_as_there_are_names(
    shape: tuple[int, ...],
) -> None:
    """
    A short vector was padded with 0.0 and sent as absolute goals: the arm drove to zero.
    """
    assert protocol_error(answer(actions=np.zeros(shape))).problem


@pytest.mark.parametrize(
    "actions",
    [
        [[1.0] * 6 + ["1.5"]],
        [[1.0] * 6 + [True]],
        [[1.0] * 6 + [None]],
        np.zeros((2, 7), np.uint8),
        np.zeros((2, 7), bool),
        {"arm": np.zeros((2, 7))},
        None,
        "zeros",
    ],
)
def test_actions_are_numbers(actions: Any) -> None:
    """
    Text and truth values passed as numbers, pixels could.
    """
    protocol_error(answer(actions=actions))


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"HTTP/1.1 502 Bad Gateway\r\n",
        encode_frame([1], kind=FrameKind.RESPONSE),
        encode_frame(None, kind=FrameKind.RESPONSE),
        answer(),
        answer(action_horizon=10),
        golden("openpi-answer")[:-1],
        golden("openpi-answer") + b"\x00",
    ],
)
def test_what_is_no_answer_is_the_peers_fault(frame: bytes) -> None:
    """
    One class says so, whatever is wrong.
    """
    protocol_error(frame)


def test_the_cause_of_a_protocol_error_is_kept() -> None:
    """
    It has the data: which limit, which size.
    """
    codec = attrs.evolve(CODEC, limits=WireLimits(max_response_bytes=10))
    with pytest.raises(PolicyProtocolError) as caught:
        read(golden("openpi-answer"), codec)
    cause = caught.value.__cause__
    assert isinstance(cause, LimitExceededError)
    assert ("max_response_bytes", 254, 10) == (cause.limit, cause.actual, cause.allowed)


def test_nan_is_handed_on_to_the_gate() -> None:
    """
    It is the gate that finds it; here it would only be an error without a report.
    """
    values = np.array(ANSWER["actions"])
    values[1, 2] = math.nan
    assert not read(answer(actions=values)).is_finite


def test_metadata_is_small() -> None:
    """
    One MiB, and not what an answer may have.
    """
    frame = encode_frame({"a": b"x" * (1 << 20)}, kind=FrameKind.RESPONSE)
    with pytest.raises(PolicyProtocolError, match="max_metadata_bytes"):
        CODEC.decode_metadata(frame)
    with pytest.raises(LimitExceededError, match="max_metadata_bytes"):
        CODEC.encode_metadata({"a": b"x" * (1 << 20)})


@pytest.mark.parametrize("metadata", [None, [], {"a": object()}, {1: 2}])
def test_metadata_is_a_map_of_what_can_be_sent(metadata: Any) -> None:
    """
    One clear error.
    """
    with pytest.raises(ContractError):
        CODEC.encode_metadata(metadata)


def test_a_chunk_of_other_names_is_not_sent() -> None:
    """
    The client would give the numbers to joints of its own.
    """
    chunk = attrs.evolve(read(golden("openpi-answer")), names=tuple(reversed(NAMES)))
    with pytest.raises(ContractError, match=r"^chunk: got the names"):
        CODEC.encode_answer(chunk)


@pytest.mark.parametrize("wrong", [-1.0, math.nan, math.inf, "1", True])
def test_a_timing_is_a_time(wrong: Any) -> None:
    """
    One clear error.
    """
    with pytest.raises(ContractError, match=r"^server_timing\.prev_total_ms: got"):
        CODEC.encode_answer(read(golden("openpi-answer")), previous_ms=wrong)


def test_an_answer_without_timings_has_actions_only() -> None:
    """
    Nothing is made up.
    """
    sent = CODEC.encode_answer(read(golden("openpi-answer")))
    assert {} == dict(read(sent).metadata)


@pytest.mark.parametrize("frame", [b"", b"\xc0", b"\x90", "text", golden("openpi-answer")])
def test_a_request_that_is_none_is_refused(frame: Any) -> None:
    """
    At the server's end it is the client's fault, and says where.
    """
    with pytest.raises(ContractError):
        CODEC.decode_request(frame, captured_at_s=0.0)


@pytest.mark.parametrize(
    "fields",
    [
        {"policy": ""},
        {"policy": 3},
        {"layout": None},
        {"limits": None},
        {"action_names": ()},
        {"action_names": ("x", "x")},
        {"action_names": "xyz"},
    ],
)
def test_a_codec_is_checked_when_it_is_made(fields: dict[str, Any]) -> None:
    """
    And not when the robot is already moving.
    """
    with pytest.raises(ContractError):
        attrs.evolve(CODEC, **fields)


@given(st.binary(max_size=300) | st.text(max_size=50))
def test_any_frame_is_a_chunk_or_a_policy_error(frame: bytes | str) -> None:
    """
    At the client's end there is no other outcome.
    """
    try:
        chunk = read(frame)
    except PolicyError:
        return
    assert NAMES == chunk.names


@given(st.integers(0, 253), st.integers(0, 255))
def test_an_answer_with_one_byte_changed_is_a_chunk_or_a_policy_error(at: int, byte: int) -> None:
    """
    Whatever the byte meant.
    """
    frame = bytearray(golden("openpi-answer"))
    frame[at] = byte
    try:
        chunk = read(bytes(frame))
    except PolicyError:
        return
    assert NAMES == chunk.names
