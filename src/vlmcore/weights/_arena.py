"""Memory of our own for tensors, in large pages where the host grants them."""

from __future__ import annotations

import contextlib
import mmap
import sys

import numpy as np
import numpy.typing as npt

from vlmcore._host_memory import free_host_bytes, in_gib
from vlmcore.errors import WeightsBudgetError

__all__ = ["allocate", "require_room"]

HUGE_PAGE = 0x20_0000  # bytes, on x86-64 and most of arm64


def allocate(nbytes: int, *, large_pages: bool = True) -> npt.NDArray[np.uint8]:
    """
    Allocate *nbytes* of zeros that start at a large page, and that no other array lies in.

    Without *large_pages* they are not asked for: what is small would take more than it needs.

    Nothing is taken from the host before it is written to. The memory goes back to the host with
    the last array that looks into it.

    Raises:
        MemoryError: If the host has no room for it.
    """
    try:
        memory = _anonymous(nbytes + HUGE_PAGE)
    except OSError as error:
        raise MemoryError(f"the host did not grant {nbytes} bytes") from error
    advice = getattr(mmap, "MADV_HUGEPAGE", None)
    if advice is not None and large_pages:
        with contextlib.suppress(OSError):  # a host without large pages has small ones
            memory.madvise(advice)
    whole = np.frombuffer(memory, np.uint8)
    skipped = -whole.ctypes.data % HUGE_PAGE
    return whole[skipped : skipped + nbytes]


def require_room(path: str, nbytes: int) -> None:
    """
    Require that the host has *nbytes* free, for the weights in *path*.

    Linux grants what it does not have, and ends a process when it is written to.

    Raises:
        WeightsBudgetError: If it has not, as far as it tells.
    """
    free = free_host_bytes()
    if free is not None and nbytes > free:
        raise WeightsBudgetError(
            path, f"needs {in_gib(nbytes)}, and the host has {in_gib(free)} free", nbytes, free
        )


def _anonymous(nbytes: int) -> mmap.mmap:
    if sys.platform == "win32":
        return mmap.mmap(-1, nbytes)
    # By itself Python shares it with children, and what is shared gets no large pages.
    return mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
