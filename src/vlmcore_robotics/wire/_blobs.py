"""Bytes that are not copied yet: where they stand in a frame, or the parts they will be made of."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

__all__ = ["Blob", "Part", "Parts"]

Part: TypeAlias = bytes | memoryview


class Blob(NamedTuple):
    """Bytes within a frame: *size* of them from *start* on."""

    frame: bytes
    start: int
    size: int

    def __bytes__(self) -> bytes:
        return self.frame[self.start : self.start + self.size]


class Parts(tuple[Part, ...]):
    """Bytes in parts, which are one value on the wire."""

    __slots__ = ()
