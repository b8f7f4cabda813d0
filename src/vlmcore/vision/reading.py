"""What models answer about places in an image, read into pixels of the image."""

from __future__ import annotations

import attrs

from vlmcore.errors import ContractError, DocumentError
from vlmcore.limits import VisionLimits, require_at_most
from vlmcore.vision._json_answers import read_json_places
from vlmcore.vision._tag_answers import TAG_READERS
from vlmcore.vision._written import Kind, Notes, Written
from vlmcore.vision.detections import Detection, Detections
from vlmcore.vision.dialects import Dialect, Syntax, find_dialect
from vlmcore.vision.places import Box, Place, Point, Polygon
from vlmcore.vision.views import ImageView

__all__ = ["SpatialAnswer", "read_detections", "read_spatial_answer"]

_LIMITS = VisionLimits()
_BEYOND = 0.05  # how far beyond its scale a number may be and is clipped, as a part of the scale


@attrs.frozen(kw_only=True)
class SpatialAnswer:
    """
    What was read of an answer.

    Attributes:
        detections: What is whole, in the order of the answer.
        faults: The place in the answer of each fault, as ``"$[3].box_2d"``, and what is wrong
            there; at most 100.
    """

    detections: Detections
    faults: tuple[tuple[str, str], ...]


def read_detections(
    text: str, dialect: Dialect | str, view: ImageView, *, label: str = ""
) -> Detections:
    """
    Read an answer that has to be right as a whole.

    Args:
        text: What a model wrote.
        dialect: How it writes, by name or as a `vlmcore.vision.dialects.Dialect`.
        view: The image, and how the model was shown it.
        label: The label of what has none in the answer, as that which was asked for.

    Returns:
        What it says, in pixels of the image. What reaches a little beyond the image is clipped.

    Raises:
        DocumentError: If the answer is cut, has no place in it, or says something that cannot be;
            all faults are listed. `read_spatial_answer` keeps what is whole.
        ContractError: If there is no such dialect.
        LimitExceededError: If it is longer than `vlmcore.limits.VisionLimits` allows.

    Example:
        >>> answer = '[{"box_2d": [250, 100, 750, 900], "label": "dog"}]'
        >>> view = ImageView(height_px=400, width_px=200)
        >>> read_detections(answer, "gemini", view)[0].place.xyxy
        (20.0, 100.0, 180.0, 300.0)
    """
    answer = read_spatial_answer(text, dialect, view, label=label)
    if answer.faults:
        raise DocumentError("answer", answer.faults)
    return answer.detections


def read_spatial_answer(
    text: str, dialect: Dialect | str, view: ImageView, *, label: str = ""
) -> SpatialAnswer:
    """
    Read of an answer what is whole, and list what is not.

    Arguments and errors are those of `read_detections`, but for faults, which are listed.

    Example:
        >>> answer = '[{"bbox_2d": [0, 0, 500, 500], "label": "dog"}, {"bbox_2d": [1'
        >>> read = read_spatial_answer(answer, "qwen3-vl", ImageView(height_px=9, width_px=9))
        >>> read.detections.labels, read.faults[0][1]
        (('dog',), 'is cut or broken: an object or a list is not closed')
    """
    dialect = find_dialect(dialect)
    _require("text", text, str, "what a model wrote")
    _require("view", view, ImageView, "an ImageView")
    require_at_most("max_text_characters", len(text), _LIMITS.max_text_characters)
    notes = Notes()
    if dialect.syntax is Syntax.JSON:
        read_json_places(text, dialect, notes)
    else:
        TAG_READERS[dialect.syntax](text, dialect, notes)
        if not notes.places and not notes.faults:
            notes.fault("$", f"has no place in it, as {dialect.name} writes them")
    items = [item for each in notes.places for item in _whole(each, dialect, view, label, notes)]
    found = Detections(height_px=view.height_px, width_px=view.width_px, items=items)
    return SpatialAnswer(detections=found, faults=tuple(notes.faults))


def _require(field: str, value: object, kind: type, words: str) -> None:
    if not isinstance(value, kind):
        raise ContractError(field, f"got {type(value).__name__}, expected {words}")


def _whole(
    written: Written, dialect: Dialect, view: ImageView, label: str, notes: Notes
) -> tuple[Detection, ...]:
    try:
        return (_detection(written, dialect, view, label),)
    except ContractError as error:
        notes.fault(written.path, f"{error.field}: {error.problem}")
        return ()


def _detection(written: Written, dialect: Dialect, view: ImageView, label: str) -> Detection:
    xs = [_seen(x, view.seen_width_px, dialect) for x in written.numbers[::2]]
    ys = [_seen(y, view.seen_height_px, dialect) for y in written.numbers[1::2]]
    pairs = [view.to_image(x, y) for x, y in zip(xs, ys, strict=True)]
    said = label if written.label is None else " ".join(written.label.split())
    return Detection(place=_place(written.kind, pairs, view), label=said, score=written.score)


def _seen(number: float, side_px: int, dialect: Dialect) -> float:
    """Turn a number of the dialect into pixels of what the model was shown."""
    scale = float(side_px) if dialect.full_scale is None else dialect.full_scale
    if not -_BEYOND * scale <= number <= (1 + _BEYOND) * scale:
        problem = f"got {number:g}, expected 0 to {scale:g}: another dialect, or another size?"
        raise ContractError("number", problem)
    return number * side_px / scale


def _place(kind: Kind, pairs: list[tuple[float, float]], view: ImageView) -> Place:
    clipped = [(_clipped(x, view.width_px), _clipped(y, view.height_px)) for x, y in pairs]
    if kind is Kind.POLYGON:
        return Polygon(corners=clipped)
    if kind is Kind.BOX:
        return Box.of((*clipped[0], *clipped[1]))
    (x, y), (inside_x, inside_y) = pairs[0], clipped[0]
    if abs(x - inside_x) > _BEYOND * view.width_px or abs(y - inside_y) > _BEYOND * view.height_px:
        raise ContractError("point", f"got {x:g}, {y:g}, which is not in the image")
    return Point(x=inside_x, y=inside_y)


def _clipped(value: float, side_px: int) -> float:
    return min(max(value, 0.0), float(side_px))
