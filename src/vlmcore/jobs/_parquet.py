"""The door to pyarrow: tables of images read row by row, and tables of captions written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["write_rows"]

_GROUP_ROWS = 10_000
_GROUP_CHARACTERS = 1 << 24


def write_rows(file: BinaryIO, rows: Iterable[Mapping[str, Any]], *, texts: Sequence[str]) -> int:
    """
    Write a table of captions in row groups of bounded size.

    Args:
        file: What it is written to.
        rows: The rows: *texts*, and then what is said of an image.
        texts: The columns of text that come first.

    Returns:
        How many rows were written.
    """
    schema = pa.schema(
        [
            *((name, pa.string()) for name in texts),
            ("model", pa.string()),
            ("width_px", pa.int32()),
            ("height_px", pa.int32()),
            ("duplicate_of", pa.string()),
            ("error", pa.string()),
        ]
    )
    count = 0
    with pq.ParquetWriter(file, schema, compression="snappy") as writer:
        group: list[Mapping[str, Any]] = []
        characters = 0
        for row in rows:
            group.append(row)
            characters += sum(len(value) for value in row.values() if isinstance(value, str))
            if len(group) == _GROUP_ROWS or characters > _GROUP_CHARACTERS:
                writer.write_table(pa.Table.from_pylist(group, schema=schema))
                count, group, characters = count + len(group), [], 0
        if group:
            writer.write_table(pa.Table.from_pylist(group, schema=schema))
    return count + len(group)
