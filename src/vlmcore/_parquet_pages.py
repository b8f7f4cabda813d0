"""
The headers of the pages of a Parquet file, read before a decoder makes room for what they say.

A page says how many bytes it unpacks to and how many values it has, and a few bytes can say a lot
of both. Nothing else of the format is read here. Integers, repeated fields and fields of another
type than expected are taken as Arrow takes them, so that both read the same.

Source:
    https://github.com/apache/parquet-format (parquet.thrift; Thrift's compact protocol).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

import attrs

__all__ = ["Page", "pages"]

_HEADER_BYTES = 1 << 16
_MOST_DEPTH = 8
_DATA, _DICTIONARY, _DATA_V2 = 0, 2, 3
# Types of the compact protocol.
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
# Fields, by the kind of a page: where its own header is, and its encoding in there.
_OF_KIND = {_DATA: (5, 2), _DICTIONARY: (7, 2), _DATA_V2: (8, 4)}


@attrs.frozen(kw_only=True)
class Page:
    """
    What the header of a page says.

    Attributes:
        is_dictionary: Whether its values are for the pages after it to name.
        packed_bytes: Its size in the file.
        unpacked_bytes: What it unpacks to.
        values: How many values it has.
        encoding: The number of its encoding.
    """

    is_dictionary: bool
    packed_bytes: int
    unpacked_bytes: int
    values: int
    encoding: int


def pages(file: BinaryIO, *, start: int, stop: int, values: int) -> Iterator[Page]:
    """
    Read the headers of the pages of one column chunk.

    Args:
        file: The whole file.
        start: Where the first page begins.
        stop: Where the chunk ends.
        values: How many values the chunk has, at which a reader stops.

    Raises:
        ValueError: If one is broken, or a page is longer than the chunk.
    """
    seen = 0
    while seen < values and start < stop:
        file.seek(start)
        reader = _Reader(file.read(min(_HEADER_BYTES, stop - start)))
        fields = reader.struct()
        kind = fields.get((1, _I32))
        unpacked, packed = fields.get((2, _I32), -1), fields.get((3, _I32), -1)
        start += reader.at + packed
        if packed < 0 or unpacked < 0 or start > stop:
            raise ValueError("a page is longer than its column")
        if kind not in _OF_KIND:
            continue  # an index, which readers pass over
        where, encoding = _OF_KIND[kind]
        own: Any = fields.get((where, _STRUCT), {})
        page = Page(
            is_dictionary=kind == _DICTIONARY,
            packed_bytes=packed,
            unpacked_bytes=unpacked,
            values=own.get((1, _I32), -1),
            encoding=own.get((encoding, _I32), -1),
        )
        if page.values < 0 or page.encoding < 0:
            raise ValueError("a page does not say what is in it")
        seen += 0 if page.is_dictionary else page.values
        yield page


class _Reader:
    """Reads the compact protocol: structs as what stands in each field of each type."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    def struct(self, depth: int = 0) -> dict[tuple[int, int], Any]:
        if depth > _MOST_DEPTH:
            raise ValueError("a page has a header that is nested too deeply")
        found: dict[tuple[int, int], Any] = {}
        field = 0
        while head := self._byte():
            kind = head & 0x0F
            field = _of_16_bits(field + (head >> 4) if head >> 4 else _signed(self._whole()))
            found[field, kind] = self._value(kind, depth)
        return found

    def _value(self, kind: int, depth: int) -> Any:
        if kind in (_TRUE, _FALSE):
            return kind == _TRUE
        if kind == _STRUCT:
            return self.struct(depth + 1)
        if kind in (_I16, _I32, _I64):
            return _signed(self._whole())
        if kind in (_LIST, _SET):
            return self._list(depth)
        if kind == _MAP:
            return self._map(depth)
        if kind not in (_BYTE, _DOUBLE, _BINARY):
            raise ValueError("a page has a header of another kind")
        return self._skip({_BYTE: 1, _DOUBLE: 8}.get(kind) or self._whole())

    def _list(self, depth: int) -> None:
        head = self._byte()
        count = head >> 4
        self._elements(self._whole() if count == 0x0F else count, (head & 0x0F,), depth)

    def _map(self, depth: int) -> None:
        count = self._whole()
        if count:
            kinds = self._byte()
            self._elements(count, (kinds >> 4, kinds & 0x0F), depth)

    def _elements(self, count: int, kinds: tuple[int, ...], depth: int) -> None:
        for _ in range(count):
            for kind in kinds:
                if kind in (_TRUE, _FALSE):  # a byte of its own, here
                    self._byte()
                elif kind in (_LIST, _SET, _MAP) and depth >= _MOST_DEPTH:
                    raise ValueError("a page has a header that is nested too deeply")
                else:
                    self._value(kind, depth + 1)

    def _byte(self) -> int:
        self._skip(1)
        return self._data[self.at - 1]

    def _skip(self, count: int) -> None:
        self.at += count
        if self.at > len(self._data):
            raise ValueError("a page has a header that is cut short or too long")

    def _whole(self) -> int:
        """Read a number of 32 bits; of a longer one, those that Arrow keeps."""
        number = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number & 0xFFFFFFFF
        raise ValueError("a page has a header with a number that is too long")


def _of_16_bits(number: int) -> int:
    """Keep what Arrow keeps of the number of a field."""
    return (number + 0x8000) % 0x10000 - 0x8000


def _signed(number: int) -> int:
    """Undo the zigzag of Thrift."""
    return (number >> 1) ^ -(number & 1)
