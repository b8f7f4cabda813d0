"""What an answer is to be: text, a JSON object, or what a schema or a class says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from vlmcore._copying import thawed, through_constructor
from vlmcore._json_values import frozen_object
from vlmcore._optional import optional_dependency
from vlmcore.errors import ContractError
from vlmcore.secrets import redact
from vlmcore.vlm import _schema_classes
from vlmcore.vlm._schema_checks import require_schema

__all__ = ["JsonOutput", "output_of"]

_EXPECTED = "expected 'text', 'json', a JSON Schema, a class, or a JsonOutput"


def _frozen(schema: Any) -> Any:
    return None if schema is None else frozen_object(schema, field="schema")


@attrs.frozen(kw_only=True)
class JsonOutput:
    """
    An answer in JSON, which is held to it: what does not fit is an error that carries the text.

    Attributes:
        schema: JSON Schema, draft 2020-12, that the answer has to fit; ``None`` for any object.
            It may come from anybody: its size and its work are bounded, and it fetches nothing.
        kind: The class that is made of the answer; ``None`` leaves plain values of JSON.
        repair: Whether a wrong answer is sent back once, with what is wrong, to be mended.
        constrained: Whether a model on this machine is kept from writing anything else, token by
            token. A server is asked in its own way in any case.

    Raises:
        ContractError: If the schema is none, refers to something outside, or may ask for endless
            work.
        LimitExceededError: If it is larger than `vlmcore.limits.StructureLimits` allow.
        MissingDependencyError: If there is a schema, and jsonschema is not installed.

    Example:
        >>> dog = {"type": "object", "properties": {"name": {"type": "string"}}}
        >>> JsonOutput(schema=dog).schema["type"]
        'object'
    """

    schema: Mapping[str, Any] | None = attrs.field(default=None, converter=_frozen, hash=False)
    kind: type | None = None
    repair: bool = False
    constrained: bool = True

    __reduce__ = through_constructor

    def __attrs_post_init__(self) -> None:
        for field in ("repair", "constrained"):
            if not isinstance(getattr(self, field), bool):
                problem = f"got {getattr(self, field)!r:.80}, expected True or False"
                raise ContractError(field, problem)
        if self.kind is not None and not isinstance(self.kind, type):
            raise ContractError("kind", f"got {self.kind!r:.80}, expected a class")
        if self.kind is not None and self.schema is None:
            problem = "got None for a class, expected its schema: JsonOutput.of(kind) makes both"
            raise ContractError("schema", problem)
        schema = self.plain_schema()
        if schema is None:
            return
        require_schema(schema, "schema")
        with optional_dependency("structure", "jsonschema"):
            from vlmcore.vlm import _jsonschema  # noqa: PLC0415 - the door
        _jsonschema.require_valid_schema(schema, "schema")

    @classmethod
    def of(cls, kind: type, *, repair: bool = False, constrained: bool = True) -> JsonOutput:
        """
        Ask for what makes an instance of a class.

        Args:
            kind: A class of attrs, a dataclass, or a model of pydantic.
            repair: As of the class.
            constrained: As of the class.

        Raises:
            ContractError: If it is no such class, or has a field that JSON does not tell apart.

        Example:
            >>> import attrs
            >>> @attrs.frozen
            ... class Dog:
            ...     name: str
            ...     legs: int = 4
            >>> JsonOutput.of(Dog).schema["required"]
            ('name',)
        """
        return cls(schema=_schema_of(kind), kind=kind, repair=repair, constrained=constrained)

    def plain_schema(self) -> dict[str, Any] | None:
        """Return a copy of the schema as plain values of JSON."""
        plain: dict[str, Any] | None = thawed(self.schema)
        return plain


def _schema_of(kind: Any) -> Any:
    if not isinstance(kind, type):
        raise ContractError("output", f"got {type(kind).__name__}, {_EXPECTED}")
    if hasattr(kind, "model_json_schema") and hasattr(kind, "model_validate"):
        return _pydantic_schema(kind)
    if not _schema_classes.is_described(kind):
        problem = f"got {kind.__name__}, expected a class of attrs, a dataclass or a pydantic model"
        raise ContractError("output", problem)
    return _schema_classes.schema_of(kind)


def _pydantic_schema(kind: Any) -> Any:
    """Ask a model of pydantic, which is not imported here."""
    try:
        return kind.model_json_schema()
    except Exception as error:
        why = redact(str(error), max_characters=200)
        raise ContractError("output", f"{kind.__name__} has no JSON Schema: {why}") from error


def output_of(value: Any) -> JsonOutput | None:
    """
    Take what a caller says of the answer.

    Args:
        value: ``None`` or ``"text"`` for text, ``"json"`` for any JSON object, a JSON Schema, a
            class, or a `JsonOutput`.

    Raises:
        ContractError: If it is anything else, or the schema or the class does not do.
    """
    if value is None or isinstance(value, JsonOutput):
        return value
    if isinstance(value, str) and value in ("text", "json"):
        return None if value == "text" else JsonOutput()
    if isinstance(value, Mapping):
        return JsonOutput(schema=value)
    if isinstance(value, type):
        return JsonOutput.of(value)
    raise ContractError("output", f"got {value!r:.80}, {_EXPECTED}")
