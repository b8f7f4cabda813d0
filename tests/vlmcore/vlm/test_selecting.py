"""Of all boxes of a detector, those that are given back."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from vlmcore.vlm._selecting import selected

LABELS = ("cup", "hand")
BOXES = arrays.arrays(np.float64, (6, 4), elements=st.floats(-50, 150))
PARTS = st.floats(0, 1)
SCORES = arrays.arrays(np.float64, (6, 2), elements=PARTS)


def chosen(xyxy, scores, **changes):
    rules = {"size_px": (80, 100), "lowest_score": 0.0, "max_iou": None, "most": 100}
    return selected(np.array(xyxy), np.array(scores), LABELS, **{**rules, **changes})


def test_a_box_has_the_label_of_its_highest_score_and_of_equal_ones_the_first() -> None:
    """
    The highest score comes first.
    """
    boxes = [[0.0, 0, 10, 10], [20, 0, 30, 10], [40, 0, 50, 10]]
    found = chosen(boxes, [[0.2, 0.4], [0.9, 0.1], [0.3, 0.3]])

    assert ("cup", "hand", "cup") == found.labels
    assert [0.9, 0.4, 0.3] == found.scores.tolist()


def test_what_lies_outside_is_cut_off_and_dropped_where_nothing_is_left() -> None:
    """
    Also boxes that are turned inside out.
    """
    boxes = [[-5.0, -5, 10, 90], [100, 0, 120, 10], [30, 30, 20, 20]]
    found = chosen(boxes, [[0.9, 0.0]] * 3)

    assert [[0.0, 0.0, 10.0, 80.0]] == found.xyxy.tolist()


def test_boxes_of_other_labels_may_overlap() -> None:
    """
    Of one label the highest score stays.
    """
    boxes = [[0.0, 0, 10, 10]] * 3
    found = chosen(boxes, [[0.9, 0.0], [0.8, 0.0], [0.0, 0.7]], max_iou=0.5)

    assert ("cup", "hand") == found.labels


@given(boxes=BOXES, scores=SCORES, low=PARTS, high=PARTS, most=st.integers(1, 6))
def test_a_higher_threshold_chooses_a_part_of_what_a_lower_one_does(
    boxes, scores, low, high, most
) -> None:
    """
    Whatever the boxes are, with and without overlaps.
    """
    low, high = sorted((low, high))
    for max_iou in (None, 0.3):
        loose = chosen(boxes, scores, lowest_score=low, max_iou=max_iou)
        strict = chosen(boxes, scores, lowest_score=high, max_iou=max_iou)
        few = chosen(boxes, scores, lowest_score=low, max_iou=max_iou, most=most)

        assert strict.items == loose.items[: len(strict)]
        assert few.items == loose.items[:most]
        assert all(loose.scores >= low)
