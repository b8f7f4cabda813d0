"""The chunks of a PNG file."""

from __future__ import annotations

import struct

from vlmcore.errors import MediaError, MediaLimitError
from vlmcore.limits import ImageLimits
from vlmcore.media._header import Header
from vlmcore.media._tags import orientation_of
from vlmcore.media.formats import ImageFormat
from vlmcore.media.sources import Encoded

__all__ = ["png_header"]

_SIGNATURE_BYTES = 8
_PICTURE = (b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND")
_ANIMATION = (b"acTL", b"fcTL", b"fdAT")


def png_header(encoded: Encoded, *, animated: bool, limits: ImageLimits) -> Header:
    """
    Read the header of a PNG file, and leave out every chunk that is not needed for its pixels.

    Text and colour profiles are compressed: 1 MB of zeros takes 1 kB. A still picture is asked for
    by leaving out the chunks of the animation as well.

    Raises:
        MediaLimitError: If it has more than ``limits.max_blocks`` chunks.
        MediaError: If it does not start with a header.
    """
    data = encoded.data
    start = _SIGNATURE_BYTES
    if data[start + 4 : start + 8] != b"IHDR" or len(data) < start + 21:
        raise MediaError(encoded.name, "is a broken PNG image: it has no header")
    width, height = struct.unpack_from(">II", data, start + 8)
    orientation, frames, declared, is_default_shown = 1, 0, 0, False
    wanted = _PICTURE + _ANIMATION if animated else _PICTURE
    kept: list[memoryview] = [memoryview(data)[:start]]
    for kind, begin, end in _chunks(encoded, limits):
        payload = data[begin + 8 : end - 4]
        if kind == b"eXIf":
            orientation = orientation_of(payload)
        elif kind == b"acTL" and len(payload) >= 4:
            declared = int.from_bytes(payload[:4], "big")
        elif kind == b"fcTL":
            frames += 1
        elif kind == b"IDAT" and not frames:
            is_default_shown = True
        if kind in wanted:
            kept.append(memoryview(data)[begin:end])
    return Header(
        image_format=ImageFormat.PNG,
        width_px=width,
        height_px=height,
        data=b"".join(kept),
        orientation=orientation,
        frames=max(1, min(frames, declared)),
        first_frame=int(is_default_shown and min(frames, declared) > 0),
    )


def _chunks(encoded: Encoded, limits: ImageLimits) -> list[tuple[bytes, int, int]]:
    """List type, begin and end of each chunk; the last may be cut short."""
    data = encoded.data
    chunks: list[tuple[bytes, int, int]] = []
    begin = _SIGNATURE_BYTES
    while begin + 8 <= len(data):
        length, kind = struct.unpack_from(">I4s", data, begin)
        end = begin + 12 + length
        chunks.append((kind, begin, end))
        if len(chunks) > limits.max_blocks:
            raise MediaLimitError(encoded.name, "max_blocks", len(chunks), limits.max_blocks)
        if kind == b"IEND":
            break
        begin = end
    return chunks
