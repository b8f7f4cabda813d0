"""Files that are written whole, or not at all."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO

from vlmcore.errors import ContractError

__all__ = ["remove_leftovers", "require_writable", "what_failed", "whole_file", "write_whole"]

_STEM = 60  # characters: a name as long as the file system allows must not get longer
_PART = re.compile(r"\.(.*)\.[0-9a-f]{16}\.part", re.DOTALL)
_OPEN_FILES = Path("/proc/self/fd")


def what_failed(error: OSError) -> str:
    """Say in a few words what the system did not do."""
    match error:
        case FileNotFoundError():
            return "does not exist"
        case PermissionError():
            return "permission denied"
        case _:
            return error.strerror or str(error)


def require_writable(name: str) -> None:
    """
    Require that the file *name* could be written, before the work whose result goes there.

    Raises:
        ContractError: As `write_whole`, of what can be known before.
    """
    try:
        folder = _target(name).parent
    except OSError as error:
        raise ContractError(name, what_failed(error)) from error
    if not folder.is_dir():
        raise ContractError(name, f"{str(folder)!r} is no folder: Not a directory")
    if not os.access(folder, os.W_OK):
        raise ContractError(name, "permission denied")


def write_whole(name: str, data: bytes) -> None:
    """
    Write *data* to the file *name*: it holds all of it afterwards, or what it held before.

    Raises:
        ContractError: If it cannot be written, or is there and is no regular file. Its field is
            *name*.
    """
    with whole_file(name) as file:
        file.write(data)


@contextlib.contextmanager
def whole_file(name: str) -> Iterator[BinaryIO]:
    """
    Give a file to write to, which takes the place of *name* when the block ends without an error.

    Until then *name* is what it was. Where the system knows files without a name, as Linux does,
    nothing is left of it either, however the process ends. Links are followed, and kept.

    Raises:
        ContractError: If it cannot be written, or is there and is no regular file. Its field is
            *name*; so it is for what the system does not do in the block.
    """
    try:
        path = _target(name)
        # A name of its own for each call: others may write at once, or were killed while writing.
        beside = path.with_name(f".{path.name[:_STEM]}.{token_hex(8)}.part")
        try:
            nameless = _open_nameless(path.parent)
            with nameless or beside.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
                if nameless is not None:
                    _give_name(nameless, beside)
            beside.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                beside.unlink()
            raise
    except OSError as error:
        raise ContractError(name, what_failed(error)) from error


def remove_leftovers(names: Iterable[str]) -> None:
    """
    Remove what calls left beside the files *names* that were killed in their last moment.

    No call that writes to one of them may be under way.
    """
    stems: dict[Path, set[str]] = {}
    for name in names:
        path = Path(os.path.realpath(name))
        stems.setdefault(path.parent, set()).add(path.name[:_STEM])
    for folder, known in stems.items():
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                part = _PART.fullmatch(entry.name)
                if part and part[1] in known:
                    Path(entry.path).unlink()


def _target(name: str) -> Path:
    """Follow links, which would be replaced otherwise, to what may be written."""
    if not name.strip() or "\0" in name or name == "-":
        raise ContractError(name, f"{name!r} is no path")
    path = Path(os.path.realpath(name))
    if path.is_symlink():
        raise ContractError(name, "is a link in a circle, expected a file")
    if path.is_dir():
        raise ContractError(name, "is a folder, expected a file")
    if not path.parent.exists():
        raise ContractError(name, f"its folder, {str(path.parent)!r}, does not exist")
    came = Path(name)  # a pipe is called "pipe:[7]" at the end of its links, and is not there
    if came.exists() and not came.is_file():
        raise ContractError(name, "is no regular file, and would be replaced by one")
    return path


def _open_nameless(folder: Path) -> BinaryIO | None:
    if not hasattr(os, "O_TMPFILE") or not _OPEN_FILES.exists():
        return None
    try:
        fd = os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o666)
    except OSError:  # not every file system has them
        return None
    return os.fdopen(fd, "wb")


def _give_name(file: BinaryIO, path: Path) -> None:
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:  # with the folder's descriptor Python follows the link that the system has for the file
        os.link(_OPEN_FILES / str(file.fileno()), path.name, dst_dir_fd=folder)
    finally:
        os.close(folder)
