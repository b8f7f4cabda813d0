"""Action chunks and single steps as documents."""

from __future__ import annotations

from typing import Any

import numpy as np

from vlmcore._arrays import require_names
from vlmcore._copying import thawed
from vlmcore._json_values import frozen_object
from vlmcore.contracts.actions import ActionChunk, ActionStep, Stream
from vlmcore.contracts.faults import Faults
from vlmcore.contracts.schemas import ACTION_CHUNK, ACTION_STEP
from vlmcore.errors import ContractError
from vlmcore.limits import ContractLimits

__all__ = [
    "action_chunk_from_document",
    "action_chunk_to_document",
    "action_step_from_document",
    "action_step_to_document",
]

_LIMITS = ContractLimits()


def action_chunk_to_document(chunk: ActionChunk) -> dict[str, Any]:
    """
    Write *chunk* as a document, in plain values of JSON.

    Raises:
        ContractError: If there is NaN or infinity in it, which JSON does not know.
    """
    broken = np.argwhere(~np.isfinite(chunk.values))
    if len(broken):
        step, dim = map(int, broken[0])
        raise ContractError(
            f"values[{step}][{dim}]",
            f"got {chunk.values[step, dim]} for {chunk.names[dim]!r} ({len(broken)} of "
            f"{chunk.values.size} values are not finite), which JSON cannot hold: "
            "run the safety gate first",
        )
    return {
        **ACTION_CHUNK.header(),
        "source": chunk.source,
        "horizon": chunk.horizon,
        "action_dim": len(chunk.names),
        "action_names": list(chunk.names),
        "streams": [
            {"name": stream.name, "start": stream.start, "end": stream.end}
            for stream in chunk.streams
        ],
        "metadata": thawed(chunk.metadata),
        "actions": chunk.values.tolist(),
        "observed_at_s": chunk.observed_at_s,
    }


def action_chunk_from_document(value: Any, *, observed_at_s: float | None = None) -> ActionChunk:
    """
    Read a chunk from a document, in plain values of JSON.

    Args:
        value: The document.
        observed_at_s: When the policy saw what it acts on, on the caller's own monotonic clock.
            Documents of old do not say; that of another machine or another day is of another clock.

    Raises:
        DocumentError: If there are faults; all of them are listed.
    """
    faults = Faults(ACTION_CHUNK.name)
    data = ACTION_CHUNK.read(value, faults)
    _check_sizes(data, faults)
    streams = []
    for i, said in enumerate(data.get("streams", ())):
        path = f"$.streams[{i}]"
        with faults.at(path, name=f"{path}.name", start=f"{path}.start", end=f"{path}.end"):
            streams.append(Stream(**said))
    with faults.at("$.metadata", metadata="$.metadata"):
        frozen_object(data.get("metadata", {}), field="metadata")
    observed = data.get("observed_at_s") if observed_at_s is None else observed_at_s
    if observed is None and "observed_at_s" not in value:
        faults.add("$.observed_at_s", "is missing: say how old it is with observed_at_s=")
    return faults.finish(
        lambda: ActionChunk(
            values=data["actions"],
            names=data["action_names"],
            source=data["source"],
            observed_at_s=observed,
            streams=tuple(streams),
            metadata=data.get("metadata", {}),
        ),
        **{key: f"$.{key}" for key in ("source", "streams", "observed_at_s")},
    )


def _check_sizes(data: dict[str, Any], faults: Faults) -> None:
    if "actions" in data:
        steps = len(data["actions"])
        if data.get("horizon", steps) != steps:
            faults.add("$.horizon", f"got {data['horizon']}, expected that of actions, {steps}")
    if "action_names" not in data:
        return
    names = tuple(data["action_names"])
    with faults.at("$.action_names", names="$.action_names"):
        longest = _LIMITS.max_name_characters
        require_names("names", names, max_count=len(names), max_characters=longest)
    if data.get("action_dim", len(names)) != len(names):
        faults.add("$.action_dim", f"got {data['action_dim']}, expected one a name, {len(names)}")
    for i, row in enumerate(data.get("actions", ())):
        if len(row) != len(names):
            faults.add(f"$.actions[{i}]", f"got {len(row)} numbers, expected {len(names)}")


def action_step_to_document(step: ActionStep) -> dict[str, Any]:
    """Write one step as a document, in plain values of JSON."""
    return {
        **ACTION_STEP.header(),
        "source": step.source,
        "step_index": step.step_index,
        "action": dict(step.action),
    }


def action_step_from_document(value: Any) -> ActionStep:
    """
    Read one step from a document, in plain values of JSON.

    Raises:
        DocumentError: If there are faults; all of them are listed.
    """
    data = ACTION_STEP.check(value)
    return Faults(ACTION_STEP.name).finish(
        lambda: ActionStep(
            source=data["source"], step_index=data["step_index"], action=data["action"]
        ),
        source="$.source",
        action="$.action",
    )
