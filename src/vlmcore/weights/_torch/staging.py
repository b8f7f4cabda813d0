"""Weights on their way to a device: read into a ring of memory, and copied out of it meanwhile."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import attrs
import torch

from vlmcore.weights._arena import allocate
from vlmcore.weights._chunks import Chunk, Piece, cut
from vlmcore.weights._torch.tensors import torch_dtype
from vlmcore.weights.index import TensorEntry
from vlmcore.weights.ranges import FileRange, RangeReader, parts_of

__all__ = ["Carrier", "Ring", "Slot", "place"]

_PAGE = 0x1000
_SLOTS = 8  # parts of the ring: while one is copied from, the others are read into
_STREAMING = ("cuda", "xpu")  # devices that copy while the host goes on


@attrs.define(eq=False)
class Slot:
    """
    A part of the ring.

    Attributes:
        memory: Its memory, uint8 of one axis, on the host.
        lead: Where in it the bytes of its chunk begin: as far from a page as in the file.
        event: What the device signals when it has copied them; ``None`` where it has already.
    """

    memory: torch.Tensor
    lead: int = 0
    event: Any = None

    def bytes_of(self, piece: Piece) -> torch.Tensor:
        """The bytes of a piece of the chunk that is in it."""
        at = self.lead + piece.at
        return self.memory[at : at + piece.stop - piece.start]

    def settle(self) -> None:
        """Wait until nothing is copied out of it any more."""
        if self.event is not None:
            self.event.synchronize()
            self.event = None


class Ring:
    """
    Staging memory in equal parts, which files are read into while the parts before are copied on.

    Args:
        staging_bytes: How much memory it takes at most.
        needed_bytes: How much there is to read; a ring is no larger.
        part_bytes: How much one reader reads at a time.
        pins: Whether its memory is pinned, so that a device copies from it while the host goes on.
        slots: In how many parts it is, at most.

    Attributes:
        nbytes: The memory that it took.
        pinned_bytes: How much of it is pinned.
        steps_down: What was not done as it was meant to be, and why.
    """

    def __init__(
        self,
        staging_bytes: int,
        needed_bytes: int,
        *,
        part_bytes: int,
        pins: bool,
        slots: int = _SLOTS,
    ) -> None:
        size = staging_bytes // slots // _PAGE * _PAGE
        size = max(min(size, needed_bytes + -needed_bytes % _PAGE + _PAGE), 2 * _PAGE)
        count = max(min(slots, staging_bytes // size, -(-needed_bytes // (size - _PAGE))), 1)
        share = -(-needed_bytes // count)
        size = max(min(size, share + -share % _PAGE + _PAGE), 2 * _PAGE)
        self._part_bytes = part_bytes
        self.pinned_bytes = 0
        self.steps_down: tuple[str, ...] = ()
        self._slots = [Slot(self._memory(size, pins=pins)) for _ in range(count)]
        self.nbytes = size * len(self._slots)
        self.chunk_bytes = size - _PAGE

    def chunks(
        self, entries: Iterable[TensorEntry], reader: RangeReader
    ) -> Iterator[tuple[Chunk, Slot]]:
        """
        Read tensors chunk by chunk, in the order of their files.

        What is given is there until the next is asked for, or until its `Slot.event`.

        Raises:
            WeightsError: If a file cannot be read, or changed.
        """
        yield from self.fill(cut(entries, self.chunk_bytes), reader)

    def fill(self, chunks: Iterable[Chunk], reader: RangeReader) -> Iterator[tuple[Chunk, Slot]]:
        """Read *chunks*, each of at most `chunk_bytes`, in their order."""
        waiting: deque[tuple[Chunk, Slot, list[Future[None]]]] = deque()
        try:
            for number, chunk in enumerate(chunks):
                if len(waiting) == len(self._slots):
                    yield self._next(waiting)
                slot = self._slots[number % len(self._slots)]
                slot.settle()
                waiting.append((chunk, slot, self._submit(chunk, slot, reader)))
            while waiting:
                yield self._next(waiting)
        finally:  # nobody writes to the memory of a ring that was left
            for _, _, futures in waiting:
                _abandon(futures)
            for slot in self._slots:
                slot.settle()

    def _next(self, waiting: deque[tuple[Chunk, Slot, list[Future[None]]]]) -> tuple[Chunk, Slot]:
        chunk, slot, futures = waiting[0]
        for future in futures:
            future.result()
        waiting.popleft()
        return chunk, slot

    def _submit(self, chunk: Chunk, slot: Slot, reader: RangeReader) -> list[Future[None]]:
        slot.lead = chunk.start % _PAGE
        into = slot.memory[slot.lead : slot.lead + chunk.nbytes].numpy()
        whole = FileRange(file=chunk.file, start=chunk.start, into=into)
        return [reader.submit(*part) for part in parts_of([whole], self._part_bytes)]

    def _memory(self, nbytes: int, *, pins: bool) -> torch.Tensor:
        if pins and not self.steps_down:
            try:
                memory = torch.empty(nbytes, dtype=torch.uint8, pin_memory=True)
            except RuntimeError as error:
                line = str(error).strip().partition("\n")[0]
                self.steps_down = (f"pinned memory: refused, plain memory taken ({line:.200})",)
            else:
                self.pinned_bytes += nbytes
                return memory
        return torch.from_numpy(allocate(nbytes))


class Carrier:
    """
    Copies out of a ring to one device, on a stream of its own where the device has such.

    Args:
        device: Where to.
    """

    def __init__(self, device: torch.device) -> None:
        self.pins = device.type in _STREAMING
        self._device = device
        self._module: Any = getattr(torch, device.type) if self.pins else torch
        self._stream: Any = self._module.Stream(device) if self.pins else None

    def begin(self) -> None:
        """Let the copies wait for what is under way on the device: memory is used again."""
        if self._stream is not None:
            self._stream.wait_stream(self._module.current_stream(self._device))

    @contextmanager
    def copying(self, slot: Slot) -> Iterator[None]:
        """Copy out of *slot* during the block; it is free once the device has done so."""
        if self._stream is None:
            yield
            return
        on_stream: AbstractContextManager[Any] = self._module.stream(self._stream)
        with on_stream:
            yield
            slot.event = self._stream.record_event()

    def finish(self) -> None:
        """Wait until the device has everything."""
        if self._stream is not None:
            self._stream.synchronize()

    def __enter__(self) -> Carrier:
        self.begin()
        return self

    def __exit__(self, *_: object) -> None:
        self.finish()


def place(
    chunk: Chunk, slot: Slot, into: Mapping[str, torch.Tensor], *, in_stream: bool = False
) -> None:
    """
    Copy the pieces of a chunk to where they belong, and convert what is of another dtype there.

    Args:
        chunk: The chunk.
        slot: What it was read into.
        into: The tensors by the names of their entries, each of one axis, of any dtype.
        in_stream: Whether this may return before the bytes are there: only where the caller waits
            for the device before *slot* is used again, as `Carrier.copying` does.
    """
    for piece in chunk.pieces:
        raw = slot.bytes_of(piece)
        target = into[piece.entry.name]
        dtype = torch_dtype(piece.entry.dtype)
        if target.dtype == dtype:
            target.view(torch.uint8)[piece.start : piece.stop].copy_(raw, non_blocking=in_stream)
            continue
        if raw.data_ptr() % dtype.itemsize or raw.storage_offset() % dtype.itemsize:
            raw = raw.clone()
        first, last = piece.start // dtype.itemsize, piece.stop // dtype.itemsize
        target[first:last].copy_(raw.view(dtype), non_blocking=in_stream)


def _abandon(futures: Iterable[Future[None]]) -> None:
    for future in futures:
        if not future.cancel():
            with contextlib.suppress(Exception):  # the first failure is the one that is told
                future.result()
