"""The bytes of tensors one after the other, read ahead of whoever takes them."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Future

import attrs

from vlmcore.weights._arena import allocate
from vlmcore.weights._sources import FileRange, UInt8Array
from vlmcore.weights.budget import ReadBudget
from vlmcore.weights.index import TensorEntry
from vlmcore.weights.opening import WeightFiles
from vlmcore.weights.ranges import RangeReader

__all__ = ["Piece", "pieces_of"]

_PAGE = 0x1000


@attrs.frozen(eq=False)
class Piece:
    """
    Some bytes of a tensor; they are others as soon as the next piece is taken.

    Attributes:
        entry: The tensor.
        data: The bytes, uint8; none for a tensor that has none.
        is_last: Whether they are the last of it.
    """

    entry: TensorEntry
    data: UInt8Array
    is_last: bool


def pieces_of(
    files: WeightFiles, entries: Iterable[TensorEntry], budget: ReadBudget
) -> Generator[Piece, None, None]:
    """
    Read tensors in the order of *entries*, piece by piece, each from its first byte to its last.

    Pieces are a multiple of 4,096 bytes long, but for the last of a tensor. As many are read ahead
    as the budget has readers.

    Raises:
        WeightsChangedError: If a file is shorter than it was when it was opened.
        WeightsError: If the system cannot read it.
    """
    size = budget.chunk_bytes
    spare = [allocate(size + _PAGE) for _ in range(budget.readers)]
    with RangeReader(files, budget) as reader:
        ahead: deque[tuple[Piece, UInt8Array, Future[None]]] = deque()
        for entry in entries:
            for start in range(entry.start, max(entry.stop, entry.start + 1), size):
                if not spare:
                    yield from _next(ahead, spare)
                stop = min(start + size, entry.stop)
                memory, shift = spare.pop(), start % _PAGE  # as far into a page as in the file:
                data = memory[shift : shift + stop - start]  # so it can be read straight there
                asked = reader.submit(FileRange(file=entry.file, start=start, into=data))
                ahead.append((Piece(entry, data, stop == entry.stop), memory, asked))
        while ahead:
            yield from _next(ahead, spare)


def _next(
    ahead: deque[tuple[Piece, UInt8Array, Future[None]]], spare: list[UInt8Array]
) -> Iterator[Piece]:
    piece, memory, asked = ahead.popleft()
    asked.result()
    yield piece
    spare.append(memory)
