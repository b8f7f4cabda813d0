"""Tests of `vlmcore_robotics.datasets._parquet`: of what a table may unpack to."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vlmcore.errors import EpisodeError
from vlmcore.limits import DatasetLimits
from vlmcore_robotics.datasets._columns import Column, ColumnKind
from vlmcore_robotics.datasets._parquet import ParquetReader

MIB = 1 << 20
STATE = Column("state", ColumnKind.FLOAT, 2)
TASK = Column("task", ColumnKind.TEXT)
PICTURE = Column("front", ColumnKind.PICTURE)


def table_of(tmp_path: Path, columns: dict[str, Any], **options: Any) -> Path:
    path = tmp_path / "table.parquet"
    pq.write_table(pa.table(columns), path, compression="zstd", **options)
    return path


def read_table(path: Path, column: Column, **limits: int) -> list[Any]:
    with ParquetReader(path, limits=DatasetLimits(**limits)) as table:
        found = table.batches([column], start=0, stop=table.rows, rows=1024)
        return [value for batch in found for value in batch[column.name]]


def test_a_page_that_unpacks_to_more_than_its_room_is_refused(tmp_path: Path) -> None:
    """
    What the file really has is beside the limit: pictures hardly shrink, and stay as large.
    """
    path = table_of(tmp_path, {"task": ["x" * 2 * MIB]}, use_dictionary=False)
    assert 2 * MIB == len(read_table(path, TASK)[0])
    with pytest.raises(EpisodeError, match="max_page_bytes: the column 'task' unpacks to"):
        read_table(path, TASK, max_page_bytes=MIB)


def test_a_row_with_millions_of_numbers_is_refused_before_it_is_read(tmp_path: Path) -> None:
    """
    A dictionary writes them as one, and their number.
    """
    rows = pa.array([[0.0] * MIB], pa.list_(pa.float32()))
    path = table_of(tmp_path, {"state": rows})
    assert path.stat().st_size < 10_000
    with pytest.raises(EpisodeError, match="max_page_bytes: the column 'state' unpacks to"):
        read_table(path, STATE, max_page_bytes=MIB)
    with pytest.raises(EpisodeError, match="has other rows in the column 'state', expected 2"):
        read_table(path, STATE)


@pytest.mark.parametrize("width", [1, 1 << 30])
def test_a_list_of_another_size_in_the_schema_is_refused(tmp_path: Path, width: int) -> None:
    """
    Before there is room for it.
    """
    kind = pa.list_(pa.float32(), width)
    path = table_of(tmp_path, {"state": pa.array([], kind)})
    with pytest.raises(EpisodeError, match="has other rows in the column 'state', expected 2"):
        read_table(path, STATE)


def test_of_a_picture_nothing_but_its_bytes_is_read(tmp_path: Path) -> None:
    """
    What else stands beside them may be anything.
    """
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.list_(pa.float32()))])
    shown = pa.array([{"bytes": b"png", "path": [0.0] * MIB}], kind)
    path = table_of(tmp_path, {"front": shown})
    assert [b"png"] == read_table(path, PICTURE, max_page_bytes=MIB)


def test_texts_that_are_prefixes_of_each_other_are_refused(tmp_path: Path) -> None:
    """
    Each takes a byte in the file, and its whole length in memory.
    """
    path = table_of(
        tmp_path,
        {"task": ["x" * 100] * 100},
        use_dictionary=False,
        column_encoding={"task": "DELTA_BYTE_ARRAY"},
    )
    with pytest.raises(EpisodeError, match="has the column 'task' in another encoding"):
        read_table(path, TASK)


READ_ALONE = """
import re, sys
from pathlib import Path
from vlmcore.limits import DatasetLimits
from vlmcore_robotics.datasets._columns import Column, ColumnKind
from vlmcore_robotics.datasets._parquet import ParquetReader

def most():
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

limits, task = DatasetLimits(), Column("task", ColumnKind.TEXT)
before = most()
try:
    with ParquetReader(Path(sys.argv[1]), limits=limits) as table:
        for batch in table.batches([task], start=0, stop=table.rows, rows=1024):
            print(len(batch["task"][0]), end=" ")
            break
except Exception as error:
    print(type(error).__name__, end=" ")
print((most() - before) // 1024)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="says how much was held")
@pytest.mark.parametrize(
    ("megabytes", "rows", "said", "most"),
    [(96, 1, "EpisodeError", 32), (8, 1024, str(8 * MIB), 256)],
    ids=["a page of 96 MiB", "8 GiB of one text in a dictionary"],
)
def test_a_small_file_takes_little_memory_whatever_it_unpacks_to(
    tmp_path: Path, megabytes: int, rows: int, said: str, most: int
) -> None:
    """
    A few kilobytes took gigabytes.
    """
    texts = pa.array(["x" * megabytes * MIB])
    task = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), texts)
    path = tmp_path / "bomb.parquet"
    pq.write_table(pa.table({"task": task}), path, compression="zstd", store_schema=False)
    assert path.stat().st_size < 100_000
    command = [sys.executable, "-c", READ_ALONE, str(path)]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    came, mebibytes = found.split()
    assert said == came
    assert int(mebibytes) < most
