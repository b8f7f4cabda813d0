"""Tests of `vlmcore._arrays`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from vlmcore._arrays import (
    readonly_frames,
    readonly_image,
    require_count,
    require_finite_between,
    require_positive,
    require_text,
)
from vlmcore.errors import ContractError

IMAGE = np.zeros((4, 6, 3), dtype=np.uint8)


def test_an_image_becomes_a_view_that_cannot_be_written_through() -> None:
    """
    Pixels are shared, not copied, and the caller's own array stays writable.
    """
    view = readonly_image(IMAGE, field="image")

    assert np.shares_memory(IMAGE, view)
    assert (False, True) == (view.flags.writeable, IMAGE.flags.writeable)


def test_frames_have_one_axis_more() -> None:
    """
    Axes are ``[T, H, W, 3]``.
    """
    assert (2, 4, 6, 3) == readonly_frames(np.stack([IMAGE, IMAGE]), field="video").shape


@pytest.mark.parametrize(
    ("wrong", "came"),
    [
        (IMAGE.astype(np.float32), r"float32 of shape \[4, 6, 3\]"),
        (IMAGE[..., 0], r"uint8 of shape \[4, 6\]"),
        (IMAGE[..., :2], r"uint8 of shape \[4, 6, 2\]"),
        (IMAGE[:0], r"uint8 of shape \[0, 6, 3\]"),
        (IMAGE[np.newaxis], r"uint8 of shape \[1, 4, 6, 3\]"),
        ([[0, 0, 0]], "list"),
        ("a.png", "str"),
    ],
)
def test_what_is_no_image_is_refused_with_the_way_out(wrong: Any, came: str) -> None:
    """
    The message names the field, what came, and what makes an image of it.
    """
    with pytest.raises(ContractError, match=f"^image: got {came}, expected .*load_image"):
        readonly_image(wrong, field="image")


def test_one_image_is_no_video() -> None:
    """
    A missing time axis is not guessed.
    """
    with pytest.raises(ContractError, match=r"^video: .*\[T, H, W, 3\]"):
        readonly_frames(IMAGE, field="video")


@pytest.mark.parametrize("wrong", ["", " \n", None, b"text", 3])
def test_text_is_text_with_something_in_it(wrong: Any) -> None:
    """
    Bytes and blanks are not.
    """
    require_text(name="a")
    with pytest.raises(ContractError, match=r"^name: got "):
        require_text(name=wrong)


@pytest.mark.parametrize("wrong", [0, -1, True, 1.0, "1", None])
def test_a_count_is_a_whole_number_of_at_least_one(wrong: Any) -> None:
    """
    ``True`` is not 1.
    """
    require_count(frames=1)
    with pytest.raises(ContractError, match=r"^frames: got "):
        require_count(frames=wrong)


@pytest.mark.parametrize("wrong", [0, -0.5, math.nan, math.inf, True, "1", None])
def test_a_rate_is_a_finite_number_above_zero(wrong: Any) -> None:
    """
    NaN fails every comparison, so it is looked for.
    """
    require_positive(rate_hz=0.5)
    with pytest.raises(ContractError, match=r"^rate_hz: got "):
        require_positive(rate_hz=wrong)


@pytest.mark.parametrize("wrong", [-0.1, 1.1, math.nan, math.inf, True, "0"])
def test_a_bounded_number_is_within_its_bounds(wrong: Any) -> None:
    """
    Both ends belong to the range.
    """
    require_finite_between(0, 1, top_p=0)
    require_finite_between(0, 1, top_p=1.0)
    with pytest.raises(ContractError, match=r"^top_p: got .*from 0 to 1"):
        require_finite_between(0, 1, top_p=wrong)
