"""Tests of `vlmcore.media.sources`."""

from __future__ import annotations

import base64
import io
import os
import socket
import sys
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from vlmcore.errors import MediaError, MediaLimitError
from vlmcore.limits import ImageLimits
from vlmcore.media.sources import read_source

LIMITS = ImageLimits(max_encoded_bytes=100)
DATA = bytes(range(200, 256)) + b"\xfb\xff\xfe"  # its base64 holds + and /
TEXT = base64.b64encode(DATA).decode()


def problem(source: Any, limits: ImageLimits = LIMITS) -> str:
    """Tell what is wrong with a source."""
    with pytest.raises(MediaError) as caught:
        read_source(source, limits=limits)
    return str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        f"data:image/png;base64,{TEXT}",
        f"data:;base64,{TEXT}",
        f"DATA:image/png;BASE64,{TEXT}",
        f"data:image/png;charset=utf-8;base64,{TEXT}",
        f"data:image/png; charset=utf-8; base64 ,{TEXT}",
        f"data:image/png;name=a.png;base64,{TEXT}",
        f"  data:image/png;base64,{TEXT}\n",
        f"data:image/png;base64, {TEXT[:9]} {TEXT[9:]} ",
        "data:image/png;base64,\r\n" + "\r\n".join(TEXT[i : i + 8] for i in range(0, 80, 8)),
        f"data:image/png;base64,{TEXT.rstrip('=')}",
        f"data:image/png;base64,{base64.urlsafe_b64encode(DATA).decode()}",
        f"data:image/png;base64,{quote(TEXT, safe='')}",
        f"data:image/png;base64,{quote(TEXT.rstrip('='))}",
        f"data:application/octet-stream;base64,{TEXT}",
        f"data:image/png,{quote(DATA)}",
    ],
)
def test_a_data_url_is_read_however_it_was_written(url: str) -> None:
    """
    Spaces, line ends, no padding, the alphabet for URLs, percent signs, parameters, capitals.
    """
    assert DATA == read_source(url, limits=LIMITS).data


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("data:image/png;base64", "data URL: has no comma"),
        ("data:image/png;base64,@@@", "data URL: is not base64: "),
        ("data:image/png;base64,AAAAA", "data URL: is not base64: "),
        ("data:image/png;base64,AA=AA", "data URL: is not base64: "),
        ("data:image/png;base64,ÄÖÜ", "data URL: is not base64: "),
        ("data:image/png;base64,\ud800", "data URL: is not base64: "),
        ("data:image/png;base64,", "data URL: is empty"),
        ("data:,", "data URL: is empty"),
    ],
)
def test_a_data_url_that_holds_no_data_says_why(url: str, expected: str) -> None:
    """
    The URL itself is not repeated: it may be megabytes, and it is somebody's picture.
    """
    assert problem(url).startswith(expected)


@pytest.mark.parametrize("size", [99, 100])
def test_a_data_url_of_the_largest_size_is_read(size: int) -> None:
    """
    The size is worked out from the text; padding, spaces and percent signs are not counted.
    """
    text = base64.b64encode(bytes(size)).decode()
    for written in (text, text.rstrip("="), quote(text, safe=""), " ".join(text)):
        url = f"data:;base64,{written}"
        assert size == len(read_source(url, limits=LIMITS).data)
    assert size == len(read_source(f"data:,{quote(bytes(size))}", limits=LIMITS).data)


def test_a_data_url_that_is_too_large_is_refused_before_it_is_decoded() -> None:
    """
    By one byte too.
    """
    for written in (base64.b64encode(bytes(101)).decode(), "A" * 10_000):
        with pytest.raises(MediaLimitError, match=r"^data URL: max_encoded_bytes: got"):
            read_source(f"data:;base64,{written}", limits=LIMITS)
    with pytest.raises(MediaLimitError):
        read_source(f"data:,{quote(bytes(101))}", limits=LIMITS)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_bytes_are_taken_up_to_the_limit(kind: Any) -> None:
    """
    The limit itself passes.
    """
    assert bytes(100) == read_source(kind(bytes(100)), limits=LIMITS).data
    assert problem(kind(bytes(101))) == "bytes: max_encoded_bytes: got 101, limit is 100"
    assert problem(kind(b"")) == "bytes: is empty, expected an image"


def test_a_strided_view_is_counted_in_bytes() -> None:
    """
    Its length is not its size.
    """
    view = memoryview(bytes(range(200))).cast("H")[::2]
    assert view.tobytes() == read_source(view, limits=LIMITS).data


def test_a_path_is_read_up_to_the_limit(tmp_path: Path) -> None:
    """
    As text, as a path object, and as what stands for a path.
    """

    class Named:
        def __fspath__(self) -> str:
            return str(path)

    path = tmp_path / "picture"
    path.write_bytes(DATA)
    for source in (path, str(path), Named()):
        encoded = read_source(source, limits=LIMITS)
        assert (str(path), DATA) == (encoded.name, encoded.data)
    path.write_bytes(bytes(101))
    assert problem(path) == f"{path}: max_encoded_bytes: got 101, limit is 100"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("", "'': is a blank path, expected the path of an image"),
        ("  ", "'  ': is a blank path, expected the path of an image"),
        ("no/such.png", "no/such.png: does not exist"),
        (".", ".: is a folder, expected an image file"),
        ("https://x.y/a.png", "https://x.y/a.png: is a https URL and is not fetched: download"),
        ("HTTP://x.y", "HTTP://x.y: is a HTTP URL and is not fetched: download it first"),
        ("s3://bucket/a", "s3://bucket/a: is a s3 URL and is not fetched: download it first"),
        ("a\0b", "a\\x00b: is not a path: "),
        ("\ud800", "\\ud800: is not a path: "),
        ("no\n\x1b[31m.png", "no\\n\\x1b[31m.png: does not exist"),
        ("x" * 5000, "x" * 200 + "...: cannot be read: File name too long"),
    ],
)
def test_a_path_that_cannot_be_read_says_why(path: str, expected: str) -> None:
    """
    The name, and what was wrong with it.
    """
    assert problem(path).startswith(expected)


def test_an_empty_file_and_a_file_as_folder_are_named(tmp_path: Path) -> None:
    """
    The first is what an interrupted download leaves behind.
    """
    empty = tmp_path / "empty"
    empty.touch()
    assert problem(empty) == f"{empty}: is empty, expected an image"
    assert "Not a directory" in problem(empty / "picture.png")


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="permissions of POSIX")
def test_a_file_that_may_not_be_read_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    The kernel lets root read everything: its refusal is played by `open`.
    """
    path = tmp_path / "private"
    path.write_bytes(DATA)

    def refuse(*_: Any, **__: Any) -> Any:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)
    assert problem(path) == f"{path}: may not be read: permission denied"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of POSIX")
def test_a_pipe_a_socket_and_a_device_do_not_hang_the_reader(tmp_path: Path) -> None:
    """
    Opening a named pipe waits for a writer that may never come.
    """
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (str(pipe), "/dev/zero", "/dev/null"):
        assert problem(path) == f"{path}: is not a regular file (a pipe, socket or device)"
    with tempfile.TemporaryDirectory() as short, socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{short}/s")
        assert "is not a regular file" in problem(f"{short}/s")


def test_a_pipe_that_takes_the_place_of_a_file_does_not_hang_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Between asking and opening the file can be exchanged.
    """
    pipe, plain = tmp_path / "pipe", tmp_path / "plain"
    os.mkfifo(pipe)
    plain.write_bytes(DATA)
    seen = plain.stat()
    monkeypatch.setattr(Path, "stat", lambda *_, **__: seen)
    assert "is not a regular file" in problem(pipe)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_a_file_that_says_it_is_empty_is_read_all_the_same() -> None:
    """
    The kernel's files have size 0: the bound is kept while reading.
    """
    assert problem("/proc/self/maps") == (
        "/proc/self/maps: max_encoded_bytes: got 101, limit is 100"
    )


class Dripping:
    """A file that cannot seek, has no name, and gives a few bytes at a time."""

    def __init__(self, data: bytes) -> None:
        self.rest = data

    def read(self, size: int = -1) -> bytes:
        """Give at most three bytes."""
        piece, self.rest = self.rest[: min(size, 3)], self.rest[min(size, 3) :]
        return piece


def test_an_open_file_needs_nothing_but_read(tmp_path: Path) -> None:
    """
    Sockets and archives cannot seek; a file stays open, and is read from where it stands.
    """
    assert DATA == read_source(Dripping(DATA), limits=LIMITS).data
    file = io.BytesIO(b"skip" + DATA)
    file.seek(4)
    assert DATA == read_source(file, limits=LIMITS).data
    assert not file.closed
    path = tmp_path / "picture"
    path.write_bytes(bytes(100))
    with path.open("rb") as opened:
        assert str(path) == read_source(opened, limits=LIMITS).name


def test_an_open_file_without_end_is_cut_off() -> None:
    """
    At one byte over the limit, however the bytes come.
    """

    class Endless:
        def read(self, size: int) -> bytes:
            return bytes(size)

    assert problem(Endless()) == "open file: max_encoded_bytes: got 101, limit is 100"
    assert "got 101, limit is 100" in problem(Dripping(bytes(500)))

    class Generous:
        def read(self, size: int) -> bytes:
            return bytes(10 * size)

    assert "max_encoded_bytes" in problem(Generous())


def test_a_file_that_has_nothing_in_it_says_so() -> None:
    """
    Also one that cannot tell where it stands.
    """
    assert problem(Dripping(b"")) == "open file: is empty, expected an image"
    assert problem(io.BytesIO()) == "open file: is empty, expected an image"


def test_a_file_that_stands_at_its_end_says_what_to_do() -> None:
    """
    The usual slip: written to, and not rewound.
    """
    file = io.BytesIO()
    file.write(DATA)
    assert problem(file) == "open file: is at its end, nothing is left to read: seek(0) first"


def test_a_file_opened_as_text_says_what_to_do() -> None:
    """
    Mode "rb".
    """
    assert problem(io.StringIO("x")) == "open file: gives str: open it in binary mode, 'rb'"


@pytest.mark.parametrize(
    "error", [OSError("gone"), ValueError("read of closed file"), RuntimeError("x"), UnicodeError()]
)
def test_whatever_a_file_raises_is_our_error(error: Exception) -> None:
    """
    With its words and its cause.
    """

    class Failing:
        def read(self, _: int) -> bytes:
            raise error

    with pytest.raises(MediaError, match=r"^open file: cannot be read") as caught:
        read_source(Failing(), limits=LIMITS)
    assert error is caught.value.__cause__


def test_a_closed_file_is_our_error() -> None:
    """
    Reading it is what fails.
    """
    file = io.BytesIO(DATA)
    file.close()
    assert "closed file" in problem(file)
