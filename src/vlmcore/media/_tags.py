"""
The tags of TIFF files and of EXIF, read without trusting a number in them.

A tag names a type, a count and a place: a few bytes can claim gigabytes, and thousands of tags can
point at the same megabyte. Only single small numbers are read here, and no value is copied.
"""

from __future__ import annotations

import struct

import attrs

__all__ = ["Directory", "directory_of", "orientation_of"]

_ORIENTATION = 0x0112
_MOST_TAGS = 0xFFFF  # a tag is a number of 16 bits, and none stands twice
_CODES = {1: "B", 3: "H", 4: "I", 13: "I", 16: "Q"}
_BYTES = {2: 1, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 17: 8, 18: 8} | {
    kind: struct.calcsize(f"={code}") for kind, code in _CODES.items()
}


@attrs.frozen
class Directory:
    """
    The tags of one directory.

    Attributes:
        data: The whole file.
        order: ``"<"`` or ``">"``.
        is_big: Whether it is a BigTIFF, with 64-bit counts and places.
        entries: Type, count, and where the value or its place stands, for each tag.
    """

    data: bytes = attrs.field(repr=False)
    order: str
    is_big: bool
    entries: dict[int, tuple[int, int, int]]

    def number(self, tag: int, default: int = 0) -> int:
        """Read the first value of a tag; *default* where it is missing or not a whole number."""
        kind, count, place = self.entries.get(tag, (0, 0, 0))
        if count < 1 or kind not in _CODES:
            return default
        try:
            if self.bytes_of(tag) > (8 if self.is_big else 4):
                offset = "Q" if self.is_big else "I"
                (place,) = struct.unpack_from(f"{self.order}{offset}", self.data, place)
            (number,) = struct.unpack_from(f"{self.order}{_CODES[kind]}", self.data, place)
        except (struct.error, OverflowError):
            return default
        return int(number)

    def bytes_of(self, tag: int) -> int:
        """Count the bytes that the values of a tag claim."""
        kind, count, _ = self.entries[tag]
        return _BYTES.get(kind, 0) * count


def directory_of(data: bytes, start: int | None = None) -> Directory:
    """
    Read the tags of a directory.

    Args:
        data: A TIFF file, or EXIF without its ``Exif`` prefix.
        start: Where the directory is; ``None`` for the first of the file.

    Raises:
        struct.error: If there is none.
    """
    order = ">" if data[:2] == b"MM" else "<"
    is_big = data[2:4] in (b"+\0", b"\0+")
    if start is None:
        offset, place = ("Q", 8) if is_big else ("I", 4)
        (start,) = struct.unpack_from(f"{order}{offset}", data, place)
    if start >= len(data):
        raise struct.error("its directory lies outside the file")
    (count,) = struct.unpack_from(f"{order}{'Q' if is_big else 'H'}", data, start)
    if count > _MOST_TAGS:
        raise struct.error(f"its directory claims {count} tags")
    first, size = (start + 8, 20) if is_big else (start + 2, 12)
    end = min(first + size * count, len(data) - size + 1)
    entries: dict[int, tuple[int, int, int]] = {}
    for place in range(first, end, size):
        tag, kind, values = struct.unpack_from(f"{order}HH{'Q' if is_big else 'I'}", data, place)
        entries.setdefault(tag, (kind, values, place + (12 if is_big else 8)))
    return Directory(data, order, is_big, entries)


def orientation_of(exif: bytes) -> int:
    """
    Read the orientation from EXIF, 1 to 8.

    Broken EXIF never stops an image from being read: 1, upright, is returned where nothing better
    is known.
    """
    data = exif.removeprefix(b"Exif\0\0")
    if data[:2] not in (b"II", b"MM"):
        return 1
    try:
        orientation = directory_of(data).number(_ORIENTATION, 1)
    except struct.error:
        return 1
    return orientation if 1 <= orientation <= 8 else 1
