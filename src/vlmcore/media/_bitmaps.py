"""
The headers of the plain formats: BMP and the family of PPM.

Some variants of them are decoded value by value in Python: runs in BMP; text, and depths other than
8 bits, in PPM. That takes some 0.4 s a million pixels, so these may have a sixteenth of the pixels.
"""

from __future__ import annotations

import re
import struct

from vlmcore.errors import MediaError, MediaLimitError
from vlmcore.limits import ImageLimits
from vlmcore.media._header import Header
from vlmcore.media.formats import ImageFormat
from vlmcore.media.sources import Encoded

__all__ = ["bmp_header", "ppm_header"]

_OLD_HEADER_BYTES = 12
_RUNS = (1, 2)
_TEXT, _DEEP = (b"P1", b"P2", b"P3"), (b"P5", b"P6")
_FEWER = 16
_PPM_HEADER_BYTES = 1024
_COMMENT = re.compile(rb"#[^\r\n]*")


def bmp_header(encoded: Encoded, *, limits: ImageLimits) -> Header:
    """
    Read the header of a BMP file.

    Raises:
        MediaLimitError: If it is compressed by runs and has more than a sixteenth of
            ``limits.max_pixels``.
        MediaError: If it declares no size.
    """
    try:
        (header_bytes,) = struct.unpack_from("<I", encoded.data, 14)
        old = header_bytes == _OLD_HEADER_BYTES
        width, height = struct.unpack_from("<HH" if old else "<ii", encoded.data, 18)
        compression = 0 if old else struct.unpack_from("<I", encoded.data, 30)[0]
    except struct.error as error:
        raise MediaError(encoded.name, "is a broken BMP image: it has no header") from error
    if compression in _RUNS:
        _require_few(encoded, abs(width * height), limits)
    return Header(
        image_format=ImageFormat.BMP,
        width_px=abs(width),  # a negative height tells that the first row is on top
        height_px=abs(height),
        data=encoded.data,
    )


def ppm_header(encoded: Encoded, *, limits: ImageLimits) -> Header:
    """
    Read the header of a PBM, PGM, PPM or PFM file.

    Raises:
        MediaLimitError: If it is one that is decoded slowly and has more than a sixteenth of
            ``limits.max_pixels``.
        MediaError: If it declares no size near its start.
    """
    numbers = _COMMENT.sub(b"", encoded.data[2:_PPM_HEADER_BYTES]).split(maxsplit=3)[:3]
    needed = 2 if encoded.data[:2] in (b"P1", b"P4") else 3
    if len(numbers) < needed or not all(number.isdigit() for number in numbers[:2]):
        raise MediaError(encoded.name, "is a broken PPM image: it declares no size")
    width, height = int(numbers[0]), int(numbers[1])
    kind = encoded.data[:2]
    if kind in _TEXT or (kind in _DEEP and numbers[2] != b"255"):
        _require_few(encoded, width * height, limits)
    return Header(
        image_format=ImageFormat.PPM,
        width_px=width,
        height_px=height,
        data=encoded.data,
    )


def _require_few(encoded: Encoded, pixels: int, limits: ImageLimits) -> None:
    allowed = max(1, limits.max_pixels // _FEWER)
    if pixels > allowed:
        raise MediaLimitError(encoded.name, "max_pixels", pixels, allowed)
