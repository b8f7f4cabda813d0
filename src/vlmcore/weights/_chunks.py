"""Tensors cut into pieces that lie side by side in a file, so that few reads fetch many."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import attrs

from vlmcore.weights.index import TensorEntry

__all__ = ["Chunk", "Piece", "cut"]

_GAP_BYTES = 0x1_0000  # bytes between two tensors that are cheaper to read than to leave out


@attrs.frozen(kw_only=True)
class Piece:
    """
    Bytes of one tensor inside a chunk.

    Attributes:
        entry: The tensor.
        start: The first of its bytes that is in the chunk, counted from the start of the tensor.
        stop: The byte after the last.
        at: Where the first of them is, counted from the start of the chunk.
    """

    entry: TensorEntry
    start: int
    stop: int
    at: int


@attrs.frozen(kw_only=True)
class Chunk:
    """
    Bytes of one file that are read at once, and the pieces of tensors in them.

    Attributes:
        file: The file, as in `vlmcore.weights.index.TensorEntry`.
        start: The first byte in that file.
        stop: The byte after the last.
        pieces: The pieces, in the order of the file.
    """

    file: int
    start: int
    stop: int
    pieces: tuple[Piece, ...]

    @property
    def nbytes(self) -> int:
        """How many bytes it has."""
        return self.stop - self.start


def cut(entries: Iterable[TensorEntry], chunk_bytes: int) -> Iterator[Chunk]:
    """
    Cut *entries* into chunks of at most *chunk_bytes*, in the order of their files.

    No number is cut through. Tensors without numbers are in no chunk.

    Args:
        entries: The tensors, of ranges that do not overlap.
        chunk_bytes: The size of a chunk, at least that of one number.

    Example:
        >>> from vlmcore.weights.dtypes import DType
        >>> place = dict(dtype=DType.FLOAT32, shape=(4,), file=0)
        >>> pair = [
        ...     TensorEntry(name="a", start=0, stop=16, **place),
        ...     TensorEntry(name="b", start=32, stop=48, **place),
        ... ]
        >>> [(chunk.start, chunk.stop, len(chunk.pieces)) for chunk in cut(pair, 42)]
        [(0, 40, 2), (40, 48, 1)]
    """
    pieces: list[Piece] = []
    file = first = last = 0
    for entry in sorted(entries, key=lambda each: (each.file, each.start)):
        item = entry.dtype.itemsize
        done = 0
        while done < entry.nbytes:
            start = entry.start + done
            is_apart = entry.file != file or start - last > _GAP_BYTES
            room = 0 if is_apart else (first + chunk_bytes - start) // item * item
            if not pieces or room <= 0:
                if pieces:
                    yield Chunk(file=file, start=first, stop=last, pieces=tuple(pieces))
                pieces, file, first = [], entry.file, start
                room = chunk_bytes // item * item
            stop = min(done + room, entry.nbytes)
            pieces.append(Piece(entry=entry, start=done, stop=stop, at=start - first))
            done, last = stop, entry.start + stop
    if pieces:
        yield Chunk(file=file, start=first, stop=last, pieces=tuple(pieces))
