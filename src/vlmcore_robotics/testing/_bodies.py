"""What is sent to do harm, whoever sends it: bodies that ask for much, or that are none."""

from __future__ import annotations

from typing import Any

from vlmcore_robotics.wire.frames import FrameKind, encode_frame
from vlmcore_robotics.wire.http_messages import ContentType
from vlmcore_robotics.wire.ndarrays import ArraySpelling

__all__ = ["PIECE", "UNBELIEVABLE", "countless", "deep", "garbage", "many", "spelled_array", "vast"]

UNBELIEVABLE = 0x3FFFFFFFFFFFFFFF
"""How many bytes a message says that it has, which no disk has."""

PIECE = bytes(0x4000)
"""What such a message starts with, and one without end is made of."""

_DEPTH = 0x8000
_COUNT = 0x20000
_SIDE = 0x7FFFFFFF


def garbage() -> bytes:
    """Bytes without any sense, in whichever format."""
    return b"\xc1\xff\x00\x93NUMPY{]" * 9


def deep(kind: ContentType) -> bytes:
    """Lists in lists, thousands of them: what reads them by recursion has no stack left."""
    if kind is ContentType.JSON:
        return b"[" * _DEPTH + b"]" * _DEPTH
    return b"\x91" * _DEPTH + b"\xc0"


def many(kind: ContentType) -> bytes:
    """A list of many empty lists, which take far more memory than their bytes."""
    if kind is ContentType.JSON:
        return b"[" + b"[]," * _COUNT + b"[]]"
    return b"\xdd" + _COUNT.to_bytes(4, "big") + b"\x90" * _COUNT


def countless(kind: ContentType) -> bytes:
    """A list that says that four thousand million follow; in JSON, a number of many digits."""
    if kind is ContentType.JSON:
        return b'{"actions": [[' + b"1" * _COUNT + b"]]}"
    return b"\xdd\xff\xff\xff\xff"


def vast(kind: ContentType, spelling: ArraySpelling = ArraySpelling.OPENPI) -> bytes:
    """An array that says that it has as many numbers as nobody has room for; in JSON, 1e999."""
    if kind is ContentType.JSON:
        return b'{"actions": [[1e999]]}'
    array = spelled_array(b"", "<f4", [_SIDE, _SIDE], spelling)
    return encode_frame({"actions": array}, kind=FrameKind.RESPONSE)


def spelled_array(
    data: bytes, dtype: str, shape: list[int], spelling: ArraySpelling
) -> dict[Any, Any]:
    """Spell an array that says of itself what it likes, true or not."""
    match spelling:
        case ArraySpelling.OPENPI:
            return {b"__ndarray__": True, b"data": data, b"dtype": dtype, b"shape": shape}
        case ArraySpelling.MSGPACK_NUMPY:
            kind = b"O" if "O" in dtype else b""
            return {b"nd": True, b"type": dtype, b"kind": kind, b"shape": shape, b"data": data}
        case ArraySpelling.NPY:
            sides = "".join(f"{side}, " for side in shape)
            said = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': ({sides}), }}\n"
            head = b"\x93NUMPY\x01\x00" + len(said).to_bytes(2, "little") + said.encode()
            return {"__ndarray_class__": True, "as_npy": head + data}
