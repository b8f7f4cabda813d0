"""Detections drawn over their image."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vlmcore._arrays import UInt8Array, readonly_image
from vlmcore.charts.overlays import Outline, draw_over
from vlmcore.errors import ContractError
from vlmcore.vision.places import Box, Place, Point

if TYPE_CHECKING:
    from vlmcore.vision.detections import Detection, Detections

__all__ = ["draw_detections", "require_image_of"]


def draw_detections(image: UInt8Array, found: Detections) -> UInt8Array:
    """
    Draw what was found over its image, each label in a colour of its own.

    Args:
        image: RGB, uint8, shape ``[H, W, 3]``.
        found: What was found in it.

    Returns:
        A picture of the same shape, read-only.

    Raises:
        ContractError: If *image* is not such an array, or not of the size of what was looked at.
        MissingDependencyError: If Pillow is not installed.
    """
    require_image_of(image, found)
    groups = {label: i for i, label in enumerate(dict.fromkeys(found.labels))}
    outlines = [
        Outline(points=_corners(item.place), label=_words(item), group=groups[item.label])
        for item in found
    ]
    return draw_over(image, outlines)


def require_image_of(image: UInt8Array, found: Detections) -> None:
    """
    Require the image in which something was found.

    Raises:
        ContractError: If it is no image, or of another size.
    """
    readonly_image(image, field="image")
    if image.shape[:2] != (found.height_px, found.width_px):
        height, width = image.shape[:2]
        problem = f"got {height} x {width}, expected {found.height_px} x {found.width_px} pixels"
        raise ContractError("image", problem)


def _corners(place: Place) -> list[tuple[float, float]]:
    match place:
        case Point():
            return [(place.x, place.y)]
        case Box():
            left, top, right, bottom = place.xyxy
            return [(left, top), (right, top), (right, bottom), (left, bottom)]
        case _:
            return list(place.corners)


def _words(item: Detection) -> str:
    score = "" if item.score is None else f"{item.score:.2f}"
    return f"{item.label} {score}".strip()
