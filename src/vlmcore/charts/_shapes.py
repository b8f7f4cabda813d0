"""What a picture is made of, in pixels from its upper left corner."""

from __future__ import annotations

import enum
from typing import TypeAlias

import attrs

from vlmcore._arrays import Float64Array

__all__ = ["Anchor", "Box", "Glyph", "Line", "Picture", "Shape", "Sign", "Text"]


class Sign(enum.Enum):
    """A small sign that stands at one place."""

    BROKEN = "broken"  # a cross: the value breaks something
    LOST = "lost"  # a diamond: NaN
    ABOVE = "above"  # a triangle that points up: the value is beyond the edge
    BELOW = "below"  # a triangle that points down
    BEFORE = "before"  # a ring: what was sent before the first step
    POINT = "point"  # a dot: a value without neighbours


class Anchor(enum.Enum):
    """Which side of a text is at its place."""

    START = "start"
    MIDDLE = "middle"
    END = "end"


@attrs.frozen
class Box:
    """A filled rectangle."""

    left: float
    top: float
    right: float
    bottom: float
    colour: str


@attrs.frozen(eq=False)
class Line:
    """A line through points of shape ``[N, 2]``."""

    points: Float64Array
    colour: str
    width: float
    dash: tuple[float, ...] = ()


@attrs.frozen
class Glyph:
    """A sign at a place."""

    sign: Sign
    x: float
    y: float
    colour: str


@attrs.frozen
class Text:
    """One line of text, *y* at the middle of its height."""

    x: float
    y: float
    text: str
    colour: str
    size: int
    anchor: Anchor = Anchor.START


Shape: TypeAlias = Box | Line | Glyph | Text


@attrs.frozen(eq=False)
class Picture:
    """Shapes from the hindmost to the foremost, and the size of what they are on."""

    width_px: int
    height_px: int
    shapes: tuple[Shape, ...]
