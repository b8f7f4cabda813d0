"""
The one module that imports Pillow; reached when a file is decoded or encoded, or a size changed.

Decoders are constructed by their class and not by ``PIL.Image.open``: only formats on our list can
run, whatever plugins the process has registered, and no warning of Pillow's about large images
comes before our own bound. No process-wide setting is written. Two are read by Pillow and hold
beside our limits: ``Image.MAX_IMAGE_PIXELS``, and ``ImageFile.LOAD_TRUNCATED_IMAGES``, with which a
process asks for half a picture rather than none.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
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
from vlmcore.media._header import Header
from vlmcore.media._tags import orientation_of
from vlmcore.media.formats import ImageFormat

__all__ = ["decode", "decode_frames", "encode", "pixels_of", "resample"]

_DECODERS: dict[ImageFormat, type[ImageFile.ImageFile]] = {
    ImageFormat.JPEG: JpegImagePlugin.JpegImageFile,
    ImageFormat.PNG: PngImagePlugin.PngImageFile,
    ImageFormat.GIF: GifImagePlugin.GifImageFile,
    ImageFormat.WEBP: WebPImagePlugin.WebPImageFile,
    ImageFormat.BMP: BmpImagePlugin.BmpImageFile,
    ImageFormat.TIFF: TiffImagePlugin.TiffImageFile,
    ImageFormat.PPM: PpmImagePlugin.PpmImageFile,
}
_LEVELS = 65535
# What a decoder written in Python stumbles into where a file ends too early: no words for people.
_SLIPS = (struct.error, IndexError, KeyError, TypeError, AttributeError, AssertionError)
# Every orientation of EXIF is two mirrors and an exchange of the axes, in this order.
_UPSIDE_DOWN, _MIRRORED, _TURNED = (3, 4, 6, 7), (2, 3, 7, 8), (5, 6, 7, 8)


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
        slip = error.__cause__ if str(error) == str(error.__cause__) else error
        words = "it is broken or cut short" if isinstance(slip, _SLIPS) else str(error)
        problem = words or type(error).__name__
        raise MediaError(name, f"{what}: {problem}") from error


def _decoder(image_format: ImageFormat) -> type[ImageFile.ImageFile]:
    if image_format is ImageFormat.AVIF:
        if find_spec("PIL.AvifImagePlugin") is None:
            raise ValueError("Pillow 11.3 or newer is needed")
        from PIL import AvifImagePlugin  # noqa: PLC0415 - not in every Pillow

        return AvifImagePlugin.AvifImageFile
    return _DECODERS[image_format]


@contextmanager
def _opened(header: Header, name: str) -> Iterator[ImageFile.ImageFile]:
    with (
        _refusing(name, _undecodable(header)),
        _decoder(header.image_format)(io.BytesIO(header.data)) as image,
    ):
        yield image


def _undecodable(header: Header) -> str:
    return f"is a {header.image_format.name} image that cannot be decoded"


def decode(header: Header, *, name: str, limits: ImageLimits) -> npt.NDArray[Any]:
    """
    Decode the first picture of a file, upright.

    Returns:
        uint8 or uint16, or float from 0 to 1; shape ``[H, W]`` or ``[H, W, C]``, 2 to 4 channels.

    Raises:
        MediaLimitError: If it turns out to have more than ``limits.max_pixels`` pixels.
        MediaError: If it cannot be decoded.
    """
    with _opened(header, name) as image:
        return _picture(image, header, name=name, limits=limits)


def decode_frames(
    header: Header, *, name: str, limits: ImageLimits
) -> Iterator[tuple[npt.NDArray[Any], float]]:
    """
    Decode the pictures of an animation one by one, upright, each with its duration in seconds.

    Raises:
        MediaLimitError: If one turns out to have more than ``limits.max_pixels`` pixels.
        MediaError: If one cannot be decoded.
    """
    with _opened(header, name) as image:
        for index in range(header.frames):
            place = f"picture {index + 1} of {header.frames} cannot be decoded"
            with _refusing(name, place if header.frames > 1 else _undecodable(header)):
                image.seek(header.first_frame + index)
                pixels = _picture(image, header, name=name, limits=limits)
            yield pixels, float(image.info.get("duration", 0)) / 1000


def _picture(
    image: Image.Image, header: Header, *, name: str, limits: ImageLimits
) -> npt.NDArray[Any]:
    pixels = _pixels(image, name=name, limits=limits, levels=header.levels)
    if header.is_inverted and pixels.ndim == 2 and pixels.dtype != np.uint8:
        pixels = (1 if pixels.dtype.kind == "f" else _LEVELS) - pixels
    if header.image_format is ImageFormat.TIFF:
        return pixels  # Pillow has turned it already: a TIFF, and nothing else
    return _upright(pixels, header.orientation)


def pixels_of(image: Image.Image, *, name: str, limits: ImageLimits) -> npt.NDArray[Any]:
    """
    Take the current picture of a PIL image, upright by the EXIF that it carries.

    Returns:
        As `decode` does.

    Raises:
        MediaLimitError: If it has more than ``limits.max_pixels`` pixels.
        MediaError: If it cannot be decoded.
    """
    with _refusing(name, "cannot be decoded"):
        exif = image.info.get("exif")
        pixels = _pixels(image, name=name, limits=limits)
    return _upright(pixels, orientation_of(exif) if isinstance(exif, bytes) else 1)


def _pixels(
    image: Image.Image, *, name: str, limits: ImageLimits, levels: int = _LEVELS
) -> npt.NDArray[Any]:
    pixels = image.width * image.height
    if pixels > limits.max_pixels:
        raise MediaLimitError(name, "max_pixels", pixels, limits.max_pixels)
    image.load()
    transparent = image.info.get("transparency")
    if image.mode.startswith("I"):
        grey: npt.NDArray[Any] = np.clip(np.asarray(image), 0, levels)
        scaled: npt.NDArray[Any] = (grey.astype(np.uint32) * _LEVELS // levels).astype(np.uint16)
        if isinstance(transparent, int):
            alpha = np.where(grey == transparent, 0, _LEVELS).astype(np.uint16)
            return np.stack([scaled, alpha], axis=-1)
        return scaled
    if image.mode == "F":
        return np.array(image, dtype=np.float32)
    if image.mode == "La":
        image = image.convert("LA")
    if transparent is not None or image.mode in ("P", "PA", "LA", "RGBa"):
        image = image.convert("RGBA")
    elif image.mode not in ("L", "RGB", "RGBA"):
        image = image.convert("RGB")
    return np.asarray(image)  # read-only: its memory is what Pillow gave


def _upright(pixels: npt.NDArray[Any], orientation: int) -> npt.NDArray[Any]:
    """Turn and mirror as EXIF asks; a view, shape ``[H, W]`` or ``[H, W, C]``."""
    if orientation in _UPSIDE_DOWN:
        pixels = np.flip(pixels, axis=0)
    if orientation in _MIRRORED:
        pixels = np.flip(pixels, axis=1)
    if orientation in _TURNED:
        pixels = np.swapaxes(pixels, 0, 1)
    return pixels


def encode(image: UInt8Array, image_format: ImageFormat, **options: Any) -> bytes:
    """
    Encode RGB pixels, shape ``[H, W, 3]``; no metadata is written.

    Raises:
        MediaError: If the format cannot hold an image of this size.
    """
    buffer = io.BytesIO()
    with _refusing("image", f"cannot be encoded as {image_format.name}"):
        Image.fromarray(image).save(buffer, format=image_format.name, **options)
    return buffer.getvalue()


def resample(
    image: UInt8Array, *, height_px: int, width_px: int, averages: bool = False
) -> UInt8Array:
    """
    Resize by the average of areas, or with a bicubic filter that averages when it shrinks.

    Raises:
        MediaError: If the new image does not fit into memory.
    """
    with _refusing("image", f"cannot be resized to {width_px} x {height_px} pixels"):
        how = Image.Resampling.BOX if averages else Image.Resampling.BICUBIC
        return np.array(Image.fromarray(image).resize((width_px, height_px), how))
