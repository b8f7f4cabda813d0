"""Plain pictures as a person draws them in five lines: one large shape or glyph on white."""

import dataclasses
import random

from PIL import Image, ImageDraw, ImageFont

from bench.embedded_model.drawing import shape_corners
from bench.embedded_model.vocabulary import COLOURS, GLYPHS, PLAIN_RGB, SHAPES

_SIDES_PX = (64, 96, 128, 224, 300, 512, 1024)


@dataclasses.dataclass(frozen=True, kw_only=True)
class PlainPicture:
    """A picture with the words that its caption must hold."""

    image: Image.Image
    words: tuple[str, ...]


def plain_pictures(*, variants: int, seed: int) -> list[PlainPicture]:
    """Return *variants* pictures of each shape in each colour, and of each glyph, on white."""
    rng = random.Random(seed)
    pictures = []
    for _ in range(variants):
        for shape in SHAPES:
            pictures += [
                _plain_shape(shape, colour, rng) for colour in COLOURS if colour != "white"
            ]
        pictures += [_plain_glyph(glyph, rng) for glyph in GLYPHS]
    return pictures


def _canvas(rng: random.Random) -> Image.Image:
    short_px = rng.choice(_SIDES_PX)
    long_px = round(short_px * rng.choice((1.0, 1.33)))
    size = (short_px, long_px) if rng.random() < 0.5 else (long_px, short_px)
    return Image.new("RGB", size, "white")


def _plain_shape(shape: str, colour: str, rng: random.Random) -> PlainPicture:
    image = _canvas(rng)
    scale = rng.choice((1, 4)) if image.width <= 300 else 1
    image = image.resize((image.width * scale, image.height * scale))
    side_px = min(image.size) * rng.uniform(0.35, 0.97)
    slack = [(length - side_px) / 2 for length in image.size]
    is_centred = rng.random() < 0.5
    x, y = (0.0 if is_centred else rng.uniform(-room, room) for room in slack)
    centre = (image.width / 2 + x, image.height / 2 + y)
    pen, rgb = ImageDraw.Draw(image), PLAIN_RGB[colour][0]
    half = side_px / 2
    if shape == "circle":
        pen.ellipse(
            (centre[0] - half, centre[1] - half, centre[0] + half, centre[1] + half), fill=rgb
        )
    else:
        corners = shape_corners(shape, rng)
        pen.polygon([(centre[0] + half * x, centre[1] + half * y) for x, y in corners], fill=rgb)
    return PlainPicture(image=image.reduce(scale), words=("large", colour, shape))


def _plain_glyph(glyph: str, rng: random.Random) -> PlainPicture:
    image = _canvas(rng)
    colour = rng.choice([colour for colour in COLOURS if colour != "white"])
    font = ImageFont.load_default(min(image.size) * rng.uniform(0.7, 1.0))
    centre = (image.width / 2, image.height / 2)
    ImageDraw.Draw(image).text(centre, glyph, fill=PLAIN_RGB[colour][0], font=font, anchor="mm")
    return PlainPicture(image=image, words=(glyph, colour))
