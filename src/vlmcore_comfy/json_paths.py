"""Paths into JSON: ``$.actions[0]['x y']``."""

from __future__ import annotations

import re
from typing import Any

import attrs

from vlmcore.errors import ContractError

__all__ = ["Found", "find"]

_STEP = re.compile(
    r"""
    \.?\[\s*(?P<index>-?[0-9]{1,9})\s*\]
    | \.?\[\s*(?:'(?P<single>(?:[^'\\]|\\.)*)'|"(?P<double>(?:[^"\\]|\\.)*)")\s*\]
    | \.(?P<name>[^.\[\]\s'"]+)
    """,
    re.VERBOSE,
)
_KINDS: tuple[tuple[tuple[type, ...], str], ...] = (
    ((type(None),), "null"),
    ((bool,), "boolean"),
    ((int, float), "number"),
    ((str,), "string"),
    ((list,), "array"),
    ((dict,), "object"),
)


@attrs.frozen
class Found:
    """
    What is at the end of a path.

    Attributes:
        is_there: Whether there is anything.
        value: What; ``None`` if there is nothing, or if it is null.
    """

    is_there: bool
    value: Any = None

    @property
    def kind(self) -> str:
        """What it is in the words of JSON; ``"missing"`` if there is nothing."""
        if not self.is_there:
            return "missing"
        return next(kind for types, kind in _KINDS if isinstance(self.value, types))


def find(value: Any, path: str) -> Found:
    """
    Follow a path into a value.

    Args:
        value: The value, in Python's plain types.
        path: Steps from ``$``, which may be left out: ``.name``, ``['a name']``, and ``[0]`` from
            the start of a list or ``[-1]`` from its end. Blank is the value itself.

    Raises:
        ContractError: If it is no path.

    Example:
        >>> find({"a": [{"b c": 7}]}, "$.a[0]['b c']").value
        7
        >>> find({"a": 1}, "b").is_there
        False
    """
    for step in _steps(path):
        if isinstance(step, int):
            if not isinstance(value, list) or not -len(value) <= step < len(value):
                return Found(is_there=False)
        elif not isinstance(value, dict) or step not in value:
            return Found(is_there=False)
        value = value[step]
    return Found(is_there=True, value=value)


def _steps(path: str) -> list[int | str]:
    rest = path.strip()
    if rest.startswith("$"):
        rest = rest[1:]
    elif rest and not rest.startswith((".", "[")):
        rest = f".{rest}"
    steps: list[int | str] = []
    at = 0
    while at < len(rest):
        found = _STEP.match(rest, at)
        if found is None:
            raise ContractError(
                "path", f"got {path!a:.80}, expected steps as $.name[0]['a name']; no wildcards"
            )
        at = found.end()
        if found["index"] is not None:
            steps.append(int(found["index"]))
        else:
            quoted = found["single"] if found["single"] is not None else found["double"]
            name = found["name"] if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
            steps.append(name)
    return steps
