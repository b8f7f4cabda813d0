"""Tables with a row for each image, written whole or not at all: lines of JSON, or Parquet."""

from __future__ import annotations

import enum
import json
import os
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from vlmcore._arguments import shown
from vlmcore._arrays import require_member
from vlmcore._optional import optional_dependency
from vlmcore._whole_files import require_writable, whole_file
from vlmcore.errors import ContractError, JobSinkError
from vlmcore.jobs.rows import CaptionRow

__all__ = ["TableKind", "require_table", "write_table"]

_SURROGATES = re.compile("[\ud800-\udfff]")
# What some readers take for the end of a line, and what controls a terminal.
_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029]")


class TableKind(enum.Enum):
    """What a table is written as."""

    JSONL = "jsonl"
    PARQUET = "parquet"

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> TableKind:
        """
        Tell the kind that a file is to have from how its name ends.

        Raises:
            ContractError: If it ends otherwise.
        """
        suffix = Path(path).suffix.lower()
        if suffix in {".jsonl", ".ndjson"}:
            return cls.JSONL
        if suffix in {".parquet", ".pq"}:
            return cls.PARQUET
        raise ContractError("path", f"got {str(path)!r:.200}, expected a .jsonl or .parquet file")


def write_table(
    path: str | os.PathLike[str],
    rows: Iterable[CaptionRow],
    *,
    prompts: Sequence[str],
    structured: Sequence[str] = (),
    kind: TableKind | None = None,
) -> int:
    """
    Write a table; *path* is what it was until all rows are written.

    The columns are those of `CaptionRow`, with null where there is nothing. The captions of one
    prompt are the column ``caption``. Of several, a line of JSON has an object, ``captions``, and a
    table of Parquet a column for each, ``caption_NAME``: `datasets` refuses tables with a map. So
    it is with what JSON was asked for says: ``value`` or ``values``; in Parquet these are JSON as
    text, as rows may differ.

    Args:
        path: The file.
        rows: The rows, few of which are held at once.
        prompts: The names of the prompts.
        structured: Those whose answers are JSON.
        kind: What it is written as; ``None`` goes by how *path* ends.

    Returns:
        How many rows were written.

    Raises:
        ContractError: If an argument is not as described.
        JobSinkError: If the file cannot be written.
        MissingDependencyError: If pyarrow is not installed, which Parquet needs.

    Example:
        >>> import tempfile
        >>> row = CaptionRow(
        ...     key="a.jpg", captions={"caption": "A cat."}, model="m", width_px=640, height_px=480
        ... )
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     table = Path(folder, "captions.jsonl")
        ...     write_table(table, [row], prompts=["caption"])
        ...     table.read_text()[:38]
        1
        '{"key": "a.jpg", "caption": "A cat.", '
    """
    kind = TableKind.of(path) if kind is None else kind
    require_member(TableKind, kind=kind)
    columns = _Columns(tuple(prompts), tuple(structured))
    write = _write_lines if kind is TableKind.JSONL else _parquet_writer()
    name = os.fspath(path)
    try:
        with whole_file(name) as file:
            return write(file, rows, columns)
    except ContractError as error:
        if error.field != name:  # it came with a row
            raise
        raise JobSinkError(name, error.problem) from None


def require_table(path: str | os.PathLike[str], kind: TableKind) -> None:
    """
    Require that a table could be written, before the work whose result it is.

    Raises:
        JobSinkError: If it cannot, as far as that can be known before.
        MissingDependencyError: If a package is not installed that the kind needs.
    """
    if kind is TableKind.PARQUET:
        _parquet_writer()
    try:
        require_writable(os.fspath(path))
    except ContractError as error:
        raise JobSinkError(os.fspath(path), error.problem) from None


class _Columns:
    """What stands in a row, by the names of the prompts."""

    def __init__(self, prompts: tuple[str, ...], structured: tuple[str, ...]) -> None:
        if not prompts or len(set(prompts)) != len(prompts):
            raise ContractError("prompts", f"got {shown(prompts)}, expected names, each once")
        if not set(structured) <= set(prompts):
            raise ContractError("structured", f"got {shown(structured)}, expected names of prompts")
        self._prompts = prompts
        self._structured = structured

    @property
    def texts(self) -> tuple[str, ...]:
        """The columns of a flat row that are text, in the order of `flat`."""
        return ("key", *(column for _, column in self._captions), *(c for _, c in self._values))

    @property
    def _captions(self) -> list[tuple[str, str]]:
        return [(name, self._named("caption", name)) for name in self._prompts]

    @property
    def _values(self) -> list[tuple[str, str]]:
        return [(name, self._named("value", name)) for name in self._structured]

    def _named(self, column: str, prompt: str) -> str:
        return column if len(self._prompts) == 1 else f"{column}_{prompt}"

    def nested(self, row: CaptionRow) -> dict[str, Any]:
        """Give a row whose captions are an object where there are several."""
        fields: dict[str, Any] = {"key": row.key}
        if len(self._prompts) == 1:
            fields["caption"] = row.captions.get(self._prompts[0])
        else:
            fields["captions"] = {name: row.captions.get(name) for name in self._prompts}
        if self._structured and len(self._prompts) == 1:
            fields["value"] = row.values.get(self._prompts[0])
        elif self._structured:
            fields["values"] = {name: row.values.get(name) for name in self._structured}
        return fields | _of_the_image(row)

    def flat(self, row: CaptionRow) -> dict[str, Any]:
        """Give a row of texts and numbers only."""
        fields: dict[str, Any] = {"key": row.key}
        fields |= {column: row.captions.get(name) for name, column in self._captions}
        for name, column in self._values:
            value = row.values.get(name)
            fields[column] = None if value is None else _json(value)
        fields |= _of_the_image(row)
        return {
            name: _SURROGATES.sub("\ufffd", value) if isinstance(value, str) else value
            for name, value in fields.items()
        }


def _of_the_image(row: CaptionRow) -> dict[str, Any]:
    return {
        "model": row.model,
        "width_px": row.width_px,
        "height_px": row.height_px,
        "duplicate_of": row.duplicate_of or None,
        "error": row.error or None,
    }


def _write_lines(file: BinaryIO, rows: Iterable[CaptionRow], columns: _Columns) -> int:
    count = 0
    for count, row in enumerate(rows, 1):  # noqa: B007 - it is what is returned
        file.write(f"{_json(columns.nested(row))}\n".encode())
    return count


def _json(value: Any) -> str:
    """Write a value on one line, whatever a reader takes for the end of one."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ContractError("values", f"got something that JSON cannot hold: {error}") from None
    if text.isascii():
        return text.replace("\x7f", "\\u007f")
    text = _SURROGATES.sub("\ufffd", text)
    return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _parquet_writer() -> Callable[[BinaryIO, Iterable[CaptionRow], _Columns], int]:
    with optional_dependency("jobs", "pyarrow"):
        from vlmcore.jobs._parquet import write_rows  # noqa: PLC0415 - the door

    def write(file: BinaryIO, rows: Iterable[CaptionRow], columns: _Columns) -> int:
        flat = (columns.flat(row) for row in rows)
        return write_rows(file, flat, texts=columns.texts)

    return write
