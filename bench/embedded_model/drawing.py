"""Draw a scene with Pillow: plain as people draw, or with noise, blur and gradients."""

import colorsys
import functools
import math
import pathlib
import random
from collections.abc import Sequence

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from bench.embedded_model.scenes import Scene, Thing
from bench.embedded_model.vocabulary import COLOUR_RANGES, PLAIN_RGB

_RGB = tuple[int, int, int]
_GLYPH_FONT_PX = 160


def draw_scene(scene: Scene, *, fonts: Sequence[pathlib.Path] = ()) -> Image.Image:
    """
    Return the picture of *scene*, decided by its seed.

    Args:
        scene: What to draw.
        fonts: TrueType files to draw glyphs with besides the font that comes with Pillow.
    """
    rng = random.Random(scene.seed ^ 0x5EED)
    if scene.kind == "unclear":
        return _draw_unclear(scene, rng)
    scale = 3 if rng.random() < 0.6 and max(scene.width_px, scene.height_px) < 300 else 1
    size = (scene.width_px * scale, scene.height_px * scale)
    image = Image.new("RGB", size, sample_rgb(rng, scene.background, is_plain=scene.is_plain))
    for thing in scene.things:
        _draw_thing(
            image,
            thing,
            rgb=sample_rgb(rng, thing.colour, is_plain=scene.is_plain),
            rng=rng,
            fonts=fonts,
        )
    if scale > 1:
        image = image.reduce(scale)
    return image if scene.is_plain else _roughen(image, rng)


def sample_rgb(rng: random.Random, colour: str, *, is_plain: bool) -> _RGB:
    """Return a shade of *colour*; when *is_plain* one that people write down."""
    if is_plain and rng.random() < 0.8:
        return rng.choice(PLAIN_RGB[colour])
    hue, saturation, value = (rng.uniform(low, high) for low, high in COLOUR_RANGES[colour])
    red, green, blue = colorsys.hsv_to_rgb(hue / 360 % 1, saturation, value)
    return round(red * 255), round(green * 255), round(blue * 255)


def _draw_thing(
    image: Image.Image,
    thing: Thing,
    *,
    rgb: _RGB,
    rng: random.Random,
    fonts: Sequence[pathlib.Path],
) -> None:
    side_px = thing.extent * min(image.size)
    centre = (thing.centre_x * image.width, thing.centre_y * image.height)
    if thing.is_glyph:
        _draw_glyph(
            image, thing.name, centre=centre, side_px=side_px, rgb=rgb, rng=rng, fonts=fonts
        )
        return
    pen = ImageDraw.Draw(image)
    if thing.name == "circle":
        half = side_px / 2
        pen.ellipse(
            (centre[0] - half, centre[1] - half, centre[0] + half, centre[1] + half), fill=rgb
        )
        return
    corners = shape_corners(thing.name, rng)
    pen.polygon(
        [(centre[0] + x * side_px / 2, centre[1] + y * side_px / 2) for x, y in corners], fill=rgb
    )


def shape_corners(shape: str, rng: random.Random) -> list[tuple[float, float]]:
    """
    Return the corners of *shape* in a square from -1 to 1, y downwards.

    *rng* varies its proportions.
    """
    match shape:
        case "square":
            return [(-1, -1), (1, -1), (1, 1), (-1, 1)]
        case "triangle":
            top = -1 if rng.random() < 0.6 else -0.75
            return [(0, top), (1, -top), (-1, -top)]
        case "diamond":
            half = rng.choice((1.0, rng.uniform(0.72, 1.0)))
            return [(0, -1), (half, 0), (0, 1), (-half, 0)]
        case "cross":
            arm = rng.uniform(0.26, 0.42)
            quarter = [(arm, -1.0), (arm, -arm), (1.0, -arm)]
            corners = []
            for _ in range(4):
                corners += quarter
                quarter = [(-y, x) for x, y in quarter]
            return corners
        case "star":
            inner = rng.uniform(0.36, 0.52)
            angles = [math.pi * step / 5 - math.pi / 2 for step in range(10)]
            radii = [inner if step % 2 else 1.0 for step in range(10)]
            return [
                (radius * math.cos(angle), radius * math.sin(angle))
                for radius, angle in zip(radii, angles, strict=True)
            ]
        case _:
            raise ValueError(f"shape: got {shape!r}, expected one with corners")


def _draw_glyph(
    image: Image.Image,
    glyph: str,
    *,
    centre: tuple[float, float],
    side_px: float,
    rgb: _RGB,
    rng: random.Random,
    fonts: Sequence[pathlib.Path],
) -> None:
    font = rng.choice((None, None, *fonts))  # two shares for the font that everybody has
    mask = _glyph_mask(glyph, font, rng.choice((0, 0, 4, 8)) if font is None else 0)
    factor = side_px / max(mask.size)
    size = (max(1, round(mask.width * factor)), max(1, round(mask.height * factor)))
    corner = (round(centre[0] - size[0] / 2), round(centre[1] - size[1] / 2))
    image.paste(rgb, corner, mask.resize(size, Image.Resampling.BILINEAR))


@functools.cache
def _glyph_mask(glyph: str, font: pathlib.Path | None, stroke_px: int) -> Image.Image:
    """Return the glyph as a mask cut to its ink."""
    face = (
        ImageFont.load_default(_GLYPH_FONT_PX)
        if font is None
        else ImageFont.truetype(str(font), _GLYPH_FONT_PX)
    )
    canvas = Image.new("L", (_GLYPH_FONT_PX * 2, _GLYPH_FONT_PX * 2), 0)
    ImageDraw.Draw(canvas).text((40, 40), glyph, fill=255, font=face, stroke_width=stroke_px)
    return canvas.crop(canvas.getbbox())


def _roughen(image: Image.Image, rng: random.Random) -> Image.Image:
    """Return *image* with some of blur, a change of brightness from edge to edge, and noise."""
    if rng.random() < 0.25:
        image = image.filter(ImageFilter.GaussianBlur(rng.uniform(0.3, 1.0)))
    pixels = np.asarray(image, dtype=np.float32)
    noise = np.random.default_rng(rng.getrandbits(32))
    if rng.random() < 0.3:
        ramp = np.linspace(-12, 12, image.width, dtype=np.float32) * rng.choice((-1, 1))
        pixels = pixels + ramp[None, :, None]
    if rng.random() < 0.8:
        pixels = pixels + noise.standard_normal(pixels.shape, dtype=np.float32) * rng.uniform(2, 16)
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))


def _draw_unclear(scene: Scene, rng: random.Random) -> Image.Image:
    """Return a picture without clear shapes: noise, coarse noise, blobs, stripes or ramps."""
    noise = np.random.default_rng(rng.getrandbits(32))
    size = (scene.width_px, scene.height_px)
    match rng.choice(("noise", "coarse", "coarse", "ramps", "stripes", "heap")):
        case "noise":
            return Image.fromarray(noise.integers(0, 256, (size[1], size[0], 3), dtype=np.uint8))
        case "coarse":
            cells = (rng.randint(4, 24), rng.randint(4, 24), 3)
            grid = np.clip(noise.normal(rng.uniform(80, 180), rng.uniform(30, 80), cells), 0, 255)
            method = rng.choice((Image.Resampling.BICUBIC, Image.Resampling.NEAREST))
            return Image.fromarray(grid.astype(np.uint8)).resize(size, method)
        case "ramps":
            corners = noise.integers(
                0, 256, (rng.randint(2, 3), rng.randint(2, 3), 3), dtype=np.uint8
            )
            image = Image.fromarray(corners).resize(size, Image.Resampling.BICUBIC)
            return _roughen(image, rng)
        case "stripes":
            stripes = noise.integers(0, 256, (1, rng.randint(5, 30), 3), dtype=np.uint8)
            return (
                Image.fromarray(stripes)
                .resize(size, Image.Resampling.BOX)
                .rotate(rng.choice((0, 90)))
            )
        case _:
            return _draw_heap(size, rng)


def _draw_heap(size: tuple[int, int], rng: random.Random) -> Image.Image:
    """Return a heap of many overlapping ellipses and lines."""
    image = Image.new("RGB", size, tuple(rng.randrange(256) for _ in range(3)))
    pen = ImageDraw.Draw(image)
    for _ in range(rng.randint(14, 40)):
        left, top = rng.uniform(-0.2, 1) * size[0], rng.uniform(-0.2, 1) * size[1]
        box = (
            left,
            top,
            left + rng.uniform(0.05, 0.5) * size[0],
            top + rng.uniform(0.05, 0.5) * size[1],
        )
        rgb = tuple(rng.randrange(256) for _ in range(3))
        if rng.random() < 0.6:
            pen.ellipse(box, fill=rgb)
        else:
            pen.line(box, fill=rgb, width=rng.randint(1, 6))
    return image.filter(ImageFilter.GaussianBlur(rng.uniform(0.0, 3.0)))
