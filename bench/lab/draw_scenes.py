"""
Draw the scenes of ``large.toml``: plain shapes of 2048 by 1536 pixels, as large as photographs.

    python bench/lab/draw_scenes.py bench/lab/large
"""

import argparse
from pathlib import Path

from PIL import Image, ImageDraw

SIZE_PX = 2048, 1536


def circle(draw: ImageDraw.ImageDraw, x: int, y: int, radius: int, fill: str) -> None:
    """Draw a circle around a point."""
    draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=fill)


def triangle(draw: ImageDraw.ImageDraw, x: int, y: int, radius: int, fill: str) -> None:
    """Draw a triangle that points up around a point."""
    draw.polygon(((x, y - radius), (x - radius, y + radius), (x + radius, y + radius)), fill=fill)


def square(draw: ImageDraw.ImageDraw, x: int, y: int, radius: int, fill: str) -> None:
    """Draw a square around a point."""
    draw.rectangle((x - radius, y - radius, x + radius, y + radius), fill=fill)


SCENES = {
    "circle": ("white", circle, 520, "red"),
    "square": ("white", square, 420, "blue"),
    "triangle": ("black", triangle, 440, "yellow"),
}


def main() -> None:
    """Draw all of them into a folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    for name, (background, shape, radius, fill) in SCENES.items():
        image = Image.new("RGB", SIZE_PX, background)
        shape(ImageDraw.Draw(image), SIZE_PX[0] // 2, SIZE_PX[1] // 2, radius, fill)
        image.save(folder / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main()
