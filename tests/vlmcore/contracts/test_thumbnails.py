"""Tests of `vlmcore.contracts._thumbnails`: small pictures without Pillow."""

from __future__ import annotations

import base64
import io

import numpy as np
import pytest
from PIL import Image

from vlmcore.contracts._thumbnails import data_url, png, shrunk


def test_each_pixel_is_the_mean_of_those_it_stands_for() -> None:
    """
    Boxes, without a filter that rings.
    """
    image = np.zeros((4, 2, 3), np.uint8)
    image[:2] = 100
    image[0, 0] = 200
    assert [[[125] * 3], [[0] * 3]] == shrunk(image, 2).tolist()


@pytest.mark.parametrize("shape", [(1, 1000), (1000, 1), (480, 640), (7, 129), (129, 129)])
def test_the_longest_side_fits_and_none_disappears(shape: tuple[int, int]) -> None:
    """
    A constant stays what it is.
    """
    small = shrunk(np.full((*shape, 3), 77, np.uint8), 128)
    assert 128 == max(small.shape[:2])
    assert {77} == set(small.ravel().tolist())


def test_what_fits_is_left_alone() -> None:
    """
    It is never made larger.
    """
    image = np.zeros((2, 3, 3), np.uint8)
    assert shrunk(image, 128) is image


def test_others_read_the_png_as_it_was_written() -> None:
    """
    Pixel by pixel, and from the URL too.
    """
    image = np.random.default_rng(0).integers(0, 256, (5, 7, 3), np.uint8)
    head, _, content = data_url(image).partition(",")

    assert np.array_equal(image, np.asarray(Image.open(io.BytesIO(png(image)))))
    assert ("data:image/png;base64", png(image)) == (head, base64.b64decode(content))
