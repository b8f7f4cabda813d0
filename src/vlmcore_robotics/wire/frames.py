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
from typing import Any

from vlmcore.errors import ContractError
from vlmcore.limits import WireLimits, require_at_most
from vlmcore_robotics.wire._blobs import Parts
from vlmcore_robotics.wire._frame_reader import FrameReader
from vlmcore_robotics.wire._frame_writer import FrameWriter
from vlmcore_robotics.wire.ndarrays import ArraySpelling

__all__ = ["FrameKind", "decode_frame", "encode_frame", "frame_parts"]

_LIMITS = WireLimits()


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
    return FrameReader(frame, limits).whole()


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
    return b"".join(frame_parts(value, kind=kind, spelling=spelling, limits=limits))


def frame_parts(
    value: Any,
    *,
    kind: FrameKind,
    spelling: ArraySpelling = ArraySpelling.OPENPI,
    limits: WireLimits | None = None,
) -> Parts:
    """
    Write one value as `encode_frame`, in parts: the bytes of arrays are views, and not copied.

    Raises:
        ContractError: If there is anything in it that is not written.
        LimitExceededError: If there is more of something than *limits* allow.
    """
    limits = limits or _LIMITS
    writer = FrameWriter(spelling, limits)
    writer.write(value, 1)
    kind.check_size(sum(map(len, writer.parts)), limits)
    return Parts(writer.parts)
