"""The frames of ZMTP: one part of a message, or a command, each after its size."""

from __future__ import annotations

import io
import struct
from typing import NamedTuple

__all__ = ["COMMAND", "MORE", "FrameBuffer", "FrameHead", "body_at_the_end", "frame_head"]

MORE, _LONG, COMMAND = 1, 2, 4  # flags
_KNOWN = MORE | _LONG | COMMAND
_SHORT = 2  # bytes of a head, if there are less than 256 after it
_SIZE = struct.Struct(">Q")
_NEAR_BYTES = 1 << 16  # read before it is known what it is


class FrameHead(NamedTuple):
    """What stands before the bytes of a frame; flags may be some that do not exist."""

    flags: int
    size: int

    @property
    def is_command(self) -> bool:
        """Whether it is none of a message."""
        return bool(self.flags & COMMAND)

    @property
    def is_last(self) -> bool:
        """Whether it ends a message."""
        return not self.flags & MORE

    @property
    def is_known(self) -> bool:
        """Whether there is such a frame."""
        return not self.flags & ~_KNOWN and (self.is_last or not self.is_command)


def frame_head(size: int, flags: int = 0) -> bytes:
    """Write what stands before *size* bytes."""
    if size < 0x100:
        return bytes((flags, size))
    return bytes((flags | _LONG,)) + _SIZE.pack(size)


def body_at_the_end(data: bytes, at: int) -> int | None:
    """
    Say where the bytes of the frame begin whose head is at *at*.

    ``None`` if it does not end a message there where *data* ends.
    """
    rest = len(data) - at
    if rest >= _SHORT and data[at] == 0 and data[at + 1] == rest - _SHORT:
        return at + _SHORT
    long = 1 + _SIZE.size
    if rest >= long and data[at] == _LONG and _SIZE.unpack_from(data, at + 1)[0] == rest - long:
        return at + long
    return None


class FrameBuffer:
    """
    What came and was not read yet. It has no limits: look at a head before its body is asked for.

    A socket writes where `room` says, and what is large is there written once: to the bytes that
    `body` returns.
    """

    def __init__(self) -> None:
        self._near = memoryview(bytearray(_NEAR_BYTES))
        self._start = self._end = 0  # of what is there
        self._large: io.BytesIO | None = None  # a body that is not all there
        self._rest = memoryview(b"")  # of it

    @property
    def is_empty(self) -> bool:
        """Whether nothing is there, nor the start of something."""
        return self._start == self._end and self._large is None

    def room(self) -> memoryview:
        """Say where the next bytes belong; nowhere if there are 64 KiB that were not read."""
        if self._large is not None:
            return self._rest
        if self._start:
            there = bytes(self._near[self._start : self._end])
            self._near[: len(there)] = there
            self._start, self._end = 0, len(there)
        return self._near[self._end :]

    def filled(self, count: int) -> None:
        """Note that *count* bytes were written there."""
        if self._large is None:
            self._end += count
            return
        # Who was told may still hold it; the bytes can be taken without a copy if nobody does.
        told, self._rest = self._rest, self._rest[count:]
        told.release()

    def start(self, size: int) -> bytes:
        """Look at the first *size* bytes, or at what is there of them."""
        return bytes(self._near[self._start : min(self._start + size, self._end)])

    def exactly(self, size: int) -> bytes | None:
        """Take *size* bytes, which are few; ``None`` if they are not there yet."""
        if self._end - self._start < size:
            return None
        taken = self.start(size)
        self._start += size
        return taken

    def head(self) -> FrameHead | None:
        """Take what stands before a frame; ``None`` if it is not there yet."""
        start, there = self._start, self._end - self._start
        if there < _SHORT:
            return None
        flags = self._near[start]
        if not flags & _LONG:
            self._start += _SHORT
            return FrameHead(flags, self._near[start + 1])
        if there < 1 + _SIZE.size:
            return None
        self._start += 1 + _SIZE.size
        return FrameHead(flags, *_SIZE.unpack_from(self._near, start + 1))

    def body(self, size: int) -> bytes | None:
        """Take the *size* bytes after a head; ``None`` if they are not there yet."""
        if self._large is None:
            whole = self.exactly(size)
            if whole is not None:
                return whole
            # Of bytes that nobody else holds it is written to them, and they are what it returns.
            self._large = io.BytesIO(bytes(size))
            there = self.start(size)
            self._start = self._end = 0
            self._rest = self._large.getbuffer()
            self._rest[: len(there)] = there
            self.filled(len(there))
        if self._rest:
            return None
        self._rest.release()
        whole, self._large = self._large.getvalue(), None
        return whole
