"""Reads one MessagePack frame within limits; what a first byte means is looked up in a table."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any

from vlmcore.errors import ContractError
from vlmcore.limits import WireLimits, require_at_most
from vlmcore_robotics.wire._blobs import Blob
from vlmcore_robotics.wire._msgpack_codes import BINARY, CONSTANTS, LIST, MAP, NUMBERS, SIZES, TEXT
from vlmcore_robotics.wire.ndarrays import read_spelled

__all__ = ["FrameReader"]

_SIZE_AFTER: Mapping[int, struct.Struct] = {
    code: SIZES[i - len(codes)]  # from the end: lists and maps have none of 1 byte
    for codes in (BINARY, TEXT, LIST, MAP)
    for i, code in enumerate(codes)
}
_ONE_BYTE = frozenset((BINARY[0], TEXT[0]))
_TEXT = frozenset((*range(0xA0, 0xC0), *TEXT))


class FrameReader:
    """
    Reads one frame, from its first byte to its last.

    Args:
        frame: The bytes.
        limits: How much is read.
    """

    def __init__(self, frame: bytes, limits: WireLimits) -> None:
        self.frame = frame
        self.limits = limits
        self.at = 0
        self.depth = 0
        self.nodes = 1
        self.text_bytes = 0
        self.path: list[str] = []

    def whole(self) -> Any:
        """
        Read the one value that the frame is.

        Raises:
            ContractError: If it is not one value.
            LimitExceededError: If there is more of something than is read.
        """
        try:
            value = self.value()
        except (IndexError, struct.error):  # of a head or a number that is not all there
            raise self.cut() from None
        if self.at != len(self.frame):
            raise self.error(
                f"got {len(self.frame) - self.at} bytes after the value, expected none"
            )
        return bytes(value) if isinstance(value, Blob) else value

    def error(self, problem: str) -> ContractError:
        return ContractError("frame" + "".join(f"[{key!r:.80}]" for key in self.path), problem)

    def cut(self) -> ContractError:
        return self.error(f"got a frame that is cut at byte {len(self.frame)}, expected more")

    def value(self) -> Any:
        head = self.frame[self.at]
        self.at += 1
        return head if head < 0x80 else _READ[head](self, head)

    def constant(self, head: int) -> Any:
        return CONSTANTS[head]

    def negative(self, head: int) -> int:
        return head - 0x100

    def number(self, head: int) -> Any:
        return self.unpacked(NUMBERS[head])

    def unpacked(self, form: struct.Struct) -> Any:
        start = self.at
        self.at += form.size
        return form.unpack_from(self.frame, start)[0]

    def refuse(self, head: int) -> Any:
        what = "an extension type" if head != 0xC1 else "a code that has no meaning"
        raise self.error(f"got {what} (0x{head:02x}) at byte {self.at - 1}, expected plain values")

    def size(self, head: int) -> int:
        """Read the length that follows *head*."""
        if head in _ONE_BYTE:
            self.at += 1
            return self.frame[self.at - 1]
        size: int = self.unpacked(_SIZE_AFTER[head])
        return size

    def text(self, head: int) -> str:
        size = head & 0x1F if head < 0xC0 else self.size(head)
        self.text_bytes += size
        require_at_most("max_text_bytes", self.text_bytes, self.limits.max_text_bytes)
        start = self.take(size)
        try:
            return self.frame[start : self.at].decode()
        except UnicodeDecodeError:
            raise self.error(
                f"got text at byte {start} that is not UTF-8, expected UTF-8"
            ) from None

    def binary(self, head: int) -> Blob:
        start = self.bytes_start(head)
        return Blob(self.frame, start, self.at - start)

    def bytes_start(self, head: int) -> int:
        """Pass over the bytes that follow *head*; return where they start."""
        size = self.size(head)
        require_at_most("max_binary_bytes", size, self.limits.max_binary_bytes)
        return self.take(size)

    def take(self, size: int) -> int:
        """Go on by *size* bytes; return where they start."""
        start = self.at
        if size > len(self.frame) - start:
            raise self.cut()
        self.at += size
        return start

    def enter(self, entries: int, nodes: int) -> None:
        """Check that there can be as much inside as is declared, before any of it is read."""
        self.depth += 1
        require_at_most("max_depth", self.depth, self.limits.max_depth)
        require_at_most("max_entries", entries, self.limits.max_entries)
        self.nodes += nodes
        require_at_most("max_nodes", self.nodes, self.limits.max_nodes)
        if nodes > len(self.frame) - self.at:  # each is a byte at least
            raise self.cut()

    def list(self, head: int) -> list[Any]:
        entries = head & 0x0F if head < 0xA0 else self.size(head)
        self.enter(entries, entries)
        values = [self.value() for _ in range(entries)]
        self.depth -= 1
        return [bytes(each) if isinstance(each, Blob) else each for each in values]

    def map(self, head: int) -> Any:
        entries = head & 0x0F if head < 0x90 else self.size(head)
        self.enter(entries, 2 * entries)
        found: dict[str, Any] = {}
        for _ in range(entries):
            key = self.key()
            if key in found:
                raise self.error(f"got the key {key!r:.80} twice, expected each key once")
            self.path.append(key)
            found[key] = self.value()
            self.path.pop()
        self.depth -= 1
        array = read_spelled(found, self.limits, self.error) if found else None
        if array is not None:
            return array
        for key, each in found.items():
            if isinstance(each, Blob):
                found[key] = bytes(each)
        return found

    def key(self) -> str:
        """Read a key: text, or the bytes of it, which is how some peers write theirs."""
        head = self.frame[self.at]
        self.at += 1
        if head in _TEXT:
            return self.text(head)
        if head not in BINARY:
            raise self.error(f"got a key that is no text (0x{head:02x}), expected text as keys")
        start = self.bytes_start(head)
        try:
            return self.frame[start : self.at].decode()
        except UnicodeDecodeError:
            raise self.error("got a key that is not UTF-8, expected UTF-8") from None


_Read = Callable[[FrameReader, int], Any]
_TABLE: dict[int, _Read] = {
    **dict.fromkeys(range(0x80, 0x90), FrameReader.map),
    **dict.fromkeys(range(0x90, 0xA0), FrameReader.list),
    **dict.fromkeys(CONSTANTS, FrameReader.constant),
    **dict.fromkeys(NUMBERS, FrameReader.number),
    **dict.fromkeys(BINARY, FrameReader.binary),
    **dict.fromkeys(_TEXT, FrameReader.text),
    **dict.fromkeys(LIST, FrameReader.list),
    **dict.fromkeys(MAP, FrameReader.map),
    **dict.fromkeys(range(0xE0, 0x100), FrameReader.negative),
}
_READ = tuple(_TABLE.get(head, FrameReader.refuse) for head in range(0x100))
