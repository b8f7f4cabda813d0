"""Tests of `vlmcore.vision.detections`: what was found, filtered, suppressed and shown."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from vlmcore.errors import ContractError, LimitExceededError
from vlmcore.vision.detections import Detection, Detections
from vlmcore.vision.places import Box, Point, Polygon

DOG = Detection(place=Box.of((10, 10, 50, 50)), label="dog", score=0.9)
TWIN = Detection(place=Box.of((12, 10, 50, 50)), label="dog", score=0.8)
CAT = Detection(place=Box.of((11, 10, 50, 50)), label="cat", score=0.7)
NOSE = Detection(place=Point(x=20.0, y=30.0), label="nose")
LAWN = Detection(place=Polygon(corners=[(0, 60), (99, 60), (99, 99)]), label="lawn", score=0.4)
FOUND = Detections(height_px=100, width_px=120, items=[DOG, TWIN, CAT, NOSE, LAWN])


def test_arrays_hold_bounds_scores_and_nothing_where_nothing_was_said() -> None:
    """
    One row each, in the order of the answer; a missing score is NaN, not 0.
    """
    assert [[10, 10, 50, 50], [20, 30, 20, 30]] == FOUND.xyxy[[0, 3]].tolist()
    assert [False, False, False, True, False] == np.isnan(FOUND.scores).tolist()
    assert ("dog", "dog", "cat", "nose", "lawn") == FOUND.labels
    assert (0, 4) == Detections(height_px=1, width_px=1).xyxy.shape


def test_arrays_cannot_be_written_to() -> None:
    """
    What was found does not change.
    """
    with pytest.raises(ValueError, match="read-only"):
        FOUND.xyxy[0, 0] = 5.0


@pytest.mark.parametrize(
    ("filters", "left"),
    [
        ({}, (DOG, TWIN, CAT, NOSE, LAWN)),
        ({"labels": ["cat", "nose"]}, (CAT, NOSE)),
        ({"min_score": 0.7}, (DOG, TWIN, CAT)),
        ({"min_area_px": 1.0}, (DOG, TWIN, CAT, LAWN)),
        ({"min_area_px": 3000.0}, (LAWN,)),
        ({"most": 2}, (DOG, TWIN)),
        ({"most": 4}, (DOG, TWIN, CAT, LAWN)),
        ({"labels": []}, ()),
    ],
)
def test_filters_keep_the_order(filters: dict[str, Any], left: tuple[Detection, ...]) -> None:
    """
    Labels, scores, areas, and the best so many.
    """
    assert left == FOUND.where(**filters).items


def test_a_lone_text_is_not_a_list_of_labels() -> None:
    """
    The characters of a label are labels that nobody meant.
    """
    with pytest.raises(ContractError, match="labels: got 'dog', expected a list of labels"):
        FOUND.where(labels="dog")


def test_suppression_is_by_label_unless_told_otherwise() -> None:
    """
    A cat on a dog's lap overlaps with the dog.
    """
    assert (DOG, CAT, NOSE, LAWN) == FOUND.suppressed(0.5).items
    assert (DOG, NOSE, LAWN) == FOUND.suppressed(0.5, per_label=False).items


def test_what_has_no_score_gives_way_to_what_has_one_and_to_what_was_said_first() -> None:
    """
    Language models repeat a box word by word; the first stays.
    """
    unsaid = [Detection(place=Box.of((0, 0, 9, 9)), label=label) for label in ("a", "b", "a")]
    scored = Detection(place=Box.of((0, 0, 9, 9)), label="b", score=0.0)
    found = Detections(height_px=9, width_px=9, items=[*unsaid, scored])

    assert (unsaid[0], scored) == found.suppressed().items


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"items": [DOG], "height_px": 40}, r"items\[0\].place: got 10, 10, 50, 50, expected"),
        ({"items": "dog"}, r"items\[0\]: got str, expected a Detection"),
        ({"items": 3}, "items: got int, expected a list of Detection"),
        ({"height_px": 0}, "height_px: got 0"),
    ],
)
def test_what_lies_outside_its_image_is_refused(fields: dict[str, Any], message: str) -> None:
    """
    Who cuts and draws can count on it.
    """
    with pytest.raises(ContractError, match=message):
        Detections(**{"height_px": 100, "width_px": 100, "items": (), **fields})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"place": (1, 2, 3, 4)}, "place: got tuple, expected a Box, a Point or a Polygon"),
        ({"label": "a\nb"}, "label: got 'a.nb', expected no control characters"),
        ({"label": None}, "label: got NoneType"),
        ({"score": 1.5}, "score: got 1.5, expected a number from 0.0 to 1.0"),
        ({"score": np.nan}, "score: got nan"),
        ({"score": True}, "score: got True"),
    ],
)
def test_a_detection_is_one_that_can_be(fields: dict[str, Any], message: str) -> None:
    """
    A place, a label on one line, a score from 0 to 1.
    """
    with pytest.raises(ContractError, match=message):
        Detection(**{"place": Point(x=1.0, y=1.0), **fields})


def test_more_than_a_model_says_is_refused() -> None:
    """
    The bound is that of the door of answers.
    """
    with pytest.raises(LimitExceededError, match="max_detections: got 4097, limit is 4096"):
        Detections(height_px=100, width_px=120, items=[NOSE] * 4097)


def test_detections_are_compared_by_value_and_survive_pickling() -> None:
    """
    They cross processes.
    """
    assert FOUND == pickle.loads(pickle.dumps(FOUND)) == copy.deepcopy(FOUND)
    assert (DOG, 5) == (FOUND[0], len(list(FOUND)))


def test_a_notebook_shows_labels_escaped_and_counts_the_rest() -> None:
    """
    A label is the text of a model.
    """
    bad = Detection(place=Point(x=1.0, y=1.0), label="<script>")
    page = Detections(height_px=9, width_px=9, items=[bad] * 60)._repr_html_()

    assert "<script>" not in page
    assert "… and 12 more" in page
    assert "60 found" in page
