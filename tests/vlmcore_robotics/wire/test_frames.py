"""Tests of `vlmcore_robotics.wire.frames`: MessagePack within limits, in one form."""

from __future__ import annotations

import contextlib
import math
import random
import struct
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmcore.errors import ContractError, LimitExceededError
from vlmcore.limits import WireLimits
from vlmcore_robotics.wire.frames import FrameKind, decode_frame, encode_frame

MIB = 1 << 20


def encode(value: Any, **limits: int) -> bytes:
    return encode_frame(value, kind=FrameKind.RESPONSE, limits=WireLimits(**limits))


def decode(frame: bytes, **limits: int) -> Any:
    return decode_frame(frame, kind=FrameKind.RESPONSE, limits=WireLimits(**limits))


def refused(action: Callable[..., Any], *arguments: Any, **limits: int) -> ContractError:
    with pytest.raises(ContractError) as caught:
        action(*arguments, **limits)
    return caught.value


@pytest.mark.parametrize(
    ("value", "frame"),
    [
        (None, "c0"),
        (False, "c2"),
        (True, "c3"),
        (0, "00"),
        (127, "7f"),
        (128, "cc80"),
        (255, "ccff"),
        (256, "cd0100"),
        (65535, "cdffff"),
        (65536, "ce00010000"),
        (2**32 - 1, "ceffffffff"),
        (2**32, "cf0000000100000000"),
        (2**64 - 1, "cfffffffffffffffff"),
        (-1, "ff"),
        (-32, "e0"),
        (-33, "d0df"),
        (-128, "d080"),
        (-129, "d1ff7f"),
        (-32768, "d18000"),
        (-32769, "d2ffff7fff"),
        (-(2**31), "d280000000"),
        (-(2**31) - 1, "d3ffffffff7fffffff"),
        (-(2**63), "d38000000000000000"),
        (1.5, "cb3ff8000000000000"),
        (-0.0, "cb8000000000000000"),
        ("", "a0"),
        ("aé", "a361c3a9"),
        ("x" * 32, "d920" + "78" * 32),
        ("x" * 256, "da0100" + "78" * 256),
        (b"", "c400"),
        (b"\x00\xff", "c40200ff"),
        (b"\x01" * 256, "c50100" + "01" * 256),
        ([], "90"),
        ([1, [2]], "92019102"),
        ([0] * 16, "dc0010" + "00" * 16),
        ({}, "80"),
        ({"a": 1}, "81a16101"),
    ],
)
def test_values_have_one_form_on_the_wire_and_are_read_from_it(value: Any, frame: str) -> None:
    """
    The shortest one, so that equal values give equal bytes.
    """
    assert frame == encode(value).hex()
    again = decode(bytes.fromhex(frame))
    assert (value, type(value)) == (again, type(again))
    assert math.copysign(1, value) == math.copysign(1, again) if value == 0 else True


@pytest.mark.parametrize("size", [65536, 70000])
def test_long_values_have_lengths_of_four_bytes(size: int) -> None:
    """
    Texts and bytes; lists and maps end at the limit of entries.
    """
    assert b"\xdb" + struct.pack(">I", size) == encode("x" * size)[:5]
    assert b"\xc6" + struct.pack(">I", size) == encode(b"x" * size)[:5]
    assert "x" * size == decode(encode("x" * size))
    assert [0] * 65535 == decode(b"\xdd" + struct.pack(">I", 65535) + bytes(65535))


@pytest.mark.parametrize(
    ("frame", "value"),
    [
        ("ca3fc00000", 1.5),
        ("cc01", 1),
        ("d300000000000000ff", 255),
        ("d90161", "a"),
        ("dd0000000101", [1]),
        ("df00000001a16101", {"a": 1}),
        ("81c4016101", {"a": 1}),
    ],
)
def test_longer_forms_and_keys_as_bytes_are_read_too(frame: str, value: Any) -> None:
    """
    Peers in other languages write them.
    """
    assert value == decode(bytes.fromhex(frame))


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text(max_size=40)
    | st.binary(max_size=40),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=20,
)


@given(plain)
def test_what_is_written_is_read_as_the_same(value: Any) -> None:
    """
    In values and types, and again to the same bytes.
    """
    try:
        frame = encode(value)
    except LimitExceededError as error:
        assert error.limit == "max_depth"  # noqa: PT017
        return
    again = decode(frame)
    assert value == again or {"nd", "complex", "__ndarray__"} & set(str(value))
    assert frame == encode(again)


@pytest.mark.parametrize(
    ("frame", "problem"),
    [
        ("", "got a frame that is cut at byte 0"),
        ("cb00", "got a frame that is cut at byte 2"),
        ("a261", "got a frame that is cut at byte 2"),
        ("c40561", "got a frame that is cut at byte 3"),
        ("9201", "got a frame that is cut at byte 2"),
        ("81a161", "got a frame that is cut at byte 3"),
        ("0000", "got 1 bytes after the value"),
        ("c1", "got a code that has no meaning (0xc1) at byte 0"),
        ("d40100", "got an extension type (0xd4) at byte 0"),
        ("c70501", "got an extension type (0xc7) at byte 0"),
        ("d6ff00000000", "got an extension type (0xd6) at byte 0"),
        ("a1ff", "got text at byte 1 that is not UTF-8"),
        ("a3eda080", "got text at byte 1 that is not UTF-8"),
        ("810101", "got a key that is no text (0x01)"),
        ("81c001", "got a key that is no text (0xc0)"),
        ("819001", "got a key that is no text (0x90)"),
        ("81c401ff01", "got a key that is not UTF-8"),
        ("82a16101a16102", "got the key 'a' twice"),
        ("82a16101c4016102", "got the key 'a' twice"),
    ],
)
def test_what_is_no_plain_messagepack_is_refused(frame: str, problem: str) -> None:
    """
    By the place where it ends or goes wrong.
    """
    assert refused(decode, bytes.fromhex(frame)).problem.startswith(problem)


def test_an_error_names_the_key_that_it_is_under() -> None:
    """
    A frame has many parts, and one of them is wrong.
    """
    frame = encode({"observation": {"state": [1, "x"]}})[:-1] + b"\xff"
    assert "frame['observation']['state']" == refused(decode, frame).field


@pytest.mark.parametrize("frame", ["", None, bytearray(b"\x00"), memoryview(b"\x00"), [1]])
def test_a_frame_is_bytes(frame: Any) -> None:
    """
    Memory that can still change is none: arrays are views of it.
    """
    assert refused(decode, frame).problem.startswith("got ")


@pytest.mark.parametrize(
    "value", [{1: 2}, {None: 1}, object(), {1, 2}, 2**64, -(2**63) - 1, "\ud800", 1j, range(3)]
)
def test_what_messagepack_cannot_hold_is_not_written(value: Any) -> None:
    """
    No value is turned into another one that fits.
    """
    assert refused(encode, value).field == "frame"
    assert refused(encode, [{"a": value}]).field == "frame"


@pytest.mark.parametrize(
    ("limits", "value"),
    [
        ({"max_depth": 2}, [[[1]]]),
        ({"max_depth": 2}, {"a": {"b": {}}}),
        ({"max_nodes": 4}, [1, 2, 3, 4]),
        ({"max_nodes": 4}, {"a": 1, "b": 2}),
        ({"max_entries": 2}, [1, 2, 3]),
        ({"max_entries": 2}, {"a": 1, "b": 2, "c": 3}),
        ({"max_text_bytes": 3}, "éé"),
        ({"max_text_bytes": 3}, {"ab": "cd"}),
        ({"max_binary_bytes": 3}, b"1234"),
        ({"max_response_bytes": 3}, [1, 2, 3]),
    ],
)
def test_every_limit_holds_in_both_directions(limits: dict[str, int], value: Any) -> None:
    """
    What is within it passes, what is over it is refused by its name.
    """
    (name,) = limits
    assert value == decode(encode(value))
    for action, argument in ((decode, encode(value)), (encode, value)):
        error = refused(action, argument, **limits)
        assert isinstance(error, LimitExceededError)
        assert (name, limits[name]) == (error.limit, error.allowed)
        more = {name: error.actual}
        assert value == decode(encode(value, **more), **more) or name == "max_nodes"


@pytest.mark.parametrize("kind", FrameKind)
def test_a_kind_of_frame_has_its_own_size(kind: FrameKind) -> None:
    """
    What a server says before it is asked is small.
    """
    size = {"request": 128 * MIB, "response": 32 * MIB, "metadata": MIB}[kind.value]
    with pytest.raises(LimitExceededError, match=f"max_{kind.value}_bytes: got {size + 1}, limit"):
        decode_frame(bytes(size + 1), kind=kind)


def test_a_list_that_contains_itself_ends_at_the_depth() -> None:
    """
    And not in a crash of the interpreter.
    """
    value: list[Any] = []
    value.append(value)
    assert "max_depth: got 17, limit is 16" == str(refused(encode, value))


BOMBS = {
    "30 MiB of nil in one list": b"\xdd" + struct.pack(">I", 30 * MIB) + b"\xc0" * (30 * MIB),
    "30 MiB of nil in lists": b"\xdd\x00\x00\x01\xdf"
    + (b"\xdd\x00\x00\xff\xff" + b"\xc0" * 65535) * 479,
    "10 Mi empty lists": b"\xdd\x00\x00\x01\x00" + (b"\xdc\xa0\x00" + b"\x90" * 40960) * 256,
    "empty maps": b"\xdd\x00\x00\x02\x00" + (b"\xdc\xf0\x00" + b"\x80" * 61440) * 512,
    "a list that claims 4 Gi values": b"\xdd\xff\xff\xff\xff",
    "a map that claims 4 Gi values": b"\xdf\xff\xff\xff\xff",
    "65,535 lists that claim as much each": b"\xdd\x00\x00\xff\xff" * 16,
    "a text that claims 4 GiB": b"\xdb\xff\xff\xff\xff",
    "bytes that claim 4 GiB": b"\xc6\xff\xff\xff\xff",
    "texts that grow to four times their size": b"\xdc\x00\x1f"
    + (b"\xdb\x00\x10\x00\x00" + "\U0001f916".encode() * (MIB // 4)) * 31,
    "a million levels": b"\x91" * MIB,
    "a million levels of maps": b"\x81\xa1a" * MIB,
}


@pytest.mark.parametrize("name", BOMBS)
def test_small_frames_do_not_become_much_memory_or_time(name: str) -> None:
    """
    Many small objects: 30 MiB of nil took 240 MB, 10 Mi empty lists 7 s and 490 MB elsewhere.
    """
    frame = BOMBS[name]
    started = time.process_time()
    error = refused(decode, frame)
    seconds = time.process_time() - started

    assert isinstance(error, LimitExceededError) or "cut" in error.problem
    assert seconds < 2
    assert memory_of(lambda: refused(decode, frame)) < 16 * MIB


def memory_of(action: Callable[[], Any]) -> int:
    """Measure how many bytes more are held at the peak of *action*."""
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def random_frames(count: int) -> list[bytes]:
    """Make frames that are noise, and frames that were right before a few bytes were changed."""
    chance = random.Random(20260101)
    array = np.arange(12, dtype="<f4").reshape(3, 4)
    right = [
        encode({"actions": array, "policy_timing": {"infer_ms": 1.5}, "state": np.float32(2)}),
        encode({"a": [1, -1, 1.5, None, True, "text", b"bytes"], "b": {"c": [[], {}]}}),
    ]
    frames = []
    for i in range(count):
        if i % 4 == 0:
            frames.append(chance.randbytes(chance.randrange(200)))
            continue
        frame = bytearray(chance.choice(right))
        for _ in range(chance.randrange(1, 4)):
            frame[chance.randrange(len(frame))] = chance.randrange(256)
        frames.append(bytes(frame[: chance.randrange(1, len(frame) + 1)] if i % 3 == 0 else frame))
    return frames


def test_ten_thousand_random_frames_give_a_value_or_our_error() -> None:
    """
    No crash, no hang, and little memory.
    """
    frames = random_frames(10_000)
    started = time.process_time()
    read = how_many_are_read(frames)

    assert 100 < read < 9_000
    assert time.process_time() - started < 10
    assert memory_of(lambda: how_many_are_read(frames[:1000])) < MIB


def how_many_are_read(frames: list[bytes]) -> int:
    """Count the frames that are values; all others end in our error."""
    read = 0
    for frame in frames:
        with contextlib.suppress(ContractError):
            decode(frame)
            read += 1
    return read


@given(st.binary(max_size=200))
def test_any_bytes_give_a_value_or_our_error(frame: bytes) -> None:
    """
    And what is read can be written again.
    """
    try:
        value = decode(frame)
    except ContractError:
        return
    encode(value)
