"""Writes MessagePack frames within limits; an array's pixels are not touched until the end."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from vlmcore.errors import ContractError
from vlmcore.limits import WireLimits, require_at_most
from vlmcore_robotics.wire._blobs import Part, Parts
from vlmcore_robotics.wire._msgpack_codes import BINARY, LIST, MAP, NUMBERS, SIZES, TEXT
from vlmcore_robotics.wire.ndarrays import (
    ArraySpelling,
    pixels_of,
    plain_array,
    spelled_array,
    spelled_number,
)

__all__ = ["FrameWriter", "written_text"]

_INTEGERS = (  # the shortest form that a whole number fits in
    (range(0x80), 0x00, struct.Struct(">B")),
    (range(-0x20, 0), 0x00, struct.Struct(">b")),
    (range(0x100), 0xCC, NUMBERS[0xCC]),
    (range(0x10000), 0xCD, NUMBERS[0xCD]),
    (range(0x100000000), 0xCE, NUMBERS[0xCE]),
    (range(0x10000000000000000), 0xCF, NUMBERS[0xCF]),
    (range(-0x80, 0), 0xD0, NUMBERS[0xD0]),
    (range(-0x8000, 0), 0xD1, NUMBERS[0xD1]),
    (range(-0x80000000, 0), 0xD2, NUMBERS[0xD2]),
    (range(-0x8000000000000000, 0), 0xD3, NUMBERS[0xD3]),
)
_KNOWN_ARRAYS, _KNOWN_KEYS, _KNOWN_LENGTH = 256, 1024, 64  # what is remembered


class FrameWriter:
    """
    Writes one frame as parts, so that pixels are copied when the parts are joined only.

    Args:
        spelling: How arrays and NumPy's numbers are written.
        limits: How much is written.

    Attributes:
        parts: What is written so far.
    """

    def __init__(self, spelling: ArraySpelling, limits: WireLimits) -> None:
        self.spelling = spelling
        self.limits = limits
        self.nodes = 0
        self.text_bytes = 0
        self.parts: list[Part] = []

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
                self.nodes -= 1  # it is counted by what it is spelled as
                self.numpy(value, depth)
            case list() | tuple():
                self.enter(len(value), depth, 0x90, LIST)
                for each in value:
                    self.write(each, depth + 1)
            case dict() | Mapping():
                self.enter(len(value), depth, 0x80, MAP)
                for key, each in value.items():
                    self.key(key, depth)
                    self.write(each, depth + 1)
            case _:
                raise ContractError(
                    "frame", f"got {type(value).__name__}, which MessagePack cannot hold"
                )

    def key(self, key: Any, depth: int) -> None:
        if type(key) is str and len(key) <= _KNOWN_LENGTH:
            self.nodes += 1  # looked at with what it leads to
            size, written = _key(key)
            self.count_text(size)
            self.parts.append(written)
        elif isinstance(key, (str, bytes)):
            self.write(key, depth + 1)
        else:
            raise ContractError("frame", f"got the key {key!r:.80}, expected text")

    def numpy(self, value: npt.NDArray[Any] | np.generic, depth: int) -> None:
        if isinstance(value, np.generic):
            self.write(spelled_number(value, self.spelling), depth)
            return
        array = plain_array(value, self.limits)
        around = _around(array.dtype.str, array.shape, self.spelling, self.limits, depth)
        self.nodes += around.nodes
        require_at_most("max_nodes", self.nodes, self.limits.max_nodes)
        self.count_text(around.text_bytes)
        self.parts += (around.before, pixels_of(array), around.after)

    def plain(self, value: Any) -> None:
        if value is None:
            self.parts.append(b"\xc0")
        elif isinstance(value, bool):
            self.parts.append(b"\xc3" if value else b"\xc2")
        elif isinstance(value, float):
            self.parts.append(b"\xcb" + NUMBERS[0xCB].pack(value))
        else:
            self.integer(value)

    def integer(self, value: int) -> None:
        for fits, code, form in _INTEGERS:
            if value in fits:
                self.parts.append((bytes((code,)) if code else b"") + form.pack(value))
                return
        raise ContractError("frame", "got a number of more than 64 bits, expected fewer")

    def text(self, value: str) -> None:
        size, written = _text(value)
        self.count_text(size)
        self.parts.append(written)

    def count_text(self, size: int) -> None:
        self.text_bytes += size
        require_at_most("max_text_bytes", self.text_bytes, self.limits.max_text_bytes)

    def binary(self, value: bytes | Parts) -> None:
        if isinstance(value, bytes):
            value = Parts((value,))
        size = sum(map(len, value))
        require_at_most("max_binary_bytes", size, self.limits.max_binary_bytes)
        self.parts.append(_head(size, BINARY))
        self.parts += value

    def enter(self, entries: int, depth: int, short: int, codes: range) -> None:
        require_at_most("max_depth", depth, self.limits.max_depth)
        require_at_most("max_entries", entries, self.limits.max_entries)
        self.parts.append(bytes((short | entries,)) if entries < 0x10 else _head(entries, codes))


def written_text(value: str) -> bytes:
    """
    Write a text.

    Raises:
        ContractError: If it cannot be encoded.
    """
    return _text(value)[1]


def _text(value: str) -> tuple[int, bytes]:
    """Write a text; say how many bytes it has without its head."""
    try:
        encoded = value.encode()
    except UnicodeEncodeError:
        raise ContractError("frame", "got a lone surrogate, expected characters") from None
    short = bytes((0xA0 | len(encoded),)) if len(encoded) < 0x20 else None
    return len(encoded), (short or _head(len(encoded), TEXT)) + encoded


# Of maps whose keys are the same in each message. Never of values, which may be secrets.
_key = lru_cache(maxsize=_KNOWN_KEYS)(_text)


def _head(size: int, codes: range) -> bytes:
    """Write a length in its shortest form, of 1, 2 or 4 bytes; lists and maps have none of 1."""
    width = 0 if size < 0x100 and len(codes) == 3 else 1 if size < 0x10000 else 2
    return bytes((codes[width - 3 + len(codes)],)) + SIZES[width].pack(size)


class _Around(NamedTuple):
    """An array as it is written, but for its pixels, and what of the limits it takes."""

    before: bytes
    after: bytes
    nodes: int
    text_bytes: int


@lru_cache(maxsize=_KNOWN_ARRAYS)
def _around(
    dtype: str, shape: tuple[int, ...], spelling: ArraySpelling, limits: WireLimits, depth: int
) -> _Around:
    """Write what is the same for each array of a type and a shape: a robot's are few."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    pixels = np.broadcast_to(np.uint8(0), size).data  # which takes no memory
    writer = FrameWriter(spelling, limits)
    writer.write(spelled_array(dtype, shape, pixels, spelling), depth)
    at = next(i for i, part in enumerate(writer.parts) if part is pixels)
    return _Around(
        before=b"".join(writer.parts[:at]),
        after=b"".join(writer.parts[at + 1 :]),
        nodes=writer.nodes,
        text_bytes=writer.text_bytes,
    )
