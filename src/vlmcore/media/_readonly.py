"""Encoded images as pixels that nobody can write to, which an observation takes without a copy."""

from __future__ import annotations

import numpy as np

from vlmcore._arrays import UInt8Array, immutable
from vlmcore._optional import optional_dependency
from vlmcore.limits import ImageLimits
from vlmcore.media.arrays import WHITE, rgb_from_array
from vlmcore.media.headers import Header, require_pixels

__all__ = ["readonly_pixels"]


def readonly_pixels(header: Header, *, name: str, limits: ImageLimits) -> UInt8Array:
    """
    Decode the image of *header* as `vlmcore.media.images.load_image` does.

    Returns:
        uint8, shape ``[H, W, 3]``, read-only for good; what is stored as RGB is copied once.

    Raises:
        MediaLimitError: If it has more than ``limits.max_pixels`` pixels.
        MediaError: If it cannot be decoded.
        MissingDependencyError: If Pillow is not installed.
    """
    require_pixels(header, name=name, limits=limits)
    with optional_dependency("images", "PIL"):
        from vlmcore.media import _pillow  # noqa: PLC0415 - the door
    pixels = _pillow.decode(header, name=name, limits=limits)
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[-1] != 3:
        pixels = rgb_from_array(pixels, source=name, limits=limits, background=WHITE, layout="HWC")
    return immutable(pixels)
