"""What ends of ZeroMQ say, in bytes."""

from __future__ import annotations

import struct

from vlmcore_robotics.wire._zmtp_frames import COMMAND, frame_head
from vlmcore_robotics.wire.zmtp import SocketKind, ZmtpConnection, encode_message

__all__ = ["GREETING", "command", "ready", "replied", "said_before", "written"]

GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x01NULL" + bytes(48)


def written(*frames: bytes) -> bytes:
    """Write a message."""
    return b"".join(encode_message(frames))


def replied(number: int, *frames: bytes) -> bytes:
    """Write an answer to the *number*-th request that a client of ours sends on a connection."""
    return written(number.to_bytes(8, "big"), b"", *frames)


def command(body: bytes) -> bytes:
    """Write a command."""
    return frame_head(len(body), COMMAND) + body


def ready(kind: bytes = b"REQ", name: bytes = b"Socket-Type") -> bytes:
    """Write what a socket is."""
    value = struct.pack(">I", len(kind)) + kind
    return command(b"\x05READY" + bytes((len(name),)) + name + value)


def said_before(kind: SocketKind) -> bytes:
    """Write all that one of our ends says before messages."""
    end = ZmtpConnection(kind, policy="arm", max_bytes=0)
    end.accept()
    end.feed(GREETING)
    assert end.take() is None
    return b"".join(end.unsent)
