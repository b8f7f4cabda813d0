"""Tests of `vlmcore_robotics.wire._groot_forms`: what is kept of messages, and what never is."""

from __future__ import annotations

import math
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden.wire.groot_messages import LANGUAGE
from groot_cases import CODEC, CODECS, KEYS, NAMES, seen
from vlmcore.contracts.actions import ActionChunk
from vlmcore.errors import LimitExceededError, PolicyProtocolError, PolicyRefusedError
from vlmcore.limits import WireLimits
from vlmcore.secrets import Secret
from vlmcore_robotics.wire._frame_forms import SOME_TEXT
from vlmcore_robotics.wire.frames import FrameKind, encode_frame
from vlmcore_robotics.wire.groot import GrootCodec
from vlmcore_robotics.wire.groot_dialects import GrootDialect
from vlmcore_robotics.wire.ndarrays import ArraySpelling

TOKEN = Secret("sekret-token-1234", source="GROOT_API_TOKEN")


def fresh(codec: GrootCodec = CODEC, **changes: Any) -> GrootCodec:
    """Make a codec that has neither written nor read anything."""
    return attrs.evolve(codec, **changes)


def numbers(*shape: int, seed: int = 0, dtype: str = "<f4") -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def answered(
    actions: Any, info: Any = None, spelling: ArraySpelling = ArraySpelling.MSGPACK_NUMPY
) -> bytes:
    return encode_frame([actions, info or {}], kind=FrameKind.RESPONSE, spelling=spelling)


def plain(seed: int = 0, **changes: Any) -> dict[str, Any]:
    """Make actions as a server of GR00T sends them."""
    arm, jaw = numbers(1, 3, 5, seed=seed), numbers(1, 3, 1, seed=seed + 1)
    return {**dict(zip(KEYS, (arm, jaw), strict=True)), **changes}


def read(codec: GrootCodec, frame: bytes) -> ActionChunk:
    return codec.decode_answer(frame, observed_at_s=7.5)


@pytest.mark.parametrize("dialect", GrootDialect)
@pytest.mark.parametrize("flat", [False, True])
def test_a_request_has_the_same_bytes_however_many_were_written_before(
    dialect: GrootDialect, *, flat: bool
) -> None:
    """
    Frames, state and instruction are those of the observation, and all else is as before.
    """
    used = fresh(CODECS[dialect], flat=flat, token=TOKEN)
    for i, instruction in enumerate(("pick it up", LANGUAGE, SOME_TEXT + "x", "größer", "x" * 400)):
        pixels = np.full((2, 4 + i % 2, 6, 3), i, np.uint8)
        look = seen(
            instruction=instruction,
            state=np.arange(6.0) + i,
            images={"cam_front": pixels, "cam_wrist": pixels + 1},
        )
        expected = fresh(used).encode_request(look)

        assert expected == used.encode_request(look)
        assert expected == used.encode_request(look)


def test_a_request_is_held_to_the_limits_also_if_those_before_it_fitted() -> None:
    """
    A longer instruction than those before is refused where the text is too much, or all of it.
    """
    size = len(CODEC.encode_request(seen(instruction="x")))
    for limits in (WireLimits(max_text_bytes=400), WireLimits(max_request_bytes=size + 100)):
        codec = fresh(limits=limits)
        for _ in range(2):
            codec.encode_request(seen(instruction="x"))

        with pytest.raises(LimitExceededError):
            codec.encode_request(seen(instruction="x" * 500))


def test_requests_of_many_sizes_are_written_and_few_of_them_are_kept() -> None:
    """
    A camera that changes its size with each frame does not fill the memory.
    """
    codec = fresh()
    for side in range(1, 40):
        pixels = np.zeros((2, side, side, 3), np.uint8)
        look = seen(images={"cam_front": pixels, "cam_wrist": pixels})

        assert fresh().encode_request(look) == codec.encode_request(look)
    assert len(codec._forms._requests) <= 8


@given(first=st.integers(0, 9), seeds=st.lists(st.integers(0, 99), max_size=3), data=st.data())
def test_an_answer_means_the_same_whatever_was_read_before(
    first: int, seeds: list[int], data: st.DataObject
) -> None:
    """
    Streams in any order, of any float, with any words beside them, in every spelling.
    """

    def drawn(seed: int) -> bytes:
        dtype = data.draw(st.sampled_from(("<f2", "<f4", "<f8", "<i4")))
        actions = {key: part.astype(dtype) for key, part in plain(seed).items()}
        if data.draw(st.booleans()):
            actions[KEYS[1]] = data.draw(
                st.sampled_from((numbers(1, 3), numbers(1, 3, 1, dtype="<f8"), [[[0.5]] * 3]))
            )
        if data.draw(st.booleans()):
            actions = dict(reversed(actions.items()))
        info = data.draw(st.sampled_from(({}, {"step": 1}, {"words": SOME_TEXT}, {"took": 0.25})))
        return answered(actions, info, data.draw(st.sampled_from(ArraySpelling)))

    codec = fresh()
    for frame in map(drawn, (first, *seeds)):
        expected = read(fresh(), frame)

        assert expected == read(codec, frame)
        assert expected == read(codec, frame)


@given(at=st.integers(0, 400), value=st.integers(0, 255))
def test_a_changed_byte_has_the_same_outcome_with_an_answer_known_and_without(
    at: int, value: int
) -> None:
    """
    What is not to the byte as before is read as a whole, and refused where it always was.
    """
    frame = bytearray(answered(plain()))
    frame[at % len(frame)] = value
    known = fresh()
    read(known, answered(plain(1)))

    def outcome(codec: GrootCodec) -> Any:
        try:
            return read(codec, bytes(frame))
        except (PolicyProtocolError, PolicyRefusedError) as error:
            return type(error), str(error)

    assert outcome(fresh()) == outcome(known)


@pytest.mark.parametrize("dialect", GrootDialect)
@pytest.mark.parametrize("flat", [False, True])
def test_the_answers_of_each_generation_are_known_after_the_first(
    dialect: GrootDialect, *, flat: bool
) -> None:
    """
    What a server of it sends is compared with the answer before, rather than taken apart.
    """
    codec = fresh(CODECS[dialect], flat=flat)
    chunks = [
        ActionChunk(values=numbers(3, 6, seed=i), names=NAMES, source="groot", observed_at_s=7.5)
        for i in range(2)
    ]
    first, second = map(codec.encode_answer, chunks)
    expected = read(fresh(codec), second)

    read(codec, first)

    assert expected == codec._forms.read(second, 7.5)


def test_the_numbers_of_an_answer_are_its_own() -> None:
    """
    Nothing of the answer before is in the next, NaN and infinity come through.
    """
    codec = fresh()
    read(codec, answered(plain(1)))
    arm = np.array([[[math.nan, math.inf, -math.inf, 0.5, -0.0]] * 3], "<f4")

    chunk = read(codec, answered(plain(2, single_arm=arm)))

    np.testing.assert_array_equal(chunk.values[:, :5], arm[0])
    np.testing.assert_array_equal(chunk.values[:, 5:], plain(2)["gripper"][0])
    assert 7.5 == chunk.observed_at_s
    assert not chunk.values.flags.writeable


def test_an_error_after_many_answers_is_an_error() -> None:
    """
    A server that fails after a thousand good answers is heard.
    """
    codec = fresh()
    for seed in range(3):
        read(codec, answered(plain(seed)))

    with pytest.raises(PolicyRefusedError, match="out of memory"):
        read(codec, encode_frame({"error": "out of memory"}, kind=FrameKind.RESPONSE))


def test_an_answer_of_another_horizon_is_read_as_what_it_is() -> None:
    """
    Fewer steps than before are fewer steps, which the client then compares with the metadata.
    """
    codec = fresh()
    read(codec, answered(plain()))
    short = dict(zip(KEYS, (numbers(1, 2, 5), numbers(1, 2, 1)), strict=True))

    assert 2 == read(codec, answered(short)).horizon


def test_a_token_that_each_answer_repeats_is_shown_in_none() -> None:
    """
    What stands around the numbers is kept as it came; what a chunk says of it has no token in it.
    """
    codec = fresh(token=TOKEN)
    for seed in range(3):
        chunk = read(codec, answered(plain(seed), {"you": TOKEN.reveal()}))

        assert TOKEN.reveal() not in repr(chunk)
    assert TOKEN.reveal() not in repr(codec)


def test_what_is_no_frame_is_refused_after_answers_too() -> None:
    """
    Bytes of another kind are the same error as before the first answer.
    """
    codec = fresh()
    frame = answered(plain())
    read(codec, frame)
    for other in (bytearray(frame), None, 5):
        with pytest.raises(PolicyProtocolError, match="expected bytes"):
            codec.decode_answer(other, observed_at_s=7.5)  # type: ignore[arg-type]
