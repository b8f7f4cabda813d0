"""What a policy says beside its actions, as JSON values; what JSON cannot hold is described."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from vlmcore._json_values import JSON_INTEGERS
from vlmcore.limits import DocumentLimits
from vlmcore.secrets import last_words

__all__ = ["described", "words_of"]

_DEEPEST = 8
_WIDEST = 256
_VALUES = 2000
_LONGEST = DocumentLimits().max_error_characters


def described(notes: Mapping[str, Any]) -> dict[str, Any]:
    """
    Turn notes into JSON values.

    Timings and the like are no actions: that one of them is NaN or an array is no reason to refuse
    what the policy proposes. Such values, and what is too deep or too long, are told in words.
    """
    writer = _Writer()
    return {_clean(str(key)): writer.value(each, 1) for key, each in notes.items()}


def words_of(error: Any) -> str:
    """Cut the words of an error to the last of a traceback, a length and what can be shown."""
    text = error if isinstance(error, str) else str(described({"": error})[""])
    cut = last_words(text)[:_LONGEST]
    return "".join(each if each.isprintable() or each == "\n" else " " for each in cut).strip()


class _Writer:
    """Writes values until there are too many; what contains itself ends there, too."""

    def __init__(self) -> None:
        self.left = _VALUES

    def value(self, value: Any, depth: int) -> Any:
        self.left -= 1
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            return _clean(value)
        if isinstance(value, (int, float)):
            return _number(value)
        if isinstance(value, (Mapping, list, tuple)) and depth <= _DEEPEST and self.left > 0:
            return self._inner(value, depth)
        return _told(value)

    def _inner(self, value: Any, depth: int) -> Any:
        if len(value) > _WIDEST:
            return _told(value)
        if isinstance(value, Mapping):
            return {_clean(str(key)): self.value(each, depth + 1) for key, each in value.items()}
        return [self.value(each, depth + 1) for each in value]


def _number(value: float) -> float | str:
    if isinstance(value, int):
        return int(value) if int(value) in JSON_INTEGERS else "a number of more than 64 bits"
    return float(value) if math.isfinite(value) else str(float(value))


def _told(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype} array of shape {list(value.shape)}"
    if isinstance(value, (Mapping, list, tuple, bytes)):
        return f"{type(value).__name__} of {len(value)}"
    return type(value).__name__


def _clean(text: str) -> str:
    return text[:_LONGEST].encode("utf-8", "replace").decode()
