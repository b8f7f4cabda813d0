"""The door to jsonschema: what is wrong with a schema, and with a value; in bounded time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from fractions import Fraction
from itertools import islice
from typing import Any

import jsonschema
from jsonschema.validators import Draft202012Validator, extend

from vlmcore.errors import ContractError, LimitExceededError
from vlmcore.limits import StructureLimits
from vlmcore.vlm._schema_patterns import compiled, pattern_steps

__all__ = ["faults_of", "require_valid_schema"]

_LIMITS = StructureLimits()
_SHOWN_CHARACTERS = 200


class _Budget:
    """The steps that one validation may take yet."""

    def __init__(self) -> None:
        self.keywords = 0
        self.patterns = 0

    def spend(self, keyword: str, value: Any, instance: Any) -> None:
        """Pay for applying a keyword, before it is applied."""
        self.keywords += 1
        if keyword == "uniqueItems" and isinstance(instance, list):
            self.keywords += len(instance) ** 2 // 2
        elif keyword in ("enum", "required"):
            self.keywords += len(value)
        elif keyword == "pattern" and isinstance(instance, str):
            self.patterns += pattern_steps(value, len(instance))
        elif keyword == "patternProperties" and isinstance(instance, dict):
            self.patterns += sum(pattern_steps(p, len(key)) for p in value for key in instance)
        self._require("max_validation_steps", self.keywords, _LIMITS.max_validation_steps)
        self._require("max_pattern_steps", self.patterns, _LIMITS.max_pattern_steps)

    @staticmethod
    def _require(limit: str, spent: int, most: int) -> None:
        if spent > most:
            raise LimitExceededError(limit, spent, most)


_budget: ContextVar[_Budget] = ContextVar("budget")
_Keyword = Callable[..., Iterator[Any] | None]


def _counted(keyword: str, apply: _Keyword) -> _Keyword:
    def applied(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        _budget.get().spend(keyword, value, instance)
        yield from apply(validator, value, instance, schema) or ()

    return applied


def _pattern(_: Any, pattern: str, instance: Any, __: Any) -> Iterator[Any]:
    if isinstance(instance, str) and not compiled(pattern).search(instance):
        yield jsonschema.ValidationError(f"{instance!r} does not match {pattern!r}")


def _multiple_of(_: Any, unit: float, instance: Any, __: Any) -> Iterator[Any]:
    """Divide as the numbers are written: 0.07 is seven times 0.01, which their floats are not."""
    if isinstance(instance, bool) or not isinstance(instance, (int, float)):
        return
    if Fraction(str(instance)) % Fraction(str(unit)):
        yield jsonschema.ValidationError(f"{instance!r} is not a multiple of {unit!r}")


def _pattern_properties(
    validator: Any, schemas: Mapping[str, Any], instance: Any, _: Any
) -> Iterator[Any]:
    """Apply each schema to the properties whose names match, as `compiled` reads patterns."""
    if isinstance(instance, dict):
        for pattern, schema in schemas.items():
            for name in filter(compiled(pattern).search, instance):
                yield from validator.descend(instance[name], schema, path=name, schema_path=pattern)


def _additional_properties(
    validator: Any, allowed: Any, instance: Any, schema: Mapping[str, Any]
) -> Iterator[Any]:
    """Apply the keyword to what no other names, as `compiled` reads patterns."""
    if not isinstance(instance, dict):
        return
    patterns = [compiled(pattern) for pattern in schema.get("patternProperties", ())]
    others = [
        name
        for name in instance
        if name not in schema.get("properties", ()) and not any(p.search(name) for p in patterns)
    ]
    if isinstance(allowed, dict):
        for name in others:
            yield from validator.descend(instance[name], allowed, path=name)
    elif not allowed and others:
        names = ", ".join(map(repr, others))
        verb = "was" if len(others) == 1 else "were"
        yield jsonschema.ValidationError(
            f"Additional properties are not allowed ({names} {verb} unexpected)"
        )


_OURS: dict[str, _Keyword] = {
    "additionalProperties": _additional_properties,
    "multipleOf": _multiple_of,
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
}
_Validator: Any = extend(
    Draft202012Validator,
    {
        name: _counted(name, apply)
        for name, apply in {**Draft202012Validator.VALIDATORS, **_OURS}.items()
    },
)


def require_valid_schema(schema: dict[str, Any], field: str) -> None:
    """
    Require that each keyword of a schema has a value of its kind.

    Raises:
        ContractError: If one has not.
    """
    try:
        Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError as error:
        place = f"{field}{error.json_path[1:]}"
        raise ContractError(place, f"is no schema: {error.message:.{_SHOWN_CHARACTERS}}") from None


def faults_of(schema: dict[str, Any], value: Any) -> tuple[tuple[str, str], ...]:
    """
    List what is wrong with *value*: paths, as ``"$.boxes[3]"``, and problems.

    Raises:
        LimitExceededError: If it takes more steps than `vlmcore.limits.StructureLimits` allow.
    """
    token = _budget.set(_Budget())
    try:
        found = list(islice(_Validator(schema).iter_errors(value), _LIMITS.max_faults))
    except RecursionError:
        problem = "refers to itself more often than can be followed, expected less"
        raise ContractError("schema", problem) from None
    finally:
        _budget.reset(token)
    return tuple((each.json_path, f"{each.message:.{_SHOWN_CHARACTERS}}") for each in found)
