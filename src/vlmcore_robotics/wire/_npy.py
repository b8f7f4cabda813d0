"""
NumPy's own file format, read from bytes within limits; nothing in it is evaluated or unpickled.

Source: the format as described in ``numpy.lib.format``, versions 1.0, 2.0 and 3.0.
"""

from __future__ import annotations

import re
import struct

from vlmcore.limits import WireLimits, require_at_most
from vlmcore_robotics.wire._blobs import Blob

__all__ = ["npy_header", "npy_layout"]

_MAGIC = b"\x93NUMPY"
_SIZES = {1: struct.Struct("<H"), 2: struct.Struct("<I"), 3: struct.Struct("<I")}
_ALIGNMENT = 64
_HEADER = re.compile(
    rb"\{'descr': '([^']{1,8})', 'fortran_order': (True|False), "
    rb"'shape': \(((?:[0-9]{1,10}, ?)*(?:[0-9]{1,10})?)\),? ?\} *\n"
)


def npy_layout(blob: Blob, limits: WireLimits) -> tuple[str, tuple[int, ...], bool, Blob] | None:
    """
    Read the header: the type as text, the shape, whether the first axis is the fastest, the data.

    Returns:
        ``None`` if it is not such a file.

    Raises:
        LimitExceededError: If its header is too long.
    """
    start = len(_MAGIC) + 2
    head = blob.frame[blob.start : blob.start + min(blob.size, start + 4)]
    form = _SIZES.get(head[6]) if len(head) == start + 4 else None
    if not head.startswith(_MAGIC) or form is None:
        return None
    (length,) = form.unpack_from(head, start)
    require_at_most("max_array_header_bytes", length, limits.max_array_header_bytes)
    start += form.size
    if start + length > blob.size:
        return None
    match = _HEADER.fullmatch(blob.frame, blob.start + start, blob.start + start + length)
    if match is None:
        return None
    shape = tuple(int(side) for side in re.findall(rb"[0-9]+", match[3]))
    data = Blob(blob.frame, blob.start + start + length, blob.size - start - length)
    return match[1].decode("latin-1"), shape, match[2] == b"True", data


def npy_header(dtype: str, shape: tuple[int, ...]) -> bytes:
    """Write the header of an array whose last axis is the fastest, as ``numpy.save`` does."""
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}"
    used = len(_MAGIC) + 4 + len(text) + 1
    padded = text + " " * (-used % _ALIGNMENT) + "\n"
    return _MAGIC + b"\x01\x00" + _SIZES[1].pack(len(padded)) + padded.encode("latin-1")
