"""Tests of `vlmcore.charts.overlays`: outlines over an image, which stays as it is elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

from vlmcore.charts.overlays import Outline, draw_over
from vlmcore.errors import ContractError

GREY = np.random.default_rng(0).integers(90, 160, (60, 90, 3), dtype=np.uint8)
SQUARE = ((30.0, 20.0), (60.0, 20.0), (60.0, 50.0), (30.0, 50.0))


def test_pixels_away_from_outlines_are_those_of_the_image() -> None:
    """
    Drawing larger and making smaller gives back every pixel that nothing was drawn on.
    """
    picture = draw_over(GREY, [Outline(points=SQUARE)])

    assert (GREY[25:45, 35:55] == picture[25:45, 35:55]).all()
    assert (GREY[:, :25] == picture[:, :25]).all()
    assert (GREY[20, 35:55] != picture[20, 35:55]).any(axis=1).all()
    assert (GREY == draw_over(GREY, [])).all()


def test_a_label_stays_within_the_image() -> None:
    """
    Above its outline where there is room, within it where there is none, however long.
    """
    top = Outline(points=((80.0, 0.0), (90.0, 0.0), (90.0, 9.0)), label="a long label " * 9)
    picture = draw_over(GREY, [top])

    assert GREY.shape == picture.shape
    assert (GREY[:19] != picture[:19]).any()


def test_groups_have_colours_and_the_picture_cannot_be_written_to() -> None:
    """
    What is drawn is a value, as every picture here.
    """
    one, other = (draw_over(GREY, [Outline(points=SQUARE, group=group)]) for group in (0, 1))

    assert (one != other).any()
    with pytest.raises(ValueError, match="read-only"):
        one[0, 0] = 0


@pytest.mark.parametrize(
    ("image", "line_px", "message"),
    [
        (GREY[..., 0], 2, "image: got uint8 of shape"),
        (GREY.astype(np.float32), 2, "image: got float32"),
        (GREY, 0, "line_px: got 0"),
    ],
)
def test_what_is_no_image_is_refused(image: np.ndarray, line_px: int, message: str) -> None:
    """
    Before anything is drawn.
    """
    with pytest.raises(ContractError, match=message):
        draw_over(image, [], line_px=line_px)
