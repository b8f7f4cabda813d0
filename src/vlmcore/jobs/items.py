"""One image of many: how it is called, and how its bytes are had."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol, runtime_checkable

import attrs

from vlmcore.limits import ImageLimits
from vlmcore.media.sources import Encoded, read_source

__all__ = ["BytesContent", "Content", "FileContent", "Item", "ItemSource", "Stamp", "writable"]


@attrs.frozen
class Stamp:
    """
    What a file system says of a file: if it is the same, the file is taken to be the same.

    Attributes:
        size: In bytes.
        modified_ns: When it was last written to, in nanoseconds.
    """

    size: int
    modified_ns: int


@runtime_checkable
class Content(Protocol):
    """Where the bytes of an image are. It can be pickled: other processes read it, too."""

    def read(self) -> Encoded:
        """
        Read them.

        Raises:
            MediaError: If they cannot be read, are none, or are more than an image may have.
        """
        ...

    def stamp(self) -> Stamp | None:
        """Look whether they may have changed; ``None`` where only their bytes can tell."""
        ...


@attrs.frozen
class FileContent:
    """
    A file of its own.

    Attributes:
        path: Where it is.
    """

    path: Path

    def read(self) -> Encoded:
        """Read the file, as `Content.read` says."""
        return read_source(self.path, limits=ImageLimits())

    def stamp(self) -> Stamp | None:
        """Ask the file system; ``None`` if there is no such file."""
        try:
            found = self.path.stat()
        except (OSError, ValueError):
            return None
        return Stamp(found.st_size, found.st_mtime_ns)


@attrs.frozen
class BytesContent:
    """
    Bytes that came with the record itself.

    Attributes:
        name: What they are called in errors.
        data: The bytes of an image file.
    """

    name: str
    data: bytes = attrs.field(repr=False)

    def read(self) -> Encoded:
        """Give the bytes, as `Content.read` says."""
        return attrs.evolve(read_source(self.data, limits=ImageLimits()), name=self.name)

    def stamp(self) -> Stamp | None:
        """Say that only the bytes can tell."""
        return None


def writable(text: str) -> str:
    """Write out what a text has that is no character, as half of a pair: no file holds it."""
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()


@attrs.frozen(kw_only=True)
class Item:
    r"""
    One image to caption.

    Attributes:
        key: What it is called within its source, the same in every run: a path from the folder,
            with ``/``; the path in a list; the id of a record; the member of an archive. What
            cannot be written as UTF-8 is written out, as ``"\\udcff"``.
        content: Where its bytes are.
        path: Where its file is; ``None`` where it has none of its own, as in an archive.
    """

    key: str = attrs.field(converter=writable)
    content: Content
    path: Path | None = None


class ItemSource(Protocol):
    """
    Where the images of a job come from.

    Iterating gives them in an order that is the same in every run, and holds few of them at once.
    It raises `vlmcore.errors.JobSourceError` where the source itself cannot be read; an image that
    cannot be is told of only when its content is read.

    Attributes:
        is_quick_to_list: Whether iterating reads names only, and so may be done twice: once to
            count the images, and to see which want the same caption file.
    """

    is_quick_to_list: bool

    @property
    def name(self) -> str:
        """What it is called in messages."""
        ...

    @property
    def place(self) -> Path:
        """The folder or file that it is."""
        ...

    def __iter__(self) -> Iterator[Item]: ...
