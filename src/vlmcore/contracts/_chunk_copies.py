"""Chunks that are like one that was checked, in all but their numbers."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from vlmcore._arrays import immutable, plain_float, readonly_float64, require_finite
from vlmcore.contracts.actions import ActionChunk
from vlmcore.errors import ContractError

__all__ = ["chunk_like"]

_SAME = tuple({field.name for field in attrs.fields(ActionChunk)} - {"values", "observed_at_s"})


def chunk_like(chunk: ActionChunk, values: Any, *, observed_at_s: float) -> ActionChunk:
    """
    Make a chunk of other numbers, with all else of *chunk*, which is not checked again.

    Args:
        chunk: What it is like.
        values: The numbers, of the same shape.
        observed_at_s: When what they answer was seen.

    Raises:
        ContractError: If *values* or *observed_at_s* are not as a chunk describes them.
    """
    if type(values) is np.ndarray and values.dtype == np.float64:  # the rest of it is its shape
        numbers = immutable(values)
    else:
        numbers = readonly_float64(values, field="values", axes="[T, D]")
    if numbers.shape != chunk.values.shape:
        shapes = f"got shape {list(numbers.shape)}, expected {list(chunk.values.shape)}"
        raise ContractError("values", shapes)
    seen_at_s = plain_float(observed_at_s)
    require_finite(observed_at_s=seen_at_s)
    made = object.__new__(ActionChunk)
    put = object.__setattr__  # it is frozen to everybody else
    put(made, "values", numbers)
    put(made, "observed_at_s", seen_at_s)
    for field in _SAME:
        put(made, field, getattr(chunk, field))
    return made
