"""Tests of `vlmcore.vision.drawing`: what was found is drawn over its image."""

from __future__ import annotations

import numpy as np
import pytest

from vlmcore.errors import ContractError
from vlmcore.vision.detections import Detection, Detections
from vlmcore.vision.places import Box, Point, Polygon

GREY = np.full((80, 120, 3), 128, np.uint8)


def test_a_box_is_drawn_at_its_sides_and_leaves_the_rest_alone() -> None:
    """
    Pixels away from outlines are those of the image.
    """
    dog = Detection(place=Box.of((20, 30, 80, 60)), score=None)
    picture = Detections(height_px=80, width_px=120, items=[dog]).draw(GREY)

    assert GREY.shape == picture.shape
    assert (GREY[40:50, 30:70] == picture[40:50, 30:70]).all()
    assert (GREY[40:50, 20] != picture[40:50, 20]).any(axis=1).all()
    assert (GREY[:, :16] == picture[:, :16]).all()


def test_each_label_has_a_colour_of_its_own() -> None:
    """
    Two dogs look alike, a cat does not.
    """
    items = [
        Detection(place=Box.of((10 + 30 * i, 30, 30 + 30 * i, 70)), label=label)
        for i, label in enumerate(("dog", "cat", "dog"))
    ]
    picture = Detections(height_px=80, width_px=120, items=items).draw(GREY)
    sides = [tuple(picture[50, 10 + 30 * i].tolist()) for i in range(3)]

    assert sides[0] == sides[2] != sides[1]


def test_points_polygons_and_labels_at_the_edge_are_drawn() -> None:
    """
    Nothing about a place keeps it from being shown.
    """
    items = [
        Detection(place=Point(x=0.0, y=0.0), label="nose", score=0.5),
        Detection(place=Polygon(corners=[(100, 0), (120, 0), (120, 80)]), label="크다" * 40),
    ]
    picture = Detections(height_px=80, width_px=120, items=items).draw(GREY)

    assert (picture != GREY).any()


def test_nothing_found_gives_the_image() -> None:
    """
    Pixel by pixel.
    """
    assert (GREY == Detections(height_px=80, width_px=120).draw(GREY)).all()


def test_an_image_of_another_size_is_refused() -> None:
    """
    Outlines would be drawn at the wrong places.
    """
    with pytest.raises(ContractError, match="image: got 80 x 120, expected 9 x 9 pixels"):
        Detections(height_px=9, width_px=9).draw(GREY)
