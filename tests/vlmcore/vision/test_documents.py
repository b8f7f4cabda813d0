"""Tests of `vlmcore.vision.documents`: detections as JSON, both ways."""

from __future__ import annotations

import contextlib
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmcore.errors import ContractError, DocumentError
from vlmcore.testing.contract_strategies import hostile_json
from vlmcore.vision.detections import Detection, Detections
from vlmcore.vision.documents import (
    DETECTIONS,
    detections_from_document,
    detections_from_json,
    detections_to_document,
    detections_to_json,
)
from vlmcore.vision.places import Box, Point, Polygon

AT = st.floats(0, 99, allow_subnormal=False)
CORNERS = st.lists(st.tuples(AT, AT), min_size=3, max_size=5)


def _is_flat(corners: list[tuple[float, float]]) -> bool:
    return any(len(set(axis)) == 1 for axis in zip(*corners, strict=True))


BOXES = st.tuples(AT, AT, AT, AT).map(
    lambda box: Box.of((box[0], box[1], 1.0 + max(box[0], box[2]), 1.0 + max(box[1], box[3])))
)
PLACES = st.one_of(
    BOXES,
    st.builds(Point, x=AT, y=AT),
    CORNERS.filter(lambda corners: not _is_flat(corners)).map(lambda c: Polygon(corners=c)),
)
FOUND = st.builds(
    Detections,
    height_px=st.just(100),
    width_px=st.just(100),
    items=st.lists(
        st.builds(
            Detection,
            place=PLACES,
            label=st.sampled_from(["", "dog", "크다", "a<b>"]),
            score=st.none() | st.floats(0, 1),
        ),
        max_size=5,
    ),
)


@given(found=FOUND)
def test_what_is_written_is_read_back_exactly_and_fits_the_schema(found: Detections) -> None:
    """
    Boxes, points and polygons, with scores and without.
    """
    document = detections_to_document(found)

    jsonschema.validate(document, DETECTIONS.json_schema())
    assert found == detections_from_json(detections_to_json(found))


@given(text=hostile_json())
def test_any_text_gives_detections_or_our_error(text: str) -> None:
    """
    Documents come from files that anybody wrote.
    """
    with contextlib.suppress(ContractError):
        detections_from_json(text)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"label": "a"}, r"\$.detections\[0\]: got no place, expected one of xyxy, point and"),
        (
            {"label": "a", "point": [1, 2], "xyxy": [1, 2, 3, 4]},
            r"\$.detections\[0\]: got xyxy, point, expected one",
        ),
        ({"label": "a", "xyxy": [3, 2, 1, 4]}, r"\$.detections\[0\]: got 1, expected more than 3"),
        ({"label": "a", "point": [1, 200]}, r"\$.detections.*got 1, 200, 1, 200, expected a place"),
        ({"label": "a", "point": [1]}, r"\$.detections\[0\].point"),
        ({"label": "a", "point": [1, 2], "score": 2}, r"\$.detections\[0\].score: got 2"),
        ({"point": [1, 2]}, r"\$.detections\[0\].label: is missing"),
    ],
)
def test_faults_are_told_by_their_place(entry: dict[str, Any], message: str) -> None:
    """
    A person mends them all at once.
    """
    document = {"height": 100, "width": 100, "detections": [entry]}

    with pytest.raises(DocumentError, match=message):
        detections_from_document(document)
