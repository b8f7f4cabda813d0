"""Small pictures for notebooks: averaged with NumPy, written as PNG with zlib, nothing else."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

from vlmcore._arrays import UInt8Array

__all__ = ["data_url", "png", "shrunk"]


def shrunk(image: UInt8Array, longest_px: int) -> UInt8Array:
    """
    Make an image smaller until its longest side fits, each pixel the mean of those it stands for.

    Args:
        image: RGB, shape ``[H, W, 3]``.
        longest_px: The longest side of the result; what fits is returned as it is.
    """
    height, width = image.shape[:2]
    longest = max(height, width)
    if longest <= longest_px:
        return image
    means: npt.NDArray[Any] = image
    for axis, side in enumerate((height, width)):
        smaller = max(1, round(side * longest_px / longest))
        edges = np.arange(smaller) * side // smaller
        counts = np.diff(edges, append=side).reshape((-1, 1, 1) if axis == 0 else (1, -1, 1))
        means = np.add.reduceat(means, edges, axis=axis, dtype=np.float64) / counts
    small: UInt8Array = np.rint(means).astype(np.uint8)
    return small


def png(image: UInt8Array) -> bytes:
    """Write an image, RGB of shape ``[H, W, 3]``, as PNG (ISO/IEC 15948)."""
    height, width = image.shape[:2]
    rows = np.zeros((height, 1 + 3 * width), np.uint8)  # before each row a 0: it is not filtered
    rows[:, 1:] = image.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes())), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_part(kind, content) for kind, content in parts)


def _part(kind: bytes, content: bytes) -> bytes:
    checksum = zlib.crc32(kind + content)
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)


def data_url(image: UInt8Array) -> str:
    """Write an image as a URL that holds it."""
    return f"data:image/png;base64,{base64.b64encode(png(image)).decode()}"
