"""Tests of `vlmcore.jobs.sources.opening`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vlmcore.errors import ContractError, JobSourceError, LimitExceededError
from vlmcore.jobs.items import ItemSource
from vlmcore.jobs.sources.archives import TarImages
from vlmcore.jobs.sources.folders import FolderImages
from vlmcore.jobs.sources.lists import ListedImages
from vlmcore.jobs.sources.opening import SourceKind, open_source
from vlmcore.jobs.sources.parquet import ParquetImages
from vlmcore.jobs.sources.records import JsonLinesImages

NAMES = ["a.jpg", "b.png", "x/c.jpg", "x/y/d.jpg", "x/y/e.txt"]


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """
    Make a folder of files with these names.
    """
    for name in NAMES:
        (tmp_path / "photos" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "photos" / name).write_bytes(b"bytes")
    return tmp_path / "photos"


def keys(source: ItemSource) -> list[str]:
    return [item.key for item in source]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.txt", ListedImages),
        ("a.LST", ListedImages),
        ("a.jsonl", JsonLinesImages),
        ("a.ndjson", JsonLinesImages),
        ("a.parquet", ParquetImages),
        ("a.pq", ParquetImages),
        ("a.tar", TarImages),
        ("a.tar.gz", TarImages),
        ("a.tgz", TarImages),
        ("photos", FolderImages),
    ],
)
def test_a_word_says_by_its_end_what_it_is(photos: Path, name: str, kind: type) -> None:
    """
    A folder is one whatever it is called.
    """
    if name != "photos":
        (photos.parent / name).write_bytes(b"")
    assert isinstance(open_source(photos.parent / name), kind)
    assert isinstance(open_source(str(photos.parent / name)), kind)


def test_a_folder_whose_name_ends_as_a_file_is_a_folder(tmp_path: Path) -> None:
    """
    People call them so.
    """
    (tmp_path / "images.tar").mkdir()
    assert isinstance(open_source(tmp_path / "images.tar"), FolderImages)


def test_a_kind_that_is_named_is_taken(tmp_path: Path) -> None:
    """
    Whatever the name ends with.
    """
    (tmp_path / "images").write_bytes(b"a.jpg\n")
    source = open_source(tmp_path / "images", kind=SourceKind.LIST)
    assert ["a.jpg"] == keys(source)
    assert isinstance(open_source(tmp_path / "images", kind=SourceKind.TAR), TarImages)
    (tmp_path / "x.parquet").write_bytes(b"")
    assert isinstance(open_source(tmp_path, kind=SourceKind.PARQUET), ParquetImages)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.jpg", ["a.jpg"]),
        ("**/*.jpg", ["a.jpg", "x/c.jpg", "x/y/d.jpg"]),
        ("*.{jpg,png}", ["a.jpg", "b.png"]),
        ("[ab].*", ["a.jpg", "b.png"]),
        ("x/*.jpg", ["c.jpg"]),
        ("*/y/*.jpg", ["x/y/d.jpg"]),
        ("x?/*.jpg", []),
        ("{a,b}.jpg", ["a.jpg"]),
    ],
)
def test_a_pattern_stands_for_images(photos: Path, pattern: str, expected: list[str]) -> None:
    """
    As a shell has it, which may have been kept from it by quotes.
    """
    assert expected == keys(open_source(photos / pattern))


def test_a_pattern_is_looked_up_in_sub_folders_where_that_is_asked_for(photos: Path) -> None:
    """
    It is about names then.
    """
    assert ["a.jpg", "x/c.jpg", "x/y/d.jpg"] == keys(open_source(photos / "*.jpg", recursive=True))


def test_a_file_that_is_called_as_a_pattern_is_that_file(tmp_path: Path) -> None:
    """
    Brackets are in many names.
    """
    (tmp_path / "set[1].txt").write_bytes(b"a.jpg\n")
    assert ["a.jpg"] == keys(open_source(tmp_path / "set[1].txt"))


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("gone", "does not exist, expected a folder of images, a list of paths (.txt, .lst)"),
        ("gone.txt", "does not exist"),
        ("gone.tar", "does not exist"),
        ("gone-*.tar", "stands for no file that is there"),
        ("gone-{0..1}.parquet", "does not exist"),
        ("photos/a.jpg", "is one image, expected a folder of images"),
        ("photos/f.doc", "is of another kind, expected a folder of images"),
        ("gone/*.jpg", "there is no such folder"),
    ],
)
def test_what_is_none_of_them_is_refused_with_what_would_be_taken(
    photos: Path, name: str, problem: str
) -> None:
    """
    Before a job begins.
    """
    (photos / "f.doc").write_bytes(b"")
    with pytest.raises(JobSourceError) as caught:
        open_source(photos.parent / name)
    assert caught.value.problem.startswith(problem)


@pytest.mark.parametrize(
    ("name", "options", "field"),
    [
        ("photos", {"image": "x"}, "image"),
        ("photos", {"speed": 9}, "speed"),
        ("photos/*.jpg", {"patterns": ["*.png"]}, "patterns"),
        ("a.txt", {"recursive": False}, "recursive"),
        ("a.jsonl", {"root": "x"}, "root"),
        ("a.tar", {"id": "x"}, "id"),
        ("a.txt", {"kind": "list"}, "kind"),
    ],
)
def test_an_option_of_another_kind_is_refused(
    photos: Path, name: str, options: dict[str, Any], field: str
) -> None:
    """
    It would change nothing, without a word.
    """
    for each in ("a.txt", "a.jsonl", "a.tar"):
        (photos.parent / each).write_bytes(b"")
    with pytest.raises(ContractError) as caught:
        open_source(photos.parent / name, **options)
    assert field == caught.value.field


@pytest.mark.parametrize(
    "pattern",
    ["s-{0..999999999}.tar", "{0..99}{0..99}{0..99}{0..99}.tar", "{0..999999999999999999}.jpg"],
)
def test_a_pattern_of_more_files_than_there_can_be_is_refused(tmp_path: Path, pattern: str) -> None:
    """
    Before their names are made.
    """
    with pytest.raises(LimitExceededError, match=r"^max_files: got [0-9]+, limit is 65536"):
        open_source(tmp_path / pattern)


def test_a_range_that_goes_down_is_refused(tmp_path: Path) -> None:
    """
    It stands for no file.
    """
    with pytest.raises(ContractError, match=r"got {3\.\.1}, expected a range from low to high"):
        open_source(tmp_path / "s-{3..1}.tar")
