"""The door to pyarrow: tables of Parquet, read in small batches and written in row groups."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from vlmcore._parquet_pages import pages
from vlmcore.errors import EpisodeError
from vlmcore.limits import DatasetLimits
from vlmcore.rollout._episode_paths import open_file, shown
from vlmcore_robotics.datasets._columns import Column, ColumnKind

__all__ = ["ParquetReader", "ParquetWriter", "write_tasks"]

_ARROW_TYPES = {
    ColumnKind.FLOAT: pa.float32(),
    ColumnKind.WHOLE: pa.int64(),
    ColumnKind.TIME: pa.float64(),
    ColumnKind.TEXTS: pa.list_(pa.string()),
    ColumnKind.PICTURE: pa.struct([("bytes", pa.binary()), ("path", pa.string())]),
    ColumnKind.NUMBERS: pa.list_(pa.float64()),
    ColumnKind.PER_CHANNEL: pa.list_(pa.list_(pa.list_(pa.float64()))),
    ColumnKind.COUNTS: pa.list_(pa.int64()),
}

_BUFFER_BYTES = 1 << 16
_FLOAT_BYTES = 4
# A text with a prefix of the one before it takes a byte in the file, and its length in memory.
_WITHOUT_PREFIXES = (0, 2, 6, 8)  # plain, the two names of a dictionary, lengths first

# What pyarrow raises on files that are none; texts that are no UTF-8 are a ValueError.
_FAILURES = (pa.ArrowException, OSError, ValueError, OverflowError, LookupError)


class ParquetReader:
    """
    Reads a table, a few rows at a time.

    Args:
        path: The file.
        limits: How large it may be.

    Raises:
        EpisodeError: If there is no such file, or it is no table.
    """

    def __init__(self, path: Path, *, limits: DatasetLimits) -> None:
        self._name = shown(path)
        self._limits = limits
        self._file: BinaryIO = open_file(path, limits=limits.of_files)
        try:
            self._table = pq.ParquetFile(
                self._file,
                pre_buffer=False,
                buffer_size=_BUFFER_BYTES,  # or a column is held whole, however long it is
                thrift_string_size_limit=limits.max_footer_bytes,
                thrift_container_size_limit=limits.max_footer_bytes,
            )
            self.rows: int = self._table.metadata.num_rows
            self.names: tuple[str, ...] = tuple(self._table.schema_arrow.names)
        except _FAILURES as error:
            self._file.close()
            raise self._broken(error) from error

    def __enter__(self) -> ParquetReader:
        """Take itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the file."""
        self._table.close()
        self._file.close()

    def batches(
        self, columns: Sequence[Column], *, start: int, stop: int, rows: int
    ) -> Iterator[dict[str, Any]]:
        """
        Give the rows from *start* to *stop*, at most *rows* at a time.

        Args:
            columns: What is read; others are not.
            start: The first row.
            stop: The row after the last.
            rows: Rows of a batch at most.

        Yields:
            For each column an array of shape ``[N, W]`` for numbers and ``[N]`` for whole numbers
            and times; a list of texts, of lists of texts, or of the bytes of pictures.

        Raises:
            EpisodeError: If a column is missing, is of another type, has gaps, or cannot be read,
                or unpacks to more than the limits allow.
        """
        self._require(columns)
        groups, skip = self._row_groups(start, stop)
        names, left = [_read_as(column) for column in columns], stop - start
        try:
            rows = self._rows_at_once(columns, groups, rows)
            for batch in self._table.iter_batches(rows, row_groups=groups, columns=names):
                if skip >= batch.num_rows:
                    skip -= batch.num_rows
                    continue
                part = batch.slice(skip, left)
                skip, left = 0, left - part.num_rows
                yield {column.name: self._values(part, column) for column in columns}
                if not left:
                    return
        except EpisodeError:
            raise
        except _FAILURES as error:
            raise self._broken(error) from error

    def _row_groups(self, start: int, stop: int) -> tuple[list[int], int]:
        """Find the row groups with rows from *start* to *stop*, and how many rows are before."""
        found: list[int] = []
        before = skip = 0
        for group in range(self._table.num_row_groups):
            after = before + self._table.metadata.row_group(group).num_rows
            if before < stop and after > start:
                skip = skip if found else start - before
                found.append(group)
            before = after
        return found, skip

    def _rows_at_once(self, columns: Sequence[Column], groups: Sequence[int], most: int) -> int:
        """Look at all pages that will be read; say of how many rows there is room at once."""
        largest = 1
        schema = self._table.schema
        for column in columns:
            name = _read_as(column)
            for i in range(len(schema)):
                path = schema.column(i).path
                if path == name or path.startswith(f"{name}."):
                    sizes = [self._largest_text(column, group, i) for group in groups]
                    largest = max(largest, *sizes)
        return max(1, min(most, self._limits.max_page_bytes // largest))

    def _largest_text(self, column: Column, group: int, i: int) -> int:
        """
        Bound the pages of a column chunk; say how many bytes each of its rows may repeat.

        A decoder makes room for what a page says that it unpacks to, and for all numbers of a row,
        whatever their count. A dictionary repeats a text or a picture without a byte in the file.
        """
        rows = self._table.metadata.row_group(group)
        chunk = rows.column(i)
        start, first = chunk.data_page_offset, chunk.dictionary_page_offset
        start = first if first and first < start else start
        stop, values, repeated = start + chunk.total_compressed_size, 0, 1
        is_text = column.kind in (ColumnKind.TEXT, ColumnKind.PICTURE)
        for page in pages(self._file, start=start, stop=stop, values=chunk.num_values):
            self._require_room(column, page.unpacked_bytes - page.packed_bytes)
            values += 0 if page.is_dictionary else page.values
            if is_text and page.encoding not in _WITHOUT_PREFIXES:
                problem = f"has the column {column.name!r:.80} in another encoding, expected plain"
                raise EpisodeError(self._name, None, f"{problem} values or a dictionary")
            if is_text and page.is_dictionary:
                repeated = page.unpacked_bytes
        if column.kind is ColumnKind.FLOAT:
            self._require_room(column, _FLOAT_BYTES * values - chunk.total_compressed_size)
            if values > rows.num_rows * column.width:
                raise self._of_other_width(column)
        return repeated

    def _require_room(self, column: Column, unpacked_bytes: int) -> None:
        most = self._limits.max_page_bytes
        if unpacked_bytes > most:
            problem = (
                f"max_page_bytes: the column {column.name!r:.80} unpacks to {unpacked_bytes} bytes "
                f"more than it has in the file, limit is {most}"
            )
            raise EpisodeError(self._name, None, problem)

    def _require(self, columns: Sequence[Column]) -> None:
        schema = self._table.schema_arrow
        for column in columns:
            if column.name not in self.names:
                problem = f"has no column {column.name!r:.80}, expected it"
                raise EpisodeError(self._name, None, problem)
            came = schema.field(column.name).type
            if not _is_readable(came, column.kind):
                problem = (
                    f"has {str(came)!r:.80} in the column {column.name!r:.80}, expected "
                    f"{column.kind.value}"
                )
                raise EpisodeError(self._name, None, problem)
            if pa.types.is_fixed_size_list(came) and came.list_size != column.width:
                raise self._of_other_width(column)

    def _values(self, batch: Any, column: Column) -> Any:
        array = batch.column(column.name)
        if array.null_count:
            problem = f"has gaps in the column {column.name!r:.80}, expected a value in each row"
            raise EpisodeError(self._name, None, problem)
        match column.kind:
            case ColumnKind.WHOLE:
                return array.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
            case ColumnKind.TIME:
                return array.to_numpy(zero_copy_only=False).astype(np.float64, copy=False)
            case ColumnKind.FLOAT:
                return self._vectors(array, column)
            case ColumnKind.PICTURE:
                return array.field("bytes").to_pylist()
            case _:
                return array.to_pylist()

    def _vectors(self, array: Any, column: Column) -> npt.NDArray[np.float64]:
        """Read one list of numbers a row, or one number."""
        if _is_list(array.type):
            widths = array.value_lengths()
            numbers = array.flatten()
            if not len(array) or (widths.to_numpy(zero_copy_only=False) == column.width).all():
                if numbers.null_count:
                    problem = f"has gaps in the column {column.name!r:.80}, expected numbers"
                    raise EpisodeError(self._name, None, problem)
                return _floats(numbers).reshape(len(array), column.width)
        elif column.width == 1:
            return _floats(array)[:, np.newaxis]
        raise self._of_other_width(column)

    def _of_other_width(self, column: Column) -> EpisodeError:
        problem = f"has other rows in the column {column.name!r:.80}, expected {column.width} "
        return EpisodeError(self._name, None, problem + "numbers each")

    def _broken(self, error: Exception) -> EpisodeError:
        said = " ".join(str(error).split())[:200]
        return EpisodeError(self._name, None, f"cannot be read as Parquet: {said}")


def _read_as(column: Column) -> str:
    """Say what is read of a column: of a picture its bytes, and not what else stands beside."""
    return f"{column.name}.bytes" if column.kind is ColumnKind.PICTURE else column.name


def _floats(array: Any) -> npt.NDArray[np.float64]:
    numbers: npt.NDArray[np.float64] = array.to_numpy(zero_copy_only=False).astype(np.float64)
    return numbers


def _is_list(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _is_readable(kind: pa.DataType, wanted: ColumnKind) -> bool:
    types = pa.types
    inner = kind.value_type if _is_list(kind) else kind
    match wanted:
        case ColumnKind.WHOLE:
            is_readable = types.is_integer(kind) and kind != pa.uint64()
        case ColumnKind.TIME:
            is_readable = types.is_floating(kind)
        case ColumnKind.FLOAT:
            is_readable = types.is_floating(inner)
        case ColumnKind.PICTURE:
            fields = kind if types.is_struct(kind) else ()
            is_readable = any(each.name == "bytes" and _is_bytes(each.type) for each in fields)
        case ColumnKind.TEXT:
            is_readable = types.is_string(kind) or types.is_large_string(kind)
        case _:
            is_readable = False
    return bool(is_readable)


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


class ParquetWriter:
    """
    Writes a table; each call is a row group.

    Args:
        path: The file; its folder is made.
        columns: What is in it.
    """

    def __init__(self, path: Path, columns: Sequence[Column]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._schema = pa.schema([(column.name, _arrow_type(column)) for column in columns])
        self._file = path.open("xb")
        self._writer = pq.ParquetWriter(self._file, self._schema, compression="snappy")

    @property
    def size(self) -> int:
        """How many bytes were written."""
        return self._file.tell()

    def write(self, values: Mapping[str, Any]) -> None:
        """Write some rows: a list for each column."""
        self._writer.write_table(pa.table(dict(values), schema=self._schema))

    def close(self) -> None:
        """Write the end of the file, without which it is none."""
        self._writer.close()
        self._file.close()


def _arrow_type(column: Column) -> pa.DataType:
    kind = _ARROW_TYPES[column.kind]
    if column.kind is ColumnKind.FLOAT and column.width > 1:
        return pa.list_(kind, column.width)
    return kind


def write_tasks(path: Path, tasks: Sequence[str]) -> None:
    """Write the tasks as pandas writes a table whose index is the text."""
    index = "__index_level_0__"
    columns = (
        ("task_index", "task_index", "int64", "int64"),
        (None, index, "unicode", "object"),
    )
    keys = ("name", "field_name", "pandas_type", "numpy_type")
    said = {
        "index_columns": [index],
        "column_indexes": [],
        "columns": [dict(zip(keys, each, strict=True)) | {"metadata": None} for each in columns],
        "creator": {"library": "pyarrow", "version": pa.__version__},
        "pandas_version": "2.0.0",
    }
    table = pa.table(
        {"task_index": list(range(len(tasks))), index: list(tasks)},
        schema=pa.schema(
            [("task_index", pa.int64()), (index, pa.string())],
            metadata={"pandas": json.dumps(said)},
        ),
    )
    pq.write_table(table, path)
