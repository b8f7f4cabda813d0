"""The first picture of a TIFF file: what its tags declare, before libtiff reads them."""

from __future__ import annotations

import struct

from vlmcore.errors import MediaError, MediaLimitError
from vlmcore.limits import ImageLimits
from vlmcore.media._header import Header
from vlmcore.media._tags import Directory, directory_of
from vlmcore.media.formats import ImageFormat
from vlmcore.media.sources import Encoded

__all__ = ["tiff_header"]

_WIDTH, _HEIGHT, _BITS, _COMPRESSION, _PHOTOMETRIC = 0x0100, 0x0101, 0x0102, 0x0103, 0x0106
_ORIENTATION, _TILE_WIDTH, _TILE_HEIGHT = 0x0112, 0x0142, 0x0143
_STRIPS, _SAMPLES, _ROWS, _PLANAR, _TILES = 0x0111, 0x0115, 0x0116, 0x011C, 0x0144
_APART = 2  # each sample in a plane of its own
_SUBDIRECTORIES = (0x8769, 0x8825, 0xA005)  # EXIF, GPS, interoperability
_TEXT_TYPES = (1, 2, 6, 7)  # one byte a value: never made into a list of numbers
_WHITE_IS_ZERO = 0
# None, three faxes, LZW, JPEG, deflate, PackBits, old deflate. Others (LZMA, Zstandard, ...) let a
# few bytes ask for gigabytes of working memory, or are not built into every Pillow.
_COMPRESSIONS = (1, 2, 3, 4, 5, 7, 8, 0x8005, 0x80B2)


def tiff_header(encoded: Encoded, *, limits: ImageLimits) -> Header:
    """
    Read the first directory of a TIFF file.

    Raises:
        MediaLimitError: If a tag lists more than ``limits.max_blocks`` numbers, or a tile has more
            than ``limits.max_pixels`` pixels.
        MediaError: If it is broken, claims more than it holds, or is compressed in another way.
    """
    try:
        directory = directory_of(encoded.data)
    except struct.error as error:
        raise MediaError(encoded.name, "is a broken TIFF image: its tags cannot be read") from error
    _require_honest(directory, encoded, limits=limits)
    compression = directory.number(_COMPRESSION, 1)
    if compression not in _COMPRESSIONS:
        raise MediaError(
            encoded.name,
            f"is a TIFF image with compression {compression}, "
            "expected none, fax, LZW, JPEG, deflate or PackBits",
        )
    _require_parts(directory, encoded, limits=limits)
    bits, orientation = directory.number(_BITS, 1), directory.number(_ORIENTATION, 1)
    return Header(
        image_format=ImageFormat.TIFF,
        width_px=directory.number(_WIDTH),
        height_px=directory.number(_HEIGHT),
        data=encoded.data,
        orientation=orientation if 1 <= orientation <= 8 else 1,
        levels=(1 << bits) - 1 if 8 < bits < 16 else 0xFFFF,
        is_inverted=directory.number(_PHOTOMETRIC) == _WHITE_IS_ZERO and bits > 8,
    )


def _require_parts(directory: Directory, encoded: Encoded, *, limits: ImageLimits) -> None:
    """Refuse tiles that are too large, and more strips or tiles than the picture has room for."""
    across, down = directory.number(_TILE_WIDTH), directory.number(_TILE_HEIGHT)
    if across * down > limits.max_pixels:
        raise MediaLimitError(encoded.name, "max_pixels", across * down, limits.max_pixels)
    width, height = directory.number(_WIDTH), directory.number(_HEIGHT)
    planes = directory.number(_SAMPLES, 1) if directory.number(_PLANAR, 1) == _APART else 1
    rows = max(1, directory.number(_ROWS, height))
    room = {
        _STRIPS: -(-height // rows) * planes,
        _TILES: -(-width // max(1, across)) * -(-height // max(1, down)) * planes,
    }
    for tag, most in room.items():
        listed = directory.entries.get(tag, (0, 0, 0))[1]
        if listed > most:
            raise MediaError(
                encoded.name,
                f"is a broken TIFF image: it lists {listed} parts, there is room for {most}",
            )


def _require_honest(directory: Directory, encoded: Encoded, *, limits: ImageLimits) -> None:
    """Refuse tags that claim more than the file holds: decoders copy what they claim."""
    directories = [directory]
    for tag in _SUBDIRECTORIES:
        if start := directory.number(tag):
            try:
                directories.append(directory_of(encoded.data, start))
            except struct.error:
                continue  # a pointer to nowhere: there is nothing to copy
    for each in directories:
        most = max(
            (n for kind, n, _ in each.entries.values() if kind not in _TEXT_TYPES), default=0
        )
        if most > limits.max_blocks:
            raise MediaLimitError(encoded.name, "max_blocks", most, limits.max_blocks)
        claimed = sum(each.bytes_of(tag) for tag in each.entries)
        if claimed > len(encoded.data):
            raise MediaError(
                encoded.name,
                f"is a broken TIFF image: its tags claim {claimed} bytes, "
                f"the file has {len(encoded.data)}",
            )
