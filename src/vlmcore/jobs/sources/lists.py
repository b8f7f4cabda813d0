"""The images that a text file names, one path a line."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from vlmcore.errors import JobSourceError
from vlmcore.jobs.items import Item
from vlmcore.jobs.sources._contents import item_of_file
from vlmcore.jobs.sources._files import named, opened, path_of, require_file
from vlmcore.jobs.sources._lines import lines_of
from vlmcore.limits import JobSourceLimits

__all__ = ["ListedImages"]

_COMMENT = b"# "
_HEAD_BYTES = 0x10000


class ListedImages:
    """
    The images that a list names, in its order; one that is named twice is one image.

    A list is UTF-8, with a path on each line. Blank lines are passed over, and so are lines that
    begin with ``"# "``. A list with a NUL in it, as ``find -print0`` writes it, has one after each
    path instead, and no comments: its paths may hold line ends, and bytes that are no UTF-8.

    Args:
        path: The list.
        root: What its paths begin from; ``None`` for the folder that the list is in.
        limits: How much is read.

    Raises:
        ContractError: If an argument is not as described.
        JobSourceError: If there is no such list.
    """

    is_quick_to_list = True

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        root: str | os.PathLike[str] | None = None,
        limits: JobSourceLimits | None = None,
    ) -> None:
        self._path = path_of(path)
        self._name = named(self._path)
        self._root = self._path.parent if root is None else path_of(root)
        self._limits = limits or JobSourceLimits()
        require_file(self._path)

    @property
    def name(self) -> str:
        """The list, as it was given."""
        return self._name

    @property
    def place(self) -> Path:
        """The list."""
        return self._path

    def __iter__(self) -> Iterator[Item]:
        """Give the images; a list that is no text ends with `JobSourceError`."""
        seen: set[str] = set()
        for text in self._paths():
            item = item_of_file(
                text, folder=self._root, key=None, other=text, name=self._name, limits=self._limits
            )
            if item.key not in seen:
                seen.add(item.key)
                yield item

    def _paths(self) -> Iterator[str]:
        with opened(self._path) as file:
            has_nuls = self._has_nuls(file)
            separator = b"\0" if has_nuls else b"\n"
            most = self._limits.max_path_bytes
            for number, line in lines_of(file, self._name, separator=separator, most=most):
                if has_nuls:
                    if line:
                        yield os.fsdecode(line)
                elif line.strip() and not line.startswith(_COMMENT):
                    yield self._text(number, line)

    def _has_nuls(self, file: BinaryIO) -> bool:
        head = file.read(_HEAD_BYTES)
        file.seek(0)
        if head[:2] in {b"\xff\xfe", b"\xfe\xff"}:
            raise JobSourceError(self._name, "is UTF-16, expected UTF-8")
        return b"\0" in head

    def _text(self, number: int, line: bytes) -> str:
        try:
            return line.decode()
        except UnicodeDecodeError:
            problem = f"line {number} is no UTF-8, expected UTF-8, or NULs between the paths"
            raise JobSourceError(self._name, problem) from None
