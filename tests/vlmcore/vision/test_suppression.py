"""Tests of `vlmcore.vision.suppression`: the rule of torchvision, box by box."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from vlmcore.vision.suppression import iou_matrix, kept_by_nms

_STARTS = st.integers(0, 12)
_LENGTHS = st.integers(1, 8)
BOXES = st.tuples(_STARTS, _STARTS, _LENGTHS, _LENGTHS).map(
    lambda box: (box[0], box[1], box[0] + box[2], box[1] + box[3])
)
FOUND = st.lists(st.tuples(BOXES, st.integers(0, 4), st.integers(0, 2)), max_size=12)


def overlap(one: Any, other: Any) -> float:
    """
    Count pixels: boxes of whole numbers are sets of them.
    """
    first, second = (
        {(x, y) for x in range(box[0], box[2]) for y in range(box[1], box[3])}
        for box in (one, other)
    )
    return len(first & second) / len(first | second)


def brute_force(found: Any, max_iou: float) -> list[int]:
    """
    Take the best that is left, and drop what overlaps with it too much.
    """
    left = sorted(range(len(found)), key=lambda i: -found[i][1])
    kept = []
    while left:
        best = left.pop(0)
        kept.append(best)
        left = [
            i
            for i in left
            if found[i][2] != found[best][2] or overlap(found[i][0], found[best][0]) <= max_iou
        ]
    return kept


@given(found=FOUND, max_iou=st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]))
def test_those_stay_that_stay_when_each_pixel_is_counted(found: Any, max_iou: float) -> None:
    """
    Best first, and only what overlaps by more than the bound goes.
    """
    xyxy = np.array([box for box, _, _ in found], np.float64).reshape(-1, 4)
    scores = np.array([score for _, score, _ in found], np.float64)
    groups = [group for _, _, group in found]

    assert brute_force(found, max_iou) == kept_by_nms(xyxy, scores, groups, max_iou=max_iou)


@given(found=st.lists(BOXES, min_size=1, max_size=6))
def test_overlaps_are_those_of_counted_pixels(found: Any) -> None:
    """
    Every box with every box.
    """
    xyxy = np.array(found, np.float64)

    assert np.allclose([[overlap(a, b) for b in found] for a in found], iou_matrix(xyxy, xyxy))


def test_an_overlap_of_exactly_the_bound_stays() -> None:
    """
    The bound is the most that is borne.
    """
    xyxy = np.array([[0.0, 0, 3, 1], [1.0, 0, 4, 1]])  # 2 of 4 pixels in common

    assert [0, 1] == kept_by_nms(xyxy, np.array([0.9, 0.8]), [0, 0], max_iou=0.5)
    assert [0] == kept_by_nms(xyxy, np.array([0.9, 0.8]), [0, 0], max_iou=0.49)


def test_places_without_extent_overlap_with_nothing() -> None:
    """
    Two points at one place are two points.
    """
    xyxy = np.array([[1.0, 1, 1, 1], [1.0, 1, 1, 1]])

    assert [0, 1] == kept_by_nms(xyxy, np.array([1.0, 1.0]), [0, 0], max_iou=0.0)
