"""The chunks of a WebP file."""

from __future__ import annotations

import struct

from vlmcore.errors import MediaError, MediaLimitError
from vlmcore.limits import ImageLimits
from vlmcore.media._header import Header
from vlmcore.media._tags import orientation_of
from vlmcore.media.formats import ImageFormat
from vlmcore.media.sources import Encoded

__all__ = ["webp_header"]

_FIRST_CHUNK = 12


def webp_header(encoded: Encoded, *, limits: ImageLimits) -> Header:
    """
    Read the header of a WebP file.

    Raises:
        MediaLimitError: If it has more than ``limits.max_blocks`` chunks.
        MediaError: If it declares no size.
    """
    data = encoded.data
    width, height = _size(encoded)
    orientation, frames, chunks = 1, 0, 0
    position = _FIRST_CHUNK
    while position + 8 <= len(data):
        kind, length = struct.unpack_from("<4sI", data, position)
        chunks += 1
        if chunks > limits.max_blocks:
            raise MediaLimitError(encoded.name, "max_blocks", chunks, limits.max_blocks)
        frames += kind == b"ANMF"
        if kind == b"EXIF":
            orientation = orientation_of(data[position + 8 : position + 8 + length])
        position += 8 + length + length % 2
    return Header(
        image_format=ImageFormat.WEBP,
        width_px=width,
        height_px=height,
        data=data,
        orientation=orientation,
        frames=max(1, frames),
    )


def _size(encoded: Encoded) -> tuple[int, int]:
    start = encoded.data[_FIRST_CHUNK : _FIRST_CHUNK + 18]
    kind, payload = start[:4], start[8:]
    if kind == b"VP8X" and len(payload) == 10:
        return _uint24(payload, 4) + 1, _uint24(payload, 7) + 1
    if kind == b"VP8L" and payload[:1] == b"\x2f" and len(payload) >= 5:
        (bits,) = struct.unpack_from("<I", payload, 1)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 " and payload[3:6] == b"\x9d\x01\x2a" and len(payload) == 10:
        width, height = struct.unpack_from("<HH", payload, 6)
        return width & 0x3FFF, height & 0x3FFF
    raise MediaError(encoded.name, "is a broken WebP image: it declares no size")


def _uint24(payload: bytes, position: int) -> int:
    return int.from_bytes(payload[position : position + 3], "little")
