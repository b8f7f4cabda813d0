"""
The shapes of JSON documents: one table says what is read, and makes the published JSON Schema.

A shape finds every fault of a value, each with its path; what it lets pass has the types that it
says. What fields must be to each other is not said here.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import attrs

from vlmcore._arguments import shown
from vlmcore._arrays import plain_float

__all__ = [
    "Field",
    "Flag",
    "JsonObject",
    "ListOf",
    "MapOf",
    "Number",
    "Record",
    "Shape",
    "Text",
    "Whole",
    "path_of",
]

Fault = tuple[str, str]


class Shape(Protocol):
    """What a value of a document may be."""

    def faults(self, value: Any, path: str) -> Iterator[Fault]:
        """Find what is wrong with *value*, which stands at *path*."""
        ...

    def schema(self) -> dict[str, Any]:
        """Say the same as JSON Schema."""
        ...


@attrs.frozen(kw_only=True)
class Text:
    """
    A text.

    Attributes:
        longest: Characters at most; ``None`` if the contract says.
        blank: Whether it may be empty.
        one_of: The only texts there are, if there are only some.
    """

    longest: int | None = None
    blank: bool = False
    one_of: tuple[str, ...] = ()

    def faults(self, value: Any, path: str) -> Iterator[Fault]:
        """Find what is wrong."""
        if not isinstance(value, str):
            yield path, f"got {_kind(value)}, expected a text"
        elif self.one_of and value not in self.one_of:
            yield path, f"got {shown(value)}, expected one of {', '.join(map(repr, self.one_of))}"
        elif not self.blank and not value.strip():
            yield path, "got a blank text, expected at least one character"
        elif self.longest is not None and len(value) > self.longest:
            yield path, f"got {len(value)} characters, expected at most {self.longest}"

    def schema(self) -> dict[str, Any]:
        """Say the same as JSON Schema."""
        said: dict[str, Any] = {"type": "string"}
        if self.one_of:
            said["enum"] = list(self.one_of)
        elif not self.blank:
            said |= {"minLength": 1, "pattern": r"\S"}
        return said if self.longest is None else said | {"maxLength": self.longest}


@attrs.frozen(kw_only=True)
class Number:
    """
    A finite number; a whole number is one, true and a text of digits are not.

    Attributes:
        positive: Whether it must be above 0.
        largest: The largest; ``None`` if there is none.
    """

    positive: bool = False
    largest: float | None = None

    def faults(self, value: Any, path: str) -> Iterator[Fault]:
        """Find what is wrong."""
        number = plain_float(value)
        if not isinstance(number, float):
            kind = " that float64 can hold" if type(value) is int else ""
            yield path, f"got {_kind(value)}, expected a number{kind}"
        elif not math.isfinite(number):
            yield path, f"got {value}, expected a finite number"
        elif self.positive and value <= 0:
            yield path, f"got {value}, expected a number above 0"
        elif self.largest is not None and value > self.largest:
            yield path, f"got {value}, expected at most {self.largest}"

    def schema(self) -> dict[str, Any]:
        """Say the same as JSON Schema."""
        said: dict[str, Any] = {"type": "number"}
        if self.positive:
            said["exclusiveMinimum"] = 0
        return said if self.largest is None else said | {"maximum": self.largest}


@attrs.frozen(kw_only=True)
class Whole:
    """
    A whole number, written without a point.

    Attributes:
        smallest: The smallest.
        largest: The largest.
    """

    smallest: int
    largest: int

    def faults(self, value: Any, path: str) -> Iterator[Fault]:
        """Find what is wrong."""
        if isinstance(value, bool) or not isinstance(value, int):
            yield path, f"got {_kind(value)}, expected a whole number"
        elif not self.smallest <= value <= self.largest:
            yield path, f"got {value}, expected {self.smallest} to {self.largest}"

    def schema(self) -> dict[str, Any]:
        """Say the same as JSON Schema."""
        return {"type": "integer", "minimum": self.smallest, "maximum": self.largest}


@attrs.frozen(kw_only=True)
class Flag:
    """True or false; 0 and 1 are not."""

    def faults(self, value: Any, path: str) -> Iterator[Fault]:
        """Find what is wrong."""
        if not isinstance(value, bool):
            yield path, f"got {_kind(value)}, expected true or false"

    def schema(self) -> dict[str, Any]:
        """Say the same as JSON Schema."""
        return {"type": "boolean"}


@attrs.frozen(kw_only=True)
class ListOf:
    """
    A list.

    Attributes:
        item: What is in it.
        fewest: Items at least.
        most: Items at most.
    """

    item: Shape
    fewest: int
    most: int

    def faults(self, value: Any, path: str) -> Iterator[Fault]:
        """Find what is wrong."""
        if not isinstance(value, list):
            yield path, f"got {_kind(value)}, expected a list"
        elif not self.fewest <= len(value) <= self.most:
            yield path, f"got {len(value)} items, expected {self.fewest} to {self.most}"
        elif not (isinstance(self.item, Number) and _are_plain(self.item, value)):
            for i, each in enumerate(value):
                yield from self.item.faults(each, f"{path}[{i}]")

    def schema(self) -> dict[str, Any]:
        """Say the same as JSON Schema."""
        return {
            "type": "array",
            "items": self.item.schema(),
            "minItems": self.fewest,
            "maxItems": self.most,
        }


@attrs.frozen(kw_only=True)
class MapOf:
    """
    An object whose keys are names that the document gives.

    Attributes:
        item: What is under each name.
        fewest: Names at least.
        most: Names at most.
    """

    item: Shape
    fewest: int = 0
    most: int

    def faults(self, value: Any, path: str) -> Iterator[Fault]:
        """Find what is wrong."""
        if not isinstance(value, dict):
            yield path, f"got {_kind(value)}, expected an object"
        elif not self.fewest <= len(value) <= self.most:
            yield path, f"got {len(value)} names, expected {self.fewest} to {self.most}"
        else:
            for key, each in value.items():
                if isinstance(key, str):
                    yield from self.item.faults(each, path_of(path, key))
                else:
                    yield path, _no_text(key)

    def schema(self) -> dict[str, Any]:
        """Say the same as JSON Schema."""
        return {
            "type": "object",
            "additionalProperties": self.item.schema(),
            "minProperties": self.fewest,
            "maxProperties": self.most,
        }


@attrs.frozen(kw_only=True)
class JsonObject:
    """An object with anything in it."""

    def faults(self, value: Any, path: str) -> Iterator[Fault]:
        """Find what is wrong."""
        if not isinstance(value, dict):
            yield path, f"got {_kind(value)}, expected an object"

    def schema(self) -> dict[str, Any]:
        """Say the same as JSON Schema."""
        return {"type": "object"}


@attrs.frozen
class Field:
    """
    One key of a record.

    Attributes:
        shape: What is under it.
        meaning: What it says, a sentence for the published schema.
        optional: Whether it may be missing.
        alias: An older name that is also read.
    """

    shape: Shape
    meaning: str
    optional: bool = attrs.field(default=False, kw_only=True)
    alias: str | None = attrs.field(default=None, kw_only=True)


@attrs.frozen(kw_only=True)
class Record:
    """
    An object with the keys that are listed, and no others.

    Attributes:
        fields: The keys.
    """

    fields: Mapping[str, Field]

    def faults(self, value: Any, path: str) -> Iterator[Fault]:
        """Find what is wrong."""
        if not isinstance(value, dict):
            yield path, f"got {_kind(value)}, expected an object"
            return
        known = {}
        for key, field in self.fields.items():
            names = [name for name in (key, field.alias) if name is not None and name in value]
            known.update(dict.fromkeys(names, field))
            if not names and not field.optional:
                yield path_of(path, key), "is missing"
            if len(names) > 1:
                yield path_of(path, names[1]), f"got it beside {key!r}, which is the same"
        for key, each in value.items():
            if not isinstance(key, str):
                yield path, _no_text(key)
            elif key in known:
                yield from known[key].shape.faults(each, path_of(path, key))
            else:
                near = difflib.get_close_matches(key, self.fields, n=1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                yield path_of(path, key), f"is not a key of this document{hint}"

    def schema(self) -> dict[str, Any]:
        """Say the same as JSON Schema."""
        properties = {
            key: field.shape.schema() | {"description": field.meaning}
            for key, field in self.fields.items()
        }
        needed = [key for key, field in self.fields.items() if not field.optional]
        said: dict[str, Any] = {"type": "object", "properties": properties}
        for key, field in self.fields.items():
            if field.alias is not None:
                properties[field.alias] = properties[key] | {"deprecated": True}
                needed.remove(key)
                said["oneOf"] = [{"required": [key]}, {"required": [field.alias]}]
        return said | {"required": needed, "additionalProperties": False}


def path_of(path: str, key: str) -> str:
    """Write the path of *key* below *path*, as ``$.cameras["a b"]``."""
    plain = key.isidentifier() and key.isascii()
    return f"{path}.{key}" if plain else f"{path}[{key[:80]!a}]"


def _no_text(key: object) -> str:
    """Say what is wrong with a key as YAML gives them."""
    return f"got the key {shown(key)}, expected text"


def _are_plain(shape: Number, values: list[Any]) -> bool:
    """Find out fast what holds for nearly every list: floats, all finite, without bounds."""
    if shape.positive or shape.largest is not None:
        return False
    return set(map(type, values)) <= {float} and all(map(math.isfinite, values))


def _kind(value: Any) -> str:
    """Say what came in the words of JSON, and what it was if that is short."""
    if isinstance(value, str):
        return f"the text {value[:40]!r}"
    if isinstance(value, (list, dict)):
        return "a list" if isinstance(value, list) else "an object"
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    return f"{shown(value, 40)}"
