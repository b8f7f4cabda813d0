"""A JSON Schema is checked before anything is done with it: somebody else may have written it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from vlmcore.contracts.json_text import write_json
from vlmcore.errors import ContractError
from vlmcore.limits import DocumentLimits, StructureLimits
from vlmcore.vlm._schema_patterns import require_pattern

__all__ = ["require_schema"]

_LIMITS = StructureLimits()
_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_NO_NAMES = ("$id", "$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveRef", "$vocabulary")
# Where schemas stand in a schema (JSON Schema, draft 2020-12, core 10 and 11).
_ONE = (
    "additionalProperties",
    "propertyNames",
    "items",
    "contains",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contentSchema",
    "not",
    "if",
    "then",
    "else",
)
_LISTED = ("allOf", "anyOf", "oneOf", "prefixItems")
_NAMED = ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions")
# Those of them that look at the same value, not into it.
_AT_ONCE = frozenset(("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"))


def require_schema(schema: dict[str, Any], field: str) -> None:
    """
    Require a JSON Schema, draft 2020-12, that says everything itself and asks for no endless work.

    Whether each keyword has a value of its kind is not looked at here.

    Args:
        schema: Plain values of JSON.
        field: Its name, for the error.

    Raises:
        ContractError: If it refers to something outside, to what is no schema, or to itself without
            end; or if it has a pattern that may search for ever.
        LimitExceededError: If it is larger or deeper than `vlmcore.limits.StructureLimits` allow.
    """
    limits = DocumentLimits(
        max_document_bytes=_LIMITS.max_schema_bytes,
        max_depth=_LIMITS.max_schema_depth,
        max_nodes=_LIMITS.max_schema_nodes,
    )
    write_json(schema, indent=None, limits=limits)
    places = dict(_places(schema))
    for path, each in places.items():
        _require_names(each, f"{field}{path[1:]}")
    draft = schema.get("$schema", _DRAFT)
    if draft not in (_DRAFT, f"{_DRAFT}#"):
        raise ContractError(f"{field}/$schema", f"got {draft!r:.80}, expected {_DRAFT!r}")
    _require_ends(places, field)


def _places(schema: Any, path: str = "#") -> Iterator[tuple[str, Any]]:
    """Yield every schema in a schema, by the pointer that leads there."""
    yield path, schema
    if not isinstance(schema, dict):
        return
    for place, _, inner in _inner(schema, path):
        yield from _places(inner, place)


def _inner(schema: dict[str, Any], path: str) -> Iterator[tuple[str, str, Any]]:
    """Yield the schemas one level below: where, by which keyword, and which."""
    for keyword, value in schema.items():
        place = f"{path}/{_escaped(keyword)}"
        if keyword in _ONE:
            yield place, keyword, value
        elif keyword in _LISTED and isinstance(value, list):
            yield from ((f"{place}/{i}", keyword, each) for i, each in enumerate(value))
        elif keyword in _NAMED and isinstance(value, dict):
            yield from ((f"{place}/{_escaped(n)}", keyword, each) for n, each in value.items())


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _require_names(schema: Any, path: str) -> None:
    """Require what a schema has itself: no names of its own, references inside, patterns."""
    if isinstance(schema, bool):
        return
    if not isinstance(schema, dict):
        raise ContractError(path, f"got {type(schema).__name__}, expected a schema")
    for name in _NO_NAMES:
        if name in schema:
            raise ContractError(f"{path}/{name}", "is not taken: a schema here is one document")
    if "$ref" in schema:
        reference = schema["$ref"]
        if not isinstance(reference, str) or not (reference == "#" or reference[:2] == "#/"):
            problem = f"got {reference!r:.80}, expected '#/...': nothing is fetched"
            raise ContractError(f"{path}/$ref", problem)
    patterns = schema.get("patternProperties")
    for pattern in (schema.get("pattern"), *(patterns if isinstance(patterns, dict) else ())):
        if isinstance(pattern, str):
            require_pattern(pattern, f"{path}/pattern")


def _require_ends(places: dict[str, Any], field: str) -> None:
    """Require that references lead to schemas, and that none comes back to where it started."""
    same = {path: list(_looks_too(path, each, places, field)) for path, each in places.items()}
    done: set[str] = set()
    for start in same:
        trail: dict[str, None] = {}
        todo = [(start, False)]
        while todo:
            path, is_left = todo.pop()
            if is_left:
                del trail[path]
                done.add(path)
            elif path in trail:
                problem = "refers to itself without end, expected a value in between"
                raise ContractError(f"{field}{path[1:]}", problem)
            elif path not in done:
                trail[path] = None
                todo.append((path, True))
                todo.extend((each, False) for each in same[path])


def _looks_too(path: str, schema: Any, places: dict[str, Any], field: str) -> Iterator[str]:
    """Yield the pointers to the schemas that look at the same value as the one at *path*."""
    if not isinstance(schema, dict):
        return
    for place, keyword, _ in _inner(schema, path):
        if keyword in _AT_ONCE:
            yield place
    if "$ref" in schema:
        target = unquote(schema["$ref"])
        if target not in places:
            problem = f"got {target!r:.80}, and there is no schema there"
            raise ContractError(f"{field}{path[1:]}/$ref", problem)
        yield target
