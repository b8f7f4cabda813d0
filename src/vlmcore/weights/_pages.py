"""
What the system knows about the pages of a file, and does with them ahead of time.

Linux answers; where it does not, and elsewhere, each function says so and readers go the plain way.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import mmap
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from vlmcore._closing import Closing

__all__ = ["PageCache", "file_system", "is_remote", "open_direct", "populate"]

_IS_LINUX = sys.platform.startswith("linux")
_NEARLY_ALL = 0.9
_GONE = frozenset((errno.EFAULT, errno.EIO, getattr(errno, "EHWPOISON", errno.EIO)))
_POPULATE_READ = 22  # MADV_POPULATE_READ, since Linux 5.14
_REMOTE = (
    "9p",
    "afs",
    "beegfs",
    "ceph",
    "cifs",
    "fuse",
    "gpfs",
    "lustre",
    "ncpfs",
    "nfs",
    "smb",
    "virtiofs",
)


class PageCache(Closing):
    """
    Which pages of an open file are in memory already.

    Linux tells it only to those who own the file or may write to it. To others every page looks as
    if it were in memory.

    Args:
        fd: A file descriptor of a regular file; it may be closed afterwards.
        size_bytes: The size of the file.
        looks: Whether to ask at all. A file of a network is not mapped.
    """

    def __init__(self, fd: int, size_bytes: int, *, looks: bool = True) -> None:
        self._map: mmap.mmap | None = None
        if looks and size_bytes and _libc_function("mincore") is not None:
            with contextlib.suppress(OSError, ValueError):  # no maps here, or it is shorter by now
                self._map = mmap.mmap(fd, size_bytes, access=mmap.ACCESS_READ)

    def holds(self, start: int, stop: int) -> bool | None:
        """Say whether nearly all of some bytes is in memory; ``None`` where nobody knows."""
        share = self.cached_share(start, stop)
        return None if share is None else share >= _NEARLY_ALL

    def cached_share(self, start: int, stop: int) -> float | None:
        """Return how much of some bytes is in memory, from 0 to 1; ``None`` where nobody knows."""
        if self._map is None or stop <= start:
            return None
        first = start - start % mmap.PAGESIZE
        pages = -(-(stop - first) // mmap.PAGESIZE)
        states = np.zeros(pages, np.uint8)
        base = _address(self._map)
        failed = _call("mincore", base + first, stop - first, states.ctypes.data)
        return None if failed else float(np.count_nonzero(states & 1) / pages)

    def close(self) -> None:
        """Give back the mapping; nothing is known of any page afterwards."""
        if self._map is not None:
            self._map.close()
            self._map = None


def populate(mapped: npt.NDArray[np.uint8], start: int, stop: int) -> bool:
    """
    Bring the pages of a mapping that hold bytes *start* to *stop* into memory.

    Returns:
        Whether that was done. Where it was not, nothing can be said about the pages.

    Raises:
        OSError: If a page cannot be had: the file is shorter now, or its disk failed. A plain
            access to such a page ends the process.
    """
    first = start - start % mmap.PAGESIZE
    failed = _call("madvise", mapped.ctypes.data + first, stop - first, _POPULATE_READ)
    if failed in _GONE:
        raise OSError(failed, os.strerror(failed))
    return failed == 0


def open_direct(fd: int) -> int | None:
    """
    Open the file of *fd* once more, for reads that pass the page cache by.

    It is the very same file, whatever its path leads to by now.

    Returns:
        A file descriptor; ``None`` where the system or the file system has no such reads.
    """
    flag = getattr(os, "O_DIRECT", 0)
    if not flag:
        return None
    try:
        return os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_CLOEXEC | flag)
    except OSError:
        return None


def file_system(fd: int, root: Path = Path("/")) -> str:
    """
    Name the kind of file system that the file of *fd* is on, as ``"ext4"``.

    Args:
        fd: A file descriptor.
        root: Where the file system of Linux begins.

    Returns:
        The name; empty where the system does not tell.
    """
    mount = next((line.split()[1] for line in _lines(root, f"fdinfo/{fd}", "mnt_id:")), "")
    for line in _lines(root, "mountinfo", f"{mount} "):
        return line.partition(" - ")[2].split(" ")[0] if mount else ""
    return ""


def is_remote(kind: str) -> bool:
    """Say whether a file system of this *kind* is behind a network, or behind a process."""
    return kind.startswith(_REMOTE)


def _lines(root: Path, name: str, begin: str) -> list[str]:
    try:
        text = (root / "proc/self" / name).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return [line for line in text.splitlines() if line.startswith(begin)]


def _address(mapped: mmap.mmap) -> int:
    return int(np.frombuffer(mapped, np.uint8).ctypes.data)


def _call(name: str, address: int, length: int, last: int) -> int:
    """Call a function of the C library on a range of memory; return 0 or the number of an error."""
    function = _libc_function(name)
    if function is None:
        return errno.ENOSYS
    # An integer would be passed as 32 bits.
    pointer = ctypes.c_void_p(last) if name == "mincore" else ctypes.c_int(last)
    if function(ctypes.c_void_p(address), ctypes.c_size_t(length), pointer) == 0:
        return 0
    return ctypes.get_errno() or errno.EINVAL


@functools.cache
def _libc_function(name: str) -> Any:
    """Find a function of the C library; ctypes lets other threads run while it is called."""
    if not _IS_LINUX:  # elsewhere the numbers mean something else
        return None
    try:
        return getattr(ctypes.CDLL(None, use_errno=True), name)
    except (AttributeError, OSError):
        return None
