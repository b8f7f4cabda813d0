"""
The one module that imports Pillow; reached from `vlmcore.media` when a file is decoded or encoded.

Decoders are constructed by their class and not by ``PIL.Image.open``: only formats on our list can
run, whatever plugins the process has registered, and the bound on pixels is ours alone, without a
process-wide setting being read or written.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import (
    BmpImagePlugin,
    GifImagePlugin,
    Image,
    ImageFile,
    JpegImagePlugin,
    PngImagePlugin,
    PpmImagePlugin,
    TiffImagePlugin,
    WebPImagePlugin,
)

from vlmcore._arrays import UInt8Array
from vlmcore.errors import MediaError, MediaLimitError, VlmcoreError
from vlmcore.limits import ImageLimits
from vlmcore.media.formats import ImageFormat
from vlmcore.media.sources import Encoded

__all__ = ["decode", "encode", "pixels_of", "resample"]

_DECODERS: dict[ImageFormat, type[ImageFile.ImageFile]] = {
    ImageFormat.JPEG: JpegImagePlugin.JpegImageFile,
    ImageFormat.PNG: PngImagePlugin.PngImageFile,
    ImageFormat.GIF: GifImagePlugin.GifImageFile,
    ImageFormat.WEBP: WebPImagePlugin.WebPImageFile,
    ImageFormat.BMP: BmpImagePlugin.BmpImageFile,
    ImageFormat.TIFF: TiffImagePlugin.TiffImageFile,
    ImageFormat.PPM: PpmImagePlugin.PpmImageFile,
}


@contextmanager
def _refusing(name: str, what: str) -> Iterator[None]:
    """Turn whatever a decoder raises into an error that names the file."""
    try:
        yield
    except VlmcoreError:
        raise
    except MemoryError as error:
        raise MediaError(name, f"{what}: not enough memory") from error
    except Exception as error:
        # Decoders raise all kinds of errors on hostile bytes, down to AssertionError.
        raise MediaError(name, f"{what}: {error or type(error).__name__}") from error


def decode(encoded: Encoded, image_format: ImageFormat, *, limits: ImageLimits) -> npt.NDArray[Any]:
    """Decode the first frame."""
    with _refusing(encoded.name, f"is a {image_format.name} image that cannot be decoded"):
        with _DECODERS[image_format](io.BytesIO(encoded.data)) as image:
            return pixels_of(image, source=encoded.name, limits=limits)


def pixels_of(image: Image.Image, *, source: str, limits: ImageLimits) -> npt.NDArray[Any]:
    """
    Decode the current frame of a PIL image.

    Returns:
        uint8 or uint16, or float from 0 to 1; shape ``[H, W]``, ``[H, W, 3]`` or ``[H, W, 4]``.
    """
    if image.width * image.height > limits.max_pixels:
        raise MediaLimitError(
            source, "max_pixels", image.width * image.height, limits.max_pixels
        )
    with _refusing(source, "cannot be decoded"):
        image.load()
        mode = image.mode
        if mode.startswith("I"):
            return np.clip(np.asarray(image), 0, 65535).astype(np.uint16)
        if mode == "F":
            return np.array(image, dtype=np.float32)
        if mode not in ("RGB", "RGBA", "L"):
            alpha = image.has_transparency_data
            image = image.convert("RGBA" if alpha else "RGB")
        return np.array(image)


def encode(image: UInt8Array, image_format: ImageFormat, **options: Any) -> bytes:
    """Encode RGB pixels, shape ``[H, W, 3]``; no metadata is written."""
    buffer = io.BytesIO()
    with _refusing("image", f"cannot be encoded as {image_format.name}"):
        Image.fromarray(image).save(buffer, format=image_format.name, **options)
    return buffer.getvalue()


def resample(image: UInt8Array, *, height_px: int, width_px: int) -> UInt8Array:
    """Resize with a bicubic filter that averages when it makes smaller."""
    resized = Image.fromarray(image).resize((width_px, height_px), Image.Resampling.BICUBIC)
    return np.array(resized)
