"""Tensors whose bytes come in parts, which are compared with their manifest as they come."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Callable, Iterable
from typing import TypeAlias

import attrs
import numpy as np

from vlmcore._whole_files import what_failed
from vlmcore.errors import WeightsChangedError, WeightsError
from vlmcore.weights._sources import read_some
from vlmcore.weights.checksums import Checksum, new_checksum
from vlmcore.weights.index import TensorEntry
from vlmcore.weights.opening import WeightFiles
from vlmcore.weights.verifying import TensorChecks

__all__ = ["ArrivalChecks", "Take", "take_from_file"]

_STEP = 0x4_0000  # bytes that stay in the cache of a core

Take: TypeAlias = Callable[[Checksum, TensorEntry, int, int], None]
"""Goes on with the checksum of a tensor: its bytes from a start to a stop in the file are there."""


@attrs.define(eq=False)
class _Coming:
    """A tensor on its way."""

    entry: TensorEntry
    reached: int  # where in the file its checksum has come to
    checksum: Checksum | None = None  # while it is being made: it takes more memory than the rest
    waiting: dict[int, int] = attrs.field(factory=dict)  # what came before its turn: start, stop
    is_taken: bool = False  # whether a thread is at its checksum


class ArrivalChecks:
    """
    Makes checksums of bytes as they come, from any number of threads, and compares what is whole.

    The thread that brings the bytes that are next in a tensor goes on with its checksum while they
    are near, and the others read on. Bytes that come before their turn wait for it.

    Args:
        checks: What is compared, and with what.
        entries: The tensors whose bytes come.
        take: Goes on with the checksum of a tensor by bytes that are there.
    """

    def __init__(self, checks: TensorChecks, entries: Iterable[TensorEntry], take: Take) -> None:
        self._checks = checks
        self._take = take
        self._lock = threading.Lock()
        wanted = [entry for entry in entries if entry.name in checks.names]
        self._coming = [_Coming(each, each.start) for each in wanted if each.nbytes]
        self._starts = [(each.entry.file, each.entry.start) for each in self._coming]
        for entry in wanted:
            if not entry.nbytes:
                checks.note(entry.name, new_checksum().hexdigest())

    def arrived(self, file: int, start: int, stop: int) -> None:
        """Note that bytes *start* to *stop* of a file are there; none of them comes twice."""
        first = max(bisect_right(self._starts, (file, start)) - 1, 0)
        for i in range(first, len(self._coming)):
            if self._starts[i] >= (file, stop):
                return
            coming = self._coming[i]
            low, high = max(start, coming.entry.start), min(stop, coming.entry.stop)
            if coming.entry.file == file and low < high:
                self._go_on(coming, low, high)

    def _go_on(self, coming: _Coming, low: int, high: int) -> None:
        with self._lock:
            coming.waiting[low] = high
            if coming.is_taken:
                return  # whoever is at it finds them
            coming.is_taken = True
        while (stop := self._next_of(coming)) is not None:
            checksum = coming.checksum or new_checksum()
            self._take(checksum, coming.entry, coming.reached, stop)
            is_whole = stop == coming.entry.stop
            coming.reached, coming.checksum = stop, None if is_whole else checksum
            if is_whole:
                self._checks.note(coming.entry.name, checksum.hexdigest())

    def _next_of(self, coming: _Coming) -> int | None:
        """Say up to where the bytes are there that are next; if none are, let go of it."""
        with self._lock:
            stop = coming.waiting.pop(coming.reached, None)
            coming.is_taken = stop is not None
            return stop


def take_from_file(
    files: WeightFiles, checksum: Checksum, entry: TensorEntry, start: int, stop: int
) -> None:
    """
    Go on with a checksum by bytes of a file, by way of a small piece of memory.

    Raises:
        WeightsChangedError: If the file ends before them.
        WeightsError: If the system does not read it.
    """
    path, fd = str(files.paths[entry.file]), files.fd(entry.file)
    buffer = np.empty(min(_STEP, stop - start), np.uint8)
    while start < stop:
        into = buffer[: stop - start]
        try:
            count = read_some(fd, into, start)
        except OSError as error:
            raise WeightsError(path, f"cannot be read: {what_failed(error)}") from error
        if not count:
            raise WeightsChangedError(path, f"it ended at byte {start}")
        checksum.update(into[:count].data)
        start += count
