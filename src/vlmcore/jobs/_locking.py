"""One job at a time in one place, on one machine or on several that share a file system."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from collections.abc import Iterator
from io import FileIO
from pathlib import Path

from vlmcore._whole_files import what_failed
from vlmcore.errors import JobRunningError, JobSinkError

__all__ = ["is_locked", "locked"]

_NAME_BYTES = 200


@contextlib.contextmanager
def locked(path: Path, place: str) -> Iterator[None]:
    """
    Hold the lock file *path*; the system takes it back when the process ends, however it ends.

    Args:
        path: The file; it stays, as a lock that is deleted is two locks for those who wait for it.
        place: What is locked, in words for a person.

    Raises:
        JobRunningError: If another process holds it; it is named.
        JobSinkError: If the file cannot be made.
    """
    try:
        file = _opened(path)
    except OSError as error:
        raise JobSinkError(str(path), what_failed(error)) from None
    with file:
        if not _taken(file):
            raise JobRunningError(place, f"another job is at work here: {_holder(file)}")
        with contextlib.suppress(OSError):  # on a full disk the lock holds, too
            file.truncate(0)
            file.write(f"process {os.getpid()} on {socket.gethostname()}\n".encode())
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                file.truncate(0)


def is_locked(path: Path) -> bool:
    """Say whether a process holds the lock file *path*; one that is not there is held by none."""
    try:
        file = path.open("r+b", buffering=0)
    except OSError:
        return False
    with file:
        return not _taken(file)


def _opened(path: Path) -> FileIO:
    # Neither "w", which would cut the name of the holder, nor "a", which cannot write at the start.
    return os.fdopen(
        os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644), "r+b", buffering=0
    )


def _holder(file: FileIO) -> str:
    file.seek(0)
    return file.read(_NAME_BYTES).decode("utf-8", "replace").strip() or "its process is not known"


if sys.platform == "win32":  # pragma: no cover - tried on no machine of ours
    import msvcrt

    def _taken(file: FileIO) -> bool:
        try:
            file.seek(_NAME_BYTES)  # behind the name, which others may read then
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        finally:
            file.seek(0)
        return True

else:
    import fcntl

    def _taken(file: FileIO) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True
