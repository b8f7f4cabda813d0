"""Files that a command reads whole, within limits, and writes whole, or not at all."""

from __future__ import annotations

import contextlib
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

from vlmcore._whole_files import what_failed, write_whole
from vlmcore.errors import ContractError, DocumentError, PolicyError

__all__ = ["STANDARD_INPUT", "read_bytes", "told_of", "write_bytes"]

STANDARD_INPUT = "-"


@contextlib.contextmanager
def told_of(name: str) -> Iterator[None]:
    """
    Say of every error in the block that it is about the file *name*, in one line.

    Raises:
        ContractError: For each of them, with *name* as its field.
    """
    try:
        yield
    except DocumentError as error:
        faults = "; ".join(f"{path}: {problem}" for path, problem in error.faults)
        raise ContractError(name, f"{error.document}: {faults}") from None
    except ContractError as error:
        if error.field == name:
            raise
        raise ContractError(name, str(error)) from None
    except PolicyError as error:
        raise ContractError(name, f"holds an error of the policy: {error.problem}") from None
    except MemoryError:
        raise ContractError(name, "does not fit into memory") from None
    except OSError as error:
        raise ContractError(name, what_failed(error)) from None


def read_bytes(word: str, *, most: int) -> bytes:
    """
    Read the file *word*, or standard input if it is ``-``.

    Raises:
        ContractError: If it is no regular file, is larger than *most* bytes, is empty, or cannot be
            read.
    """
    with told_of(word):
        if word == STANDARD_INPUT:
            data = _piped(most)
        else:
            # Asked before it is opened: opening a named pipe waits for its writer.
            _require_file(word, most)
            with Path(word).open("rb") as file:
                data = file.read(most + 1)
        _require_size(word, len(data), most)
        if not data:
            raise ContractError(word, "is empty")
    return data


def _piped(most: int) -> bytes:
    if sys.stdin is None or sys.stdin.isatty():
        raise ContractError(STANDARD_INPUT, "nothing is piped into standard input")
    return sys.stdin.buffer.read(most + 1)


def _require_file(word: str, most: int) -> None:
    if not word.strip() or "\0" in word:
        raise ContractError(word, f"{word!r} is no path")
    status = Path(word).stat()
    if stat.S_ISDIR(status.st_mode):
        raise ContractError(word, "is a folder, expected a file")
    if not stat.S_ISREG(status.st_mode):
        raise ContractError(word, "is no regular file: give '-' and pipe it in")
    _require_size(word, status.st_size, most)


def _require_size(word: str, size: int, most: int) -> None:
    if size > most:
        raise ContractError(word, f"is larger than {most:,} bytes, which is the limit")


def write_bytes(word: str, data: bytes) -> None:
    """
    Write *data* to the file *word*: it holds all of it afterwards, or what it held before.

    Raises:
        ContractError: If it cannot be written, or is there and is no regular file.
    """
    with told_of(word):
        write_whole(word, data)
