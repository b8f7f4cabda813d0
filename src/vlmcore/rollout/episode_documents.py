"""
The lines of a recorded episode as documents, both ways.

Reading is strict: a line is taken as a whole or refused with all its faults, each with its place.
What is written is read back exactly; `vlmcore.rollout.episode_schemas` says what there is.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import attrs
import numpy as np

from vlmcore._copying import thawed
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.documents import (
    action_chunk_from_document,
    action_chunk_to_document,
    embodiment_from_document,
    embodiment_to_document,
    observation_summary_from_document,
    observation_summary_to_document,
)
from vlmcore.contracts.faults import Faults
from vlmcore.contracts.shapes import path_of
from vlmcore.errors import ContractError, DocumentError
from vlmcore.limits import EpisodeLimits, require_at_most
from vlmcore.rollout.episode_calls import EpisodeFailure, PolicyCall
from vlmcore.rollout.episode_frames import EncodedFrame, FrameEncoding, require_frame_bytes
from vlmcore.rollout.episode_schemas import EPISODE, EPISODE_FAILURE, EPISODE_STEP, NOT_FINITE
from vlmcore.rollout.episodes import EpisodeHeader, EpisodeStep
from vlmcore.safety.documents import safety_report_from_document, safety_report_to_document

__all__ = [
    "episode_failure_from_document",
    "episode_failure_to_document",
    "episode_header_from_document",
    "episode_header_to_document",
    "episode_step_from_document",
    "episode_step_to_document",
]

_Made = TypeVar("_Made")


def episode_header_to_document(header: EpisodeHeader) -> dict[str, Any]:
    """Write the first line of an episode, in plain values of JSON."""
    said = {
        "made_by": header.made_by,
        "made_at": header.made_at,
        "metadata": thawed(header.metadata),
    }
    return {
        **EPISODE.header(),
        "embodiment": embodiment_to_document(header.embodiment),
        **{key: value for key, value in said.items() if value},
    }


def episode_header_from_document(value: Any) -> EpisodeHeader:
    """
    Read the first line of an episode.

    Raises:
        DocumentError: If there are faults; all of them are listed.
    """
    faults = Faults(EPISODE.name)
    data = EPISODE.read(value, faults)
    made = {"embodiment": _nested("embodiment", embodiment_from_document, data, faults)}
    said = {key: data[key] for key in ("made_by", "made_at", "metadata") if key in data}
    return faults.finish(
        lambda: EpisodeHeader(**made, **said), **{key: f"$.{key}" for key in EPISODE.keys}
    )


def episode_step_to_document(step: EpisodeStep, index: int) -> dict[str, Any]:
    """
    Write a step of an episode, in plain values of JSON.

    Args:
        step: The step.
        index: Which step of the episode it is, from 0.
    """
    last_command, vetted = step.last_command, step.vetted
    said = {
        **EPISODE_STEP.header(),
        "step": index,
        "at_s": step.at_s,
        "observation": observation_summary_to_document(step.observation),
        "proposed": _proposed_to_document(step.chunk),
        "last_command": None if last_command is None else last_command.tolist(),
        "report": safety_report_to_document(step.report),
        "vetted": None if vetted is None else vetted.tolist(),
        "executed_steps": step.executed_steps,
    }
    frames = {
        camera: [
            {
                "encoding": frame.encoding.value,
                "data": base64.b64encode(frame.data).decode("ascii"),
                "frame_index": frame.frame_index,
            }
            for frame in frames
        ]
        for camera, frames in step.frames.items()
    }
    more = {"position": dict(step.position), "frames": frames, "call": _call_to(step.call)}
    return said | {key: value for key, value in more.items() if value}


def episode_step_from_document(
    value: Any, index: int, *, limits: EpisodeLimits | None = None
) -> EpisodeStep:
    """
    Read a step of an episode.

    Args:
        value: The document.
        index: Which step of the episode it must be, from 0.
        limits: How large its frames may be.

    Raises:
        DocumentError: If there are faults; all of them are listed.
    """
    faults = Faults(EPISODE_STEP.name)
    data = EPISODE_STEP.read(value, faults)
    if data.get("step", index) != index:
        faults.add("$.step", f"got {data['step']}, expected {index}: the steps in their order")
    made = {
        "observation": _nested("observation", observation_summary_from_document, data, faults),
        "chunk": _nested("proposed", _proposed_from_document, data, faults),
        "report": _nested("report", safety_report_from_document, data, faults),
        "position": data.get("position", {}),
        "frames": _frames_from(data.get("frames", {}), limits or EpisodeLimits(), faults),
        "call": _call_from(data, faults),
    }
    same = ("at_s", "last_command", "vetted", "executed_steps")
    fields = {key: f"$.{key}" for key in (*same, "report", "position", "frames")}
    return faults.finish(lambda: EpisodeStep(**made, **{key: data[key] for key in same}), **fields)


def episode_failure_to_document(failure: EpisodeFailure, index: int) -> dict[str, Any]:
    """
    Write a call that failed, in plain values of JSON.

    Args:
        failure: What failed.
        index: How many steps of the episode stand before it.
    """
    said = {
        **EPISODE_FAILURE.header(),
        "step": index,
        "at_s": failure.at_s,
        "observation": observation_summary_to_document(failure.observation),
        "error": failure.error,
    }
    return said if failure.call is None else said | {"call": _call_to(failure.call)}


def episode_failure_from_document(value: Any, index: int) -> EpisodeFailure:
    """
    Read a call that failed.

    Args:
        value: The document.
        index: How many steps of the episode stand before it.

    Raises:
        DocumentError: If there are faults; all of them are listed.
    """
    faults = Faults(EPISODE_FAILURE.name)
    data = EPISODE_FAILURE.read(value, faults)
    if data.get("step", index) != index:
        faults.add("$.step", f"got {data['step']}, expected {index}: the steps before it")
    made = {
        "observation": _nested("observation", observation_summary_from_document, data, faults),
        "call": _call_from(data, faults),
    }
    return faults.finish(
        lambda: EpisodeFailure(at_s=data["at_s"], error=data["error"], **made),
        at_s="$.at_s",
        error="$.error",
    )


def _call_to(call: PolicyCall | None) -> dict[str, Any] | None:
    return None if call is None else {"digest": call.digest, "took_s": call.took_s}


def _call_from(data: Mapping[str, Any], faults: Faults) -> PolicyCall | None:
    said, call = data.get("call"), None
    if said is not None:
        with faults.at("$.call", digest="$.call.digest", took_s="$.call.took_s"):
            call = PolicyCall(digest=said["digest"], took_s=said["took_s"])
    return call


def _nested(key: str, read: Callable[[Any], _Made], data: Mapping[str, Any], faults: Faults) -> Any:
    """Read the document under *key*; its faults become faults of the line."""
    if key in data:
        try:
            return read(data[key])
        except DocumentError as error:
            for path, problem in error.faults:
                faults.add(f"$.{key}{path[1:]}", problem)
    return None


def _proposed_to_document(chunk: ActionChunk) -> dict[str, Any]:
    """Write a chunk that may hold what JSON cannot."""
    finite = np.isfinite(chunk.values)
    if finite.all():
        return action_chunk_to_document(chunk)
    zeros = attrs.evolve(chunk, values=np.where(finite, chunk.values, 0.0))
    document = action_chunk_to_document(zeros)
    for step, dim in np.argwhere(~finite).tolist():
        number = chunk.values[step, dim]
        text = "NaN" if np.isnan(number) else "Infinity" if number > 0 else "-Infinity"
        document["actions"][step][dim] = text
    return document


def _proposed_from_document(value: Any) -> ActionChunk:
    """Read a chunk that may hold NaN and infinity as texts."""
    rows = value.get("actions")
    if not isinstance(rows, list):
        return action_chunk_from_document(value)
    found: dict[tuple[int, int], float] = {}
    zeros = list(rows)
    for i, row in enumerate(rows):
        if isinstance(row, list) and str in set(map(type, row)):
            said = {j: NOT_FINITE[each] for j, each in enumerate(row) if _is_text(each)}
            zeros[i] = [0.0 if j in said else each for j, each in enumerate(row)]
            found |= {(i, j): number for j, number in said.items()}
    chunk = action_chunk_from_document({**value, "actions": zeros})
    if not found:
        return chunk
    values = chunk.values.copy()
    for place, number in found.items():
        values[place] = number
    return attrs.evolve(chunk, values=values)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value in NOT_FINITE


def _frames_from(
    said: Mapping[str, Any], limits: EpisodeLimits, faults: Faults
) -> dict[str, tuple[EncodedFrame, ...]]:
    """Decode the frames from base64; each size is known before memory is spent."""
    frames: dict[str, tuple[EncodedFrame, ...]] = {}
    for camera, each in said.items():
        path = path_of("$.frames", camera)
        found = []
        for i, frame in enumerate(each):
            at = f"{path}[{i}]"
            with faults.at(at, data=f"{at}.data", frame_index=f"{at}.frame_index"):
                found.append(_frame_from(frame, limits))
        frames[camera] = tuple(found)
    with faults.at("$.frames"):
        require_frame_bytes(frames, limits=limits)
    return frames


def _frame_from(said: Mapping[str, Any], limits: EpisodeLimits) -> EncodedFrame:
    text = said["data"]
    require_at_most("max_frame_bytes", len(text) * 3 // 4 - 2, limits.max_frame_bytes)
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ContractError("data", f"got what is not base64: {error}") from None
    return EncodedFrame(
        encoding=FrameEncoding(said["encoding"]), data=data, frame_index=said["frame_index"]
    )
