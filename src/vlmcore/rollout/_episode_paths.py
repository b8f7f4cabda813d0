"""Files of episodes: opened only if they are regular files, and named so that they can be shown."""

from __future__ import annotations

import os
import stat
from io import FileIO
from pathlib import Path
from typing import Any, BinaryIO

from vlmcore.errors import ContractError, EpisodeError
from vlmcore.limits import EpisodeLimits

__all__ = ["cannot", "create_file", "open_file", "path_of", "shown", "sync_folder"]


def path_of(path: Any) -> Path:
    """
    Read a path.

    Raises:
        ContractError: If it is none.
    """
    if isinstance(path, (str, os.PathLike)):
        text = os.fsdecode(os.fspath(path))
        if text.strip() and "\0" not in text:
            return Path(text)
    raise ContractError("path", f"got {path!r:.80}, expected the path of a file")


def shown(path: Path) -> str:
    """Name a path on one line, with nothing but characters."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in str(path))


def cannot(verb: str, path: Path, error: OSError) -> EpisodeError:
    """Say what the system said."""
    return EpisodeError(shown(path), None, f"cannot be {verb}: {error.strerror or error}")


def create_file(path: Path, *, overwrite: bool) -> FileIO:
    """
    Make a file, and empty one that is there if that is wanted; what is written goes out at once.

    Raises:
        EpisodeError: If it is there already, or cannot be made.
    """
    try:
        if overwrite and path.exists():
            _require_regular(path, path.stat())
        return path.open("wb" if overwrite else "xb", buffering=0)
    except FileExistsError:
        problem = "exists already, expected a new name; overwrite=True empties it"
        raise EpisodeError(shown(path), None, problem) from None
    except OSError as error:
        raise cannot("written", path, error) from error


def open_file(path: Path, *, limits: EpisodeLimits) -> BinaryIO:
    """
    Open a file to be read.

    Raises:
        EpisodeError: If there is none, it is no regular file, or it is too large.
    """
    try:
        # Asked before opening: opening a named pipe waits for its writer.
        status = path.stat()
        _require_regular(path, status)
        _require_size(path, status, limits)
        return path.open("rb")
    except FileNotFoundError:
        raise EpisodeError(shown(path), None, "does not exist") from None
    except OSError as error:
        raise cannot("read", path, error) from error


def _require_regular(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        what = "a folder" if stat.S_ISDIR(status.st_mode) else "not a regular file"
        raise EpisodeError(shown(path), None, f"is {what}, expected a file")


def _require_size(path: Path, status: os.stat_result, limits: EpisodeLimits) -> None:
    if status.st_size > limits.max_file_bytes:
        problem = f"max_file_bytes: got {status.st_size}, limit is {limits.max_file_bytes}"
        raise EpisodeError(shown(path), None, problem)


def sync_folder(path: Path) -> None:
    """
    Force the name of a new file onto the disk, where the system can.

    Raises:
        EpisodeError: If it cannot.
    """
    if not hasattr(os, "O_DIRECTORY"):
        return
    try:
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise cannot("written", path, error) from error
