"""Tests of `vlmcore.jobs.likeness`."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as np_st

from caption_cases import pattern
from vlmcore._arrays import UInt8Array
from vlmcore.jobs.likeness import Alike, likeness_of


def bits_between(one: bytes, other: bytes) -> int:
    return sum((a ^ b).bit_count() for a, b in zip(one[:8], other[:8], strict=True))


def tones_between(one: bytes, other: bytes) -> int:
    return max(abs(a - b) for a, b in zip(one[8:], other[8:], strict=True))


@pytest.mark.parametrize("size", [(64, 64), (48, 96), (200, 31), (17, 17)])
def test_a_picture_in_another_size_looks_the_same(size: tuple[int, int]) -> None:
    """
    Up to a few bits of 64: what a copy for the web differs by.
    """
    first = pattern(1, 128)
    one, other = (likeness_of(np.asarray(each)) for each in (first, first.resize(size)))
    assert 4 >= bits_between(one, other)
    assert 3 >= tones_between(one, other)


def test_different_pictures_look_different() -> None:
    """
    About half of the bits differ.
    """
    seen = [likeness_of(np.asarray(pattern(seed))) for seed in range(12)]
    assert 12 < min(bits_between(a, b) for a in seen for b in seen if a is not b)


def test_plain_pictures_are_told_apart_by_their_colours() -> None:
    """
    None has a structure: the hashes of a blue and a white one are the same.
    """
    blue, white = np.zeros((9, 9, 3), np.uint8), np.full((9, 9, 3), 255, np.uint8)
    blue[..., 2] = 255
    alike = Alike(0)
    alike.add("blue", likeness_of(blue))
    assert alike.find("white", likeness_of(white)) is None
    assert "blue" == alike.find("also blue", likeness_of(blue))


@given(np_st.arrays(np.uint8, st.tuples(st.integers(1, 40), st.integers(1, 40), st.just(3))))
def test_every_picture_has_a_likeness(pixels: UInt8Array) -> None:
    """
    Also one that is a pixel high or wide; 11 bytes, the same each time.
    """
    assert 11 == len(likeness_of(pixels))
    assert likeness_of(pixels) == likeness_of(pixels.copy())


LIKENESSES = st.one_of(
    st.binary(min_size=11, max_size=11),
    st.tuples(st.integers(0, 63), st.integers(0, 255)).map(
        lambda pair: (1 << pair[0]).to_bytes(8, "little") + bytes([pair[1]] * 3)
    ),
)


@given(st.lists(LIKENESSES, max_size=40), LIKENESSES, st.integers(0, 32))
def test_the_first_that_is_like_it_is_found(
    seen: list[bytes], wanted: bytes, most_bits: int
) -> None:
    """
    As one comparison after the other finds it, and itself is not meant.
    """
    alike = Alike(most_bits)
    for n, likeness in enumerate(seen):
        alike.add(str(n), likeness)
    expected = [
        str(n)
        for n, likeness in enumerate(seen)
        if bits_between(likeness, wanted) <= most_bits and tones_between(likeness, wanted) <= 12
    ]
    assert (expected[0] if expected else None) == alike.find("wanted", wanted)
    if expected:
        others = [*expected[1:], None]
        assert others[0] == alike.find(expected[0], wanted)


def test_thousands_are_remembered() -> None:
    """
    It grows with them, and forgets none.
    """
    alike = Alike(0)
    for n in range(1000):
        alike.add(str(n), n.to_bytes(8, "big") + bytes(3))
    assert ["0", "255", "256", "999"] == [
        alike.find("x", n.to_bytes(8, "big") + bytes(3)) for n in (0, 255, 256, 999)
    ]
