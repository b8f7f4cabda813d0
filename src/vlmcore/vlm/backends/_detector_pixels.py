"""
Images as detectors of transformers take them, made without their image processors.

Those need torchvision or SciPy, and differ between releases. What a model wants is written in its
``preprocessor_config.json``, and is done here in the same way.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import torch
import torch.nn.functional as nnf
from PIL import Image

from vlmcore._arrays import UInt8Array
from vlmcore.errors import ModelError
from vlmcore.limits import DetectorLimits
from vlmcore.vlm.checkpoint import read_config

__all__ = ["PixelRules", "read_pixel_rules"]

_LIMITS = DetectorLimits()
_SHORTEST_SIDE_PX = 32  # of what goes into a backbone, which halves it five times
_GREY = 0.5


@attrs.frozen(kw_only=True)
class PixelRules:
    """
    What a model wants its images to be.

    Attributes:
        height_px: Height that all are scaled to; ``None`` where they keep their shape.
        width_px: Width that all are scaled to.
        shortest_px: Length of the shorter side of those that keep their shape.
        longest_px: The most that the longer side of those may have; goes before *shortest_px*.
        mean: What is taken away from each channel, 0 to 1.
        deviation: What each channel is divided by then.
        is_squared: Whether images are made square first, by grey at the right or below.
    """

    height_px: int | None = None
    width_px: int | None = None
    shortest_px: int = 0
    longest_px: int = 0
    mean: tuple[float, ...]
    deviation: tuple[float, ...]
    is_squared: bool = False

    def tensor_of(self, pixels: UInt8Array) -> torch.Tensor:
        """Make what the model is given of an image ``[H, W, 3]``: float32, ``[3, h, w]``."""
        if self.is_squared:
            channels = _scaled_square(pixels, self._size_for(pixels))
        else:
            height, width = self._size_for(pixels)
            scaled = Image.fromarray(pixels).resize((width, height), Image.Resampling.BILINEAR)
            channels = torch.from_numpy(np.array(scaled)).permute(2, 0, 1) / 255
        mean, deviation = torch.tensor(self.mean), torch.tensor(self.deviation)
        return (channels - mean[:, None, None]) / deviation[:, None, None]

    def frame_of(self, pixels: UInt8Array) -> tuple[int, int]:
        """Tell the height and width, in pixels of the image, that boxes of the model lie in."""
        height, width = pixels.shape[:2]
        return (max(height, width),) * 2 if self.is_squared else (height, width)

    def _size_for(self, pixels: UInt8Array) -> tuple[int, int]:
        if self.height_px is not None and self.width_px is not None:
            return self.height_px, self.width_px
        height, width = pixels.shape[:2]
        short, long = min(height, width), max(height, width)
        exact = min(float(self.shortest_px), self.longest_px * short / long)
        # The shorter side is rounded, the longer one cut, as the models were trained.
        sides = round(exact), int(exact * long / short)
        one, other = (max(side, _SHORTEST_SIDE_PX) for side in sides)
        return (one, other) if height <= width else (other, one)


def read_pixel_rules(model: str, folder: Path, *, is_squared: bool) -> PixelRules:
    """
    Read what a model wants its images to be.

    Raises:
        ModelError: If its files do not say so.
    """
    said = _said(model, folder)
    try:
        return PixelRules(
            mean=_channels(said, "image_mean"),
            deviation=_channels(said, "image_std"),
            is_squared=is_squared,
            **_size(said.get("size")),
        )
    except (TypeError, ValueError, KeyError) as error:
        problem = f"its preprocessor_config.json does not say how images are prepared ({error})"
        raise ModelError(model, problem) from error


def _said(model: str, folder: Path) -> dict[str, Any]:
    path = folder / "preprocessor_config.json"
    if path.exists():
        return read_config(model, path)
    path = folder / "processor_config.json"  # where transformers 5 writes it
    inner = read_config(model, path).get("image_processor") if path.exists() else None
    if not isinstance(inner, dict):
        raise ModelError(model, "has no preprocessor_config.json: how are images prepared?")
    return inner


def _channels(said: dict[str, Any], name: str) -> tuple[float, ...]:
    values = said.get(name)
    if not isinstance(values, list) or len(values) != 3:
        raise ValueError(f"{name}: {values!r:.80}")
    numbers = tuple(float(value) for value in values)
    if not all(map(math.isfinite, numbers)) or (name == "image_std" and min(numbers) <= 0):
        raise ValueError(f"{name}: {values!r:.80}")
    return numbers


def _size(size: Any) -> dict[str, int]:
    names = ("height", "width") if "height" in size else ("shortest_edge", "longest_edge")
    sides = [size[name] for name in names]
    for side in sides:
        if type(side) is not int or not _SHORTEST_SIDE_PX <= side <= _LIMITS.max_input_side_px:
            raise ValueError(f"size: {size!r:.80}")
    fields = ("height_px", "width_px") if "height" in size else ("shortest_px", "longest_px")
    return dict(zip(fields, sides, strict=True))


def _scaled_square(pixels: UInt8Array, size: tuple[int, int]) -> torch.Tensor:
    """
    Make an image square, and scale it, blurred first where it becomes smaller.

    Source:
        OWLv2 was trained on images that scikit-image resizes: a Gaussian of half of what the scale
        is above 1, cut at four deviations, then linear interpolation.
    """
    channels = torch.from_numpy(np.array(pixels)).permute(2, 0, 1)[None] / 255
    height, width = pixels.shape[:2]
    side = max(height, width)
    channels = nnf.pad(channels, (0, side - width, 0, side - height), value=_GREY)
    for axis in (2, 3):
        channels = _blurred(channels, axis, (side / size[axis - 2] - 1) / 2)
    return nnf.interpolate(channels, size=size, mode="bilinear", align_corners=False)[0]


def _blurred(channels: torch.Tensor, axis: int, deviation: float) -> torch.Tensor:
    radius = int(4 * deviation + 0.5)
    if radius < 1:
        return channels
    steps = torch.arange(-radius, radius + 1)
    weights = torch.exp(-0.5 * (steps / deviation) ** 2)
    weights = weights / weights.sum()
    around = (0, 0, radius, radius) if axis == 2 else (radius, radius, 0, 0)
    kernel = weights.reshape((1, 1, -1, 1) if axis == 2 else (1, 1, 1, -1))
    padded = nnf.pad(channels, around, mode="reflect")
    return nnf.conv2d(padded, kernel.repeat(3, 1, 1, 1), groups=3)
