"""How the frames of a video are turned before they are shown, as its file says."""

from __future__ import annotations

import struct

import attrs

from vlmcore._arrays import UInt8Array

__all__ = ["UPRIGHT", "Turn"]

_MATRIX = struct.Struct("=9i")  # in the order of this machine: FFmpeg gives numbers, not bytes


@attrs.frozen(kw_only=True)
class Turn:
    """
    One of the eight ways to lay a picture: exchange its axes, then turn it over on each.

    Attributes:
        exchanges_axes: Whether rows become columns.
        is_upside_down: Whether the rows are reversed after that.
        is_mirrored: Whether the columns are reversed after that.
    """

    exchanges_axes: bool = False
    is_upside_down: bool = False
    is_mirrored: bool = False

    @classmethod
    def of_matrix(cls, matrix: bytes) -> Turn:
        """
        Read the display matrix of a file: x' = a x + c y, y' = b x + d y.

        A turn by no multiple of a right angle is none.

        Args:
            matrix: Nine whole numbers of 32 bits: a, b, u, c, d, v, x, y, w.
        """
        if len(matrix) != _MATRIX.size:
            return UPRIGHT
        a, b, _, c, d, *_ = _MATRIX.unpack(matrix)
        if not a and not d and b and c:
            return cls(exchanges_axes=True, is_upside_down=b < 0, is_mirrored=c < 0)
        if not b and not c and a and d:
            return cls(is_upside_down=d < 0, is_mirrored=a < 0)
        return UPRIGHT

    @property
    def rotation_deg(self) -> int:
        """How far it turns clockwise; what is mirrored, too, is turned first."""
        return 90 * self.exchanges_axes + 180 * self.is_upside_down

    def apply(self, pixels: UInt8Array) -> UInt8Array:
        """Turn a picture, shape ``[H, W, 3]``; a view."""
        if self.exchanges_axes:
            pixels = pixels.swapaxes(0, 1)
        return pixels[:: -1 if self.is_upside_down else 1, :: -1 if self.is_mirrored else 1]


UPRIGHT = Turn()
