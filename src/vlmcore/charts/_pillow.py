"""Charts as pixels: shapes are drawn larger and made smaller, which smooths them; texts are not."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from vlmcore._arrays import UInt8Array, immutable
from vlmcore.charts._inks import PAPER
from vlmcore.charts._lines import dashed
from vlmcore.charts._shapes import Anchor, Box, Glyph, Line, Picture, Sign, Text

__all__ = ["measure", "paint"]

_ANCHORS = {Anchor.START: "lm", Anchor.MIDDLE: "mm", Anchor.END: "rm"}


def paint(
    picture: Picture, *, supersampling: int, background: UInt8Array | None = None
) -> UInt8Array:
    """
    Draw a picture.

    Args:
        picture: What is where.
        supersampling: How much larger shapes are drawn before they are made smaller.
        background: What it is drawn over, of its size; ``None`` for paper.

    Returns:
        RGB, shape ``[H, W, 3]``.
    """
    width, height = picture.width_px, picture.height_px
    size = (width * supersampling, height * supersampling)
    if background is None:
        large = Image.new("RGB", size, PAPER)
    else:
        large = Image.fromarray(background).resize(size, Image.Resampling.NEAREST)
    pen = ImageDraw.Draw(large)
    for shape in picture.shapes:
        match shape:
            case Box():
                _box(pen, shape, supersampling)
            case Line():
                _line(pen, shape, supersampling)
            case Glyph():
                _glyph(pen, shape, supersampling)
            case Text():
                pass
    image = large.reduce(supersampling) if supersampling > 1 else large
    for shape in picture.shapes:
        if isinstance(shape, Text) and shape.text:
            written, left, top = _written(_drawable(shape.text), shape.size, shape.anchor)
            image.paste(shape.colour, (round(shape.x) + left, round(shape.y) + top), written)
    return immutable(np.asarray(image))


@lru_cache(maxsize=256)  # numbers and names are the same from picture to picture
def _written(text: str, size: int, anchor: Anchor) -> tuple[Image.Image, int, int]:
    """Write a text, as what ink covers, and where its corner is from the place that it is at."""
    font, at = _font(size), _ANCHORS[anchor]
    left, top, right, bottom = map(round, font.getbbox(text, anchor=at))
    covered = Image.new("L", (max(1, right - left), max(1, bottom - top)))
    ImageDraw.Draw(covered).text((-left, -top), text, fill=255, font=font, anchor=at)
    return covered, left, top


@lru_cache(maxsize=1024)
def measure(text: str, size: int) -> float:
    """Say how wide a text is."""
    return _font(size).getlength(_drawable(text))


@lru_cache(maxsize=8)
def _font(size: int) -> ImageFont.FreeTypeFont:
    font = ImageFont.load_default(size)
    assert isinstance(font, ImageFont.FreeTypeFont)
    return font


def _drawable(text: str) -> str:
    """Write characters that the font has no picture of by their numbers."""
    return text if text.isascii() else "".join(map(_drawable_character, text))


@lru_cache(maxsize=1024)
def _drawable_character(character: str) -> str:
    font = _font(12)
    for form in (character, unicodedata.normalize("NFKD", character)):
        if all(bytes(font.getmask(each)) != _missing() for each in form):
            return form
    return character.encode("unicode_escape").decode()


@lru_cache(maxsize=1)
def _missing() -> bytes:
    return bytes(_font(12).getmask("\uffff"))


def _box(pen: ImageDraw.ImageDraw, box: Box, scale: int) -> None:
    left, top, right, bottom = (
        round(side * scale) for side in (box.left, box.top, box.right, box.bottom)
    )
    if left < right and top < bottom:
        pen.rectangle((left, top, right - 1, bottom - 1), fill=box.colour)


def _line(pen: ImageDraw.ImageDraw, line: Line, scale: int) -> None:
    width = max(1, round(line.width * scale))
    for part in dashed(line.points, line.dash):
        points = [(x * scale, y * scale) for x, y in part.tolist()]
        pen.line(points, fill=line.colour, width=width, joint="curve" if width > 2 else None)


def _glyph(pen: ImageDraw.ImageDraw, glyph: Glyph, scale: int) -> None:
    x, y = glyph.x * scale, glyph.y * scale
    small, thin = 3.6 * scale, max(1, round(1.9 * scale))
    match glyph.sign:
        case Sign.BROKEN:
            for halo, width in ((PAPER, thin + 2 * scale), (glyph.colour, thin)):
                for slope in (-1, 1):
                    ends = (x - small, y - slope * small, x + small, y + slope * small)
                    pen.line(ends, fill=halo, width=width)
        case Sign.LOST:
            corners = [(x, y - small), (x + small, y), (x, y + small), (x - small, y)]
            pen.polygon(corners, fill=PAPER, outline=glyph.colour, width=max(1, round(1.5 * scale)))
        case Sign.ABOVE | Sign.BELOW:
            tip = -small if glyph.sign is Sign.ABOVE else small
            pen.polygon([(x, y + tip), (x - small, y - tip), (x + small, y - tip)], glyph.colour)
        case Sign.BEFORE:
            _disc(pen, x, y, small, glyph.colour)
            _disc(pen, x, y, small - 1.5 * scale, PAPER)
        case Sign.POINT:
            _disc(pen, x, y, 2.4 * scale, glyph.colour)


def _disc(pen: ImageDraw.ImageDraw, x: float, y: float, radius: float, colour: str) -> None:
    pen.ellipse((x - radius, y - radius, x + radius, y + radius), fill=colour)
