"""Checksums of tensors and of files, while their bytes go by or when they are there."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import Any, Protocol

import numpy as np

from vlmcore._whole_files import what_failed
from vlmcore.errors import WeightsError
from vlmcore.weights._sources import read_some

__all__ = ["Checksum", "checksum_of", "new_checksum", "sha256_of", "whole_checksum"]

_CHUNK = 0x40_0000


class Checksum(Protocol):
    """A checksum that is being made, byte after byte, in their order."""

    def update(self, data: Any, /) -> None:
        """Take the bytes that come next: any contiguous buffer."""
        ...

    def hexdigest(self) -> str:
        """Return the checksum of what came so far: 32 characters."""
        ...


def new_checksum() -> Checksum:
    """
    Begin a checksum of the kind that manifests have: XXH3 of 128 bits.

    It finds what disks, networks and programs did by mistake, at the speed of memory. Somebody who
    wants to can make other bytes with the same checksum: against that there is SHA-256.

    Raises:
        MissingDependencyError: If ``xxhash`` is not installed.
    """
    from vlmcore.weights._xxhash import xxh3_128  # noqa: PLC0415 - a door

    return xxh3_128()


def checksum_of(data: Any) -> str:
    """
    Return the checksum of bytes that are there: any contiguous buffer.

    Raises:
        MissingDependencyError: If ``xxhash`` is not installed.

    Example:
        >>> checksum_of(b"")
        '99aa06d3014798d86001c324468d497f'
    """
    checksum = new_checksum()
    checksum.update(data)
    return checksum.hexdigest()


def whole_checksum(checksums: Iterable[str]) -> str:
    """
    Return the checksum of a whole payload: that of the checksums of its tensors, in their order.

    So tensors can be checked in any order, by several threads, and the whole costs nothing more.

    Raises:
        MissingDependencyError: If ``xxhash`` is not installed.
    """
    return checksum_of(b"".join(bytes.fromhex(each) for each in checksums))


def sha256_of(fd: int, path: str, *, stop: Callable[[], bool] = lambda: False) -> str:
    """
    Return the SHA-256 of an open file, as ``sha256sum`` and model hubs say it.

    Args:
        fd: Its descriptor, which stays open.
        path: Its path, for the error.
        stop: Asked after each part; the result is that of no file if it says so.

    Raises:
        WeightsError: If it cannot be read.
    """
    digest = hashlib.sha256()
    buffer, at = np.empty(_CHUNK, np.uint8), 0
    try:
        while not stop() and (count := read_some(fd, buffer, at)):
            digest.update(buffer[:count].data)
            at += count
    except OSError as error:
        raise WeightsError(path, what_failed(error)) from None
    return digest.hexdigest()
