"""Tests of `vlmcore_robotics.wire.frames` against the msgpack package, where it is installed."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmcore.errors import ContractError
from vlmcore_robotics.wire.frames import FrameKind, decode_frame, encode_frame

msgpack = pytest.importorskip("msgpack")

KIND = FrameKind.REQUEST
# Not with bytes as keys, which become text here, and not with the keys that mark arrays.
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=300)
    | st.binary(max_size=300),
    lambda inner: (
        st.lists(inner, max_size=20) | st.dictionaries(st.text("abc"), inner, max_size=20)
    ),
    max_leaves=12,
)


def theirs(frame: bytes) -> Any:
    """Read a frame as msgpack does, and an error as none of ours."""
    try:
        return msgpack.unpackb(frame)
    except (ValueError, TypeError, msgpack.exceptions.UnpackException) as error:
        return error


def ours(frame: bytes) -> Any:
    """Read a frame as we do, and an error as a value."""
    try:
        return decode_frame(frame, kind=KIND)
    except ContractError as error:
        return error


@given(values)
def test_the_bytes_are_those_that_msgpack_writes(value: Any) -> None:
    """
    Of every value; NaN among them.
    """
    theirs_of_it = msgpack.packb(value)
    if "max_depth" in str(ours(theirs_of_it)):
        return
    assert theirs_of_it == encode_frame(value, kind=KIND)
    assert repr(value) == repr(ours(theirs_of_it))


@pytest.mark.parametrize("seed", range(4))
def test_a_frame_that_both_read_says_the_same_to_both(seed: int) -> None:
    """
    One that we refuse is refused there too, or is one of the few that we do not take on purpose.
    """
    chance = random.Random(seed)
    on_purpose = ("an extension type", "a key that is no text", "twice", "UTF-8")
    both = 0
    for _ in range(2500):
        right = encode_frame([1, -70000, 1.5, None, "text", b"by", {"a": [{}]}], kind=KIND)
        frame = bytearray(right if chance.random() < 0.8 else chance.randbytes(12))
        frame[chance.randrange(len(frame))] = chance.randrange(256)
        expected, value = theirs(bytes(frame)), ours(bytes(frame))
        if isinstance(value, ContractError):
            refused = isinstance(expected, Exception)
            assert refused or any(words in str(value) for words in on_purpose)
        else:
            both += 1
            assert repr(value) == repr(expected) or "b'" in repr(expected)  # bytes as keys
    assert both > 500
