"""What stands in requests and answers of GR00T, and keys with and without maps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from vlmcore._arrays import Float64Array, UInt8Array, readonly_float64
from vlmcore.contracts.observation import Observation
from vlmcore.errors import ContractError
from vlmcore_robotics.wire.groot_layout import GrootLayout, StateSlice
from vlmcore_robotics.wire.groot_modalities import PolicyModalities

__all__ = ["actions_from", "actions_of", "flattened", "nested", "observation_from"]

_WITH_PREFIX = ("video", "state", "action")


def flattened(request: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Write the keys of modalities without maps; instructions are one list of text then."""
    flat = {}
    for modality, parts in request.items():
        for key, value in parts.items():
            if modality in _WITH_PREFIX:
                flat[f"{modality}.{key}"] = value
            else:
                flat[key] = [texts[0] for texts in value]
    return flat


def nested(flat: Any) -> dict[str, dict[str, Any]]:
    """
    Sort flat keys by their modality; what has none of the prefixes is language.

    Raises:
        ContractError: If it is no map.
    """
    if not isinstance(flat, Mapping):
        raise ContractError("observation", f"got {type(flat).__name__}, expected a map")
    found: dict[str, dict[str, Any]] = {modality: {} for modality in (*_WITH_PREFIX, "language")}
    for key, value in flat.items():
        modality, dot, rest = key.partition(".")
        if dot and modality in _WITH_PREFIX:
            found[modality][rest] = value
        else:
            texts = [[text] for text in value] if isinstance(value, list) else value
            found["language"][key] = texts
    return found


def actions_from(pair: Any, *, is_flat: bool) -> tuple[Mapping[str, Any], Mapping[str, Any] | None]:
    """
    Take an answer apart: the actions by their streams, and what is told beside them.

    Raises:
        ContractError: If it is something else, or a key is there with a prefix and without.
    """
    if not isinstance(pair, list) or len(pair) != 2:
        raise ContractError("answer", f"got {type(pair).__name__}, expected [action, info]")
    actions, info = pair
    if not isinstance(actions, Mapping) or not isinstance(info, (Mapping, type(None))):
        raise ContractError("answer", "got other things, expected maps of actions and of info")
    return _unprefixed(actions, "action") if is_flat else actions, info


def actions_of(
    values: Float64Array, streams: Mapping[str, int], *, is_flat: bool
) -> dict[str, Any]:
    """
    Lay out actions as streams: float32, a batch of one.

    Raises:
        ContractError: If there is a number that float32 cannot hold.
    """
    with np.errstate(over="ignore"):
        narrow = values.astype("<f4")
    if (np.isinf(narrow) & np.isfinite(values)).any():
        raise ContractError("chunk", "got numbers that float32 cannot hold, expected smaller ones")
    actions, start = {}, 0
    for key, width in streams.items():
        actions[f"action.{key}" if is_flat else key] = narrow[np.newaxis, :, start : start + width]
        start += width
    return actions


def observation_from(
    request: Any,
    layout: GrootLayout,
    modalities: PolicyModalities,
    *,
    captured_at_s: float,
    frame_rate_hz: float,
) -> tuple[Observation, Float64Array]:
    """
    Read the modalities of a request, a batch of one. Frames are views of what came.

    Returns:
        The observation, with the newest state, and all states, shape ``[T, S]``.

    Raises:
        ContractError: If a part is missing or not as the policy asks for it.
    """
    if not isinstance(request, Mapping):
        raise ContractError("observation", f"got {type(request).__name__}, expected a map")
    steps = len(modalities.video.delta_indices)
    images = {
        video.camera: _frames(_part(request, "video", video.key), video.key, steps)
        for video in layout.video
    }
    if not layout.state or modalities.state is None:
        raise ContractError(
            "state", "got a policy that is not told the state, expected one that is"
        )
    steps = len(modalities.state.delta_indices)
    ordered = sorted(layout.state, key=lambda part: part.start)
    parts = [_states(_part(request, "state", part.key), part, steps) for part in ordered]
    states = readonly_float64(np.concatenate(parts, axis=1), field="state", axes="[T, S]")
    if layout.language is None:
        raise ContractError("language", "got a policy without an instruction, expected one with")
    observation = Observation(
        instruction=_instruction(_part(request, "language", layout.language), layout.language),
        state=states[-1],
        images=images,
        frame_rate_hz=frame_rate_hz,
        captured_at_s=captured_at_s,
    )
    return observation, states


def _unprefixed(flat: Mapping[str, Any], modality: str) -> dict[str, Any]:
    """Take the prefix of *modality* off the keys that have it, and keep the others."""
    plain = {key.removeprefix(f"{modality}."): value for key, value in flat.items()}
    if len(plain) < len(flat):
        raise ContractError(modality, f"got keys with {modality!r} before them and without")
    return plain


def _part(request: Mapping[str, Any], modality: str, key: str) -> Any:
    parts = request.get(modality)
    if not isinstance(parts, Mapping) or key not in parts:
        raise ContractError(f"{modality}[{key!r}]", "got nothing, expected it in the request")
    return parts[key]


def _frames(value: Any, key: str, steps: int) -> UInt8Array:
    expected = f"expected uint8 of shape [1, {steps}, H, W, 3]"
    if not isinstance(value, np.ndarray):
        raise ContractError(f"video[{key!r}]", f"got {type(value).__name__}, {expected}")
    shape = value.shape
    if value.dtype != np.uint8 or len(shape) != 5 or shape[:2] != (1, steps) or shape[4] != 3:
        raise ContractError(
            f"video[{key!r}]", f"got {value.dtype} of shape {list(shape)}, {expected}"
        )
    frames: UInt8Array = value[0]
    return frames


def _states(value: Any, part: StateSlice, steps: int) -> Any:
    width = part.end - part.start
    expected = f"expected float32 of shape [1, {steps}, {width}]"
    if not isinstance(value, np.ndarray):
        raise ContractError(f"state[{part.key!r}]", f"got {type(value).__name__}, {expected}")
    if value.dtype != np.float32 or value.shape != (1, steps, width):
        raise ContractError(
            f"state[{part.key!r}]", f"got {value.dtype} of shape {list(value.shape)}, {expected}"
        )
    return value[0]


def _instruction(value: Any, key: str) -> str:
    """Read the one text of a batch of one: a list of a list of text."""
    inner = value[0] if isinstance(value, list) and len(value) == 1 else None
    text = inner[0] if isinstance(inner, list) and len(inner) == 1 else None
    if not isinstance(text, str):
        raise ContractError(f"language[{key!r}]", "got something else, expected one text")
    return text
