"""Files that are written whole, or not at all."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from secrets import token_hex

from vlmcore.errors import ContractError

__all__ = ["what_failed", "write_whole"]

_STEM = 60  # characters: a name as long as the file system allows must not get longer


def what_failed(error: OSError) -> str:
    """Say in a few words what the system did not do."""
    match error:
        case FileNotFoundError():
            return "does not exist"
        case PermissionError():
            return "permission denied"
        case _:
            return error.strerror or str(error)


def write_whole(name: str, data: bytes) -> None:
    """
    Write *data* to the file *name*: it holds all of it afterwards, or what it held before.

    Raises:
        ContractError: If it cannot be written, or is there and is no regular file. Its field is
            *name*.
    """
    try:
        _replace(_target(name), data)
    except OSError as error:
        raise ContractError(name, what_failed(error)) from None


def _target(name: str) -> Path:
    """Follow links, which would be replaced otherwise, to what may be written."""
    if not name.strip() or "\0" in name or name == "-":
        raise ContractError(name, f"{name!r} is no path")
    path = Path(os.path.realpath(name))
    if path.is_dir():
        raise ContractError(name, "is a folder, expected a file")
    if not path.parent.exists():
        raise ContractError(name, f"its folder, {str(path.parent)!r}, does not exist")
    if path.exists() and not path.is_file():
        raise ContractError(name, "is no regular file, and would be replaced by one")
    return path


def _replace(path: Path, data: bytes) -> None:
    # A name of its own for each call: others may write at once, or have been killed while writing.
    beside = path.with_name(f".{path.name[:_STEM]}.{token_hex(8)}.part")
    try:
        with beside.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise
