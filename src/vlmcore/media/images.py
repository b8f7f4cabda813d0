"""
The image door: whatever a person has becomes RGB pixels, uint8, shape ``[H, W, 3]``.

Arrays and tensors need nothing but NumPy. Encoded files are decoded by Pillow, which is imported
when the first of them comes.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from vlmcore._arrays import UInt8Array
from vlmcore._optional import optional_dependency
from vlmcore.errors import ContractError
from vlmcore.limits import ImageLimits
from vlmcore.media.arrays import (
    Background,
    Layout,
    array_from_tensor,
    is_tensor,
    rgb_from_array,
)
from vlmcore.media.formats import format_of
from vlmcore.media.resizing import fit_longest_edge
from vlmcore.media.sources import is_encoded_source, read_source

__all__ = ["fit_longest_edge", "load_image"]

_WHITE: Background = (255, 255, 255)
_LIMITS = ImageLimits()


def load_image(
    source: Any,
    *,
    limits: ImageLimits = _LIMITS,
    background: Background = _WHITE,
    layout: Layout | None = None,
) -> UInt8Array:
    """Load one image as RGB pixels."""
    array: Any
    name: str
    if isinstance(source, np.ndarray):
        array, name = source, "array"
    elif is_tensor(source):
        array, name = array_from_tensor(source, limits=limits), "tensor"
    elif _is_pil_image(source):
        with optional_dependency("local", "PIL"):
            from vlmcore.media import _pillow
        name = "PIL image"
        array, layout = _pillow.pixels_of(source, source=name, limits=limits), "HWC"
    elif is_encoded_source(source):
        encoded = read_source(source, limits=limits)
        image_format = format_of(encoded)
        with optional_dependency("local", "PIL"):
            from vlmcore.media import _pillow
        array, layout = _pillow.decode(encoded, image_format, limits=limits), "HWC"
        name = encoded.name
    else:
        raise ContractError("source", f"got {type(source).__name__}, expected an image")
    return rgb_from_array(array, source=name, limits=limits, background=background, layout=layout)


def _is_pil_image(source: object) -> bool:
    module = sys.modules.get("PIL.Image")
    return module is not None and isinstance(source, module.Image)
