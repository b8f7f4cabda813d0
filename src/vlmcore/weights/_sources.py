"""One open file, read past the page cache or through it, whichever is faster for each part."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence

import attrs
import numpy as np
import numpy.typing as npt

from vlmcore._closing import Closing
from vlmcore._whole_files import what_failed
from vlmcore.errors import WeightsChangedError, WeightsError
from vlmcore.weights._arena import allocate
from vlmcore.weights._pages import PageCache, file_system, is_remote, open_direct

__all__ = ["FileRange", "Source", "Staging", "read_some"]

UInt8Array = npt.NDArray[np.uint8]

_NOTHING = np.zeros(0, np.uint8)
_SECTOR = 0x1000  # what reads past the cache start and end at, in files and in memory
_SEEKING = threading.Lock()  # where there is no reading by place, the place is the descriptor's


@attrs.frozen(kw_only=True, eq=False)
class FileRange:
    """
    Bytes of a file, and the memory that they are read into.

    Attributes:
        file: The position of the file in `WeightIndex.files`.
        start: The first byte in the file.
        into: The memory, uint8 of one axis, without gaps; as many bytes are read as it holds.
    """

    file: int
    start: int
    into: UInt8Array

    @property
    def stop(self) -> int:
        """The byte after the last."""
        return self.start + self.into.size


class Staging:
    """Memory for bytes on their way: a piece for each thread that needs one."""

    def __init__(self) -> None:
        self._local = threading.local()
        self._lock = threading.Lock()
        self.taken_bytes = 0

    def take(self, nbytes: int) -> UInt8Array:
        """Return the piece of this thread, from its start on; it gets larger where it must."""
        piece: UInt8Array = getattr(self._local, "piece", _NOTHING)
        if piece.size < nbytes:
            self._local.piece = None  # gone before there is another
            with self._lock:
                self.taken_bytes += nbytes - piece.size
            piece = self._local.piece = allocate(nbytes)
        return piece[:nbytes]


class Source(Closing):
    """
    Reads parts of one open file, from any thread.

    Args:
        name: How errors call the file.
        fd: Its file descriptor; it stays the caller's, and open as long as this is.
        size_bytes: Its size.
        direct: As of `ReadBudget`.
    """

    def __init__(self, name: str, fd: int, size_bytes: int, *, direct: bool | None) -> None:
        self.name = name
        self.kind = file_system(fd)
        self.is_remote = is_remote(self.kind)
        self.refused_direct = False
        self._fd = fd
        self._size = size_bytes
        self._always_direct = direct is True
        wanted = direct is True or (direct is None and not self.is_remote)
        self._direct_fd = open_direct(fd) if wanted else None
        looks = direct is not True and not self.is_remote
        self._cache = PageCache(fd, size_bytes, looks=looks)
        self.refused_direct = wanted and self._direct_fd is None

    def close(self) -> None:
        """Close what was opened for it."""
        self._cache.close()
        if self._direct_fd is not None:
            os.close(self._direct_fd)
            self._direct_fd = None

    def is_cached(self, start: int, stop: int) -> bool | None:
        """Say whether bytes *start* to *stop* are in memory, as it is now, if that is known."""
        return self._cache.holds(start, stop)

    def read_direct(
        self, part: Sequence[FileRange], staging: Staging, *, is_cached: bool | None
    ) -> bool:
        """
        Read ranges that lie side by side, past the page cache, if that is best.

        Returns:
            Whether that was done. If not, they are in memory, or nobody knows, or they are few, or
            the file system takes no such reads.

        Raises:
            WeightsChangedError: If the file ends before them.
            WeightsError: If the system does not read it.
        """
        direct_fd = self._direct_fd
        is_best = self._always_direct or is_cached is False
        if direct_fd is None or not is_best or part[-1].stop - part[0].start < _SECTOR:
            return False
        try:
            if len(part) == 1 and (part[0].into.ctypes.data - part[0].start) % _SECTOR == 0:
                self._read_in_place(direct_fd, part[0])
            else:
                self._read_staged(direct_fd, part, staging)
        except WeightsError:
            raise
        except OSError:  # misaligned for this disk, or not known to this file system
            self.refused_direct = True
            return False
        return True

    def read_plainly(self, part: Sequence[FileRange], staging: Staging) -> None:
        """
        Read ranges that lie side by side, through the page cache.

        Raises:
            WeightsChangedError: If the file ends before them.
            WeightsError: If the system does not read it.
        """
        start, stop = part[0].start, part[-1].stop
        into = part[0].into if len(part) == 1 else staging.take(stop - start)
        try:
            self._fill(self._fd, into, start, into.size)
        except OSError as error:
            raise WeightsError(self.name, f"cannot be read: {what_failed(error)}") from error
        if len(part) > 1:
            _scatter(into, start, part)

    def _read_in_place(self, direct_fd: int, whole: FileRange) -> None:
        """Read whole sectors straight to where they belong, and the ends through the page cache."""
        into, start = whole.into, whole.start
        head = min(-start % _SECTOR, into.size)
        body = (into.size - head) // _SECTOR * _SECTOR
        if body:
            self._fill(direct_fd, into[head : head + body], start + head, body)
        for low, high in ((0, head), (head + body, into.size)):
            if high > low:
                self._fill(self._fd, into[low:high], start + low, high - low)

    def _read_staged(self, direct_fd: int, part: Sequence[FileRange], staging: Staging) -> None:
        """Read whole sectors into memory between, and copy out of it what was asked for."""
        start, stop = part[0].start, part[-1].stop
        first = start - start % _SECTOR
        last = stop + -stop % _SECTOR
        between = staging.take(last - first)
        self._fill(direct_fd, between, first, stop - first)
        _scatter(between, first, part)

    def _fill(self, fd: int, into: UInt8Array, start: int, needed: int) -> None:
        """Read until *needed* bytes are there; the room may be larger than the file is long."""
        done = 0
        while done < needed:
            count = read_some(fd, into[done:], start + done)
            if count <= 0:
                raise WeightsChangedError(
                    self.name, f"it ended at byte {start + done}, expected {self._size} bytes"
                )
            done += count


def read_some(fd: int, into: UInt8Array, start: int) -> int:
    """
    Read bytes of a file from *start* on, from any thread.

    Returns:
        How many; 0 at the end of the file.

    Raises:
        OSError: If the system does not read it.
    """
    if hasattr(os, "preadv"):
        return os.preadv(fd, [into.data], start)
    with _SEEKING:
        os.lseek(fd, start, os.SEEK_SET)
        data = os.read(fd, into.size)
    into[: len(data)] = np.frombuffer(data, np.uint8)
    return len(data)


def _scatter(between: UInt8Array, first: int, part: Sequence[FileRange]) -> None:
    for each in part:
        each.into[...] = between[each.start - first : each.stop - first]
