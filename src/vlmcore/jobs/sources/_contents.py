"""Where the bytes of an image are, from what a table or a list says of it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import attrs

from vlmcore.errors import MediaError
from vlmcore.jobs.items import BytesContent, Content, FileContent, Item, Stamp
from vlmcore.jobs.sources._files import listed_as
from vlmcore.limits import JobSourceLimits
from vlmcore.media.formats import format_of
from vlmcore.media.sources import Encoded, read_source

__all__ = ["NoContent", "item_of_bytes", "item_of_file", "item_of_text", "without_bytes"]

_URL = re.compile(r"\A\s*([a-z][a-z0-9+.-]+)://", re.IGNORECASE)
_DATA_URL = re.compile(r"\A\s*data:", re.IGNORECASE)
_BASE64 = re.compile(r"\A[A-Za-z0-9+/\r\n_-]{32}")
_SHOWN_DIGITS = 512  # of base64, in which the format of an image is seen


@attrs.frozen
class NoContent:
    """
    What there is instead of the bytes of an image that has none.

    Attributes:
        name: What it is called in errors.
        problem: Why there are none.
    """

    name: str
    problem: str

    def read(self) -> Encoded:
        """Say why there are none, as a `MediaError`."""
        raise MediaError(self.name, self.problem)

    def stamp(self) -> Stamp | None:
        """Say that nothing can tell."""
        return None


def item_of_text(
    text: str, *, folder: Path, key: str | None, other: str, name: str, limits: JobSourceLimits
) -> Item:
    """
    Make an item of a path, a data URL, or base64.

    Args:
        text: What stands there.
        folder: What a path begins from.
        key: What the image is called; ``None`` for its path, or else *other*.
        other: What it is called where it has no path.
        name: What it is called in errors.
        limits: How large it may be.
    """
    if _DATA_URL.match(text):
        return item_of_data_url(text, key=key or other, name=name, limits=limits)
    if _is_base64(text):
        url = f"data:;base64,{text}"
        return item_of_data_url(url, key=key or other, name=name, limits=limits)
    return item_of_file(text, folder=folder, key=key, other=other, name=name, limits=limits)


def item_of_file(
    text: str, *, folder: Path, key: str | None, other: str, name: str, limits: JobSourceLimits
) -> Item:
    """Make an item of a path; of what is none, one whose bytes cannot be read."""
    if match := _URL.match(text):
        problem = f"is a {match[1][:40]} URL and is not fetched: download it first"
        return without_bytes(key or other, text, problem)
    if not text.strip():
        return without_bytes(key or other, name, "has a blank path, expected that of an image")
    if "\0" in text or len(text) > limits.max_path_bytes:
        return without_bytes(key or other, name, "has no path that a file could have")
    path = folder / text
    return Item(key=key or listed_as(text), content=FileContent(path), path=path)


def item_of_data_url(url: str, *, key: str, name: str, limits: JobSourceLimits) -> Item:
    """Make an item of a data URL."""
    try:
        data = read_source(url, limits=limits.of_an_image).data
    except MediaError as error:
        return without_bytes(key, name, error.problem)
    return Item(key=key, content=BytesContent(name, data))


def item_of_bytes(data: Any, *, key: str, name: str, limits: JobSourceLimits) -> Item:
    """Make an item of bytes, or of a view of some, which are copied if they are not too many."""
    size = memoryview(data).nbytes
    if size > limits.max_encoded_bytes:
        problem = f"max_encoded_bytes: got {size}, limit is {limits.max_encoded_bytes}"
        return without_bytes(key, name, problem)
    return Item(key=key, content=BytesContent(name, bytes(data)))


def without_bytes(key: str, name: str, problem: str) -> Item:
    """Make an item that fails when it is read."""
    content: Content = NoContent(_short(name), problem)
    return Item(key=key, content=content)


def _is_base64(text: str) -> bool:
    """Tell base64 from a path: it says that it is an image that is opened."""
    if not _BASE64.match(text):
        return False
    try:
        start = read_source(f"data:;base64,{text[:_SHOWN_DIGITS]}", limits=_START)
        format_of(start)
    except MediaError:
        return False
    return True


_START = JobSourceLimits().of_an_image


def _short(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:200]}..."
