"""Where tensors lie in memory of our own, so that most bytes are read straight to their place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from vlmcore.weights.index import TensorEntry

__all__ = ["ALIGNMENT", "Layout", "Segment", "lay_out"]

ALIGNMENT = 64  # bytes: a line of the cache, and what vector instructions want
_SECTOR = 0x1000  # memory as far from it as the file is can be read into past the page cache


@attrs.frozen(kw_only=True)
class Segment:
    """
    Bytes that lie in memory as they lie in their file.

    Attributes:
        file: The position of the file.
        start: Their first byte in the file.
        stop: The byte after their last.
        at: Where they begin in memory.
    """

    file: int
    start: int
    stop: int
    at: int


@attrs.frozen(kw_only=True)
class Layout:
    """
    Where tensors lie in memory.

    Attributes:
        nbytes: The memory that they need together.
        places: Where each begins, by name; each a multiple of `ALIGNMENT`.
        segments: What is read where, in the order of the files. Bytes between tensors may be in it.
    """

    nbytes: int
    places: Mapping[str, int]
    segments: tuple[Segment, ...]


def lay_out(entries: Iterable[TensorEntry]) -> Layout:
    """
    Give each tensor its place.

    Tensors stay as far apart as they are in their file while that keeps them aligned, so that long
    runs are read at once.

    Args:
        entries: The tensors, ordered by file and place.
    """
    places: dict[str, int] = {}
    segments: list[Segment] = []
    for entry in entries:
        last = segments[-1] if segments else None
        if last is not None and _continues(last, entry):
            segments[-1] = attrs.evolve(last, stop=entry.stop)
        else:
            reached = last.at + last.stop - last.start if last is not None else 0
            at = _place_for(entry.start, reached)
            segments.append(Segment(file=entry.file, start=entry.start, stop=entry.stop, at=at))
        places[entry.name] = segments[-1].at + entry.start - segments[-1].start
    nbytes = segments[-1].at + segments[-1].stop - segments[-1].start if segments else 0
    return Layout(nbytes=nbytes, places=places, segments=tuple(segments))


def _continues(last: Segment, entry: TensorEntry) -> bool:
    at = last.at + entry.start - last.start
    is_near = 0 <= entry.start - last.stop < _SECTOR
    return entry.file == last.file and is_near and at % ALIGNMENT == 0


def _place_for(start: int, reached: int) -> int:
    """Find the next place that is aligned, and where it can be, one to read into directly."""
    step, phase = (_SECTOR, start % _SECTOR) if start % ALIGNMENT == 0 else (ALIGNMENT, 0)
    return reached + (phase - reached) % step
