"""Tests of `vlmcore.jobs.sources.parquet`."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmcore import embedded
from vlmcore.errors import ContractError, JobSourceError, MediaError
from vlmcore.jobs.items import Item
from vlmcore.jobs.sources.parquet import ParquetImages
from vlmcore.limits import JobSourceLimits

PNG = (Path(embedded.__file__).parent / "samples/scene-1.png").read_bytes()
PICTURE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
MIB = 1 << 20


def write(path: Path, columns: dict[str, Any], **options: Any) -> Path:
    pq.write_table(pa.table(columns), path, **options)
    return path


def read(path: Any, **options: Any) -> list[tuple[str, bytes]]:
    return [(item.key, bytes_of(item)) for item in ParquetImages(path, **options)]


def bytes_of(item: Item) -> bytes:
    """Read an image, or why it cannot be."""
    try:
        return item.content.read().data
    except MediaError as error:
        return error.problem.encode()


def problem(path: Any, **options: Any) -> str:
    with pytest.raises(JobSourceError) as caught:
        list(ParquetImages(path, **options))
    return caught.value.problem


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_a_column_of_paths_begins_from_the_folder_of_the_table(tmp_path: Path, kind: Any) -> None:
    """
    An image is called by its path, and is one image however often it is there.
    """
    (tmp_path / "a.png").write_bytes(PNG)
    paths = pa.array(["./a.png", "a.png", "b.png", None], kind)
    path = write(tmp_path / "t.parquet", {"file_name": paths, "text": ["x"] * 4})
    first, second, third = ParquetImages(path)
    assert ("a.png", tmp_path / "a.png", PNG) == (first.key, first.path, first.content.read().data)
    assert ("b.png", "t.parquet/3") == (second.key, third.key)


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()])
def test_a_column_of_bytes_is_called_by_its_rows(tmp_path: Path, kind: Any) -> None:
    """
    From 0, as pandas counts them, across row groups.
    """
    images = pa.array([PNG, b"x" * 9, None], kind)
    path = write(tmp_path / "t.parquet", {"image": images}, row_group_size=2)
    assert [
        ("t.parquet/0", PNG),
        ("t.parquet/1", b"x" * 9),
        ("t.parquet/2", b"has nothing in the column 'image', expected an image"),
    ] == read(path)


def test_images_are_read_as_datasets_writes_them(tmp_path: Path) -> None:
    """
    Bytes with a path beside them, or a path alone; whatever the column is called.
    """
    (tmp_path / "b.png").write_bytes(b"of a file")
    rows = [{"bytes": PNG, "path": "a.png"}, {"bytes": None, "path": "b.png"}, None]
    path = write(tmp_path / "t.parquet", {"label": [1, 2, 3], "img": pa.array(rows, PICTURE)})
    assert [("t.parquet/0", PNG), ("b.png", b"of a file")] == read(path)[:2]
    assert b"has nothing in the column 'img', expected an image" == read(path)[2][1]


def test_a_picture_without_a_column_of_paths_is_read(tmp_path: Path) -> None:
    """
    Some writers leave it out.
    """
    images = pa.array([{"bytes": PNG}], pa.struct([("bytes", pa.binary())]))
    assert [("t.parquet/0", PNG)] == read(write(tmp_path / "t.parquet", {"image": images}))


def test_texts_may_be_data_urls_and_base64(tmp_path: Path) -> None:
    """
    As in lines of JSON.
    """
    text = base64.b64encode(PNG).decode()
    path = write(tmp_path / "t.parquet", {"image": [text, f"data:;base64,{text}"]})
    assert [("t.parquet/0", PNG), ("t.parquet/1", PNG)] == read(path)


def test_a_column_that_is_a_dictionary_in_memory_is_read(tmp_path: Path) -> None:
    """
    As pandas writes its categories.
    """
    (tmp_path / "a.png").write_bytes(PNG)
    paths = pa.array(["a.png", "b.png"]).dictionary_encode()
    path = write(tmp_path / "t.parquet", {"path": paths})
    assert ("a.png", PNG) == read(path)[0]


def test_an_image_is_called_by_its_id(tmp_path: Path) -> None:
    """
    Numbers or texts.
    """
    columns = {"n": [7, 8], "name": ["x", "y"], "image": [PNG, PNG]}
    path = write(tmp_path / "t.parquet", columns)
    assert [("7", PNG), ("8", PNG)] == read(path, id="n")
    assert ["x", "y"] == [key for key, _ in read(path, id="name")]
    assert ["x", "y"] == [key for key, _ in read(path, id="name", image="image")]


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        ([7, 7], "row 1: has the id '7' of one before it"),
        ([7, None], "row 1: got None in 'n', expected an id"),
        (["a", " "], "row 1: got ' ' in 'n', expected an id"),
        ([1.5, 2.5], "got double in 'n', expected a column with ids: text, whole numbers"),
    ],
)
def test_an_id_that_is_none_or_there_twice_is_refused(
    tmp_path: Path, ids: list[Any], said: str
) -> None:
    """
    Two images of one name would have one caption.
    """
    path = write(tmp_path / "t.parquet", {"n": ids, "image": [PNG, PNG]})
    assert said == problem(path, id="n")


@pytest.mark.parametrize(
    ("columns", "options", "said"),
    [
        (
            {"image": [b"x"], "path": ["a"]},
            {},
            "its table has 'image' and 'path', expected to be told which of them is the image",
        ),
        ({"x": ["a"], "y": [1]}, {}, "its table has the fields 'x', 'y', expected one of 'image'"),
        ({"image": [1]}, {}, "its table has the fields 'image', expected one of 'image'"),
        ({"x": ["a"]}, {"image": "y"}, "got no column of this name in 'y', expected a column with"),
        ({"x": [["a"]]}, {"image": "x"}, "got list<element: string> in 'x', expected a column"),
        (
            {"image": ["a"]},
            {"id": "n"},
            "got no column of this name in 'n', expected a column with",
        ),
    ],
)
def test_a_column_that_is_not_there_or_fits_nothing_is_named(
    tmp_path: Path, columns: dict[str, Any], options: dict[str, str], said: str
) -> None:
    """
    What is an image is never guessed.
    """
    assert problem(write(tmp_path / "t.parquet", columns), **options).startswith(said)


def test_the_parts_of_a_folder_are_read_one_after_the_other(tmp_path: Path) -> None:
    """
    Sorted, also in sub-folders; what is hidden is passed over, and so is what is no table.
    """
    for name in ("train-1.parquet", "train-0.parquet", "b/x.parquet", ".x.parquet"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        write(tmp_path / name, {"image": [PNG]})
    (tmp_path / "README.md").write_text("")
    images = ParquetImages(tmp_path)
    expected = ["train-0.parquet/0", "train-1.parquet/0", "b/x.parquet/0"]
    assert expected == [item.key for item in images]
    assert (tmp_path, str(tmp_path), False) == (images.place, images.name, images.is_quick_to_list)
    several = ParquetImages(tmp_path / "train-*.parquet")
    assert expected[:2] == [item.key for item in several]
    (tmp_path / "empty").mkdir()
    with pytest.raises(JobSourceError, match=r"has no table, expected files called \*\.parquet"):
        ParquetImages(tmp_path / "empty")


@pytest.mark.skipif(os.name != "posix", reason="links and pipes are made")
def test_links_in_a_circle_and_pipes_do_not_hold_a_job_up(tmp_path: Path) -> None:
    """
    Neither is opened.
    """
    write(tmp_path / "a.parquet", {"image": [PNG]})
    (tmp_path / "loop").symlink_to(tmp_path)
    assert ["a.parquet/0"] == [key for key, _ in read(tmp_path)]
    os.mkfifo(tmp_path / "b.parquet")
    with pytest.raises(JobSourceError, match="is a pipe, socket or device, expected a file"):
        ParquetImages(tmp_path)


def test_names_of_columns_are_texts(tmp_path: Path) -> None:
    """
    Anything else is refused by the name of its argument.
    """
    with pytest.raises(ContractError, match=r"^image: got 7"):
        ParquetImages(tmp_path, image=7)  # type: ignore[arg-type]


# ---- tables that lie ---------------------------------------------------------------------------


def test_a_picture_that_is_too_large_fails_alone(tmp_path: Path) -> None:
    """
    Before it is copied.
    """
    path = write(tmp_path / "t.parquet", {"image": [b"x" * 101, PNG[:100]]})
    limits = JobSourceLimits(max_encoded_bytes=100)
    assert [
        ("t.parquet/0", b"max_encoded_bytes: got 101, limit is 100"),
        ("t.parquet/1", PNG[:100]),
    ] == read(path, limits=limits)


def test_a_page_that_unpacks_to_more_than_its_room_is_refused(tmp_path: Path) -> None:
    """
    From its header, before there is memory for it.
    """
    columns = {"image": [b"x" * 2 * MIB]}
    path = write(tmp_path / "t.parquet", columns, compression="zstd", use_dictionary=False)
    said = problem(path, limits=JobSourceLimits(max_page_bytes=MIB))
    assert said.startswith("cannot be read as Parquet: max_page_bytes: the column 'image' unpacks")


def test_texts_that_are_prefixes_of_each_other_are_refused(tmp_path: Path) -> None:
    """
    Each takes a byte in the file, and its whole length in memory.
    """
    path = write(
        tmp_path / "t.parquet",
        {"path": ["x" * 100] * 100},
        use_dictionary=False,
        column_encoding={"path": "DELTA_BYTE_ARRAY"},
    )
    assert "the column 'path' is in another encoding than plain values" in problem(path)


def test_more_rows_than_are_read_are_refused(tmp_path: Path) -> None:
    """
    Rows with nothing in them take no byte.
    """
    path = write(tmp_path / "t.parquet", {"path": pa.nulls(100, pa.string())})
    assert "max_rows: got 100, limit is 99" == problem(path, limits=JobSourceLimits(max_rows=99))


@pytest.mark.parametrize("data", [b"", b"PAR1", b"PAR1" + b"x" * 100 + b"PAR1", b"x" * 1000])
def test_a_file_that_is_no_table_says_so(tmp_path: Path, data: bytes) -> None:
    """
    With what pyarrow said, on one line.
    """
    (tmp_path / "t.parquet").write_bytes(data)
    said = problem(tmp_path / "t.parquet")
    assert said.startswith("cannot be read as Parquet: ")
    assert "\n" not in said


@given(at=st.integers(0, 3000), data=st.binary(min_size=1, max_size=40))
def test_a_table_that_was_written_over_gives_images_or_our_error(
    tmp_path_factory: pytest.TempPathFactory, at: int, data: bytes
) -> None:
    """
    Wherever it was.
    """
    path = tmp_path_factory.getbasetemp() / "any.parquet"
    images = pa.array([{"bytes": PNG, "path": "a"}, {"bytes": b"x" * 50, "path": None}], PICTURE)
    write(path, {"id": ["a", "b"], "image": images})
    good = bytearray(path.read_bytes())
    good[at : at + len(data)] = data
    path.write_bytes(bytes(good))
    try:
        for item in ParquetImages(path, id="id"):
            item.key.encode()
    except JobSourceError:
        pass


READ_ALONE = """
import re, sys
from pathlib import Path
from vlmcore.errors import JobSourceError
from vlmcore.jobs.sources.parquet import ParquetImages

def most():
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

import vlmcore.jobs._parquet
before, count = most(), 0
try:
    for item in ParquetImages(sys.argv[1]):
        count += 1
except JobSourceError:
    count = -1
print(count, (most() - before) // 1024)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="says how much was held")
@pytest.mark.parametrize(
    ("megabytes", "rows", "count", "most"),
    [(96, 1, -1, 40), (8, 200, 200, 250)],
    ids=["a page of 96 MiB", "1.6 GiB of one picture in a dictionary"],
)
def test_a_small_file_takes_little_memory_whatever_it_unpacks_to(
    tmp_path: Path, megabytes: int, rows: int, count: int, most: int
) -> None:
    """
    A few kilobytes could take gigabytes.
    """
    texts = pa.array([b"x" * megabytes * MIB])
    image = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), texts)
    path = tmp_path / "bomb.parquet"
    pq.write_table(pa.table({"image": image}), path, compression="zstd", store_schema=False)
    assert path.stat().st_size < 100_000
    assert_read_within(path, count, most)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="says how much was held")
def test_a_row_group_is_never_held_whole(tmp_path: Path) -> None:
    """
    Here 256 MiB of pictures in one, in small pages.
    """
    schema = pa.schema([("image", pa.binary())])
    path = tmp_path / "large.parquet"
    options: dict[str, Any] = {"use_dictionary": False, "compression": "none"}
    with pq.ParquetWriter(path, schema, write_batch_size=4, **options) as writer:
        block = [os.urandom(MIB // 2) for _ in range(8)]
        writer.write_table(pa.table({"image": block * 64}, schema=schema), row_group_size=512)
    assert 1 == pq.ParquetFile(path).num_row_groups
    assert_read_within(path, 512, 200)


def assert_read_within(path: Path, count: int, most_mebibytes: int) -> None:
    command = [sys.executable, "-c", READ_ALONE, str(path)]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    came, mebibytes = map(int, found.split())
    assert count == came
    assert mebibytes < most_mebibytes
