"""How much changes from frame to frame, measured on small grey frames that are not kept."""

from __future__ import annotations

import attrs
import numpy as np

from vlmcore._arrays import Float64Array, UInt8Array

__all__ = ["ChangeMeter", "Changes", "grey_thumbnail"]

_LEVELS = 255
_LUMA = np.array([77, 150, 29], dtype=np.uint32)  # of 256: red, green, blue as the eye weighs them
_NOISE = 0.001  # of the full range: what pixels of a scene that stands still differ by
_CUT = 0.06  # of the full range
_ABOVE_NEIGHBOURS = 3.0
_NEIGHBOURS = 12  # frames on each side


@attrs.frozen(kw_only=True, eq=False)
class Changes:
    """
    What was measured of T frames.

    Attributes:
        times_s: Their times, shape ``[T]``.
        change: Mean difference of each from the one before, 0 to 1, shape ``[T]``; 0 for the first.
        lasting: As *change*, but no more than the difference over one more frame, before it or
            after it, shape ``[T]``: a flash does not last.
    """

    times_s: Float64Array
    change: Float64Array
    lasting: Float64Array

    def cuts(self) -> list[int]:
        """
        Find the first frames of new scenes, the plainest first.

        A cut is a change that lasts, and is large beside those around it: where everything moves,
        every frame is new.
        """
        found = []
        for index in np.flatnonzero(self.lasting >= _CUT).tolist():
            low, high = max(1, index - _NEIGHBOURS), index + _NEIGHBOURS + 1
            around = np.delete(self.change[low:high], index - low)
            usual = float(np.median(around)) if around.size else 0.0
            if self.lasting[index] >= _ABOVE_NEIGHBOURS * usual:
                found.append(index)
        return sorted(found, key=lambda index: (-self.lasting[index], index))

    def motion(self, cuts: list[int]) -> Float64Array:
        """Return the changes above noise that are no cuts, shape ``[T]``."""
        motion: Float64Array = np.maximum(self.change - _NOISE, 0)
        motion[cuts] = 0
        return motion


class ChangeMeter:
    """Takes small grey frames one after the other, and keeps no more than two."""

    def __init__(self) -> None:
        self._times_s: list[float] = []
        self._change: list[float] = []
        self._lasting: list[float] = []
        self._last: list[UInt8Array] = []

    def add(self, grey: UInt8Array, at_s: float) -> None:
        """Take the next frame, uint8, shape ``[h, w]``, the same for all."""
        self._times_s.append(at_s)
        change = _difference(grey, self._last[-1]) if self._last else 0.0
        self._change.append(change)
        self._lasting.append(change)
        if len(self._last) == 2:
            over_two = _difference(grey, self._last[0])
            self._lasting[-2:] = [min(each, over_two) for each in self._lasting[-2:]]
        self._last = [*self._last[-1:], grey]

    def changes(self) -> Changes:
        """Return what was measured."""
        return Changes(
            times_s=np.array(self._times_s),
            change=np.array(self._change),
            lasting=np.array(self._lasting),
        )


def _difference(grey: UInt8Array, other: UInt8Array) -> float:
    return float(np.abs(grey.astype(np.int16) - other).mean()) / _LEVELS


def grey_thumbnail(frame: UInt8Array, longest_edge_px: int) -> UInt8Array:
    """
    Make a frame, shape ``[H, W, 3]``, grey and small, by the averages of its blocks.

    What is left over at its right and lower edge is not looked at.
    """
    step = -(-max(frame.shape[:2]) // longest_edge_px)
    rows, columns = (max(1, edge // step) for edge in frame.shape[:2])
    height, width = frame.shape[0] // rows, frame.shape[1] // columns
    block = frame[: rows * height, : columns * width]
    lines = block.reshape(rows, height, -1).sum(axis=1, dtype=np.uint32)
    sums = lines.reshape(rows, columns, width, 3).sum(axis=2)
    grey: UInt8Array = (sums @ _LUMA // (256 * height * width)).astype(np.uint8)
    return grey
