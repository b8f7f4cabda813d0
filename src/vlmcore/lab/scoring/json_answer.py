"""Scores an answer in JSON by its fields."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import attrs

from vlmcore._arguments import require_switch, shown
from vlmcore._arrays import require_member
from vlmcore._copying import thawed, through_constructor
from vlmcore._json_values import frozen_object
from vlmcore.errors import ContractError
from vlmcore.lab.scoring.normalising import Level, normalised
from vlmcore.lab.scoring.scores import Score, ScoreFlag, listed, look_at
from vlmcore.limits import SuiteLimits, require_at_most
from vlmcore.vlm.outputs import JsonOutput
from vlmcore.vlm.structure import read_answer

__all__ = ["JsonEvaluator"]

_LIMITS = SuiteLimits()
_POINTER = re.compile(r"(?:/(?:[^~/]|~[01])*)+")
_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")
_NOTHING = object()


def _fields(value: Any) -> Any:
    return frozen_object(value, field="expected")


def _schema(value: Any) -> Any:
    return None if value is None else frozen_object(value, field="schema")


@attrs.frozen(kw_only=True)
class JsonEvaluator:
    """
    Scores an answer by how many of the fields of its JSON are what is expected.

    JSON may stand alone, in a fence of Markdown, or between words, but once only. An answer without
    it, or that does not fit the schema, counts nothing. A number is equal to another of its value,
    and never to true or false.

    Attributes:
        expected: What the fields are, by their keys; or by JSON Pointers, which begin with ``/``
            and lead further in, as ``"/boxes/0/label"``. None if only the schema counts.
        schema: JSON Schema, draft 2020-12, that the answer has to fit; ``None`` for any object.
        level: How strictly texts are compared.
        must_be_whole: Whether an answer that is cut counts nothing.

    Raises:
        ContractError: If a field is not as described.
        LimitExceededError: If it is larger than `vlmcore.limits.SuiteLimits` allows.
        MissingDependencyError: If there is a schema, and jsonschema is not installed.

    Source:
        RFC 6901, JavaScript Object Notation (JSON) Pointer.

    Example:
        >>> dog = JsonEvaluator(expected={"name": "Rex", "/legs/0": "left"})
        >>> dog.score('{"name": "Rex", "legs": []}')
        Score(value=0.5, reason="1 of 2 fields; wrong: '/legs/0'", flags=())
    """

    expected: Mapping[str, Any] = attrs.field(converter=_fields, hash=False)
    schema: Mapping[str, Any] | None = attrs.field(default=None, converter=_schema, hash=False)
    level: Level = Level.TRIM
    must_be_whole: bool = True
    _output: JsonOutput = attrs.field(init=False, repr=False, eq=False)

    __reduce__ = through_constructor

    def __attrs_post_init__(self) -> None:
        require_at_most("max_fields", len(self.expected), _LIMITS.max_fields)
        if not self.expected and self.schema is None:
            raise ContractError("expected", "got no fields and no schema, expected either")
        for key in self.expected:
            if key.startswith("/") and not _POINTER.fullmatch(key):
                problem = f"got {shown(key)}, expected a JSON Pointer: ~ is written ~0, and / ~1"
                raise ContractError("expected", problem)
        require_member(Level, level=self.level)
        require_switch(must_be_whole=self.must_be_whole)
        object.__setattr__(self, "_output", JsonOutput(schema=thawed(self.schema)))

    def score(self, text: str, *, finish_reason: str | None = None) -> Score:
        """Score an answer, as `vlmcore.lab.scoring.scores.Evaluator` says."""
        seen = look_at(text, finish_reason, must_be_whole=self.must_be_whole)
        if isinstance(seen, Score):
            return seen
        try:
            value = read_answer(seen.text, self._output)
        except ContractError as error:
            reason = f"is not the JSON that was asked for: {error.problem}"
            return seen.score(0.0, " ".join(reason.split()), ScoreFlag.BROKEN)
        if not self.expected:
            return seen.score(1.0, "is JSON that fits the schema")
        wrong = [
            key
            for key, expected in self.expected.items()
            if not self._is_same(_found(value, key), expected)
        ]
        right, count = len(self.expected) - len(wrong), len(self.expected)
        reason = f"{right} of {count} fields"
        if wrong:
            reason += f"; wrong: {listed(wrong)}"
        return seen.score(right / count, reason)

    def _is_same(self, found: Any, expected: Any) -> bool:
        match expected:
            case str():
                return isinstance(found, str) and self._spelling(found) == self._spelling(expected)
            case None | bool():
                return found is expected
            case int() | float():
                is_number = isinstance(found, (int, float)) and not isinstance(found, bool)
                return is_number and found == expected
            case tuple():
                return (
                    isinstance(found, list)
                    and len(found) == len(expected)
                    and all(map(self._is_same, found, expected))
                )
            case _:
                return (
                    isinstance(found, dict)
                    and found.keys() == expected.keys()
                    and all(self._is_same(found[key], expected[key]) for key in expected)
                )

    def _spelling(self, text: str) -> str:
        return normalised(text, self.level)


def _found(value: Any, key: str) -> Any:
    """Find a field by its key or its JSON Pointer; what is not there is the same as nothing is."""
    if not key.startswith("/"):
        return value.get(key, _NOTHING) if isinstance(value, dict) else _NOTHING
    for part in key[1:].split("/"):
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and _INDEX.fullmatch(name) and int(name) < len(value):
            value = value[int(name)]
        else:
            return _NOTHING
    return value
