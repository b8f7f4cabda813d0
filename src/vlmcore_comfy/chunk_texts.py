"""Chunks of actions between nodes: read from text, named, cut."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np

from vlmcore._arguments import shown
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.documents import action_chunk_from_document
from vlmcore.contracts.responses import NEVER_STREAMS, chunk_from_response
from vlmcore.errors import ContractError
from vlmcore_comfy.widgets import value_in

__all__ = ["chunk_from_text", "first_steps", "named_as", "require_chunk"]

_SOURCE = "JSON"


def chunk_from_text(name: str, text: str, *, now_s: float) -> ActionChunk:
    """
    Read a chunk of actions.

    It is a document of actions, numbers under ``actions`` or ``action``, bare rows, named streams,
    or a pair of one of these and notes. Numbers without names are called ``action_0`` and so on.

    Args:
        name: The widget that it is in, for errors.
        text: The JSON.
        now_s: When it counts as observed, on the monotonic clock.

    Raises:
        ContractError: If it is none of these.
        LimitExceededError: If it is too large.
    """
    value = value_in(name, text)
    if value is None:
        raise ContractError(name, "is empty, expected rows of numbers or a document of actions")
    body = value[0] if _is_pair(value) else value
    if isinstance(body, Mapping) and ("schema" in body or "action_names" in body):
        known = {"source": _SOURCE, **body}
        return action_chunk_from_document(known, observed_at_s=now_s)
    streams: dict[str, int] | None = None
    if isinstance(body, Mapping) and not {"actions", "action"} & set(body):
        streams = {
            key: _width(f"{name}.{key}", rows)
            for key, rows in body.items()
            if key not in NEVER_STREAMS and isinstance(rows, list)
        }
        names = [f"{key}_{index}" for key, width in streams.items() for index in range(width)]
    else:
        rows = body.get("actions", body.get("action")) if isinstance(body, Mapping) else body
        names = _default_names(_width(name, rows))
    if not names:
        raise ContractError(name, "holds no numbers, expected rows of them or named streams")
    return chunk_from_response(
        value, names=tuple(names), source=_SOURCE, observed_at_s=now_s, streams=streams
    )


def named_as(chunk: ActionChunk, names: tuple[str, ...]) -> ActionChunk:
    """Give a chunk whose numbers came without names those of the robot, where it has as many."""
    width = len(chunk.names)
    if width == len(names) and list(chunk.names) == _default_names(width):
        return attrs.evolve(chunk, names=names)
    return chunk


def first_steps(chunk: ActionChunk, count: int) -> ActionChunk:
    """Give the first *count* steps of a chunk, all if it has no more."""
    return chunk if chunk.horizon <= count else attrs.evolve(chunk, values=chunk.values[:count])


def require_chunk(name: str, actions: Any) -> ActionChunk:
    """
    Take what came through an actions socket.

    Raises:
        ContractError: If it is no chunk of actions.
    """
    if not isinstance(actions, ActionChunk):
        raise ContractError(name, f"got {shown(actions)}, expected a chunk of actions")
    return actions


def _default_names(width: int) -> list[str]:
    return [f"action_{index}" for index in range(width)]


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and isinstance(value[1], Mapping)


def _width(name: str, rows: Any) -> int:
    """Say how many numbers a row has; a row alone is one step."""
    try:
        shape = np.asarray(rows, dtype=np.float64).shape
    except (TypeError, ValueError):
        shape = ()
    if not 1 <= len(shape) <= 3 or 0 in shape:
        raise ContractError(
            name, "expected numbers, [D] or [H, D]: rows of one length, one for each step"
        )
    return int(shape[-1])
