"""Tensors whose bytes come in parts: each is compared with its manifest when it is whole."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Callable, Iterable

import numpy as np

from vlmcore._whole_files import what_failed
from vlmcore.errors import WeightsChangedError, WeightsError
from vlmcore.weights._sources import read_some
from vlmcore.weights.checksums import new_checksum
from vlmcore.weights.index import TensorEntry
from vlmcore.weights.opening import WeightFiles
from vlmcore.weights.verifying import TensorChecks

__all__ = ["ArrivalChecks", "checksum_in_file"]

_STEP = 0x4_0000  # bytes that stay in the cache of a core


class ArrivalChecks:
    """
    Counts the bytes that have come, from any number of threads, and compares what is whole.

    The thread that brings the last byte of a tensor makes its checksum, while the others read on.

    Args:
        checks: What is compared, and with what.
        entries: The tensors whose bytes come.
        checksum: Makes the checksum of a tensor whose bytes are there.
    """

    def __init__(
        self,
        checks: TensorChecks,
        entries: Iterable[TensorEntry],
        checksum: Callable[[TensorEntry], str],
    ) -> None:
        self._checks = checks
        self._checksum = checksum
        self._lock = threading.Lock()
        wanted = [entry for entry in entries if entry.name in checks.names]
        self._entries = [entry for entry in wanted if entry.nbytes]
        self._starts = [(entry.file, entry.start) for entry in self._entries]
        self._left = [entry.nbytes for entry in self._entries]
        for entry in wanted:
            if not entry.nbytes:
                self._compare(entry)

    def arrived(self, file: int, start: int, stop: int) -> None:
        """Note that bytes *start* to *stop* of a file are there; none of them comes twice."""
        first = max(bisect_right(self._starts, (file, start)) - 1, 0)
        for i in range(first, len(self._entries)):
            entry = self._entries[i]
            if (entry.file, entry.start) >= (file, stop):
                return
            here = min(stop, entry.stop) - max(start, entry.start)
            if entry.file == file and here > 0 and self._is_whole(i, here):
                self._compare(entry)

    def _is_whole(self, i: int, more: int) -> bool:
        with self._lock:
            self._left[i] -= more
            return self._left[i] == 0

    def _compare(self, entry: TensorEntry) -> None:
        self._checks.note(entry.name, self._checksum(entry))


def checksum_in_file(files: WeightFiles, entry: TensorEntry) -> str:
    """
    Make the checksum of a tensor from its file, by way of a small piece of memory.

    Raises:
        WeightsChangedError: If the file ends before it.
        WeightsError: If the system does not read it.
    """
    path, fd = str(files.paths[entry.file]), files.fd(entry.file)
    checksum, buffer, at = new_checksum(), np.empty(_STEP, np.uint8), entry.start
    while at < entry.stop:
        into = buffer[: entry.stop - at]
        try:
            count = read_some(fd, into, at)
        except OSError as error:
            raise WeightsError(path, f"cannot be read: {what_failed(error)}") from error
        if not count:
            raise WeightsChangedError(path, f"it ended at byte {at}")
        checksum.update(into[:count].data)
        at += count
    return checksum.hexdigest()
