"""The images that tables of Parquet name or hold."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from vlmcore._arguments import shown
from vlmcore._optional import optional_dependency
from vlmcore.errors import JobSourceError
from vlmcore.jobs.items import Item
from vlmcore.jobs.sources._contents import item_of_bytes, item_of_text, without_bytes
from vlmcore.jobs.sources._files import key_of, named, opened, path_of, require_file
from vlmcore.jobs.sources._patterns import matching_files, place_of
from vlmcore.jobs.sources.records import IMAGE_FIELDS, id_of, require_field_names, the_one_of
from vlmcore.limits import JobSourceLimits, require_at_most

if TYPE_CHECKING:
    from vlmcore.jobs._parquet import ImageRow, ImageTable

__all__ = ["ParquetImages"]


class ParquetImages:
    """
    The images of one table of Parquet, or of its parts.

    The image is in a column of texts, as in `vlmcore.jobs.sources.records.JsonLinesImages`; of
    bytes; or of both, ``bytes`` and ``path``, as `datasets` writes images. A path begins from the
    folder of its part. An image is called by its id; without one by its path, if that is where its
    bytes are, or else by its part and its row there, from 0: ``train-00000.parquet/7``.

    Rows are read few at a time: what is held is a page of the file, or some rows, whichever is
    more. Needs ``pip install "vlmcore[jobs]"``.

    Args:
        paths: A file; a folder, of which all ``*.parquet`` are parts; a pattern; or several files.
        image: The column with the image; ``None`` takes the one of `IMAGE_FIELDS` that is there, or
            else the one with ``bytes`` and ``path``.
        id: The column with what it is called, texts or whole numbers; ``None`` for none.
        limits: How much is read.

    Raises:
        ContractError: If an argument is not as described.
        JobSourceError: If there is no such file.
        MissingDependencyError: If pyarrow is not installed.
    """

    is_quick_to_list = False

    def __init__(
        self,
        paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        *,
        image: str | None = None,
        id: str | None = None,  # noqa: A002 - what the column is mostly called
        limits: JobSourceLimits | None = None,
    ) -> None:
        require_field_names(image=image, id=id)
        self._limits = limits or JobSourceLimits()
        self._image = image
        self._id = id
        self._folder: Path | None = None
        if isinstance(paths, (str, os.PathLike)) and path_of(paths).is_dir():
            self._folder = path_of(paths)
            self._paths = _parts_of(self._folder, self._limits)
        else:
            self._paths = matching_files(paths, limits=self._limits)
        self._place = self._folder or place_of(self._paths)
        for path in self._paths:
            require_file(path)
        with optional_dependency("jobs", "pyarrow"):
            from vlmcore.jobs import _parquet  # noqa: F401, PLC0415 - the door

    @property
    def name(self) -> str:
        """The file, or the folder of several."""
        return named(self._place)

    @property
    def place(self) -> Path:
        """The file, or the folder of several."""
        return self._place

    def __iter__(self) -> Iterator[Item]:
        """Give the images; a part that cannot be read ends with `JobSourceError`."""
        from vlmcore.jobs._parquet import ImageTable  # noqa: PLC0415 - the door

        seen: set[str] = set()
        for path in self._paths:
            with opened(path) as file:
                table = ImageTable(file, named(path), self._limits)
                image = self._image or self._found(table, path)
                self._require_columns(table, path, image)
                part = self._part(path)
                for row in table.rows(image, self._id):
                    item = self._item(row, path, part, image)
                    if item.path is None and self._id is None:
                        yield item  # called by its row, which is there once
                    elif item.key not in seen:
                        seen.add(item.key)
                        yield item
                    elif self._id is not None:
                        problem = f"row {row.number}: has the id {shown(item.key)} of one before it"
                        raise JobSourceError(named(path), problem)

    def _found(self, table: ImageTable, path: Path) -> str:
        from vlmcore.jobs._parquet import ColumnKind  # noqa: PLC0415 - the door

        fits = {ColumnKind.TEXT, ColumnKind.BYTES, ColumnKind.PICTURE}
        found = [name for name in IMAGE_FIELDS if table.columns.get(name) in fits]
        if not found:
            found = [name for name, kind in table.columns.items() if kind is ColumnKind.PICTURE]
        return the_one_of(named(path), found, list(table.columns), "its table")

    def _require_columns(self, table: ImageTable, path: Path, image: str) -> None:
        from vlmcore.jobs._parquet import ColumnKind  # noqa: PLC0415 - the door

        wanted = [
            (image, "images", {ColumnKind.TEXT, ColumnKind.BYTES, ColumnKind.PICTURE}),
            (self._id, "ids", {ColumnKind.TEXT, ColumnKind.WHOLE}),
        ]
        for name, what, kinds in wanted:
            if name is None or table.columns.get(name) in kinds:
                continue
            came = f"{table.types[name]:.80}" if name in table.types else "no column of this name"
            expected = ", ".join(sorted(kind.value for kind in kinds))
            problem = f"got {came} in {name!r:.80}, expected a column with {what}: {expected}"
            raise JobSourceError(named(path), problem)

    def _item(self, row: ImageRow, path: Path, part: str, image: str) -> Item:
        name = f"{named(path)}, row {row.number}"
        other = f"{part}/{row.number}"
        key = None
        if self._id is not None:
            key = id_of(row.id)
            if key is None:
                problem = (
                    f"row {row.number}: got {shown(row.id)} in {self._id!r:.80}, expected an id"
                )
                raise JobSourceError(named(path), problem)
        if row.data is not None:
            return item_of_bytes(row.data, key=key or other, name=name, limits=self._limits)
        if row.text is None:
            problem = f"has nothing in the column {image!r:.80}, expected an image"
            return without_bytes(key or other, name, problem)
        folder, limits = path.parent, self._limits
        return item_of_text(row.text, folder=folder, key=key, other=other, name=name, limits=limits)

    def _part(self, path: Path) -> str:
        if self._folder is None and len(self._paths) == 1:
            return key_of(path.name)
        return key_of(Path(os.path.relpath(path, self._place)).as_posix())


def _parts_of(folder: Path, limits: JobSourceLimits) -> list[Path]:
    """List the tables in a folder and its sub-folders; links to folders are not followed."""
    found: list[Path] = []
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(each for each in folders if not each.startswith("."))
        names = [each for each in sorted(files) if each.lower().endswith(".parquet")]
        found += [Path(place, each) for each in names if not each.startswith(".")]
        require_at_most("max_files", len(found), limits.max_files)
    if not found:
        raise JobSourceError(named(folder), "has no table, expected files called *.parquet")
    return found
