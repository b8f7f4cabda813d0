"""Tests of `vlmcore_robotics.wire.resizing`: bit by bit what openpi-client makes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden.wire.messages import SIZES, frame, golden
from vlmcore.errors import ContractError, LimitExceededError
from vlmcore_robotics.wire.frames import FrameKind, decode_frame
from vlmcore_robotics.wire.resizing import resize_with_pad

pytest.importorskip("PIL")


@pytest.mark.parametrize("name", SIZES)
def test_a_resized_frame_is_bit_by_bit_that_of_openpi_client(name: str) -> None:
    """
    Wide, tall, and of the right size already.
    """
    expected = decode_frame(golden(f"resized-{name}"), kind=FrameKind.REQUEST)
    resized = resize_with_pad(frame(*SIZES[name], 3), height_px=8, width_px=8)
    assert np.array_equal(expected, resized)


@given(*[st.integers(1, 40)] * 4)
def test_any_frame_fits_and_is_in_the_middle_of_black(
    height: int, width: int, height_px: int, width_px: int
) -> None:
    """
    A white frame leaves as much black above as below, and left as right, or one row more.
    """
    white = np.full((height, width, 3), 255, np.uint8)
    resized = resize_with_pad(white, height_px=height_px, width_px=width_px)

    assert (height_px, width_px, 3) == resized.shape
    for axis in (0, 1):
        lit = np.flatnonzero(resized.max(axis=(1 - axis, 2)))
        before, after = lit[0], resized.shape[axis] - 1 - lit[-1]
        assert 0 <= after - before <= 1


def test_a_frame_of_the_right_size_is_the_same_array() -> None:
    """
    Nothing is copied, and Pillow is not needed.
    """
    image = frame(8, 8, 0)
    assert image is resize_with_pad(image, height_px=8, width_px=8)


def test_a_side_never_vanishes() -> None:
    """
    openpi-client fails on a frame of one row that is a thousand pixels wide.
    """
    white = np.full((1, 1000, 3), 255, np.uint8)
    assert 8 == np.count_nonzero(resize_with_pad(white, height_px=8, width_px=8)[..., 0])


@pytest.mark.parametrize("size", [0, -1, 2.5, True, "8", None])
def test_a_size_is_a_whole_number_of_pixels(size: Any) -> None:
    """
    One clear error.
    """
    with pytest.raises(ContractError, match=r"^height_px: got"):
        resize_with_pad(frame(2, 2, 0), height_px=size, width_px=8)


def test_a_frame_is_pixels() -> None:
    """
    Floats are not scaled by a guess.
    """
    with pytest.raises(ContractError, match=r"^frame: got float64"):
        resize_with_pad(np.zeros((2, 2, 3)), height_px=8, width_px=8)  # type: ignore[arg-type]


def test_a_frame_is_not_made_larger_than_one_may_be() -> None:
    """
    Before memory is spent on it.
    """
    with pytest.raises(LimitExceededError, match="max_frame_pixels"):
        resize_with_pad(frame(2, 2, 0), height_px=1 << 20, width_px=1 << 20)
