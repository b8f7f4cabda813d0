"""The lines of a file, however long one says it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from vlmcore._whole_files import what_failed
from vlmcore.errors import JobSourceError

__all__ = ["lines_of"]

_BLOCK_BYTES = 1 << 18
_BOM = b"\xef\xbb\xbf"


def lines_of(
    file: BinaryIO, name: str, *, separator: bytes, most: int
) -> Iterator[tuple[int, bytes]]:
    r"""
    Give the lines of a file with their numbers, from 1, without their ends and a BOM.

    Args:
        file: The file, at its beginning.
        name: What it is called in errors.
        separator: The byte that ends a line; of ``"\n"`` a ``"\r"`` before it is a part.
        most: How many bytes a line may have.

    Raises:
        JobSourceError: If a line is longer, or the file cannot be read.
    """
    number = 0
    kept: list[bytes] = []
    size = 0
    while block := _block(file, name):
        if not number and not kept:
            block = block.removeprefix(_BOM)
        *whole, rest = block.split(separator)
        for line in whole:
            number += 1
            if kept:
                line = b"".join([*kept, line])  # noqa: PLW2901
                kept, size = [], 0
            _require(len(line), number, name, most)
            yield number, _without_return(line, separator)
        if rest:
            kept.append(rest)
            size += len(rest)
            _require(size, number + 1, name, most)
    if kept:
        yield number + 1, _without_return(b"".join(kept), separator)


def _block(file: BinaryIO, name: str) -> bytes:
    try:
        return file.read(_BLOCK_BYTES)
    except OSError as error:
        raise JobSourceError(name, what_failed(error)) from None


def _require(size: int, number: int, name: str, most: int) -> None:
    if size > most + 1:  # a "\r" that ends it is none of it
        raise JobSourceError(name, f"line {number} has more than {most} bytes, expected fewer")


def _without_return(line: bytes, separator: bytes) -> bytes:
    return line.removesuffix(b"\r") if separator == b"\n" else line
