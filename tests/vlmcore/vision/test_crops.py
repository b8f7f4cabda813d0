"""Tests of `vlmcore.vision.crops`: parts of an image, with room around them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmcore.errors import ContractError
from vlmcore.vision.crops import crop_detections
from vlmcore.vision.detections import Detection, Detections
from vlmcore.vision.places import Box, Point

HEIGHT, WIDTH = 40, 60
IMAGE = np.arange(HEIGHT * WIDTH * 3, dtype=np.uint8).reshape(HEIGHT, WIDTH, 3)


def found(*xyxy: float) -> Detections:
    return Detections(
        height_px=HEIGHT, width_px=WIDTH, items=[Detection(place=Box.of(xyxy), label="dog")]
    )


BOXES = st.tuples(st.floats(0, 55), st.floats(0, 35), st.floats(0.1, 60), st.floats(0.1, 40)).map(
    lambda b: (b[0], b[1], min(WIDTH, b[0] + b[2]), min(HEIGHT, b[1] + b[3]))
)


@given(box=BOXES, scale=st.floats(1, 16), square=st.booleans())
def test_a_part_holds_what_was_found_and_is_what_the_window_says(
    *, box: tuple[float, ...], scale: float, square: bool
) -> None:
    """
    Nothing of a box is cut off, squares are squares, and outside the image it is black.
    """
    (crop,) = crop_detections(IMAGE, found(*box), scale=scale, square=square)
    left, top, right, bottom = crop.window_px

    assert left <= box[0] + 1
    assert right >= box[2] - 1
    assert (bottom - top, right - left, 3) == crop.pixels.shape
    assert not square or right - left == bottom - top
    rows, columns = np.mgrid[top:bottom, left:right]
    is_inside = (rows >= 0) & (rows < HEIGHT) & (columns >= 0) & (columns < WIDTH)
    assert (IMAGE[rows[is_inside], columns[is_inside]] == crop.pixels[is_inside]).all()
    assert not crop.pixels[~is_inside].any()


@pytest.mark.parametrize(
    ("options", "window"),
    [
        ({}, (10, 10, 20, 15)),
        ({"scale": 2.0}, (5, 7, 25, 18)),
        ({"square": True}, (10, 7, 20, 17)),
        ({"square": True, "scale": 2.0}, (5, 2, 25, 22)),
    ],
)
def test_windows_grow_about_the_middle(options: dict[str, Any], window: tuple[int, ...]) -> None:
    """
    Context is on all sides.
    """
    (crop,) = crop_detections(IMAGE, found(10, 10, 20, 15), **options)

    assert window == crop.window_px


def test_a_square_at_the_edge_is_moved_into_the_image() -> None:
    """
    It is filled with black only where the image is smaller than the square.
    """
    (edge,) = crop_detections(IMAGE, found(0, 0, 10, 2), square=True)
    (wide,) = crop_detections(IMAGE, found(0, 0, 60, 2), square=True)

    assert ((0, 0, 10, 10), (0, -10, 60, 50)) == (edge.window_px, wide.window_px)


def test_squares_are_resized_where_a_size_is_asked_for() -> None:
    """
    A model wants parts of one size.
    """
    (crop,) = crop_detections(IMAGE, found(10, 10, 20, 15), square=True, size_px=32)

    assert (32, 32, 3) == crop.pixels.shape


def test_points_are_left_out() -> None:
    """
    They have no extent.
    """
    nose = Detections(
        height_px=HEIGHT, width_px=WIDTH, items=[Detection(place=Point(x=1.0, y=1.0))]
    )

    assert () == crop_detections(IMAGE, nose)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scale": 0.5}, "scale: got 0.5, expected a number from 1.0 to 16.0"),
        ({"size_px": 8}, "size_px: got 8, expected None: parts are not square"),
        ({"square": True, "size_px": 0}, "size_px: got 0"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused(options: dict[str, Any], message: str) -> None:
    """
    With what came and what was expected.
    """
    with pytest.raises(ContractError, match=message):
        crop_detections(IMAGE, found(10, 10, 20, 15), **options)


def test_an_image_of_another_size_is_refused() -> None:
    """
    It is not the one in which something was found.
    """
    with pytest.raises(ContractError, match="image: got 20 x 60, expected 40 x 60 pixels"):
        crop_detections(IMAGE[:20], found(10, 10, 20, 15))
