"""The images that lines of JSON name or hold, one record a line."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vlmcore._arguments import shown
from vlmcore.contracts.json_text import read_json
from vlmcore.errors import ContractError, JobSourceError
from vlmcore.jobs.items import Item
from vlmcore.jobs.sources._contents import item_of_text, without_bytes
from vlmcore.jobs.sources._files import key_of, named, opened, path_of, require_file
from vlmcore.jobs.sources._lines import lines_of
from vlmcore.limits import JobSourceLimits

__all__ = ["IMAGE_FIELDS", "JsonLinesImages"]

IMAGE_FIELDS = ("image", "path", "file_name", "image_path")
"""The fields, or columns, one of which is taken for the image where none is named."""


class JsonLinesImages:
    """
    The images of a file of JSON Lines: an object on each line, in UTF-8, blank lines between them.

    The image is a path, from the folder of the file; or a data URL; or base64, which is known by
    the image that it begins with. An image is called by its id; without one by its path, where two
    records of the same path are one image, or else by the number of its line, from 1.

    Args:
        path: The file.
        image: The field with the image; ``None`` takes that of the first record which is one of
            `IMAGE_FIELDS`.
        id: The field with what it is called, text or a whole number; ``None`` for none.
        limits: How much is read.

    Raises:
        ContractError: If an argument is not as described.
        JobSourceError: If there is no such file.
    """

    is_quick_to_list = False  # there may be pictures in it

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        image: str | None = None,
        id: str | None = None,  # noqa: A002 - what the field is mostly called
        limits: JobSourceLimits | None = None,
    ) -> None:
        require_field_names(image=image, id=id)
        self._path = path_of(path)
        self._name = named(self._path)
        self._image = image
        self._id = id
        self._limits = limits or JobSourceLimits()
        require_file(self._path)

    @property
    def name(self) -> str:
        """The file, as it was given."""
        return self._name

    @property
    def place(self) -> Path:
        """The file."""
        return self._path

    def __iter__(self) -> Iterator[Item]:
        """Give the images; a line that is no record ends with `JobSourceError`."""
        seen: set[str] = set()
        image = self._image
        for number, record in self._records():
            image = image or self._found(record, number)
            item = self._item(record, number, image)
            if item.key not in seen:
                seen.add(item.key)
                yield item
            elif self._id is not None:
                raise self._broken(number, f"has the id {shown(item.key)} of a line before it")

    def _records(self) -> Iterator[tuple[int, dict[str, Any]]]:
        with opened(self._path) as file:
            most = self._limits.max_record_bytes
            for number, line in lines_of(file, self._name, separator=b"\n", most=most):
                if line.strip():
                    yield number, self._record(line, number)

    def _record(self, line: bytes, number: int) -> dict[str, Any]:
        try:
            record = read_json(line, limits=self._limits.of_a_record)
        except ContractError as error:
            raise self._broken(number, f"is no record: {error}") from None
        if not isinstance(record, dict):
            raise self._broken(number, f"got {shown(record)}, expected an object")
        return record

    def _found(self, record: dict[str, Any], number: int) -> str:
        found = [field for field in IMAGE_FIELDS if isinstance(record.get(field), str)]
        return the_one_of(self._name, found, list(record), f"line {number}")

    def _item(self, record: dict[str, Any], number: int, image: str) -> Item:
        key = None if self._id is None else self._key(record, number, self._id)
        name = f"{self._name}, line {number}"
        value = record.get(image)
        if not isinstance(value, str):
            came = "no field" if image not in record else f"{shown(value, 40)} in the field"
            problem = f"has {came} {image!r:.80}, expected the path of an image, or base64"
            return without_bytes(key or str(number), name, problem)
        folder, limits = self._path.parent, self._limits
        return item_of_text(
            value, folder=folder, key=key, other=str(number), name=name, limits=limits
        )

    def _key(self, record: dict[str, Any], number: int, field: str) -> str:
        value = record.get(field)
        key = id_of(value)
        if key is None:
            came = shown(value) if field in record else "nothing"
            problem = f"got {came} in the field {field!r:.80}, expected an id: text or a number"
            raise self._broken(number, problem)
        return key

    def _broken(self, number: int, problem: str) -> JobSourceError:
        return JobSourceError(self._name, f"line {number}: {problem}")


def require_field_names(**names: str | None) -> None:
    """
    Require names of fields, or ``None``.

    Raises:
        ContractError: If one is neither.
    """
    for argument, name in names.items():
        if name is not None and (not isinstance(name, str) or not name):
            raise ContractError(argument, f"got {shown(name)}, expected the name of a field")


def the_one_of(name: str, found: list[str], there: list[str], where: str) -> str:
    """
    Take the only field that may be the image.

    Raises:
        JobSourceError: If there is none, or more than one.
    """
    if len(found) == 1:
        return found[0]
    if found:
        fields = " and ".join(repr(field) for field in found)
        problem = f"{where} has {fields}, expected to be told which of them is the image"
    else:
        fields = ", ".join(repr(field)[:80] for field in there[:20])
        names = ", ".join(repr(field) for field in IMAGE_FIELDS)
        problem = f"{where} has the fields {fields or 'none'}, expected one of {names} with images"
        problem = f"{problem}, or to be told which it is"
    raise JobSourceError(name, problem)


def id_of(value: Any) -> str | None:
    """Read an id; ``None`` if it is none."""
    if isinstance(value, str) and value.strip():
        return key_of(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return None
