"""
Bytes from wherever a person keeps an image or a video: a path, bytes, an open file, a data URL.

Sizes are checked before the bytes are read: from the file system for a path, while reading for an
open file, from the length of the text for a data URL. Nothing is fetched from a network, and only
regular files are opened, so that a named pipe cannot hang the reader.
"""

from __future__ import annotations

import base64
import binascii
import io
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote_to_bytes

import attrs

from vlmcore.errors import ContractError, MediaError, MediaLimitError
from vlmcore.limits import ImageLimits, VideoLimits

__all__ = ["Encoded", "is_encoded_source", "open_video_source", "read_source"]

_URL = re.compile(r"\A\s*([a-z][a-z0-9+.-]+)://", re.IGNORECASE)
_DATA_URL = re.compile(r"\A\s*data:", re.IGNORECASE)
_BLOCK_BYTES = 1 << 20
_MOST_NAME_CHARACTERS = 200


@attrs.frozen
class Encoded:
    """
    An encoded file in memory.

    Attributes:
        name: What it is called in errors: its path, ``"data URL"``, ...
        data: Its bytes, not empty.
    """

    name: str
    data: bytes = attrs.field(repr=False)


def is_encoded_source(source: object) -> bool:
    """Tell whether *source* is a path, bytes, an open file or a data URL."""
    kinds = (str, os.PathLike, bytes, bytearray, memoryview, Encoded)
    return isinstance(source, kinds) or callable(getattr(source, "read", None))


def read_source(source: Any, *, limits: ImageLimits) -> Encoded:
    """
    Read an encoded image from a path, bytes, an open file or a data URL, within the limits.

    An open file is read from its current position and stays open. A string that starts with
    ``data:`` is a data URL, every other string is a path. What was read before is taken as it is.

    Raises:
        MediaLimitError: If it has more than ``limits.max_encoded_bytes`` bytes.
        MediaError: If it cannot be read, or is empty.
    """
    if isinstance(source, Encoded):
        encoded = source
    elif isinstance(source, (bytes, bytearray, memoryview)):
        encoded = _from_bytes(source, limits)
    elif isinstance(source, str) and _DATA_URL.match(source):
        encoded = _from_data_url(source, limits)
    elif isinstance(source, (str, os.PathLike)):
        encoded = _from_path(source, limits)
    else:
        encoded = _from_file(source, limits)
    if not encoded.data:
        raise MediaError(encoded.name, "is empty, expected an image")
    return encoded


@contextmanager
def open_video_source(source: Any, *, limits: VideoLimits) -> Iterator[tuple[str, BinaryIO]]:
    """
    Open the file of a video, for as long as the block lasts, and name it; it is not read yet.

    Raises:
        MediaLimitError: If it has more than ``limits.max_file_bytes`` bytes.
        MediaError: If it cannot be opened, is empty, or cannot be sought in.
        ContractError: If it is no source of a file.
    """
    if not is_encoded_source(source):
        raise ContractError(
            "source",
            f"got {type(source).__name__}, expected a path, bytes, an open file or a data URL",
        )
    is_text = isinstance(source, (str, os.PathLike))
    if is_text and not _DATA_URL.match(os.fsdecode(source)):
        path, name = _path(source, "a video")
        with _open_regular(path, name, "a video") as file:
            _require_video_size(name, os.fstat(file.fileno()).st_size, limits)
            yield name, file
    elif is_text or not callable(getattr(source, "read", None)):
        encoded = read_source(source, limits=ImageLimits())
        _require_video_size(encoded.name, len(encoded.data), limits)
        yield encoded.name, io.BytesIO(encoded.data)
    else:
        name = _file_name(source)
        try:
            size = source.seek(0, os.SEEK_END)
            source.seek(0)
        except Exception as error:  # a file object is foreign code
            raise MediaError(name, f"cannot be sought in, pass its bytes: {error}") from error
        _require_video_size(name, size, limits)
        yield name, source


def _require_video_size(name: str, size: int, limits: VideoLimits) -> None:
    if size > limits.max_file_bytes:
        raise MediaLimitError(name, "max_file_bytes", size, limits.max_file_bytes)
    if not size:
        raise MediaError(name, "is empty, expected a video")


def _require_size(name: str, size: int, limits: ImageLimits) -> None:
    if size > limits.max_encoded_bytes:
        raise MediaLimitError(name, "max_encoded_bytes", size, limits.max_encoded_bytes)


def _from_bytes(source: bytes | bytearray | memoryview, limits: ImageLimits) -> Encoded:
    size = source.nbytes if isinstance(source, memoryview) else len(source)
    _require_size("bytes", size, limits)
    return Encoded("bytes", bytes(source))


def _from_data_url(url: str, limits: ImageLimits) -> Encoded:
    name = "data URL"
    header, comma, text = url.partition(",")
    if not comma:
        raise MediaError(name, "has no comma, expected data:<type>;base64,<data>")
    if "base64" not in (part.strip().lower() for part in header.split(";")[1:]):
        _require_size(name, len(text) - 2 * text.count("%"), limits)
        return Encoded(name, unquote_to_bytes(text.encode("utf-8", "replace")))
    # Every three characters may be one that is percent-encoded, every four are three bytes.
    _require_size(name, (len(text) - 2 * text.count("%")) * 3 // 4 - len(text) // 2, limits)
    return Encoded(name, _from_base64(name, text, limits))


def _from_base64(name: str, text: str, limits: ImageLimits) -> bytes:
    raw = text.encode("ascii", "replace")  # what is not ASCII is no digit, and neither is "?"
    raw = unquote_to_bytes(raw) if b"%" in raw else raw
    digits = raw.translate(bytes.maketrans(b"-_", b"+/"), b" \t\r\n\v\f").rstrip(b"=")
    _require_size(name, len(digits) * 3 // 4, limits)
    try:
        return base64.b64decode(digits + b"=" * (-len(digits) % 4), validate=True)
    except binascii.Error as error:
        raise MediaError(name, f"is not base64: {error}") from error


def _from_path(source: str | os.PathLike[Any], limits: ImageLimits) -> Encoded:
    path, name = _path(source, "an image")
    file = _open_regular(path, name, "an image")
    with _refusing(name), file:
        _require_size(name, os.fstat(file.fileno()).st_size, limits)
        return Encoded(name, _read_at_most(file, name, limits))


def _path(source: str | os.PathLike[Any], what: str) -> tuple[str, str]:
    """Return a path, and how it is shown."""
    path = os.fsdecode(os.fspath(source))
    name = _printable(path)
    if not path.strip():
        raise MediaError(repr(path), f"is a blank path, expected the path of {what}")
    if match := _URL.match(path):
        raise MediaError(name, f"is a {match[1]} URL and is not fetched: download it first")
    return path, name


def _open_regular(path: str, name: str, what: str) -> BinaryIO:
    """Open a file for reading, if it is one that cannot wait."""
    with _refusing(name):
        # Asked before opening: opening a named pipe waits for its writer.
        _require_regular(name, Path(path).stat(), what)
        file = open(path, "rb", buffering=0, opener=_open_without_waiting)  # noqa: SIM115
        try:
            _require_regular(name, os.fstat(file.fileno()), what)
        except BaseException:
            file.close()
            raise
        return file


@contextmanager
def _refusing(name: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise MediaError(name, "does not exist") from error
    except PermissionError as error:
        raise MediaError(name, "may not be read: permission denied") from error
    except OSError as error:
        raise MediaError(name, f"cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        if isinstance(error, MediaError):
            raise
        raise MediaError(name, f"is not a path: {error}") from error


def _printable(path: str) -> str:
    """Name a path so that it can be shown: short, on one line, and nothing but characters."""
    shown = path if len(path) <= _MOST_NAME_CHARACTERS else f"{path[:_MOST_NAME_CHARACTERS]}..."
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in shown)


def _open_without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _require_regular(name: str, status: os.stat_result, what: str) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise MediaError(name, f"is a folder, expected {what} file")
    if not stat.S_ISREG(status.st_mode):
        raise MediaError(name, "is not a regular file (a pipe, socket or device)")


def _file_name(file: Any) -> str:
    label = getattr(file, "name", None)
    return _printable(label) if isinstance(label, str) and label else "open file"


def _from_file(file: Any, limits: ImageLimits) -> Encoded:
    name = _file_name(file)
    try:
        data = _read_at_most(file, name, limits)
        at_end = not data and hasattr(file, "tell") and file.tell() > 0
    except MediaError:
        raise
    except Exception as error:
        # A file object is foreign code: whatever it raises, the image could not be read.
        raise MediaError(name, f"cannot be read: {error}") from error
    if at_end:
        raise MediaError(name, "is at its end, nothing is left to read: seek(0) first")
    return Encoded(name, data)


def _read_at_most(file: Any, name: str, limits: ImageLimits) -> bytes:
    blocks: list[bytes] = []
    size = 0
    while size <= limits.max_encoded_bytes:
        block = file.read(min(_BLOCK_BYTES, limits.max_encoded_bytes + 1 - size))
        if not block:
            return b"".join(blocks)
        if not isinstance(block, (bytes, bytearray, memoryview)):
            raise MediaError(name, f"gives {type(block).__name__}: open it in binary mode, 'rb'")
        blocks.append(bytes(block))
        size += len(blocks[-1])
    raise MediaLimitError(name, "max_encoded_bytes", size, limits.max_encoded_bytes)
