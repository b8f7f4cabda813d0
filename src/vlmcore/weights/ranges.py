"""Byte ranges of open files, read into memory of the caller, several at a time."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TypeAlias

from vlmcore._closing import Closing
from vlmcore.errors import ContractError
from vlmcore.weights._crew import Cancelling, Progress, work_off
from vlmcore.weights._sources import FileRange, Source, Staging
from vlmcore.weights.budget import ReadBudget
from vlmcore.weights.opening import WeightFiles

__all__ = ["Cancelling", "FileRange", "Progress", "RangeReader", "parts_of"]

_GAP = 0x1000  # bytes between two ranges that are read and thrown away rather than skipped

Part: TypeAlias = tuple[FileRange, ...]
Arrived: TypeAlias = Callable[[int, int, int], None]
"""What is told the file, the start and the stop of bytes that are there, in any order."""


class RangeReader(Closing):
    """
    Reads ranges of the files of a checkpoint with the readers of a budget.

    Each part is read past the page cache, or through it where it is in there already. Memory whose
    address is a multiple of 4,096 away from the place in the file is read into directly; any other
    is filled by way of staging memory, which counts against the budget.

    Args:
        files: The files, which stay open as long as this is used.
        budget: How to read.

    Attributes:
        direct_bytes: Bytes that were read past the page cache.
        plain_bytes: Bytes that were read through it.
    """

    def __init__(self, files: WeightFiles, budget: ReadBudget) -> None:
        self.direct_bytes = 0
        self.plain_bytes = 0
        self._budget = budget
        self._sources = [
            Source(str(files.paths[i]), files.fd(i), file.size_bytes, direct=budget.direct)
            for i, file in enumerate(files.index.files)
        ]
        self._files = files  # which are open as long as somebody knows them
        self._staging = Staging()
        self._lock = threading.Lock()
        self._cached_readers = threading.Semaphore(budget.cached_readers)
        self._pool = ThreadPoolExecutor(budget.readers, thread_name_prefix="vlmcore-weights")

    @property
    def staging_bytes(self) -> int:
        """Memory that was taken for bytes on their way, so far."""
        return self._staging.taken_bytes

    @property
    def steps_down(self) -> tuple[str, ...]:
        """What was not done as it is usually done, one sentence for each file."""
        return tuple(
            f"direct: {source.name} is on {source.kind or 'a file system'} that takes no direct "
            "reads, read through the page cache"
            for source in self._sources
            if source.refused_direct
        )

    def close(self) -> None:
        """Wait for the readers that are at work, drop what waits, and close what was opened."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        for source in self._sources:
            source.close()

    def submit(self, *part: FileRange) -> Future[None]:
        """
        Have one part read by the next reader that is free.

        Args:
            part: Ranges of one file that lie side by side, as `parts_of` groups them; together at
                most the chunk of the budget.

        Returns:
            What is done when the bytes are there; its exception is one of `read`.

        Raises:
            ContractError: If it is larger than a chunk.
        """
        if part[-1].stop - part[0].start > self._budget.chunk_bytes:
            raise ContractError(
                "part", f"got more than chunk_bytes, {self._budget.chunk_bytes}, expected one chunk"
            )
        return self._pool.submit(self._read_part, part)

    def read(
        self,
        ranges: Iterable[FileRange],
        *,
        progress: Progress | None = None,
        cancel: Cancelling | None = None,
        arrived: Arrived | None = None,
    ) -> None:
        """
        Read ranges, and return when all their bytes are there.

        Whatever ends it early, no reader writes to the memory afterwards.

        Args:
            ranges: What to read; ordered by file and place it is read fastest.
            progress: Called in the thread of the caller with the bytes that are read and those that
                are asked for.
            cancel: Asked after each part.
            arrived: Called by a reader with each piece that it has read.

        Raises:
            WeightsChangedError: If a file is shorter than it was when it was opened.
            WeightsCancelledError: If it was cancelled.
            WeightsError: If the system cannot read a file.
        """
        parts = [
            (part, sum(each.into.size for each in part))
            for part in parts_of(ranges, self._budget.chunk_bytes)
        ]
        work = partial(self._read_part, arrived=arrived)
        work_off(self._pool, work, parts, path=self._files.path, progress=progress, cancel=cancel)

    def _read_part(self, part: Part, arrived: Arrived | None = None) -> None:
        source = self._sources[part[0].file]
        size = sum(each.into.size for each in part)
        is_cached = source.is_cached(part[0].start, part[-1].stop)
        if source.read_direct(part, self._staging, is_cached=is_cached):
            with self._lock:
                self.direct_bytes += size
        else:
            with self._cached_readers if is_cached else contextlib.nullcontext():
                source.read_plainly(part, self._staging)
            with self._lock:
                self.plain_bytes += size
        if arrived is not None:
            for each in part:
                arrived(each.file, each.start, each.stop)


def parts_of(ranges: Iterable[FileRange], chunk_bytes: int) -> Iterator[Part]:
    """
    Cut what is long into chunks, and group what is short and lies side by side.

    Files are cut at multiples of *chunk_bytes*: a part is one range or several between two of them.

    Raises:
        ContractError: If the memory of a range is not uint8 of one axis without gaps.
    """
    group: list[FileRange] = []
    for each in _pieces(ranges, chunk_bytes):
        if group and not _joins(group, each, chunk_bytes):
            yield tuple(group)
            group = []
        group.append(each)
    if group:
        yield tuple(group)


def _joins(group: list[FileRange], each: FileRange, chunk_bytes: int) -> bool:
    first, last = group[0], group[-1]
    return (
        each.file == first.file
        and 0 <= each.start - last.stop < _GAP
        and first.start // chunk_bytes == (each.stop - 1) // chunk_bytes
    )


def _pieces(ranges: Iterable[FileRange], chunk_bytes: int) -> Iterator[FileRange]:
    for each in ranges:
        _require_plain(each)
        start = each.start
        while start < each.stop:
            stop = min(each.stop, start - start % chunk_bytes + chunk_bytes)
            into = each.into[start - each.start : stop - each.start]
            yield FileRange(file=each.file, start=start, into=into)
            start = stop


def _require_plain(each: FileRange) -> None:
    into = each.into
    if into.dtype != "uint8" or into.ndim != 1 or not into.flags.c_contiguous:
        raise ContractError(
            "into",
            f"got {into.dtype} of shape {list(into.shape)}, expected uint8 without gaps, one axis",
        )
    if not into.flags.writeable or each.start < 0:
        raise ContractError(
            "into", "expected memory that can be written to, and a start of 0 or more"
        )
