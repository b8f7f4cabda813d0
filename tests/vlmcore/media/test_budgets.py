"""Tests of `vlmcore.media.budgets`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmcore.errors import ContractError
from vlmcore.media.budgets import PixelBudget, PixelReport
from vlmcore.media.resizing import Resampling

EDGES = st.integers(1, 5000)
MULTIPLES = st.sampled_from([1, 2, 14, 28, 32])


@st.composite
def budgets(draw: st.DrawFn, **fields: Any) -> PixelBudget:
    """Draw a budget with both bounds, one or none."""
    multiple = draw(MULTIPLES)
    return PixelBudget(
        multiple_px=multiple,
        max_pixels=draw(st.none() | st.integers(multiple**2, 2_000_000)),
        longest_edge_px=draw(st.none() | st.integers(multiple, 3000)),
        **{"may_enlarge": draw(st.booleans()), **fields},
    )


@given(budgets(), EDGES, EDGES)
def test_no_budget_is_exceeded_and_no_edge_is_lost(
    budget: PixelBudget, width: int, height: int
) -> None:
    """
    Neither bound, whatever the proportions; never below 1 pixel.
    """
    after = budget.size_for(width, height)
    assert min(after) >= 1
    assert budget.max_pixels is None or math.prod(after) <= budget.max_pixels
    assert budget.longest_edge_px is None or max(after) <= budget.longest_edge_px


@given(budgets(), EDGES, EDGES)
def test_what_a_budget_gave_is_left_as_it_is(budget: PixelBudget, width: int, height: int) -> None:
    """
    A picture that goes through twice is blurred once.
    """
    once = budget.size_for(width, height)
    assert once == budget.size_for(*once)


@given(budgets(may_enlarge=False), EDGES, EDGES)
def test_nothing_is_made_larger_unless_it_is_asked_for(
    budget: PixelBudget, width: int, height: int
) -> None:
    """
    An edge that is not a multiple was shorter than one.
    """
    after = budget.size_for(width, height)
    for before, edge in zip((width, height), after, strict=True):
        assert edge <= before
        assert edge % budget.multiple_px == 0 or before < budget.multiple_px


@given(budgets(may_enlarge=True), EDGES, EDGES)
def test_edges_that_may_be_enlarged_are_multiples_all(
    budget: PixelBudget, width: int, height: int
) -> None:
    """
    By less than one multiple, or to the first.
    """
    after = budget.size_for(width, height)
    for before, edge in zip((width, height), after, strict=True):
        assert edge % budget.multiple_px == 0
        assert edge < before + budget.multiple_px


@given(budgets(), EDGES, EDGES)
def test_a_picture_lying_and_standing_are_treated_alike(
    budget: PixelBudget, width: int, height: int
) -> None:
    """
    Width and height are exchanged in the result when they are in the source.
    """
    after = budget.size_for(width, height)
    turned = budget.size_for(height, width)
    assert sorted(after) == sorted(turned)


@given(budgets(), st.integers(200, 5000), st.integers(200, 5000))
def test_the_budget_is_used_and_the_proportions_are_kept(
    budget: PixelBudget, width: int, height: int
) -> None:
    """
    Each edge is within one multiple of what real numbers would give, where there is room for that.
    """
    scale = min(
        1.0,
        (budget.longest_edge_px or math.inf) / max(width, height),
        math.sqrt((budget.max_pixels or math.inf) / (width * height)),
    )
    if min(width, height) * scale < 2 * budget.multiple_px:
        return
    after = budget.size_for(width, height)
    assert abs(after[0] - width * scale) <= budget.multiple_px
    assert abs(after[1] - height * scale) <= budget.multiple_px


@pytest.mark.parametrize(
    ("after", "before", "fields"),
    [
        ((1344, 756), (1920, 1080), {"longest_edge_px": 1344, "multiple_px": 14}),
        ((1344, 1), (4000, 1), {"longest_edge_px": 1344, "multiple_px": 14}),
        ((1344, 14), (4000, 1), {"longest_edge_px": 1344, "multiple_px": 14, "may_enlarge": True}),
        ((1344, 14), (4000, 20), {"longest_edge_px": 1344, "multiple_px": 14}),
        ((714, 14), (4000, 20), {"max_pixels": 10_000, "multiple_px": 14}),
        ((28, 28), (20, 20), {"multiple_px": 28, "may_enlarge": True}),
        ((20, 20), (20, 20), {"multiple_px": 28}),
        ((1000, 1000), (8000, 8000), {"max_pixels": 1_000_000}),
        ((640, 480), (640, 480), {}),
        ((1, 1), (9999, 9999), {"max_pixels": 1}),
    ],
)
def test_sizes_that_people_ask_for(
    after: tuple[int, int], before: tuple[int, int], fields: dict[str, Any]
) -> None:
    """
    Width and height, for each.
    """
    assert after == PixelBudget(**fields).size_for(*before)


@pytest.mark.parametrize("multiple", [1, 14, 28, 32])
@pytest.mark.parametrize("megapixels", [0.01, 1.0, 2.3, 64.0])
@pytest.mark.parametrize("edge", [32, 1344, 16_384])
@pytest.mark.parametrize("resampling", Resampling)
def test_every_setting_that_the_node_of_the_pixel_budget_offers_is_a_budget(
    multiple: int, megapixels: float, edge: int, resampling: Resampling
) -> None:
    """
    From the least to the most of each.
    """
    budget = PixelBudget.of_megapixels(
        megapixels, longest_edge_px=edge, multiple_px=multiple, resampling=resampling
    )
    assert round(megapixels * 1_000_000) == budget.max_pixels
    assert max(budget.size_for(4000, 3000)) <= edge


def test_pixels_are_averaged_and_the_same_array_comes_back_where_nothing_changes() -> None:
    """
    One picture, or each frame of a video; what fits is not copied.
    """
    board = (np.indices((64, 96)).sum(axis=0) % 2 * 255).astype(np.uint8)
    image = np.repeat(board[..., np.newaxis], 3, axis=2)
    budget = PixelBudget(longest_edge_px=48, multiple_px=4)

    assert (32, 48, 3) == budget.apply(image).shape
    assert {127, 128} >= set(np.unique(budget.apply(image)).tolist())
    assert (2, 32, 48, 3) == budget.apply(np.stack([image, image])).shape
    small = budget.apply(image)
    assert small is budget.apply(small)


def test_area_and_bicubic_are_not_the_same_pixels() -> None:
    """
    The choice reaches the filter.
    """
    image = np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)
    area, bicubic = (
        PixelBudget(longest_edge_px=20, resampling=each).apply(image) for each in Resampling
    )
    assert area.shape == bicubic.shape
    assert not np.array_equal(area, bicubic)


def test_a_report_counts_the_patches() -> None:
    """
    A part of a patch is one; without a patch there is no count.
    """
    budget = PixelBudget(longest_edge_px=100)
    assert PixelReport(before_px=(400, 300), after_px=(100, 75), tokens=48) == budget.report(
        400, 300, patch_px=14
    )
    assert budget.report(400, 300).tokens is None
    assert 1 / 16 == budget.report(400, 300).share


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        ("max_pixels", {"max_pixels": 195, "multiple_px": 14}),
        ("max_pixels", {"max_pixels": 0}),
        ("longest_edge_px", {"longest_edge_px": 13, "multiple_px": 14}),
        ("longest_edge_px", {"longest_edge_px": 1.5}),
        ("multiple_px", {"multiple_px": True}),
        ("resampling", {"resampling": "area"}),
        ("may_enlarge", {"may_enlarge": 1}),
    ],
)
def test_a_budget_without_room_for_one_multiple_is_refused(
    field: str, fields: dict[str, Any]
) -> None:
    """
    So no size has to break it.
    """
    with pytest.raises(ContractError) as caught:
        PixelBudget(**fields)
    assert field == caught.value.field


@pytest.mark.parametrize("megapixels", [0, -1.0, float("nan"), float("inf"), "1"])
def test_megapixels_that_are_no_amount_are_refused(megapixels: Any) -> None:
    """
    Zero and NaN among them.
    """
    with pytest.raises(ContractError, match="megapixels"):
        PixelBudget.of_megapixels(megapixels)


def test_only_pictures_and_videos_are_taken() -> None:
    """
    Floats, lists and other ranks are refused in words.
    """
    for wrong in (np.zeros((4, 4, 3)), [[1]], np.zeros((4, 4), np.uint8)):
        with pytest.raises(ContractError, match="pixels"):
            PixelBudget().apply(wrong)  # type: ignore[arg-type]
