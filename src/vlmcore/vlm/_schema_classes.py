"""Schemas of classes with annotated fields, and instances made of what answers such a schema."""

from __future__ import annotations

import dataclasses
import enum
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from vlmcore.errors import ContractError

__all__ = ["is_described", "make_instance", "schema_of"]

_SCALARS: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    types.NoneType: {"type": "null"},
    Any: {},
}
_LISTS = (list, tuple, Sequence)
_SHAPES = {list: "array", dict: "object"}
_KNOWN = (
    "expected str, int, float, bool, None, a Literal, an Enum, a list, a tuple, dict[str, ...], "
    "a union, or a class of such fields"
)


def is_described(kind: type) -> bool:
    """Say whether a class has annotated fields: of attrs, or a dataclass."""
    return attrs.has(kind) or dataclasses.is_dataclass(kind)


@attrs.frozen
class _Field:
    """A field as it is written in JSON."""

    name: str
    kind: Any
    is_required: bool


def _fields(kind: type) -> list[_Field]:
    try:
        hints = typing.get_type_hints(kind)
    except NameError as error:
        raise ContractError(
            kind.__name__, f"has an annotation that is not found: {error}"
        ) from None
    if attrs.has(kind):
        return [
            _Field(
                each.alias or each.name, hints.get(each.name, Any), each.default is attrs.NOTHING
            )
            for each in attrs.fields(kind)
            if each.init
        ]
    return [
        _Field(each.name, hints[each.name], _is_bare(each))
        for each in dataclasses.fields(kind)
        if each.init
    ]


def _is_bare(field: dataclasses.Field[Any]) -> bool:
    missing = dataclasses.MISSING
    return field.default is missing and field.default_factory is missing


def schema_of(kind: type) -> dict[str, Any]:
    """
    Say as JSON Schema what an instance of *kind* is made of.

    Raises:
        ContractError: If a field is of a type that JSON does not tell apart.
    """
    describer = _Describer(kind)
    schema = describer.fields_of(kind)
    return {**schema, "$defs": describer.definitions} if describer.definitions else schema


class _Describer:
    """Describes classes, each once."""

    def __init__(self, root: type) -> None:
        self._pointers: dict[type, str] = {root: "#"}
        self.definitions: dict[str, Any] = {}

    def fields_of(self, kind: type) -> dict[str, Any]:
        fields = _fields(kind)
        return {
            "type": "object",
            "properties": {
                each.name: self.describe(each.kind, f"{kind.__name__}.{each.name}")
                for each in fields
            },
            "required": [each.name for each in fields if each.is_required],
            "additionalProperties": False,
        }

    def describe(self, kind: Any, field: str) -> dict[str, Any]:
        """Describe a type; *field* is where it stands, for the error."""
        if kind in _SCALARS:
            return dict(_SCALARS[kind])
        origin, arguments = typing.get_origin(kind), typing.get_args(kind)
        if origin is typing.Literal or _is_enum(kind):
            return {"enum": list(arguments) or [member.value for member in kind]}
        if origin in (typing.Union, types.UnionType):
            return self._union(arguments, field)
        if (origin or kind) in _LISTS:
            return self._list(origin or kind, arguments, field)
        if (origin or kind) in (dict, Mapping):
            return self._mapping(arguments, field)
        if isinstance(kind, type) and is_described(kind):
            return {"$ref": self._pointer(kind)}
        raise ContractError(field, f"got {kind!r:.80}, {_KNOWN}")

    def _union(self, kinds: tuple[Any, ...], field: str) -> dict[str, Any]:
        shapes = [_shape(kind) for kind in kinds]
        for shape in ("object", "array"):
            if shapes.count(shape) > 1:
                problem = f"got a union with more than one {shape}, expected one: they look alike"
                raise ContractError(field, problem)
        return {"anyOf": [self.describe(each, field) for each in kinds]}

    def _list(self, origin: Any, arguments: tuple[Any, ...], field: str) -> dict[str, Any]:
        if origin is tuple and arguments and arguments[-1] is not Ellipsis:
            each = [self.describe(kind, field) for kind in arguments]
            length = len(each)
            return {
                "type": "array",
                "prefixItems": each,
                "items": False,
                "minItems": length,
                "maxItems": length,
            }
        items = {"items": self.describe(arguments[0], field)} if arguments else {}
        return {"type": "array", **items}

    def _mapping(self, arguments: tuple[Any, ...], field: str) -> dict[str, Any]:
        if not arguments:
            return {"type": "object"}
        if arguments[0] is not str:
            raise ContractError(field, f"got keys of {arguments[0]!r:.80}, expected str")
        return {"type": "object", "additionalProperties": self.describe(arguments[1], field)}

    def _pointer(self, kind: type) -> str:
        if kind not in self._pointers:
            name, count = kind.__name__, 1
            while name in self.definitions:
                count += 1
                name = f"{kind.__name__}{count}"
            self._pointers[kind] = f"#/$defs/{name}"
            self.definitions[name] = {}  # its name is taken while its fields are described
            self.definitions[name].update(self.fields_of(kind))
        return self._pointers[kind]


def _is_enum(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, enum.Enum)


def _shape(kind: Any) -> str:
    origin = typing.get_origin(kind) or kind
    if origin in _LISTS:
        return "array"
    is_object = origin in (dict, Mapping) or (isinstance(origin, type) and is_described(origin))
    return "object" if is_object else "scalar"


def make_instance(kind: Any, value: Any) -> Any:
    """
    Make what *kind* says of a value that fits its schema.

    Raises:
        Exception: Whatever the classes themselves raise when they are given such values.
    """
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return _one_of(arguments, value)
    if isinstance(value, list):
        return _sequence(origin or kind, arguments, value)
    if isinstance(kind, type) and is_described(kind):
        kinds = {each.name: each.kind for each in _fields(kind)}
        return kind(**{name: make_instance(kinds[name], each) for name, each in value.items()})
    if isinstance(value, dict):
        item = arguments[1] if arguments else Any
        return {key: make_instance(item, each) for key, each in value.items()}
    return _scalar(kind, value)


def _one_of(kinds: tuple[Any, ...], value: Any) -> Any:
    shape = (
        "array" if isinstance(value, list) else "object" if isinstance(value, dict) else "scalar"
    )
    alike = [kind for kind in kinds if _shape(kind) == shape]
    if shape != "scalar":
        return make_instance(alike[0], value) if alike else value
    for kind in alike:
        if _is_enum(kind) and value in [member.value for member in kind]:
            return kind(value)
    if type(value) in kinds or type(value) not in (int, float):
        return value
    return _scalar(int if int in kinds else float if float in kinds else Any, value)


def _sequence(kind: Any, arguments: tuple[Any, ...], value: list[Any]) -> Any:
    if kind is tuple and arguments and arguments[-1] is not Ellipsis:
        return tuple(make_instance(*pair) for pair in zip(arguments, value, strict=True))
    item = arguments[0] if arguments else Any
    made = [make_instance(item, each) for each in value]
    return tuple(made) if kind is tuple else made


def _scalar(kind: Any, value: Any) -> Any:
    if _is_enum(kind):
        return kind(value)
    makes: dict[Any, Callable[[Any], Any]] = {float: float, int: int}
    return makes[kind](value) if kind in makes else value
