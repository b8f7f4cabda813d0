"""The segments of a JPEG file."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

from vlmcore.errors import MediaError, MediaLimitError
from vlmcore.limits import ImageLimits
from vlmcore.media._header import Header
from vlmcore.media._tags import orientation_of
from vlmcore.media.formats import ImageFormat
from vlmcore.media.sources import Encoded

__all__ = ["jpeg_header"]

_START_OF_SCAN, _END_OF_IMAGE, _EXIF, _COMMENT = 0xDA, 0xD9, 0xE1, 0xFE
_ADOBE = 0xEE  # tells how colours are stored: the decoder needs it
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}  # tables and reserved
# What stands between pixels: 0xFF itself (followed by 0), restarts, and fill.
_MARKER = re.compile(rb"\xff([^\x00\x01\xd0-\xd8\xff])", re.DOTALL)


def jpeg_header(encoded: Encoded, *, limits: ImageLimits) -> Header:
    """
    Read the header of a JPEG file, and leave out the segments that are not needed for its pixels.

    Raises:
        MediaLimitError: If it has more segments or passes than the limits allow.
        MediaError: If it declares no size, or two.
    """
    data = encoded.data
    kept: list[memoryview] = [memoryview(data)[:2]]
    sizes: list[tuple[int, int]] = []
    orientation, scan = 1, 0
    for marker, begin, end in _segments(encoded, limits):
        if marker == _START_OF_SCAN:
            scan = scan or begin
            continue
        if marker in _FRAMES:
            sizes.append(_size(data[begin + 4 : end]))
        if scan:
            continue
        if marker == _EXIF and data[begin + 4 : begin + 8] == b"Exif" and orientation == 1:
            orientation = orientation_of(data[begin + 4 : end])
        if not (_EXIF <= marker <= 0xEF or marker == _COMMENT) or marker == _ADOBE:
            kept.append(memoryview(data)[begin:end])
    if not scan or len(sizes) != 1:
        problem = "it has no picture" if not scan or not sizes else "it declares more than one size"
        raise MediaError(encoded.name, f"is a broken JPEG image: {problem}")
    kept.append(memoryview(data)[scan:])
    width, height = sizes[0]
    return Header(
        image_format=ImageFormat.JPEG,
        width_px=width,
        height_px=height,
        data=b"".join(kept),
        orientation=orientation,
    )


def _size(payload: bytes) -> tuple[int, int]:
    if len(payload) < 5:
        return 0, 0
    height, width = struct.unpack_from(">HH", payload, 1)
    return width, height


def _segments(encoded: Encoded, limits: ImageLimits) -> Iterator[tuple[int, int, int]]:
    """Give marker, begin and end of each segment, up to the end of the image."""
    data = encoded.data
    segments = scans = 0
    position = 2
    while match := _MARKER.search(data, position):
        begin, marker = match.start(), match[1][0]
        if marker == _END_OF_IMAGE or begin + 4 > len(data):
            return
        end = begin + 2 + max(2, int.from_bytes(data[begin + 2 : begin + 4], "big"))
        segments += 1
        scans += marker == _START_OF_SCAN
        if segments > limits.max_blocks:
            raise MediaLimitError(encoded.name, "max_blocks", segments, limits.max_blocks)
        if scans > limits.max_scans:
            raise MediaLimitError(encoded.name, "max_scans", scans, limits.max_scans)
        yield marker, begin, end
        position = end
