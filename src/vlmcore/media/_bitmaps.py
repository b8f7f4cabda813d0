"""The headers of the plain formats: BMP and the family of PPM."""

from __future__ import annotations

import re
import struct

from vlmcore.errors import MediaError
from vlmcore.media._header import Header
from vlmcore.media.formats import ImageFormat
from vlmcore.media.sources import Encoded

__all__ = ["bmp_header", "ppm_header"]

_OLD_HEADER_BYTES = 12
_PPM_HEADER_BYTES = 1024
_COMMENT = re.compile(rb"#[^\r\n]*")


def bmp_header(encoded: Encoded) -> Header:
    """
    Read the header of a BMP file.

    Raises:
        MediaError: If it declares no size.
    """
    try:
        (header_bytes,) = struct.unpack_from("<I", encoded.data, 14)
        old = header_bytes == _OLD_HEADER_BYTES
        width, height = struct.unpack_from("<HH" if old else "<ii", encoded.data, 18)
    except struct.error as error:
        raise MediaError(encoded.name, "is a broken BMP image: it has no header") from error
    return Header(
        image_format=ImageFormat.BMP,
        width_px=abs(width),  # a negative height tells that the first row is on top
        height_px=abs(height),
        data=encoded.data,
    )


def ppm_header(encoded: Encoded) -> Header:
    """
    Read the header of a PBM, PGM, PPM or PFM file.

    Raises:
        MediaError: If it declares no size near its start.
    """
    numbers = _COMMENT.sub(b"", encoded.data[2:_PPM_HEADER_BYTES]).split(maxsplit=3)[:3]
    needed = 2 if encoded.data[:2] in (b"P1", b"P4") else 3
    if len(numbers) < needed or not all(number.isdigit() for number in numbers[:2]):
        raise MediaError(encoded.name, "is a broken PPM image: it declares no size")
    return Header(
        image_format=ImageFormat.PPM,
        width_px=int(numbers[0]),
        height_px=int(numbers[1]),
        data=encoded.data,
    )
