"""A chunk that came, as a table for people and as JSON values for programs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.embodiment import ActionSpace
from vlmcore.policy.interface import PolicyInfo
from vlmcore_robotics.wire.policy_info import metadata_from_info

__all__ = ["chunk_document", "chunk_lines", "durations", "info_document"]


def chunk_lines(chunk: ActionChunk, space: ActionSpace) -> Iterator[str]:
    """Write one line for each dimension: where it starts and ends, and how far it goes."""
    width = max(map(len, ("", *chunk.names)))
    yield f"  {'':{width}}  {'first':>10}  {'last':>10}  {'lowest':>10}  {'highest':>10}"
    units = dict(zip(space.names, (dim.unit for dim in space.dims), strict=True))
    for name, values in zip(chunk.names, chunk.values.T, strict=True):
        numbers = (values[0], values[-1], values.min(), values.max())
        cells = "  ".join(f"{number:10.4g}" for number in numbers)
        yield f"  {name:{width}}  {cells}  {units.get(name, '')}".rstrip()


def chunk_document(chunk: ActionChunk) -> dict[str, Any]:
    """Write a chunk as JSON values; a number that is not finite is a text, as in episodes."""
    return {
        "source": chunk.source,
        "action_names": list(chunk.names),
        "actions": [[_json(number) for number in row] for row in chunk.values.tolist()],
    }


def _json(number: float) -> float | str:
    if math.isfinite(number):
        return number
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"


def info_document(info: PolicyInfo) -> dict[str, Any]:
    """Write what a policy says about itself."""
    said: dict[str, Any] = metadata_from_info(info)["policy_info"]
    return said


def durations(took_s: Sequence[float]) -> dict[str, float]:
    """Sum up how long calls took, in milliseconds."""
    ordered = sorted(1000 * each for each in took_s)
    middle = len(ordered) // 2
    median = ordered[middle] if len(ordered) % 2 else sum(ordered[middle - 1 : middle + 1]) / 2
    return {"fastest_ms": ordered[0], "median_ms": median, "slowest_ms": ordered[-1]}
