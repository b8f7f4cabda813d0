"""Outlines with labels, drawn over an image with Pillow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from vlmcore._arrays import (
    Float64Array,
    UInt8Array,
    readonly_float64,
    readonly_image,
    require_count,
)
from vlmcore._optional import optional_dependency
from vlmcore.charts._inks import PAPER
from vlmcore.charts._shapes import Box, Glyph, Line, Picture, Shape, Sign, Text
from vlmcore.charts._styles import COLOURS
from vlmcore.limits import ChartLimits

__all__ = ["Outline", "draw_over"]

_LIMITS = ChartLimits()
_TEXT_PX, _PAD_PX, _SHOWN_CHARACTERS = 13, 3, 48


def _points(value: Any) -> Float64Array:
    return readonly_float64(value, field="points", axes="[N, 2]")


@attrs.frozen(kw_only=True, eq=False)
class Outline:
    """
    What is drawn around something.

    Attributes:
        points: x and y of each corner in pixels, shape ``[N, 2]``, closed; one point is a dot.
        label: Written beside it; empty for nothing.
        group: Outlines of one group have one colour.
    """

    points: Float64Array = attrs.field(converter=_points)
    label: str = ""
    group: int = 0


def draw_over(image: UInt8Array, outlines: Sequence[Outline], *, line_px: int = 2) -> UInt8Array:
    """
    Draw outlines over an image.

    Args:
        image: RGB, uint8, shape ``[H, W, 3]``.
        outlines: What to draw, the hindmost first.
        line_px: Width of the lines.

    Returns:
        A picture of the same shape, read-only.

    Raises:
        ContractError: If *image* is not such an array.
        MissingDependencyError: If Pillow is not installed.
    """
    readonly_image(image, field="image")
    require_count(line_px=line_px)
    with optional_dependency("plot", "PIL"):
        from vlmcore.charts import _pillow  # noqa: PLC0415 - the door
    height, width = image.shape[:2]
    lines: list[Shape] = []
    names: list[Shape] = []
    for outline in outlines:
        colour = COLOURS[outline.group % len(COLOURS)]
        lines += _outline(outline, colour, line_px)
        if outline.label:
            text = outline.label[:_SHOWN_CHARACTERS]
            names += _name(outline, text, colour, width, _pillow.measure(text, _TEXT_PX))
    picture = Picture(width, height, tuple(lines + names))
    times = 2 if width * height * 4 <= _LIMITS.max_drawn_pixels else 1
    return _pillow.paint(picture, supersampling=times, background=image)


def _outline(outline: Outline, colour: str, line_px: int) -> list[Shape]:
    points = outline.points
    if len(points) == 1:
        (x, y) = points[0].tolist()
        return [Glyph(Sign.BEFORE, x, y, colour)]
    closed = np.concatenate([points, points[:2]])
    return [Line(closed, PAPER, line_px + 2), Line(closed, colour, line_px)]


def _name(outline: Outline, text: str, colour: str, width: int, measured: float) -> list[Shape]:
    """Write a label above its outline, or within where there is no room."""
    left, top = outline.points.min(axis=0).tolist()
    long, high = measured + 2 * _PAD_PX, _TEXT_PX + 2 * _PAD_PX
    left = max(0.0, min(left, width - long))
    top = top - high if top >= high else top
    return [
        Box(left, top, left + long, top + high, colour),
        Text(left + _PAD_PX, top + high / 2, text, PAPER, _TEXT_PX),
    ]
