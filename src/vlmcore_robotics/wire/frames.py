"""
MessagePack frames, read within limits and written in one form.

Written here rather than taken from a package, for two reasons. Every length is checked before
memory is spent on it, and every value is counted: a reader that is told the size of a message only
makes half a gigabyte of objects from ten megabytes of empty lists. And the bytes of an array are
not taken out of the frame: the pixels of a camera are a view of what came from the socket.

The format is described at https://github.com/msgpack/msgpack/blob/master/spec.md; extension types
are not part of any policy protocol, and refused.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from vlmcore.errors import ContractError
from vlmcore.limits import WireLimits, require_at_most
from vlmcore_robotics.wire._blobs import Blob, Parts
from vlmcore_robotics.wire.ndarrays import ArraySpelling, read_spelled, spelled

__all__ = ["FrameKind", "decode_frame", "encode_frame"]

_LIMITS = WireLimits()
_NUMBERS = {
    code: struct.Struct(form)
    for code, form in zip(
        (0xCA, 0xCB, 0xCC, 0xCD, 0xCE, 0xCF, 0xD0, 0xD1, 0xD2, 0xD3),
        (">f", ">d", ">B", ">H", ">I", ">Q", ">b", ">h", ">i", ">q"),
        strict=True,
    )
}
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}
_SIZES = (struct.Struct(">B"), struct.Struct(">H"), struct.Struct(">I"))
_BINARY, _TEXT = range(0xC4, 0xC7), range(0xD9, 0xDC)  # lengths of 1, 2 and 4 bytes
_LIST, _MAP = range(0xDC, 0xDE), range(0xDE, 0xE0)  # lengths of 2 and 4 bytes
_INTEGERS = (  # the shortest form that a whole number fits in
    (range(0x80), 0x00, struct.Struct(">B")),
    (range(-0x20, 0), 0x00, struct.Struct(">b")),
    (range(0x100), 0xCC, _NUMBERS[0xCC]),
    (range(0x10000), 0xCD, _NUMBERS[0xCD]),
    (range(0x100000000), 0xCE, _NUMBERS[0xCE]),
    (range(0x10000000000000000), 0xCF, _NUMBERS[0xCF]),
    (range(-0x80, 0), 0xD0, _NUMBERS[0xD0]),
    (range(-0x8000, 0), 0xD1, _NUMBERS[0xD1]),
    (range(-0x80000000, 0), 0xD2, _NUMBERS[0xD2]),
    (range(-0x8000000000000000, 0), 0xD3, _NUMBERS[0xD3]),
)


class FrameKind(enum.Enum):
    """What a frame is, which says how large it may be."""

    REQUEST = "request"
    RESPONSE = "response"
    METADATA = "metadata"

    def check_size(self, size: int, limits: WireLimits) -> None:
        """
        Refuse a frame that is too large.

        Raises:
            LimitExceededError: If *size*, in bytes, is over the limit of this kind.
        """
        limit = f"max_{self.value}_bytes"
        require_at_most(limit, size, getattr(limits, limit))


def decode_frame(frame: bytes, *, kind: FrameKind, limits: WireLimits | None = None) -> Any:
    """
    Read one MessagePack value, and arrays in each of their spellings.

    Args:
        frame: The bytes, all of them one value.
        kind: What it is.
        limits: How much is read.

    Returns:
        None, bool, int, float, str, bytes, a list, a dict with text as keys, or a NumPy array or
        number. Arrays cannot be written to; those of one byte a value are views of *frame*.

    Raises:
        ContractError: If it is not such a value: cut, followed by more, text that is not UTF-8, a
            key that is no text or there twice, an extension type, an array that is not as declared.
        LimitExceededError: If there is more of something than *limits* allow.

    Example:
        >>> decode_frame(encode_frame({"a": [1, None]}, kind=FrameKind.METADATA),
        ...              kind=FrameKind.METADATA)
        {'a': [1, None]}
    """
    limits = limits or _LIMITS
    if not isinstance(frame, bytes):
        raise ContractError("frame", f"got {type(frame).__name__}, expected bytes")
    kind.check_size(len(frame), limits)
    return _Reader(frame, limits).whole()


def encode_frame(
    value: Any,
    *,
    kind: FrameKind,
    spelling: ArraySpelling = ArraySpelling.OPENPI,
    limits: WireLimits | None = None,
) -> bytes:
    """
    Write one value as MessagePack: each number and length in its shortest form, floats as float64.

    Equal values give equal bytes. The pixels of a frame are copied once, into the result.

    Args:
        value: What `decode_frame` returns; tuples are written as lists.
        kind: What it is.
        spelling: How arrays and NumPy's numbers are written.
        limits: How much is written: what a peer with the same limits reads.

    Raises:
        ContractError: If there is anything else in it.
        LimitExceededError: If there is more of something than *limits* allow.
    """
    limits = limits or _LIMITS
    writer = _Writer(spelling, limits)
    writer.write(value, 1)
    kind.check_size(sum(map(len, writer.parts)), limits)
    return b"".join(writer.parts)


class _Reader:
    """Reads one frame, from its first byte to its last."""

    def __init__(self, frame: bytes, limits: WireLimits) -> None:
        self.frame = frame
        self.limits = limits
        self.at = 0
        self.nodes = 1
        self.text_bytes = 0
        self.path: list[str] = []

    def whole(self) -> Any:
        """Read the one value that the frame is."""
        try:
            value = self.value(1)
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

    def value(self, depth: int) -> Any:
        head = self.frame[self.at]
        self.at += 1
        if head < 0x80 or head >= 0xE0:
            return head if head < 0x80 else head - 0x100
        if head < 0xA0:
            entries = head & 0x0F
            return self.map(entries, depth) if head < 0x90 else self.list(entries, depth)
        if head < 0xC0:
            return self.text(head & 0x1F)
        if head in _CONSTANTS:
            return _CONSTANTS[head]
        if head in _NUMBERS:
            return self.number(_NUMBERS[head])
        return self.sized(head, depth)

    def number(self, form: struct.Struct) -> Any:
        start = self.at
        self.at += form.size
        return form.unpack_from(self.frame, start)[0]

    def sized(self, head: int, depth: int) -> Any:
        """Read what has its length written before it."""
        if head in _BINARY:
            return self.binary(self.number(_SIZES[head - _BINARY[0]]))
        if head in _TEXT:
            return self.text(self.number(_SIZES[head - _TEXT[0]]))
        if head in _LIST:
            return self.list(self.number(_SIZES[head - _LIST[0] + 1]), depth)
        if head in _MAP:
            return self.map(self.number(_SIZES[head - _MAP[0] + 1]), depth)
        what = "an extension type" if head != 0xC1 else "a code that has no meaning"
        raise self.error(f"got {what} (0x{head:02x}) at byte {self.at - 1}, expected plain values")

    def take(self, size: int) -> int:
        """Go on by *size* bytes; return where they start."""
        start = self.at
        if size > len(self.frame) - start:
            raise self.cut()
        self.at += size
        return start

    def text(self, size: int) -> str:
        self.text_bytes += size
        require_at_most("max_text_bytes", self.text_bytes, self.limits.max_text_bytes)
        start = self.take(size)
        try:
            return self.frame[start : self.at].decode()
        except UnicodeDecodeError:
            raise self.error(
                f"got text at byte {start} that is not UTF-8, expected UTF-8"
            ) from None

    def binary(self, size: int) -> Blob:
        require_at_most("max_binary_bytes", size, self.limits.max_binary_bytes)
        return Blob(self.frame, self.take(size), size)

    def enter(self, entries: int, nodes: int, depth: int) -> None:
        """Check that there can be as much inside as is declared, before any of it is read."""
        require_at_most("max_depth", depth, self.limits.max_depth)
        require_at_most("max_entries", entries, self.limits.max_entries)
        self.nodes += nodes
        require_at_most("max_nodes", self.nodes, self.limits.max_nodes)
        if nodes > len(self.frame) - self.at:  # each is a byte at least
            raise self.cut()

    def list(self, entries: int, depth: int) -> list[Any]:
        self.enter(entries, entries, depth)
        values = [self.value(depth + 1) for _ in range(entries)]
        return [bytes(each) if isinstance(each, Blob) else each for each in values]

    def map(self, entries: int, depth: int) -> Any:
        self.enter(entries, 2 * entries, depth)
        found: dict[str, Any] = {}
        for _ in range(entries):
            key = self.key()
            if key in found:
                raise self.error(f"got the key {key!r:.80} twice, expected each key once")
            self.path.append(key)
            found[key] = self.value(depth + 1)
            self.path.pop()
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
        if not (0xA0 <= head < 0xC0 or head in _BINARY or head in _TEXT):
            raise self.error(f"got a key that is no text (0x{head:02x}), expected text as keys")
        key = self.value(0)
        try:
            return key if isinstance(key, str) else bytes(key).decode()
        except UnicodeDecodeError:
            raise self.error("got a key that is not UTF-8, expected UTF-8") from None


class _Writer:
    """Writes one frame as parts, so that pixels are copied when the parts are joined only."""

    def __init__(self, spelling: ArraySpelling, limits: WireLimits) -> None:
        self.spelling = spelling
        self.limits = limits
        self.nodes = 0
        self.text_bytes = 0
        self.parts: list[bytes | memoryview] = []

    def write(self, value: Any, depth: int) -> None:
        self.nodes += 1
        require_at_most("max_nodes", self.nodes, self.limits.max_nodes)
        match value:  # what is there most often first
            case bytes() | Parts():
                self.binary(value)
            case str():
                self.text(value)
            case None | float() | int():  # bool too, which is an int
                self.plain(value)
            case np.ndarray() | np.generic():
                self.nodes -= 1
                self.write(spelled(value, self.spelling, self.limits), depth)
            case list() | tuple():
                self.enter(len(value), depth, 0x90, _LIST)
                for each in value:
                    self.write(each, depth + 1)
            case dict() | Mapping():
                self.enter(len(value), depth, 0x80, _MAP)
                for key, each in value.items():
                    if not isinstance(key, (str, bytes)):
                        raise ContractError("frame", f"got the key {key!r:.80}, expected text")
                    self.write(key, depth + 1)
                    self.write(each, depth + 1)
            case _:
                raise ContractError(
                    "frame", f"got {type(value).__name__}, which MessagePack cannot hold"
                )

    def plain(self, value: Any) -> None:
        if value is None:
            self.parts.append(b"\xc0")
        elif isinstance(value, bool):
            self.parts.append(b"\xc3" if value else b"\xc2")
        elif isinstance(value, float):
            self.parts.append(b"\xcb" + _NUMBERS[0xCB].pack(value))
        else:
            self.integer(value)

    def integer(self, value: int) -> None:
        for fits, code, form in _INTEGERS:
            if value in fits:
                self.parts.append((bytes((code,)) if code else b"") + form.pack(value))
                return
        raise ContractError("frame", "got a number of more than 64 bits, expected fewer")

    def text(self, value: str) -> None:
        try:
            encoded = value.encode()
        except UnicodeEncodeError:
            raise ContractError("frame", "got a lone surrogate, expected characters") from None
        self.text_bytes += len(encoded)
        require_at_most("max_text_bytes", self.text_bytes, self.limits.max_text_bytes)
        short = bytes((0xA0 | len(encoded),)) if len(encoded) < 0x20 else None
        self.parts.append((short or _head(len(encoded), _TEXT)) + encoded)

    def binary(self, value: bytes | Parts) -> None:
        if isinstance(value, bytes):
            value = Parts((value,))
        size = sum(map(len, value))
        require_at_most("max_binary_bytes", size, self.limits.max_binary_bytes)
        self.parts.append(_head(size, _BINARY))
        self.parts += value

    def enter(self, entries: int, depth: int, short: int, codes: range) -> None:
        require_at_most("max_depth", depth, self.limits.max_depth)
        require_at_most("max_entries", entries, self.limits.max_entries)
        self.parts.append(bytes((short | entries,)) if entries < 0x10 else _head(entries, codes))


def _head(size: int, codes: range) -> bytes:
    """Write a length in its shortest form, of 1, 2 or 4 bytes; lists and maps have none of 1."""
    width = 0 if size < 0x100 and len(codes) == 3 else 1 if size < 0x10000 else 2
    return bytes((codes[width - 3 + len(codes)],)) + _SIZES[width].pack(size)
