"""
ZeroMQ in bytes, right and wrong, at both ends: ZMTP 3.0 without encryption.

Source: the specification at https://rfc.zeromq.org/spec/23/.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from vlmcore_robotics.testing._streams import Stream

__all__ = ["Heard", "frame", "greeting", "hear_greeting", "message", "read_message"]

_SIGNATURE = b"\xff" + bytes(8) + b"\x7f"
_MORE, _LONG, _COMMAND = 1, 2, 4
_GREETING_BYTES = 64


class Heard(NamedTuple):
    """A request or an answer, and what stood before its empty frame: an answer gives it back."""

    envelope: tuple[bytes, ...]
    body: bytes


def greeting(kind: str) -> bytes:
    """Write all that is said before messages; *kind* is ``"REQ"`` or ``"REP"``."""
    start = _SIGNATURE + b"\x03\x00" + b"NULL".ljust(20, b"\0") + b"\0"
    ready = b"\x05READY" + _named(b"Socket-Type", kind.encode()) + _named(b"Identity", b"")
    return start.ljust(_GREETING_BYTES, b"\0") + frame(ready, flags=_COMMAND)


def hear_greeting(stream: Stream) -> None:
    """
    Hear all that a peer says before messages, after one's own `greeting` was sent.

    Raises:
        ValueError: If it speaks something else.
    """
    if not stream.exactly(len(_SIGNATURE)).startswith(b"\xff"):
        raise ValueError("got another protocol, expected ZMTP")
    stream.exactly(_GREETING_BYTES - len(_SIGNATURE))
    while not _read_frame(stream)[1].startswith(b"\x05READY"):
        pass


def frame(body: bytes, *, flags: int = 0, declared: int | None = None) -> bytes:
    """Write a frame; *declared* is how large it says that it is, whatever it is."""
    size = len(body) if declared is None else declared
    if size < 0x100:
        return bytes((flags, size)) + body
    return bytes((flags | _LONG,)) + struct.pack(">Q", size) + body


def message(
    body: bytes,
    *,
    envelope: tuple[bytes, ...] = (),
    declared: int | None = None,
    more: bool = False,
) -> bytes:
    """Write a request or an answer: *envelope*, an empty frame, *body*, and what may follow."""
    before = b"".join(frame(each, flags=_MORE) for each in (*envelope, b""))
    return before + frame(body, flags=_MORE if more else 0, declared=declared)


def read_message(stream: Stream) -> Heard:
    """Read a request or an answer. Heartbeats are answered."""
    parts: list[bytes] = []
    while True:
        flags, body = _read_frame(stream)
        if flags & _COMMAND:
            if body.startswith(b"\x04PING"):
                stream.send(frame(b"\x04PONG" + body[7:], flags=_COMMAND))
            continue
        parts.append(body)
        if not flags & _MORE:
            split = parts.index(b"") if b"" in parts[:-1] else 0
            return Heard(tuple(parts[:split]), b"".join(parts[split:]))


def _named(name: bytes, value: bytes) -> bytes:
    return bytes((len(name),)) + name + struct.pack(">I", len(value)) + value


def _read_frame(stream: Stream) -> tuple[int, bytes]:
    (flags,) = stream.exactly(1)
    size = int.from_bytes(stream.exactly(8 if flags & _LONG else 1), "big")
    return flags, stream.exactly(size)
