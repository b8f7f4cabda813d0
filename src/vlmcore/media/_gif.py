"""The blocks of a GIF file."""

from __future__ import annotations

import struct

from vlmcore.errors import MediaError, MediaLimitError
from vlmcore.limits import ImageLimits
from vlmcore.media._header import Header
from vlmcore.media.formats import ImageFormat
from vlmcore.media.sources import Encoded

__all__ = ["gif_header"]

_EXTENSION, _IMAGE, _TRAILER = 0x21, 0x2C, 0x3B
_HAS_COLOURS = 0x80


def gif_header(encoded: Encoded, *, animated: bool, limits: ImageLimits) -> Header:
    """
    Read the header of a GIF file and the extent of its pictures.

    A picture may be larger than the canvas that the file declares: the canvas then grows.

    Args:
        encoded: The file.
        animated: Whether all pictures are looked at, or the first alone.
        limits: Bounds on the blocks and pictures that are looked at.

    Raises:
        MediaLimitError: If it has more than ``limits.max_blocks`` blocks.
        MediaError: If it has no header, or no picture.
    """
    data = encoded.data
    if len(data) < 13:
        raise MediaError(encoded.name, "is a broken GIF image: it has no header")
    width, height, flags = struct.unpack_from("<HHB", data, 6)
    position = 13 + _bytes_of_colours(flags)
    frames = blocks = 0
    while position < len(data) and data[position] != _TRAILER:
        blocks += 1
        if blocks > limits.max_blocks:
            raise MediaLimitError(encoded.name, "max_blocks", blocks, limits.max_blocks)
        if data[position] == _EXTENSION:
            position = _after_blocks(data, position + 2)
        elif data[position] == _IMAGE and position + 10 <= len(data):
            left, top, across, down, flags = struct.unpack_from("<HHHHB", data, position + 1)
            width, height = max(width, left + across), max(height, top + down)
            frames += 1
            if not animated or frames > limits.max_frames:
                break
            position = _after_blocks(data, position + 11 + _bytes_of_colours(flags))
        else:
            position += 1
    if not frames:
        raise MediaError(encoded.name, "is a broken GIF image: it has no picture")
    return Header(
        image_format=ImageFormat.GIF,
        width_px=width,
        height_px=height,
        data=data,
        frames=frames,
    )


def _bytes_of_colours(flags: int) -> int:
    return 3 << (flags & 7) + 1 if flags & _HAS_COLOURS else 0


def _after_blocks(data: bytes, position: int) -> int:
    """Skip blocks of 1 to 255 bytes, each behind its length, up to an empty one."""
    while position < len(data) and data[position]:
        position += 1 + data[position]
    return position + 1
