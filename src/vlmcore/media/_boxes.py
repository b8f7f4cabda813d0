"""The boxes of AVIF files: which items there are, where their bytes stand, how they are shown."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import attrs

__all__ = ["Item", "items_of", "top_level_boxes", "without_exif"]

_Span = tuple[int, int]  # where the content of a box begins, and where it ends


@attrs.frozen
class Item:
    """
    An item of a file: a coded picture, or something beside it.

    Attributes:
        kind: Four characters, as ``b"av01"``.
        data: Its bytes, put together from where they stand.
        width_px: The width that the file declares for it; 0 where it declares none.
        height_px: The height, likewise.
        orientation: How it has to be turned and mirrored, 1 to 8 as in EXIF.
        is_primary: Whether it is the picture that the file is for.
    """

    kind: bytes
    data: bytes = attrs.field(repr=False)
    width_px: int
    height_px: int
    orientation: int
    is_primary: bool


class _Reader:
    """Reads numbers one after the other; `struct.error` where the bytes end."""

    def __init__(self, data: bytes, span: _Span) -> None:
        self.data, (self.at, self.end) = data, span

    def number(self, size: int) -> int:
        if self.at + size > self.end:
            raise struct.error("a box ends too early")
        value = int.from_bytes(self.data[self.at : self.at + size], "big")
        self.at += size
        return value


def top_level_boxes(data: bytes) -> list[tuple[bytes, _Span]]:
    """
    List kind and content of the boxes of a file.

    Raises:
        struct.error: If one reaches over its end.
    """
    return list(_boxes(data, (0, len(data))))


def _boxes(data: bytes, span: _Span) -> Iterator[tuple[bytes, _Span]]:
    at, end = span
    while at < end:
        reader = _Reader(data, (at, end))
        size, kind = reader.number(4), reader.number(4).to_bytes(4, "big")
        if size == 1:
            size = reader.number(8)
        size = size or end - at  # 0: up to the end
        if size < reader.at - at or at + size > end:
            raise struct.error("a box is larger than what holds it")
        yield kind, (reader.at, at + size)
        at += size


def without_exif(data: bytes, meta: _Span) -> bytes:
    """
    Make the EXIF of a file unknown to decoders, in place: the orientation stands elsewhere.

    Raises:
        struct.error: If the box is broken.
        KeyError: If it lists no items.
    """
    inside = dict(_boxes(data, (meta[0] + 4, meta[1])))
    start, end = inside[b"iinf"]
    return data[:start] + data[start:end].replace(b"Exif", b"free") + data[end:]


def items_of(data: bytes, meta: _Span, *, max_items: int) -> tuple[list[Item], int]:
    """
    Read the items that a ``meta`` box lists.

    Args:
        data: The file.
        meta: The content of the box.
        max_items: How many are read at most.

    Returns:
        The items, and how many the box lists.

    Raises:
        struct.error: If the box is broken.
        KeyError: If it lacks a part.
    """
    inside = dict(_boxes(data, (meta[0] + 4, meta[1])))
    kinds = _kinds(data, inside[b"iinf"])
    if len(kinds) > max_items:
        return [], len(kinds)
    extents = _extents(data, inside[b"iloc"], inside.get(b"idat"))
    shown = _properties(data, inside[b"iprp"])
    primary = _Reader(data, inside[b"pitm"])
    identity = primary.number(4 if primary.number(4) >> 24 else 2)
    items = [
        Item(kind, extents.get(key, b""), *shown.get(key, (0, 0, 1)), is_primary=key == identity)
        for key, kind in kinds.items()
    ]
    return items, len(kinds)


def _kinds(data: bytes, span: _Span) -> dict[int, bytes]:
    reader = _Reader(data, span)
    reader.number(4 if reader.number(4) >> 24 else 2)
    kinds: dict[int, bytes] = {}
    for _, entry in _boxes(data, (reader.at, span[1])):
        fields = _Reader(data, entry)
        version = fields.number(4) >> 24
        identity = fields.number(4 if version > 2 else 2)
        fields.number(2)
        kinds[identity] = fields.number(4).to_bytes(4, "big")
    return kinds


def _extents(data: bytes, span: _Span, idat: _Span | None) -> dict[int, bytes]:
    reader = _Reader(data, span)
    version, sizes = reader.number(4) >> 24, reader.number(2)
    offset_size, length_size, base_size = sizes >> 12, sizes >> 8 & 15, sizes >> 4 & 15
    index_size = sizes & 15 if version else 0
    found: dict[int, bytes] = {}
    for _ in range(reader.number(4 if version > 1 else 2)):
        identity = reader.number(4 if version > 1 else 2)
        inside = bool(version and reader.number(2) & 15)
        reader.number(2)
        base = reader.number(base_size)
        first, end = idat or (0, 0) if inside else (0, len(data))
        parts: list[bytes] = []
        for _ in range(reader.number(2)):
            reader.number(index_size)
            start = min(first + base + reader.number(offset_size), end)
            length = reader.number(length_size) or end
            parts.append(data[start : min(start + length, end)])
        if sum(map(len, parts)) > len(data):
            raise struct.error("an item is larger than the file")
        found[identity] = b"".join(parts)
    return found


def _properties(data: bytes, span: _Span) -> dict[int, tuple[int, int, int]]:
    """Read width, height and orientation of each item."""
    boxes = list(_boxes(data, span))
    (container,) = (inner for kind, inner in boxes if kind == b"ipco")
    properties = list(_boxes(data, container))
    found: dict[int, tuple[int, int, int]] = {}
    for kind, association in boxes:
        if kind != b"ipma":
            continue
        reader = _Reader(data, association)
        head = reader.number(4)
        for _ in range(reader.number(4)):
            identity = reader.number(4 if head >> 24 else 2)
            width = height = turns = 0
            mirror: int | None = None
            for _ in range(reader.number(1)):
                index = reader.number(2) & 0x7FFF if head & 1 else reader.number(1) & 0x7F
                if not 0 < index <= len(properties):
                    continue
                name, inner = properties[index - 1]
                values = _Reader(data, inner)
                if name == b"ispe":
                    values.number(4)
                    width, height = values.number(4), values.number(4)
                elif name == b"irot":
                    turns = values.number(1) & 3
                elif name == b"imir":
                    mirror = values.number(1) & 1
            found[identity] = (width, height, _orientation(turns, mirror))
    return found


def _orientation(turns: int, mirror: int | None) -> int:
    """Name quarter turns to the left, then a mirror, as EXIF does."""
    if mirror is None:
        return (1, 8, 3, 6)[turns]
    return ((4, 5, 2, 7), (2, 7, 4, 5))[mirror][turns]
