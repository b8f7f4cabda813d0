"""The one module here that imports Pillow; reached when a frame is resized."""

from __future__ import annotations

import numpy as np
from PIL import Image

from vlmcore._arrays import UInt8Array

__all__ = ["padded"]


def padded(
    frame: UInt8Array, *, height_px: int, width_px: int, inner_height_px: int, inner_width_px: int
) -> UInt8Array:
    """Resize to the inner size with a bilinear filter, in the middle of black."""
    inner = Image.fromarray(frame).resize(
        (inner_width_px, inner_height_px), Image.Resampling.BILINEAR
    )
    top, left = (height_px - inner_height_px) // 2, (width_px - inner_width_px) // 2
    result = np.zeros((height_px, width_px, 3), np.uint8)
    result[top : top + inner_height_px, left : left + inner_width_px] = np.asarray(inner)
    return result
