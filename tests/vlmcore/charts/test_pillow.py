"""Tests of `vlmcore.charts._pillow`: charts as pixels."""

from __future__ import annotations

import numpy as np

from vlmcore.charts._inks import MARK
from vlmcore.charts._pillow import measure, paint
from vlmcore.charts._shapes import Anchor, Box, Glyph, Line, Picture, Shape, Sign, Text

BLACK, RED = "#000000", "#ff0000"


def painted(*shapes: Shape, side: int = 40) -> np.ndarray:
    return paint(Picture(side, side, shapes), supersampling=3)


def dark(image: np.ndarray) -> np.ndarray:
    """Say where something dark is."""
    return np.asarray(image.max(axis=2) < 128)


def test_a_box_fills_its_pixels_and_no_others() -> None:
    """
    Edges are where they are said to be.
    """
    image = painted(Box(10, 20, 15, 22, RED))
    expected = np.full((40, 40, 3), 255)
    expected[20:22, 10:15] = (255, 0, 0)

    assert np.array_equal(expected, image)


def test_a_dashed_line_has_gaps() -> None:
    """
    Half of it is not there.
    """
    ends = np.array([[0.0, 20.0], [40.0, 20.0]])
    whole = dark(painted(Line(ends, BLACK, 2.0))).sum()
    parts = dark(painted(Line(ends, BLACK, 2.0, (4.0, 4.0)))).sum()

    assert 0.4 * whole < parts < 0.6 * whole


def test_signs_differ_by_shape_and_not_by_colour_alone() -> None:
    """
    People who see no red tell them apart.
    """
    images = {sign: painted(Glyph(sign, 20.0, 20.0, BLACK)).tobytes() for sign in Sign}
    assert len(Sign) == len(set(images.values()))


def test_a_mark_is_red() -> None:
    """
    In its middle.
    """
    image = painted(Glyph(Sign.BROKEN, 20.5, 20.5, MARK))
    assert [0xD1, 0x00, 0x1F] == image[20, 20].tolist()


def test_text_stands_where_its_anchor_says() -> None:
    """
    To the right of its place, around it, or to the left.
    """
    middles = [
        np.flatnonzero(dark(painted(Text(20, 20, "no", BLACK, 12, anchor))).any(axis=0)).mean()
        for anchor in Anchor
    ]
    assert middles[0] > 22
    assert 18 < middles[1] < 22
    assert middles[2] < 18


def test_characters_without_a_picture_are_written_by_their_numbers() -> None:
    """
    The font that comes with Pillow has few scripts; empty boxes would all look the same.
    """
    assert measure("\\u95a2", 12) == measure("\u95a2", 12)
    assert (
        painted(Text(0, 20, "\u95a2", BLACK, 12), side=90).tobytes()
        == painted(Text(0, 20, "\\u95a2", BLACK, 12), side=90).tobytes()
    )
    assert measure("joint", 12) < measure("j\u05d5int", 12)


def test_a_picture_cannot_be_written_to() -> None:
    """
    As every array that leaves the package.
    """
    assert not painted().flags.writeable
