"""Files that name or hold the images of a job: what they are called, and how they are opened."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import Any, BinaryIO

from vlmcore._whole_files import what_failed
from vlmcore.errors import ContractError, JobSourceError

__all__ = ["key_of", "listed_as", "named", "opened", "path_of", "require_file"]

_NOT_PLAIN = re.compile(r"(?:\A|/)\.?(?:/|\Z)")
_SURROGATES = re.compile("[\ud800-\udfff]")
_ODD = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_WAITS = getattr(os, "O_NONBLOCK", 0)  # without it, opening a named pipe waits for its writer
_BINARY = getattr(os, "O_BINARY", 0)


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


def listed_as(text: str) -> str:
    """Write a path as it is listed, with one ``/`` between its parts and without ``.``."""
    if os.sep != "/" or _NOT_PLAIN.search(text):  # what most paths are not, and it takes its time
        text = PurePath(text).as_posix()
    return text if text.isascii() else _SURROGATES.sub(_escape, text)


def key_of(name: str) -> str:
    r"""Write the name that somebody gave an image; bytes that are no UTF-8 as ``\xff``."""
    return _ODD.sub(_escape, name)


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    if 0xDC80 <= code <= 0xDCFF:  # a byte of a path that is no UTF-8
        code -= 0xDC00
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def named(path: Path) -> str:
    """Name a path on one line, with nothing but characters."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in str(path))


def require_file(path: Path) -> os.stat_result:
    """
    Require a regular file, before it is opened.

    Raises:
        JobSourceError: If there is none.
    """
    with _refusing(path):
        status = path.stat()
        _require_regular(path, status)
        return status


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """
    Open a file for as long as the block lasts, if it is one that cannot wait.

    Raises:
        JobSourceError: If it is no regular file, or cannot be opened.
    """
    require_file(path)
    with _refusing(path):
        file = open(path, "rb", opener=_open_without_waiting)  # noqa: SIM115
    with file:
        _require_regular(path, os.fstat(file.fileno()))  # it may have been replaced
        yield file


def _open_without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | _WAITS | _BINARY)


@contextmanager
def _refusing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise JobSourceError(named(path), what_failed(error)) from None
    except ValueError as error:
        if isinstance(error, JobSourceError):
            raise
        raise JobSourceError(named(path), f"is no path: {error}") from None


def _require_regular(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        what = "a folder" if stat.S_ISDIR(status.st_mode) else "a pipe, socket or device"
        raise JobSourceError(named(path), f"is {what}, expected a file")
