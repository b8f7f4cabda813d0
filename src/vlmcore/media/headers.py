"""
What the header of an image declares, read before a decoder is given anything.

Size, orientation and the number of frames come from here; so does the file that the decoder gets:
metadata that it would unpack or parse for nothing (text, colour profiles, EXIF, thumbnails) is left
out, since that is where a small file hides a large one. Pillow is not needed to be refused.
"""

from __future__ import annotations

from vlmcore.errors import MediaError, MediaLimitError
from vlmcore.limits import ImageLimits
from vlmcore.media._avif import avif_header
from vlmcore.media._bitmaps import bmp_header, ppm_header
from vlmcore.media._gif import gif_header
from vlmcore.media._header import Header
from vlmcore.media._jpeg import jpeg_header
from vlmcore.media._png import png_header
from vlmcore.media._tiff import tiff_header
from vlmcore.media._webp import webp_header
from vlmcore.media.formats import ImageFormat, format_of
from vlmcore.media.sources import Encoded

__all__ = ["Header", "read_header", "require_pixels"]


def read_header(encoded: Encoded, *, limits: ImageLimits, animated: bool = False) -> Header:
    """
    Read what an encoded image declares.

    Args:
        encoded: The file.
        limits: Bounds on the parts that are looked at; the size is returned, not checked.
        animated: Whether the frames of an animation are counted and kept.

    Raises:
        MediaLimitError: If it has more parts than the limits allow.
        MediaError: If it is not an image that is opened, or its header is broken.
    """
    image_format = format_of(encoded)
    match image_format:
        case ImageFormat.PNG:
            header = png_header(encoded, animated=animated, limits=limits)
        case ImageFormat.GIF:
            header = gif_header(encoded, animated=animated, limits=limits)
        case ImageFormat.JPEG:
            header = jpeg_header(encoded, limits=limits)
        case ImageFormat.WEBP:
            header = webp_header(encoded, limits=limits)
        case ImageFormat.TIFF:
            header = tiff_header(encoded, limits=limits)
        case ImageFormat.AVIF:
            header = avif_header(encoded, limits=limits)
        case ImageFormat.BMP:
            header = bmp_header(encoded, limits=limits)
        case ImageFormat.PPM:
            header = ppm_header(encoded, limits=limits)
    return header


def require_pixels(header: Header, *, name: str, limits: ImageLimits) -> None:
    """
    Refuse an image without pixels, or with more of them than the limits allow.

    Raises:
        MediaLimitError: If it has more than ``limits.max_pixels`` pixels.
        MediaError: If a side is 0.
    """
    pixels = header.width_px * header.height_px
    if not pixels:
        raise MediaError(
            name,
            f"is a broken {header.image_format.name} image: its size is "
            f"{header.width_px} x {header.height_px} pixels",
        )
    if pixels > limits.max_pixels:
        raise MediaLimitError(name, "max_pixels", pixels, limits.max_pixels)
