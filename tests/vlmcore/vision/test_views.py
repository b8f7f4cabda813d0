"""Tests of `vlmcore.vision.views`: what a model was shown leads back to the image."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmcore.errors import ContractError, LimitExceededError
from vlmcore.vision.views import ImageView

SIDES = st.integers(1, 4000)


@given(height=SIDES, width=SIDES, side=SIDES, centred=st.booleans(), at=st.tuples(SIDES, SIDES))
def test_there_and_back_through_a_letterbox_is_where_it_was(
    *, height: int, width: int, side: int, centred: bool, at: tuple[int, int]
) -> None:
    """
    Padding and scale cancel out, to the rounding of float64.
    """
    view = ImageView.letterboxed(height_px=height, width_px=width, side_px=side, centred=centred)
    x, y = min(at[0], width), min(at[1], height)

    assert pytest.approx((x, y), abs=1e-6) == view.to_image(*view.to_seen(x, y))


@given(height=SIDES, width=SIDES, side=SIDES)
def test_corners_of_an_image_are_corners_of_its_part_of_the_letterbox(
    height: int, width: int, side: int
) -> None:
    """
    The image fills the longer side of the square, and no more.
    """
    view = ImageView.letterboxed(height_px=height, width_px=width, side_px=side)

    assert side == max(view.filled_height_px, view.filled_width_px)
    assert pytest.approx((width, height)) == view.to_image(
        view.left_px + view.filled_width_px, view.top_px + view.filled_height_px
    )


def test_an_image_shown_as_it_is_needs_its_size_only() -> None:
    """
    Places of what was shown are places of the image.
    """
    assert (3.0, 4.0) == ImageView(height_px=10, width_px=20).to_image(3.0, 4.0)


def test_a_resized_image_is_scaled_along_each_axis() -> None:
    """
    Processors that squeeze an image into a square do not keep its ratio.
    """
    view = ImageView(height_px=100, width_px=300, seen_height_px=50, seen_width_px=50)

    assert (150.0, 50.0) == view.to_image(25.0, 25.0)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"height_px": 0, "width_px": 1}, "height_px: got 0"),
        ({"height_px": 1, "width_px": 1.5}, "width_px: got 1.5"),
        ({"height_px": 9, "width_px": 9, "left_px": 1}, "left_px: got 1 to 10, expected the image"),
        ({"height_px": 9, "width_px": 9, "left_px": -1}, "left_px: got -1 to 8"),
        ({"height_px": 9, "width_px": 9, "seen_width_px": -4}, "seen_width_px: got -4"),
    ],
)
def test_a_view_that_cannot_be_is_refused(fields: dict[str, float], message: str) -> None:
    """
    The image lies within what was shown.
    """
    with pytest.raises(ContractError, match=message):
        ImageView(**fields)  # type: ignore[arg-type]


def test_an_image_of_a_side_beyond_every_image_is_refused() -> None:
    """
    Sizes come from headers and from people.
    """
    with pytest.raises(LimitExceededError, match="max_side_px"):
        ImageView(height_px=1, width_px=(1 << 20) + 1)


def test_qwen_refuses_a_strip_two_hundred_times_as_long_as_high() -> None:
    """
    Its processors do, so nothing that it answered can be about such an image.
    """
    with pytest.raises(ContractError, match="got 1 x 201, expected no side 200 times the other"):
        ImageView.qwen(height_px=1, width_px=201, multiple_px=28, min_pixels=4, max_pixels=4)
