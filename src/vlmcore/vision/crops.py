"""Parts of an image cut out around what was found in it."""

from __future__ import annotations

import math

import attrs
import numpy as np

from vlmcore._arrays import UInt8Array, immutable, require_count, require_finite_between
from vlmcore.errors import ContractError
from vlmcore.media.resizing import resize
from vlmcore.vision.detections import Detection, Detections
from vlmcore.vision.drawing import require_image_of

__all__ = ["Crop", "crop_detections"]

_LARGEST_SCALE = 16.0


@attrs.frozen(kw_only=True, eq=False)
class Crop:
    """
    A part of an image.

    Attributes:
        detection: Around what it is.
        pixels: RGB, uint8, shape ``[H, W, 3]``, read-only.
        window_px: Left, top, right and bottom of the part, in pixels of the image. Of a square it
            may reach beyond the image; there it is black.
    """

    detection: Detection
    pixels: UInt8Array = attrs.field(repr=False)
    window_px: tuple[int, int, int, int]


def crop_detections(
    image: UInt8Array,
    found: Detections,
    *,
    scale: float = 1.0,
    square: bool = False,
    size_px: int | None = None,
) -> tuple[Crop, ...]:
    """
    Cut out what was found.

    Args:
        image: RGB, uint8, shape ``[H, W, 3]``, in which it was found.
        found: What was found. Points have no extent, and are left out.
        scale: How much larger than what was found each part is, about its centre, 1 to 16.
        square: Whether each part is a square: the shorter side grows, and the square is moved into
            the image as far as it fits.
        size_px: The side to which squares are resized; ``None`` leaves them.

    Returns:
        One part for each, in their order.

    Raises:
        ContractError: If *image* is not the one, or an argument is not as described.
        MissingDependencyError: If *size_px* is given, and Pillow is not installed.

    Example:
        >>> from vlmcore.vision.places import Box
        >>> dog = Detection(place=Box.of((2, 1, 6, 3)))
        >>> found = Detections(height_px=10, width_px=10, items=[dog])
        >>> crop_detections(np.zeros((10, 10, 3), np.uint8), found, square=True)[0].window_px
        (2, 0, 6, 4)
    """
    require_image_of(image, found)
    require_finite_between(1.0, _LARGEST_SCALE, scale=scale)
    if size_px is not None:
        require_count(size_px=size_px)
        if not square:
            raise ContractError("size_px", f"got {size_px}, expected None: parts are not square")
    crops = []
    for item in found:
        left, top, right, bottom = item.place.bounds
        if (left, top) == (right, bottom):
            continue
        across, down = right - left, bottom - top
        if square:
            across = down = max(across, down)
        window = (
            *_span(left, right, across * scale, found.width_px, square=square),
            *_span(top, bottom, down * scale, found.height_px, square=square),
        )
        crops.append(_cut(image, item, (window[0], window[2], window[1], window[3]), size_px))
    return tuple(crops)


def _span(start: float, end: float, length: float, side: int, *, square: bool) -> tuple[int, int]:
    """Choose the first pixel along one axis, and the one after the last."""
    middle = (start + end) / 2
    if not square:
        low, high = math.floor(middle - length / 2), math.ceil(middle + length / 2)
        return max(0, low), min(side, high)
    whole = math.ceil(length)
    low = math.floor(middle - whole / 2)
    low = min(max(low, 0), side - whole) if whole <= side else (side - whole) // 2
    return low, low + whole


def _cut(
    image: UInt8Array, item: Detection, window: tuple[int, int, int, int], size_px: int | None
) -> Crop:
    left, top, right, bottom = window
    height, width = image.shape[:2]
    part = np.zeros((bottom - top, right - left, 3), np.uint8)
    inner = image[max(0, top) : min(height, bottom), max(0, left) : min(width, right)]
    down, across = max(0, -top), max(0, -left)
    part[down : down + inner.shape[0], across : across + inner.shape[1]] = inner
    if size_px is not None:
        part = resize(part, height_px=size_px, width_px=size_px)
    return Crop(detection=item, pixels=immutable(part), window_px=window)
