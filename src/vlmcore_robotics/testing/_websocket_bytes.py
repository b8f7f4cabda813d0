"""WebSocket in bytes, right and wrong, at both ends; a package of it would not let us be wrong."""

from __future__ import annotations

import base64
import enum
import hashlib
import os
import re
import struct
from collections.abc import Mapping

from vlmcore_robotics.testing._http_bytes import read_head
from vlmcore_robotics.testing._streams import Stream

__all__ = ["Opcode", "frame", "handshake_answer", "handshake_request", "read_message"]

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # of RFC 6455
_KEY = re.compile(rb"(?im)^sec-websocket-key: *([^\r\n]*)")


class Opcode(enum.IntEnum):
    """What a frame holds."""

    MORE = 0
    TEXT = 1
    BINARY = 2
    CLOSE = 8
    PING = 9
    PONG = 10


def handshake_request(*, path: str, headers: Mapping[str, str]) -> bytes:
    """Write what a client says first."""
    said = {
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(),
        "Sec-WebSocket-Version": "13",
        **headers,
    }
    lines = [f"GET {path or '/'} HTTP/1.1", *(f"{name}: {text}" for name, text in said.items())]
    return "\r\n".join([*lines, "", ""]).encode()


def handshake_answer(stream: Stream) -> bytes:
    """Hear what a client says first, and write what is to be answered."""
    match = _KEY.search(read_head(stream))
    key = match[1].strip() if match else b""
    digest = hashlib.sha1(key + _GUID, usedforsecurity=False).digest()
    return (
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: " + base64.b64encode(digest) + b"\r\n\r\n"
    )


def frame(
    payload: bytes | str,
    *,
    masked: bool,
    opcode: Opcode | None = None,
    declared: int | None = None,
    final: bool = True,
) -> bytes:
    """
    Write a frame, as a client (*masked*) or as a server.

    Args:
        payload: What is in it; text makes a text frame.
        masked: Whether there is a mask. It is of zeros, so that the payload stays as it is.
        opcode: What it says that it is.
        declared: How large it says that it is, whatever it is.
        final: Whether the message ends with it.
    """
    if opcode is None:
        opcode = Opcode.TEXT if isinstance(payload, str) else Opcode.BINARY
    data = payload.encode() if isinstance(payload, str) else payload
    size = len(data) if declared is None else declared
    bit = 0x80 if masked else 0
    if size < 126:
        length = bytes((bit | size,))
    elif size < 0x10000:
        length = bytes((bit | 126,)) + struct.pack(">H", size)
    else:
        length = bytes((bit | 127,)) + struct.pack(">Q", size)
    head = bytes(((0x80 if final else 0) | opcode,)) + length
    return head + (bytes(4) if masked else b"") + data


def read_message(stream: Stream, *, masked: bool) -> bytes | str | None:
    """
    Read a message; ``None`` is a farewell. Pings are answered.

    Args:
        stream: The connection.
        masked: Whether this end writes masks, as a client.
    """
    whole, is_text = bytearray(), False
    while True:
        opcode, final, data = _read_frame(stream)
        match opcode:
            case Opcode.CLOSE:
                return None
            case Opcode.PING:
                stream.send(frame(data, masked=masked, opcode=Opcode.PONG))
            case Opcode.PONG:
                pass
            case _:
                is_text = opcode == Opcode.TEXT or (is_text and opcode == Opcode.MORE)
                whole += data
                if final:
                    return whole.decode("utf-8", "replace") if is_text else bytes(whole)


def _read_frame(stream: Stream) -> tuple[int, bool, bytes]:
    first, second = stream.exactly(2)
    size = second & 0x7F
    if size >= 126:
        size = int.from_bytes(stream.exactly(2 if size == 126 else 8), "big")
    mask = stream.exactly(4) if second & 0x80 else bytes(4)
    data = stream.exactly(size)
    if any(mask):
        spread = (mask * (size // 4 + 1))[:size]
        data = (int.from_bytes(data, "big") ^ int.from_bytes(spread, "big")).to_bytes(size, "big")
    return first & 0x0F, bool(first & 0x80), data
