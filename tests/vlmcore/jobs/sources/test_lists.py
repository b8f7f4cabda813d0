"""Tests of `vlmcore.jobs.sources.lists`."""

from __future__ import annotations

import os
import pickle
from pathlib import Path, PurePath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmcore.errors import ContractError, JobSourceError, MediaError
from vlmcore.jobs.sources._files import listed_as
from vlmcore.jobs.sources.lists import ListedImages
from vlmcore.limits import JobSourceLimits

posix_only = pytest.mark.skipif(os.name != "posix", reason="names are bytes there")


def listed(folder: Path, data: bytes) -> ListedImages:
    (folder / "list.txt").write_bytes(data)
    return ListedImages(folder / "list.txt")


def keys(folder: Path, data: bytes) -> list[str]:
    return [item.key for item in listed(folder, data)]


@pytest.mark.parametrize(
    "data",
    [
        b"a.jpg\nb c/d.png\n",
        b"a.jpg\nb c/d.png",
        b"a.jpg\r\nb c/d.png\r\n",
        b"\xef\xbb\xbfa.jpg\n\n  \n\r\nb c/d.png\n",
        b"# photos\na.jpg\n# more\nb c/d.png\n",
        b"a.jpg\0b c/d.png\0",
        b"a.jpg\0b c/d.png",
        b"\xef\xbb\xbfa.jpg\0\0b c/d.png\0",
        b"./a.jpg\nb c//d.png\na.jpg\nb c/./d.png\n",
    ],
)
def test_the_paths_of_a_list_are_read_however_it_was_written(tmp_path: Path, data: bytes) -> None:
    """
    With any line ends, a BOM, blank lines, comments, NULs; a path that is there twice is one image.
    """
    assert ["a.jpg", "b c/d.png"] == keys(tmp_path, data)


def test_a_name_that_begins_with_a_number_sign_is_no_comment(tmp_path: Path) -> None:
    """
    Only a sign with a space behind it begins one, at the beginning of a line.
    """
    assert ["#1.jpg", " # 2.jpg"] == keys(tmp_path, b"#1.jpg\n # 2.jpg\n")


def test_nothing_is_a_comment_between_nuls(tmp_path: Path) -> None:
    """
    A program wrote that list.
    """
    assert ["# a.jpg", "b\nc.jpg"] == keys(tmp_path, b"# a.jpg\0b\nc.jpg\0")


def test_a_path_begins_from_the_folder_of_the_list(tmp_path: Path) -> None:
    """
    And its file is where it is known to be, for captions beside it.
    """
    (tmp_path / "a.jpg").write_bytes(b"bytes")
    (item,) = listed(tmp_path, b"a.jpg\n")
    assert (tmp_path / "a.jpg", b"bytes") == (item.path, item.content.read().data)
    assert item.content == pickle.loads(pickle.dumps(item.content))


def test_a_path_begins_from_a_root_that_was_named(tmp_path: Path) -> None:
    """
    Lists are often kept elsewhere.
    """
    (tmp_path / "list.txt").write_bytes(b"a.jpg\n/b.jpg\n")
    items = list(ListedImages(tmp_path / "list.txt", root=tmp_path / "photos"))
    assert [tmp_path / "photos/a.jpg", Path("/b.jpg")] == [item.path for item in items]
    assert ["a.jpg", "/b.jpg"] == [item.key for item in items]


def test_a_list_names_itself_and_can_be_read_again(tmp_path: Path) -> None:
    """
    It is quick to list, so it is read twice: to count, and to caption.
    """
    images = listed(tmp_path, b"a.jpg\n")
    assert (str(tmp_path / "list.txt"), tmp_path / "list.txt") == (images.name, images.place)
    assert images.is_quick_to_list
    assert [item.key for item in images] == [item.key for item in images]


def test_an_image_that_is_not_there_is_told_of_when_it_is_read(tmp_path: Path) -> None:
    """
    One of them does not stop the others.
    """
    (item,) = listed(tmp_path, b"gone.jpg\n")
    assert item.content.stamp() is None
    with pytest.raises(MediaError, match="does not exist"):
        item.content.read()


def test_an_address_is_not_fetched_and_says_so_when_it_is_read(tmp_path: Path) -> None:
    """
    A mixed list is captioned all the same.
    """
    item, other = listed(tmp_path, b"https://example.com/a.jpg\nb.jpg\n")
    assert ("https://example.com/a.jpg", None, "b.jpg") == (item.key, item.path, other.key)
    with pytest.raises(MediaError, match="is a https URL and is not fetched"):
        item.content.read()
    assert item.content.stamp() is None


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"a.jpg\n\xe4.jpg\n", "line 2 is no UTF-8, expected UTF-8, or NULs between the paths"),
        ("a.jpg\n".encode("utf-16"), "is UTF-16, expected UTF-8"),
        ("a.jpg\n".encode("utf-16-be"), None),
    ],
)
def test_a_list_in_another_encoding_is_refused(
    tmp_path: Path, data: bytes, problem: str | None
) -> None:
    """
    Before it is taken for names that are nowhere.
    """
    if problem is None:
        data, problem = b"\xfe\xff" + data, "is UTF-16, expected UTF-8"
    images = listed(tmp_path, data)
    with pytest.raises(JobSourceError) as caught:
        list(images)
    assert (str(tmp_path / "list.txt"), problem) == (caught.value.where, caught.value.problem)


@posix_only
def test_a_name_that_is_no_utf8_is_read_between_nuls(tmp_path: Path) -> None:
    """
    As ``find -print0`` writes it; its key is text that every table can hold.
    """
    name = b"caf\xe9.jpg"
    try:
        Path(os.fsdecode(bytes(tmp_path) + b"/" + name)).write_bytes(b"bytes")
    except OSError:
        pytest.skip("no such names on this file system")
    (item,) = listed(tmp_path, name + b"\0")
    assert "caf\\xe9.jpg" == item.key
    assert b"bytes" == item.content.read().data


@pytest.mark.parametrize("end", [b"\n", b"\0", b""])
def test_a_line_that_has_no_end_is_refused_before_it_is_held(tmp_path: Path, end: bytes) -> None:
    """
    It may be the rest of the disk.
    """
    data = b"a.jpg" + (end or b"\n") + b"x" * 300_000 + end
    images = listed(tmp_path, data)
    with pytest.raises(JobSourceError, match="line 2 has more than 32768 bytes, expected fewer"):
        list(images)


def test_a_line_of_the_largest_size_is_read(tmp_path: Path) -> None:
    """
    With any line end.
    """
    (tmp_path / "list.txt").write_bytes(b"abcdef\r\nabcde\n")
    images = ListedImages(tmp_path / "list.txt", limits=JobSourceLimits(max_path_bytes=6))
    assert ["abcdef", "abcde"] == [item.key for item in images]


@posix_only
def test_a_list_that_is_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    """
    Opening one waits until somebody writes to it.
    """
    os.mkfifo(tmp_path / "pipe.txt")
    with pytest.raises(JobSourceError, match="is a pipe, socket or device, expected a file"):
        ListedImages(tmp_path / "pipe.txt")


@posix_only
def test_a_list_that_becomes_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    """
    Between making the source and reading it.
    """
    images = listed(tmp_path, b"a.jpg\n")
    (tmp_path / "list.txt").unlink()
    os.mkfifo(tmp_path / "list.txt")
    with pytest.raises(JobSourceError, match="is a pipe"):
        list(images)


@pytest.mark.parametrize(
    ("path", "error", "problem"),
    [
        ("gone.txt", JobSourceError, "does not exist"),
        (".", JobSourceError, "is a folder, expected a file"),
        ("a\0b", ContractError, "expected the path of a file"),
        (" ", ContractError, "expected the path of a file"),
        (7, ContractError, "expected the path of a file"),
    ],
)
def test_a_list_that_is_none_is_refused_at_once(
    path: object, error: type[Exception], problem: str
) -> None:
    """
    Before a job begins.
    """
    with pytest.raises(error, match=problem):
        ListedImages(path)  # type: ignore[arg-type]


@posix_only
def test_links_in_a_circle_are_no_list_and_no_image(tmp_path: Path) -> None:
    """
    The system says so, and we say it on.
    """
    (tmp_path / "loop.txt").symlink_to("loop.txt")
    with pytest.raises(JobSourceError, match=r"loop\.txt: "):
        ListedImages(tmp_path / "loop.txt")
    (item,) = listed(tmp_path, b"loop.txt\n")
    with pytest.raises(MediaError, match="cannot be read"):
        item.content.read()


@given(data=st.binary(max_size=200))
def test_any_bytes_are_a_list_or_refused(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    """
    Every key is text that can be written, and is there once.
    """
    images = listed(tmp_path_factory.getbasetemp(), data)
    try:
        found = [item.key for item in images]
    except JobSourceError:
        return
    assert len(set(found)) == len(found)
    "".join(found).encode()


@given(text=st.text(st.sampled_from("/.ab"), min_size=1, max_size=9))
def test_a_path_is_listed_as_the_system_would_write_it(text: str) -> None:
    """
    With one slash between its parts, and no point that stands for a folder itself.
    """
    assert PurePath(text).as_posix() == listed_as(text)


def test_two_hundred_thousand_paths_are_all_read(tmp_path: Path) -> None:
    """
    Across all blocks of the file.
    """
    names = [f"photos of a journey/{i // 1000}/{i:07}.jpg" for i in range(200_000)]
    assert names == keys(tmp_path, "\n".join(names).encode())
