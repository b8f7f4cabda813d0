"""Tests of `vlmcore.media.resizing`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmcore.errors import ContractError
from vlmcore.media.resizing import fit_longest_edge, fit_pixel_budget, resize

EDGES = st.integers(1, 400)


def image(height: int, width: int) -> Any:
    """Build an image."""
    return np.zeros((height, width, 3), np.uint8)


@given(EDGES, EDGES, st.integers(1, 300))
def test_the_longest_edge_is_what_was_asked_for_and_none_is_lost(
    height: int, width: int, edge: int
) -> None:
    """
    Exactly the edge, never below 1 pixel, the proportions kept to half a pixel.
    """
    resized = fit_longest_edge(image(height, width), edge)
    assert min(edge, max(height, width)) == max(resized.shape[:2])
    assert min(resized.shape) >= 1
    scale = min(1, edge / max(height, width))
    assert abs(resized.shape[0] - max(1, height * scale)) <= 0.5
    assert abs(resized.shape[1] - max(1, width * scale)) <= 0.5


@given(EDGES, EDGES, st.integers(1, 20_000))
def test_the_pixel_budget_is_kept_and_used(height: int, width: int, budget: int) -> None:
    """
    At most the budget, never below 1 pixel an edge, and not needlessly small.
    """
    resized = fit_pixel_budget(image(height, width), budget)
    pixels = resized.shape[0] * resized.shape[1]
    assert 1 <= pixels <= budget
    if height * width > budget and min(resized.shape[:2]) >= 20:
        assert pixels >= 0.85 * budget


@pytest.mark.parametrize("shape", [(1, 4000), (4000, 1)])
def test_extreme_shapes_keep_one_pixel(shape: tuple[int, int]) -> None:
    """
    1 x 4000 to a longest edge of 10 is 1 x 10.
    """
    assert {1, 10} == set(fit_longest_edge(image(*shape), 10).shape[:2])
    assert {1, 10} == set(fit_pixel_budget(image(*shape), 10).shape[:2])


def test_what_fits_is_returned_as_it_is() -> None:
    """
    No copy, no blur: nothing is ever made larger.
    """
    small = image(3, 5)
    assert small is fit_longest_edge(small, 5)
    assert small is fit_pixel_budget(small, 15)


def test_shrinking_averages_and_does_not_pick() -> None:
    """
    A fine checkerboard becomes grey, not stripes.
    """
    board = np.indices((64, 64)).sum(axis=0) % 2 * 255
    grey = fit_longest_edge(np.repeat(board[..., np.newaxis], 3, axis=2).astype(np.uint8), 8)
    assert np.abs(grey[2:-2, 2:-2].astype(int) - 127).max() <= 4


def test_an_exact_size_is_what_it_says() -> None:
    """
    A new array, also for the size that it has.
    """
    given_image = image(5, 7)
    resized = resize(given_image, height_px=5, width_px=7)
    assert (5, 7, 3) == resized.shape
    assert not np.shares_memory(given_image, resized)
    assert resized.flags.writeable
    assert (9, 2, 3) == resize(given_image, height_px=9, width_px=2).shape


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "8"])
def test_a_size_is_a_whole_number(wrong: Any) -> None:
    """
    Named in the error.
    """
    with pytest.raises(ContractError, match=r"^longest_edge_px: got"):
        fit_longest_edge(image(5, 7), wrong)
    with pytest.raises(ContractError, match=r"^max_pixels: got"):
        fit_pixel_budget(image(5, 7), wrong)
    with pytest.raises(ContractError, match=r"^height_px: got"):
        resize(image(5, 7), height_px=wrong, width_px=1)


@pytest.mark.parametrize("wrong", [np.zeros((5, 7)), np.zeros((5, 7, 4), np.uint8), "a.png"])
def test_only_rgb_images_are_resized(wrong: Any) -> None:
    """
    Loading comes first.
    """
    with pytest.raises(ContractError, match=r"^image: got"):
        fit_longest_edge(wrong, 2)
