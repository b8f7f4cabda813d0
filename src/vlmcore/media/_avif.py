"""
AVIF files: the size that they declare, and the size that their pictures are really coded in.

The two need not agree, and decoders believe the second: a file of 2 kB that calls itself 16 x 16
pixels can make one allocate hundreds of megabytes. So the head of the AV1 stream is read as well.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from vlmcore.errors import MediaError, MediaLimitError
from vlmcore.limits import ImageLimits
from vlmcore.media._boxes import Item, items_of, top_level_boxes, without_exif
from vlmcore.media._header import Header
from vlmcore.media.formats import ImageFormat
from vlmcore.media.sources import Encoded

__all__ = ["avif_header"]

_SEQUENCE_HEADER = 1
# Beside the picture there are alpha, a gain map, a thumbnail and the rims of tiles.
_CODED_FOR_ONE_SHOWN = 4


def avif_header(encoded: Encoded, *, limits: ImageLimits) -> Header:
    """
    Read the header of an AVIF file of one picture.

    Raises:
        MediaLimitError: If more pixels are coded in it than the limits allow, or it lists more than
            ``limits.max_blocks`` items.
        MediaError: If it is broken, or an animation.
    """
    try:
        boxes = top_level_boxes(encoded.data)
        if any(kind == b"moov" for kind, _ in boxes):
            raise MediaError(encoded.name, "is an animated AVIF image, expected a still one")
        (meta,) = (span for kind, span in boxes if kind == b"meta")
        items, count = items_of(encoded.data, meta, max_items=limits.max_blocks)
        if count > limits.max_blocks:
            raise MediaLimitError(encoded.name, "max_blocks", count, limits.max_blocks)
        (primary,) = (item for item in items if item.is_primary)
        coded = sum(_coded_pixels(item) for item in items if item.kind == b"av01")
    except (struct.error, KeyError, IndexError, ValueError) as error:
        if isinstance(error, MediaError):
            raise
        raise MediaError(
            encoded.name, "is a broken AVIF image: its boxes cannot be read"
        ) from error
    # What honestly declares too many pixels is refused by what it declares, later.
    declared = max(limits.max_pixels, primary.width_px * primary.height_px)
    if coded > declared * _CODED_FOR_ONE_SHOWN:
        raise MediaLimitError(encoded.name, "max_pixels", coded, declared * _CODED_FOR_ONE_SHOWN)
    return Header(
        image_format=ImageFormat.AVIF,
        width_px=primary.width_px,
        height_px=primary.height_px,
        data=without_exif(encoded.data, meta),
        orientation=primary.orientation,
    )


def _coded_pixels(item: Item) -> int:
    """Find the largest picture that an AV1 stream can hold by its own account."""
    sizes = [_pixels_of_sequence(payload) for payload in _sequence_headers(item.data)]
    return max(sizes, default=0)


def _sequence_headers(stream: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(stream):
        head = stream[at]
        at += 2 if head & 4 else 1
        size = len(stream) - at
        if head & 2:
            size, at = _leb128(stream, at)
        if head >> 3 & 15 == _SEQUENCE_HEADER:
            yield stream[at : at + size]
        at += max(size, 0)


def _leb128(stream: bytes, at: int) -> tuple[int, int]:
    value = 0
    for index in range(8):
        byte = stream[at + index]
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return value, at + index + 1
    raise struct.error("a size is too long")


class _Bits:
    """Reads a sequence header bit by bit; `struct.error` where it ends."""

    def __init__(self, data: bytes) -> None:
        self.rest = int.from_bytes(data[:128], "big")
        self.left = 8 * len(data[:128])

    def take(self, count: int) -> int:
        self.left -= count
        if self.left < 0:
            raise struct.error("a sequence header ends too early")
        return self.rest >> self.left & (1 << count) - 1


def _pixels_of_sequence(payload: bytes) -> int:
    """
    Read the largest frame from a sequence header.

    Source:
        AV1 Bitstream & Decoding Process Specification, 5.5.1.
    """
    bits = _Bits(payload)
    bits.take(4)  # profile, still picture
    if bits.take(1):
        bits.take(5)  # a single picture: level, and its size is exactly the one that follows
        width_bits, height_bits = bits.take(4) + 1, bits.take(4) + 1
        return (bits.take(width_bits) + 1) * (bits.take(height_bits) + 1)
    decoder_delay_bits = _skip_timing(bits)
    display_delay = bits.take(1)
    for _ in range(bits.take(5) + 1):
        bits.take(12)
        if bits.take(5) > 7:
            bits.take(1)
        if decoder_delay_bits and bits.take(1):
            bits.take(2 * decoder_delay_bits + 1)
        if display_delay and bits.take(1):
            bits.take(4)
    # Each frame may name another size of so many bits.
    return 1 << bits.take(4) + 1 + bits.take(4) + 1


def _skip_timing(bits: _Bits) -> int:
    """Skip the timing, and give how many bits a decoder delay has; 0 for none."""
    if not bits.take(1):
        return 0
    bits.take(64)
    if bits.take(1):
        zeros = 0
        while not bits.take(1):
            zeros += 1
        bits.take(min(zeros, 32))
    if not bits.take(1):
        return 0
    delay_bits = bits.take(5) + 1
    bits.take(32 + 5 + 5)
    return delay_bits
