"""Tests of `vlmcore.jobs.sinks.tables`."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmcore.contracts.json_text import read_json
from vlmcore.errors import ContractError, JobSinkError
from vlmcore.jobs.rows import CaptionRow
from vlmcore.jobs.sinks.tables import TableKind, write_table

KINDS = ["t.jsonl", "t.parquet"]


def row(
    key: str = "a.jpg", *, size: tuple[int, int] | None = (640, 480), **fields: Any
) -> CaptionRow:
    width_px, height_px = size or (None, None)
    known: dict[str, Any] = {"captions": {"caption": "A cat."}, "model": "m"} | fields
    return CaptionRow(key=key, width_px=width_px, height_px=height_px, **known)


def read(path: Path) -> list[Any]:
    if path.suffix == ".parquet":
        return list(pq.read_table(path).to_pylist())
    return [read_json(line) for line in path.read_bytes().splitlines()]


@pytest.mark.parametrize("name", KINDS)
def test_a_table_of_one_prompt_has_a_column_for_its_caption(tmp_path: Path, name: str) -> None:
    """
    And null where there is nothing, in either kind.
    """
    rows = [
        row(),
        row("b.jpg", captions={}, size=None, error="is empty, expected an image"),
        row("c.jpg", captions={}, duplicate_of="a.jpg"),
    ]
    assert 3 == write_table(tmp_path / name, iter(rows), prompts=["caption"])
    nothing = {"model": "m", "width_px": 640, "height_px": 480, "duplicate_of": None, "error": None}
    assert [
        {"key": "a.jpg", "caption": "A cat."} | nothing,
        {"key": "b.jpg", "caption": None}
        | nothing
        | {"width_px": None, "height_px": None, "error": "is empty, expected an image"},
        {"key": "c.jpg", "caption": None} | nothing | {"duplicate_of": "a.jpg"},
    ] == read(tmp_path / name)


def test_the_captions_of_several_prompts_are_an_object_in_json_and_columns_in_parquet(
    tmp_path: Path,
) -> None:
    """
    In the order of the prompts, whatever that of the row.
    """
    rows = [row(captions={"tags": "cat", "long": "A cat."}), row("b.jpg", captions={})]
    for name in KINDS:
        write_table(tmp_path / name, rows, prompts=["long", "tags"])
    first, second = read(tmp_path / "t.jsonl")
    assert {"long": "A cat.", "tags": "cat"} == first["captions"]
    assert ["long", "tags"] == list(first["captions"])
    assert {"long": None, "tags": None} == second["captions"]
    first, second = read(tmp_path / "t.parquet")
    assert ("A cat.", "cat") == (first["caption_long"], first["caption_tags"])
    assert (None, None) == (second["caption_long"], second["caption_tags"])


def test_what_json_says_is_a_value_in_json_and_text_in_parquet(tmp_path: Path) -> None:
    """
    Rows may differ, and a column of Parquet may not.
    """
    rows = [row(values={"caption": {"n": [1, "x\u2028"]}}), row("b.jpg")]
    for name in KINDS:
        write_table(tmp_path / name, rows, prompts=["caption"], structured=["caption"])
    assert [{"n": [1, "x\u2028"]}, None] == [each["value"] for each in read(tmp_path / "t.jsonl")]
    texts = [each["value"] for each in read(tmp_path / "t.parquet")]
    assert ['{"n": [1, "x\\u2028"]}', None] == texts
    several = {"prompts": ["a", "b"], "structured": ["b"]}
    for name in KINDS:
        write_table(tmp_path / name, [row(values={"b": 7})], **several)  # type: ignore[arg-type]
    assert {"b": 7} == read(tmp_path / "t.jsonl")[0]["values"]
    assert "7" == read(tmp_path / "t.parquet")[0]["value_b"]


def test_the_columns_of_parquet_are_the_same_whatever_the_rows(tmp_path: Path) -> None:
    """
    Also with none, or with nothing but failures.
    """
    expected = {
        "key": pa.string(),
        "caption": pa.string(),
        "model": pa.string(),
        "width_px": pa.int32(),
        "height_px": pa.int32(),
        "duplicate_of": pa.string(),
        "error": pa.string(),
    }
    for rows in ([], [row(captions={}, size=None)], [row()]):
        write_table(tmp_path / "t.parquet", rows, prompts=["caption"])
        schema = pq.read_schema(tmp_path / "t.parquet")
        assert expected == dict(zip(schema.names, schema.types, strict=True))


def test_a_table_without_rows_is_one(tmp_path: Path) -> None:
    """
    A job may have had no image.
    """
    for name in KINDS:
        assert 0 == write_table(tmp_path / name, [], prompts=["caption"])
        assert [] == read(tmp_path / name)


@given(text=st.text(st.characters()), key=st.text(st.characters()))
def test_any_caption_is_one_line_of_json_and_comes_back(
    tmp_path_factory: pytest.TempPathFactory, text: str, key: str
) -> None:
    """
    Whatever a reader takes for the end of a line. Half a character cannot be written, and is
    replaced.
    """
    folder = tmp_path_factory.getbasetemp()
    rows = [row(key, captions={"caption": text})]
    for name in KINDS:
        write_table(folder / name, rows, prompts=["caption"])
    data = (folder / "t.jsonl").read_text(encoding="utf-8")
    assert 1 == len(data.splitlines())
    (found,) = read(folder / "t.jsonl")
    whole = re.sub("[\ud800-\udfff]", "\ufffd", text)
    assert whole == found["caption"]
    assert found == read(folder / "t.parquet")[0]


@pytest.mark.parametrize("name", KINDS)
def test_a_table_is_what_it_was_until_all_rows_are_written(tmp_path: Path, name: str) -> None:
    """
    And nothing else is left in its folder.
    """
    path = tmp_path / name
    path.write_bytes(b"as it was")

    def rows() -> Iterator[CaptionRow]:
        yield row()
        assert b"as it was" == path.read_bytes()
        raise ContractError("key", "got a row that is none")

    with pytest.raises(ContractError, match=r"^key: got a row that is none"):
        write_table(path, rows(), prompts=["caption"])
    assert b"as it was" == path.read_bytes()
    assert [path] == list(tmp_path.iterdir())


@pytest.mark.parametrize("name", KINDS)
def test_a_table_that_cannot_be_written_says_where(tmp_path: Path, name: str) -> None:
    """
    And why.
    """
    path = tmp_path / "gone" / name
    with pytest.raises(JobSinkError) as caught:
        write_table(path, [row()], prompts=["caption"])
    assert (str(path), True) == (caught.value.where, "does not exist" in caught.value.problem)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a disk that is full")
@pytest.mark.parametrize("kind", TableKind)
def test_a_table_over_a_device_is_refused(kind: TableKind) -> None:
    """
    It would be replaced by a file.
    """
    with pytest.raises(JobSinkError, match="is no regular file"):
        write_table("/dev/full", [row()], prompts=["caption"], kind=kind)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"path": "t.csv"}, "path"),
        ({"kind": "jsonl"}, "kind"),
        ({"prompts": []}, "prompts"),
        ({"prompts": ["a", "a"]}, "prompts"),
        ({"structured": ["b"]}, "structured"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(
    tmp_path: Path, options: dict[str, Any], field: str
) -> None:
    """
    Each by its name, before anything is written.
    """
    known: dict[str, Any] = {"path": tmp_path / "t.jsonl", "prompts": ["caption"]} | options
    with pytest.raises(ContractError) as caught:
        write_table(known.pop("path"), [row()], **known)
    assert field == caught.value.field
    assert [] == list(tmp_path.iterdir())


def test_a_value_that_json_does_not_know_is_refused(tmp_path: Path) -> None:
    """
    A line that no reader reads is none.
    """
    rows = [row(values={"caption": float("nan")})]
    with pytest.raises(ContractError, match=r"^values: got something that JSON cannot hold"):
        write_table(tmp_path / "t.jsonl", rows, prompts=["caption"], structured=["caption"])


def test_the_kind_is_told_by_how_the_name_ends() -> None:
    """
    In any case.
    """
    assert [TableKind.JSONL] * 2 == [TableKind.of("a.jsonl"), TableKind.of("a.NDJSON")]
    assert [TableKind.PARQUET] * 2 == [TableKind.of("a.parquet"), TableKind.of("a.pq")]


def test_long_captions_are_written_in_more_row_groups(tmp_path: Path) -> None:
    """
    Whoever reads them holds a group at once.
    """
    captions = {"caption": "x" * 1_000_000}
    rows = (row(f"{i}.jpg", captions=captions) for i in range(40))
    assert 40 == write_table(tmp_path / "t.parquet", rows, prompts=["caption"])
    assert 3 == pq.ParquetFile(tmp_path / "t.parquet").num_row_groups


WRITE_ALONE = """
import re, sys
from pathlib import Path
from vlmcore.jobs.rows import CaptionRow
from vlmcore.jobs.sinks.tables import write_table

def most():
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

def rows(count):
    for i in range(count):
        text = {"caption": f"{i} " * 100}
        yield CaptionRow(key=str(i), captions=text, model="m", width_px=1, height_px=1)

write_table(sys.argv[1], rows(25_000), prompts=["caption"])
before = most()
write_table(sys.argv[1], rows(100_000), prompts=["caption"])
print((most() - before) // 1024)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="says how much was held")
@pytest.mark.parametrize("name", KINDS)
def test_memory_does_not_grow_with_the_rows(tmp_path: Path, name: str) -> None:
    """
    100,000 of them take what 25,000 take.
    """
    command = [sys.executable, "-c", WRITE_ALONE, str(tmp_path / name)]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert int(found) < 16
