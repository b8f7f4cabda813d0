"""Frames that differ in their arrays and one text only: what stands around these is kept."""

from __future__ import annotations

from collections.abc import Sequence

from vlmcore_robotics.wire._blobs import Part, Parts
from vlmcore_robotics.wire._frame_writer import written_text

__all__ = ["SOME_TEXT", "FrameForm"]

SOME_TEXT = "\n"  # stands for the text, and can be no name
_SOME_TEXT = written_text(SOME_TEXT)


class FrameForm:
    """
    What frames of one form have in common, and how large the gaps in it are.

    Args:
        parts: A frame of the form: its arrays are the gaps, and so is `SOME_TEXT`.

    Attributes:
        around_bytes: How many bytes stand around the gaps.
        size: How many they are with the gaps.
    """

    def __init__(self, parts: Parts) -> None:
        around: list[list[Part]] = [[]]
        gaps = []
        for part in parts:
            if isinstance(part, memoryview) or part == _SOME_TEXT:
                gaps.append(len(part))
                around.append([])
            else:
                around[-1].append(part)
        self._around = tuple(map(b"".join, around))
        self._gaps = tuple(gaps)
        self.around_bytes = sum(map(len, self._around))
        self.size = self.around_bytes + sum(gaps)

    def filled(self, gaps: Sequence[Part]) -> Parts:
        """Write a frame; what is in its gaps is not copied."""
        parts: list[Part] = [self._around[0]]
        for gap, after in zip(gaps, self._around[1:], strict=True):
            parts += (gap, after)
        return Parts(parts)

    def gaps_of(self, frame: bytes) -> list[int] | None:
        """Say where the gaps start in *frame*; ``None`` if it is of another form."""
        if not isinstance(frame, bytes) or len(frame) != self.size:
            return None
        at, starts = 0, []
        for before, gap in zip(self._around, (*self._gaps, 0), strict=True):
            if not frame.startswith(before, at):
                return None
            at += len(before)
            starts.append(at)
            at += gap
        return starts[:-1]
