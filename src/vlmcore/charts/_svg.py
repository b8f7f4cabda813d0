"""Charts as SVG: text that browsers draw, made without any package."""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Iterator

import numpy as np

from vlmcore._arrays import Float64Array
from vlmcore.charts._inks import PAPER
from vlmcore.charts._shapes import Box, Glyph, Line, Picture, Sign, Text

__all__ = ["measure", "write"]

_R = 3.6  # half the width of a sign, in pixels


def write(picture: Picture) -> str:
    """Write a picture as one ``svg`` element."""
    width, height = picture.width_px, picture.height_px
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" role="img" '
        f'style="max-width:100%;height:auto;background:{PAPER}">'
    )
    parts = [opening]
    for shape in picture.shapes:
        match shape:
            case Box():
                parts += _box(shape)
            case Line():
                parts.append(_line(shape))
            case Glyph():
                parts.append(_glyph(shape))
            case Text():
                parts += _text(shape)
    return "\n".join([*parts, "</svg>"])


def measure(text: str, size: int) -> float:
    """Say about how wide a text is: browsers choose the font."""
    wide = sum(unicodedata.east_asian_width(character) in "FW" for character in text)
    return size * (0.58 * (len(text) - wide) + 1.05 * wide)


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _points(points: Float64Array) -> str:
    rounded = np.round(points, 1)
    changed = np.append(True, (np.diff(rounded, axis=0) != 0).any(axis=1))
    return " ".join(f"{_number(x)},{_number(y)}" for x, y in rounded[changed].tolist())


def _box(box: Box) -> Iterator[str]:
    width, height = box.right - box.left, box.bottom - box.top
    if width > 0 and height > 0:
        size = f'width="{_number(width)}" height="{_number(height)}"'
        place = f'x="{_number(box.left)}" y="{_number(box.top)}"'
        yield f'<rect {place} {size} fill="{box.colour}"/>'


def _line(line: Line) -> str:
    dash = " ".join(map(_number, line.dash))
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    return (
        f'<polyline points="{_points(line.points)}" fill="none" stroke="{line.colour}" '
        f'stroke-width="{line.width}" stroke-linejoin="round"{dashes}/>'
    )


def _glyph(glyph: Glyph) -> str:
    x, y, colour = _number(glyph.x), _number(glyph.y), glyph.colour
    at, filled = f"M{x} {y}", f'fill="{colour}"'
    hollow = f'fill="{PAPER}" stroke="{colour}" stroke-width="1.5"'
    match glyph.sign:
        case Sign.BROKEN:
            cross = f"{at}m-{_R}-{_R}l{2 * _R} {2 * _R}m0-{2 * _R}l-{2 * _R} {2 * _R}"
            return f'<path d="{cross}" stroke="{colour}" stroke-width="1.9"/>'
        case Sign.LOST:
            return f'<path d="{at}m0-{_R}l{_R} {_R}l-{_R} {_R}l-{_R}-{_R}z" {hollow}/>'
        case Sign.ABOVE:
            return f'<path d="{at}m0-{_R}l{_R} {2 * _R}h-{2 * _R}z" {filled}/>'
        case Sign.BELOW:
            return f'<path d="{at}m0 {_R}l{_R}-{2 * _R}h-{2 * _R}z" {filled}/>'
        case Sign.BEFORE:
            return f'<circle cx="{x}" cy="{y}" r="3" {hollow}/>'
        case Sign.POINT:
            return f'<circle cx="{x}" cy="{y}" r="2.4" {filled}/>'


def _text(text: Text) -> Iterator[str]:
    if text.text:
        yield (
            f'<text x="{_number(text.x)}" y="{_number(text.y + 0.35 * text.size)}" '
            f'fill="{text.colour}" font-size="{text.size}" text-anchor="{text.anchor.value}" '
            f'style="unicode-bidi:isolate">{html.escape(text.text)}</text>'
        )
