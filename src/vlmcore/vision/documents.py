"""
Detections as a JSON document, both ways.

Reading is strict: a document is taken as a whole or refused with all its faults, each with its
place. What is written is read back exactly.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vlmcore.contracts.faults import Faults
from vlmcore.contracts.json_text import read_json, write_json
from vlmcore.contracts.schemas import DocumentKind
from vlmcore.contracts.shapes import Field, ListOf, Number, Record, Text, Whole
from vlmcore.limits import DocumentLimits, VisionLimits
from vlmcore.vision.detections import Detection, Detections
from vlmcore.vision.places import Box, Place, Point, Polygon

__all__ = [
    "DETECTIONS",
    "DOCUMENTS",
    "detections_from_document",
    "detections_from_json",
    "detections_to_document",
    "detections_to_json",
]

_LIMITS = VisionLimits()
_SIDE = Whole(smallest=1, largest=_LIMITS.max_side_px)
_PAIR = ListOf(item=Number(), fewest=2, most=2)

DETECTIONS = DocumentKind(
    name="image-detections",
    title="What was found in an image, and where, in pixels from its upper left corner.",
    keys={
        "height": Field(_SIDE, "Of the image, in pixels."),
        "width": Field(_SIDE, "Of the image, in pixels."),
        "detections": Field(
            ListOf(
                item=Record(
                    fields={
                        "label": Field(
                            Text(blank=True, longest=_LIMITS.max_label_characters),
                            "What it is; empty if that was not said.",
                        ),
                        "score": Field(
                            Number(largest=1.0), "How sure that is, from 0.", optional=True
                        ),
                        "xyxy": Field(
                            ListOf(item=Number(), fewest=4, most=4),
                            "Left, top, right and bottom of a box.",
                            optional=True,
                        ),
                        "point": Field(_PAIR, "x and y of a point.", optional=True),
                        "polygon": Field(
                            ListOf(item=_PAIR, fewest=3, most=_LIMITS.max_corners),
                            "x and y of each corner. One of the three places is there.",
                            optional=True,
                        ),
                    }
                ),
                fewest=0,
                most=_LIMITS.max_detections,
            ),
            "In the order in which they were said.",
        ),
    },
)

#: The documents of this floor by their names.
DOCUMENTS: Mapping[str, DocumentKind] = {DETECTIONS.name: DETECTIONS}


def detections_from_json(text: str | bytes, *, limits: DocumentLimits | None = None) -> Detections:
    """
    Read detections.

    Raises:
        DocumentError: If the document has faults; all of them are listed.
        ContractError: If *text* is not JSON.
        LimitExceededError: If it is larger than *limits* allow.

    Example:
        >>> dog = Detection(place=Point(x=3.0, y=4.0), label="dog")
        >>> found = Detections(height_px=10, width_px=10, items=[dog])
        >>> detections_from_json(detections_to_json(found)) == found
        True
    """
    return detections_from_document(read_json(text, limits=limits))


def detections_to_json(found: Detections) -> str:
    """Write detections."""
    return write_json(detections_to_document(found))


def detections_from_document(value: Any) -> Detections:
    """
    Read detections from plain values.

    Raises:
        DocumentError: If there are faults; all of them are listed.
    """
    faults = Faults(DETECTIONS.name)
    data = DETECTIONS.read(value, faults)
    items = []
    for i, entry in enumerate(data.get("detections", ())):
        path = f"$.detections[{i}]"
        said = [key for key in ("xyxy", "point", "polygon") if key in entry]
        if len(said) != 1:
            words = ", ".join(said) or "no place"
            faults.add(path, f"got {words}, expected one of xyxy, point and polygon")
            continue
        with faults.at(path):
            place = _place(said[0], entry[said[0]])
            items.append(Detection(place=place, label=entry["label"], score=entry.get("score")))
    return faults.finish(
        lambda: Detections(height_px=data["height"], width_px=data["width"], items=items),
        items="$.detections",
    )


def _place(kind: str, numbers: Any) -> Place:
    if kind == "xyxy":
        return Box.of(numbers)
    if kind == "point":
        return Point(x=numbers[0], y=numbers[1])
    return Polygon(corners=numbers)


def detections_to_document(found: Detections) -> dict[str, Any]:
    """Write detections as plain values."""
    return {
        **DETECTIONS.header(),
        "height": found.height_px,
        "width": found.width_px,
        "detections": [_entry(item) for item in found],
    }


def _entry(item: Detection) -> dict[str, Any]:
    score = {} if item.score is None else {"score": item.score}
    return {"label": item.label, **score, **_written(item.place)}


def _written(place: Place) -> dict[str, Any]:
    match place:
        case Box():
            return {"xyxy": list(place.xyxy)}
        case Point():
            return {"point": [place.x, place.y]}
        case Polygon():
            return {"polygon": [list(corner) for corner in place.corners]}
