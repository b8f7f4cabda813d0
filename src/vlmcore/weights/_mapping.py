"""Files mapped into memory, privately: pages are those of the cache, and changes never go back."""

from __future__ import annotations

import contextlib
import mmap
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from vlmcore.errors import WeightsError
from vlmcore.weights._crew import Cancelling, Progress, work_off
from vlmcore.weights._pages import populate
from vlmcore.weights.budget import ReadBudget
from vlmcore.weights.index import TensorEntry
from vlmcore.weights.opening import WeightFiles
from vlmcore.weights.ranges import Arrived

__all__ = ["fetch_pages", "map_file"]

UInt8Array = npt.NDArray[np.uint8]

_NEAR = 0x1_0000  # tensors that are no further apart are fetched as one
_NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000 if sys.platform == "linux" else 0)


def map_file(fd: int, size_bytes: int) -> UInt8Array:
    """
    Map a whole file, so that what is written to the memory stays in this process.

    Large pages are asked for. Linux then keeps the file in such pages where its file system can,
    and enters each with one step into the tables: hundreds of times fewer than small ones. Where it
    does not, nothing is lost.

    The mapping lasts as long as an array that looks into it, whether *fd* is closed or not.

    Raises:
        OSError: If the system does not map it.
    """
    if not size_bytes:
        return np.zeros(0, np.uint8)
    if sys.platform == "win32":
        mapped = mmap.mmap(fd, size_bytes, access=mmap.ACCESS_COPY)
    else:
        # Without a reservation: only pages that are written to take memory.
        mapped = mmap.mmap(
            fd,
            size_bytes,
            flags=mmap.MAP_PRIVATE | _NO_RESERVE,
            prot=mmap.PROT_READ | mmap.PROT_WRITE,
        )
        advice = getattr(mmap, "MADV_HUGEPAGE", None)
        if advice is not None:
            with contextlib.suppress(OSError):  # a system without large pages has small ones
                mapped.madvise(advice)
    return np.frombuffer(mapped, np.uint8)


def fetch_pages(
    files: WeightFiles,
    maps: Sequence[UInt8Array],
    entries: Iterable[TensorEntry],
    budget: ReadBudget,
    *,
    arrived: Arrived | None = None,
    progress: Progress | None = None,
    cancel: Cancelling | None = None,
) -> bool:
    """
    Bring the pages of *entries* into memory, several parts at a time.

    *arrived* is told of each part, by the thread that brought it.

    Returns:
        Whether the system did; where it has no word for it, pages come when they are touched.

    Raises:
        WeightsChangedError: If a file is shorter than it was when it was opened.
        WeightsCancelledError: If it was cancelled.
        WeightsError: If a page cannot be read.
    """
    done: list[bool] = []

    def fetch(part: tuple[int, int, int]) -> None:
        file, start, stop = part
        try:
            done.append(populate(maps[file], start, stop))
        except OSError as error:
            files.check_unchanged()
            raise WeightsError(str(files.paths[file]), "a page cannot be read") from error
        if arrived is not None:
            arrived(file, start, stop)

    # Where pages are in memory already this costs so little that nobody asks for it first.
    parts = [(part, part[2] - part[1]) for part in _chunks(entries, budget.chunk_bytes)]
    with ThreadPoolExecutor(budget.readers, thread_name_prefix="vlmcore-weights") as pool:
        work_off(pool, fetch, parts, path=files.path, progress=progress, cancel=cancel)
    return all(done)


def _chunks(entries: Iterable[TensorEntry], chunk_bytes: int) -> Iterator[tuple[int, int, int]]:
    """Join what is near, and cut it into chunks of file, start and stop."""
    runs: list[tuple[int, int, int]] = []
    for entry in entries:
        if runs and runs[-1][0] == entry.file and entry.start - runs[-1][2] < _NEAR:
            runs[-1] = (entry.file, runs[-1][1], entry.stop)
        elif entry.nbytes:
            runs.append((entry.file, entry.start, entry.stop))
    for file, start, stop in runs:
        for low in range(start - start % chunk_bytes, stop, chunk_bytes):
            yield file, max(low, start), min(low + chunk_bytes, stop)
