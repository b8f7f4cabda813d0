"""The door to pyarrow: tables of images read row by row, and tables of captions written."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO

import attrs
import pyarrow as pa
import pyarrow.parquet as pq

from vlmcore._parquet_pages import pages
from vlmcore.errors import JobSourceError
from vlmcore.limits import JobSourceLimits

__all__ = ["ColumnKind", "ImageRow", "ImageTable", "write_rows"]

_BUFFER_BYTES = 1 << 16
_MOST_ROWS = 1000
_GROUP_ROWS = 10_000
_GROUP_CHARACTERS = 1 << 24
# A text with a prefix of the one before it takes a byte in the file, and its length in memory.
_WITHOUT_PREFIXES = (0, 2, 6, 8)  # plain, the two names of a dictionary, lengths first
# What pyarrow raises on files that are none; texts that are no UTF-8 are a ValueError.
_FAILURES = (pa.ArrowException, OSError, ValueError, OverflowError, LookupError)


class ColumnKind(enum.Enum):
    """What a column holds, as far as it may be an image or an id."""

    TEXT = "text"
    BYTES = "bytes"
    PICTURE = "bytes and path"  # a struct of both, as `datasets` writes images
    WHOLE = "whole numbers"


@attrs.frozen
class ImageRow:
    """
    What a row says of an image.

    Attributes:
        number: The row, from 0.
        text: A path, or what else stands in a column of texts; ``None`` if there is nothing.
        data: A view of the bytes of the image, as long as the next row is not asked for.
        id: What the image is called, if there is a column for it.
    """

    number: int
    text: str | None
    data: memoryview | None
    id: str | int | None


class ImageTable:
    """
    A table of images that is open.

    Args:
        file: The file; it stays open.
        name: What it is called in errors.
        limits: How much is read.

    Raises:
        JobSourceError: If it is no table, or has too many rows.
    """

    def __init__(self, file: BinaryIO, name: str, limits: JobSourceLimits) -> None:
        self._file, self._name, self._limits = file, name, limits
        with self._told():
            self._table = pq.ParquetFile(
                file,
                pre_buffer=False,
                buffer_size=_BUFFER_BYTES,  # or a column is held whole, however long it is
                thrift_string_size_limit=limits.max_footer_bytes,
                thrift_container_size_limit=limits.max_footer_bytes,
            )
            rows = self._table.metadata.num_rows
            if rows > limits.max_rows:
                raise JobSourceError(name, f"max_rows: got {rows}, limit is {limits.max_rows}")
            schema = self._table.schema_arrow
            self.types: dict[str, str] = {field.name: str(field.type) for field in schema}
            self.columns: dict[str, ColumnKind | None] = {
                field.name: _kind_of(field.type) for field in schema
            }

    def rows(self, image: str, id: str | None) -> Iterator[ImageRow]:  # noqa: A002
        """
        Give the rows of a table, few of which are held at once.

        Raises:
            JobSourceError: If a column cannot be read, or unpacks to more than the limits allow.
        """
        names = list(dict.fromkeys([*self._leaves(image), *([id] if id is not None else [])]))
        number = 0
        with self._told():
            for group in range(self._table.num_row_groups):
                most = self._rows_at_once(group, names)
                for batch in self._table.iter_batches(most, row_groups=[group], columns=names):
                    ids = None if id is None else batch.column(id).to_pylist()
                    for i, (text, data) in enumerate(self._images(batch.column(image), image)):
                        yield ImageRow(number, text, data, None if ids is None else ids[i])
                        number += 1

    def _leaves(self, image: str) -> list[str]:
        """Say what is read of a column: of a picture its bytes and its path, and nothing else."""
        if self.columns[image] is not ColumnKind.PICTURE:
            return [image]
        fields = [field.name for field in self._table.schema_arrow.field(image).type]
        return [f"{image}.{field}" for field in ("bytes", "path") if field in fields]

    def _images(self, column: Any, image: str) -> Iterator[tuple[str | None, memoryview | None]]:
        match self.columns[image]:
            case ColumnKind.TEXT:
                yield from ((value.as_py(), None) for value in _plain(column))
            case ColumnKind.BYTES:
                yield from ((None, _view(value)) for value in _plain(column))
            case _:
                names = [field.name for field in column.type]
                pictures = _plain(column.field("bytes"))
                texts = _plain(column.field("path")) if "path" in names else [None] * len(column)
                for is_there, data, text in zip(column.is_valid(), pictures, texts, strict=True):
                    if not is_there.as_py():
                        yield None, None
                    else:
                        yield None if text is None else text.as_py(), _view(data)

    def _rows_at_once(self, group: int, names: Sequence[str]) -> int:
        """Look at all pages that will be read; say of how many rows there is room at once."""
        row_group = self._table.metadata.row_group(group)
        schema = self._table.schema
        row_bytes = 1
        for i in range(len(schema)):
            path = schema.column(i).path
            if any(path == name or path.startswith(f"{name}.") for name in names):
                row_bytes += self._largest_row(row_group.column(i), path)
        return max(1, min(_MOST_ROWS, self._limits.max_batch_bytes // row_bytes))

    def _largest_row(self, chunk: Any, column: str) -> int:
        """
        Bound the pages of a column chunk; say how many bytes a row of it has, where most are.

        A decoder makes room for what a page says that it unpacks to. A dictionary repeats a text
        or a picture without a byte in the file.
        """
        start, first = chunk.data_page_offset, chunk.dictionary_page_offset
        start = first if first and first < start else start
        stop, most = start + chunk.total_compressed_size, 1
        is_whole = chunk.physical_type not in {"BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"}
        for page in pages(self._file, start=start, stop=stop, values=chunk.num_values):
            more = page.unpacked_bytes - page.packed_bytes
            if more > self._limits.max_page_bytes:
                raise ValueError(
                    f"max_page_bytes: the column {column!r:.80} unpacks to {more} bytes more than "
                    f"it has in the file, limit is {self._limits.max_page_bytes}"
                )
            if page.encoding not in _WITHOUT_PREFIXES and not is_whole:
                raise ValueError(
                    f"the column {column!r:.80} is in another encoding than plain values, lengths "
                    "first, or a dictionary"
                )
            values = 1 if page.is_dictionary else max(1, page.values)
            most = max(most, page.unpacked_bytes // values)
        return most

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except JobSourceError:
            raise
        except _FAILURES as error:
            said = " ".join(str(error).split())[:200]
            raise JobSourceError(self._name, f"cannot be read as Parquet: {said}") from error


def _plain(column: Any) -> Any:
    """Write out a column that is kept as numbers of a dictionary in memory."""
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _view(value: Any) -> memoryview | None:
    return memoryview(value.as_buffer()) if value.is_valid else None


def _kind_of(kind: pa.DataType) -> ColumnKind | None:
    types = pa.types
    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_string(kind) or types.is_large_string(kind):
        return ColumnKind.TEXT
    if types.is_binary(kind) or types.is_large_binary(kind):
        return ColumnKind.BYTES
    if types.is_integer(kind):
        return ColumnKind.WHOLE
    if types.is_struct(kind):
        kinds = {field.name: _kind_of(field.type) for field in kind}
        fits = kinds.get("bytes") is ColumnKind.BYTES
        if fits and kinds.get("path", ColumnKind.TEXT) is ColumnKind.TEXT:
            return ColumnKind.PICTURE
    return None


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
