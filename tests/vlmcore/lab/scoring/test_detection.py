"""Tests of `vlmcore.lab.scoring.detection`."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmcore.errors import ContractError
from vlmcore.lab.scoring.detection import DetectionEvaluator
from vlmcore.lab.scoring.scores import Evaluator, ScoreFlag
from vlmcore.testing.contract_strategies import hostile_json
from vlmcore.vision.detections import Detection, Detections
from vlmcore.vision.places import Box, Point

DOG, CAT = (100, 100, 300, 300), (500, 500, 900, 700)


def expected(*boxes: tuple[str, tuple[float, ...]]) -> Detections:
    """Say what is in an image of 1000 x 1000 pixels."""
    items = [Detection(place=Box.of(box), label=label) for label, box in boxes]
    return Detections(height_px=1000, width_px=1000, items=items)


def answer(*boxes: tuple[str, tuple[float, ...]]) -> str:
    """Write what a Qwen3-VL would."""
    return json.dumps([{"label": label, "bbox_2d": list(box)} for label, box in boxes])


BOTH = DetectionEvaluator(expected=expected(("dog", DOG), ("cat", CAT)), dialect="qwen3-vl")


def test_boxes_that_overlap_enough_are_found() -> None:
    """
    In any order, and whatever the capitals of a label.
    """
    score = BOTH.score(answer(("Cat", CAT), ("a dog", DOG), ("dog", (110, 100, 310, 300))))

    assert 2 * 2 / (3 + 2) == score.value
    assert "2 of 2 boxes found, 1 too many" == score.reason


@pytest.mark.parametrize(("iou", "value"), [(1 / 3, 1.0), (0.34, 0.0)])
def test_the_overlap_is_intersection_over_union_and_the_bound_is_met_at_it(
    iou: float, value: float
) -> None:
    """
    Two boxes, half over each other, have a third in common.
    """
    evaluator = DetectionEvaluator(
        expected=expected(("dog", (0, 0, 200, 100))), dialect="qwen3-vl", min_iou=iou
    )

    assert value == evaluator.score(answer(("dog", (100, 0, 300, 100)))).value


def test_a_box_of_another_label_is_not_found_and_one_without_is_where_there_is_one_label() -> None:
    """
    A model that is asked for dogs writes no label.
    """
    dogs = DetectionEvaluator(expected=expected(("dog", DOG)), dialect="qwen3-vl")
    bare = json.dumps([{"bbox_2d": list(DOG)}])

    assert 0.0 == dogs.score(answer(("cat", DOG))).value
    assert 1.0 == dogs.score(bare).value
    assert 0.0 == BOTH.score(bare).value


def test_a_box_counts_once_and_boxes_everywhere_find_nothing() -> None:
    """
    What is too much lowers the score as much as what is missing.
    """
    dogs = DetectionEvaluator(expected=expected(("dog", DOG)), dialect="qwen3-vl")
    everywhere = [("dog", (x, y, x + 200, y + 200)) for x in range(0, 800, 50) for y in (0, 100)]

    assert 2 / 3 == dogs.score(answer(("dog", DOG), ("dog", DOG))).value
    assert dogs.score(answer(*everywhere)).value < 0.1
    assert 0.0 == dogs.score("[]").value


def test_the_pairs_that_overlap_most_come_first() -> None:
    """
    Whatever the order of the answer.
    """
    near = DetectionEvaluator(
        expected=expected(("dog", (0, 0, 100, 100)), ("dog", (50, 0, 150, 100))),
        dialect="qwen3-vl",
        min_iou=0.3,
    )

    assert 1.0 == near.score(answer(("dog", (50, 0, 150, 100)), ("dog", (0, 0, 100, 100)))).value


def test_an_answer_that_is_cut_or_broken_counts_what_is_whole_and_is_flagged() -> None:
    """
    Unless the case asks for a whole one.
    """
    cut = answer(("dog", DOG), ("cat", CAT))[:-30]
    score = BOTH.score(cut, finish_reason="length")
    strict = DetectionEvaluator(expected=BOTH.expected, dialect="qwen3-vl", must_be_whole=True)

    assert 2 / 3 == score.value
    assert (ScoreFlag.CUT, ScoreFlag.BROKEN) == score.flags
    assert "1 of 2 boxes found, 0 too many; faults: 1, the first at $: is cut" in score.reason
    assert 0.0 == strict.score(cut, finish_reason="length").value


def test_a_dialect_of_pixels_is_read_in_pixels_of_what_was_shown() -> None:
    """
    The image was made smaller before the model saw it.
    """
    evaluator = DetectionEvaluator(
        expected=expected(("dog", DOG)), dialect="pixels", seen_height_px=500, seen_width_px=500
    )

    assert 1.0 == evaluator.score('{"label": "dog", "box": [50, 50, 150, 150]}').value


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"expected": [1]}, "expected"),
        ({"expected": Detections(height_px=9, width_px=9)}, "expected"),
        ({"expected": expected(("", DOG))}, "expected[0]"),
        (
            {
                "expected": Detections(
                    height_px=9, width_px=9, items=[Detection(place=Point(x=1, y=1), label="a")]
                )
            },
            "expected[0]",
        ),
        ({"dialect": "klingon"}, "dialect"),
        ({"dialect": 1}, "dialect"),
        ({"min_iou": 0}, "min_iou"),
        ({"min_iou": 1.1}, "min_iou"),
        ({"min_iou": True}, "min_iou"),
        ({"seen_width_px": -1}, "seen_width_px"),
        ({"must_be_whole": 1}, "must_be_whole"),
    ],
)
def test_what_cannot_be_scored_is_refused_when_the_suite_is_made(
    wrong: dict[str, Any], field: str
) -> None:
    """
    Before anything is asked.
    """
    usual: dict[str, Any] = {"expected": expected(("dog", DOG)), "dialect": "qwen3-vl"}
    with pytest.raises(ContractError) as caught:
        DetectionEvaluator(**usual | wrong)
    assert field == caught.value.field


@given(text=hostile_json() | st.text(alphabet='[]{}"bbox_2d:,0123'))
def test_any_text_has_a_score(text: str) -> None:
    """
    Points, polygons, faults and nonsense among them.
    """
    score = BOTH.score(text)
    assert 0.0 <= score.value <= 1.0
    assert isinstance(BOTH, Evaluator)


def test_more_boxes_than_are_read_have_a_score() -> None:
    """
    And take no memory that grows with them.
    """
    score = BOTH.score("[" + '{"bbox_2d": [1, 2, 3, 4]},' * 5000 + "]")

    assert (0.0, (ScoreFlag.BROKEN,)) == (score.value, score.flags)
