"""What detectors are asked: labels, thresholds, and the models that are known by name."""

import pytest

from vlmcore.errors import ContractError, LimitExceededError, ModelAccessError
from vlmcore.vlm.detector import DetectionOptions, require_labels, split_labels
from vlmcore.vlm.detector_catalog import DEFAULT_DETECTOR, DETECTORS, match_detector
from vlmcore.vlm.sources import resolve_detector


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("person, animal, vehicle", ("person", "animal", "vehicle")),
        ("a cup\na hand\n", ("a cup", "a hand")),
        (" A cup ,, a cup,A cup", ("A cup", "a cup")),
        ("no. 5", ("no. 5",)),
    ],
)
def test_labels_that_are_typed_stand_between_commas_or_on_lines(text, labels) -> None:
    """
    To the letter, each once.
    """
    assert labels == split_labels(text)


@pytest.mark.parametrize("text", ["", " ,\n", "a\tb", 3, None])
def test_text_without_labels_is_refused(text) -> None:
    """
    There is nothing to look for.
    """
    with pytest.raises(ContractError, match="labels"):
        split_labels(text)


def test_there_may_be_a_thousand_labels_and_no_more() -> None:
    """
    The limit is told.
    """
    assert 1000 == len(require_labels([str(i) for i in range(1000)]))
    with pytest.raises(LimitExceededError, match="max_labels: got 1001, limit is 1000"):
        require_labels([str(i) for i in range(1001)])


def test_options_begin_where_those_of_workflows_do() -> None:
    """
    0.3, 0.25, 0.5 and 100, as saved workflows have them.
    """
    options = DetectionOptions()

    assert (0.3, 0.25) == (options.box_threshold, options.text_threshold)
    assert (0.5, 100) == (options.max_iou, options.max_detections)


@pytest.mark.parametrize(
    "wrong",
    [
        {"box_threshold": -0.1},
        {"box_threshold": float("nan")},
        {"text_threshold": 1.1},
        {"max_iou": "half"},
        {"max_iou": True},
        {"max_detections": 0},
        {"max_detections": 1001},
        {"max_detections": 1.0},
    ],
)
def test_options_out_of_their_bounds_are_refused(wrong) -> None:
    """
    With the name of the field.
    """
    with pytest.raises(ContractError, match=next(iter(wrong))):
        DetectionOptions(**wrong)


def test_the_catalog_has_the_labels_of_workflows() -> None:
    """
    To the letter: they are matched so.
    """
    labels = (
        "Grounding DINO Tiny (fast)",
        "Grounding DINO Base",
        "OWLv2 Base Ensemble",
        "OmDet Turbo Swin Tiny (fast)",
    )

    assert labels == tuple(spec.label for spec in DETECTORS)
    for spec in DETECTORS:
        for name in (spec.key, spec.key.upper(), spec.label, spec.repo_id):
            assert spec is match_detector(name)
            assert spec.repo_id == resolve_detector(name).location
    assert DEFAULT_DETECTOR in {spec.key for spec in DETECTORS}


def test_a_detector_that_nobody_knows_is_refused() -> None:
    """
    And a revision that is none.
    """
    with pytest.raises(ModelAccessError, match="there is no such model"):
        resolve_detector("grounding-dino-enormous")
    with pytest.raises(ContractError, match="revision"):
        resolve_detector("grounding-dino-tiny", " ")
