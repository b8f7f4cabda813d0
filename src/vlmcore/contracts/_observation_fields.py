"""What the fields of an observation and of its summary must be."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from vlmcore._arguments import require_characters, shown
from vlmcore._arrays import (
    Float64Array,
    UInt8Array,
    immutable,
    readonly_float64,
    readonly_frames,
    readonly_image,
    require_names,
    require_text,
)
from vlmcore._copying import by_value
from vlmcore.errors import ContractError
from vlmcore.limits import ContractLimits, require_at_most

__all__ = [
    "check_cameras",
    "check_history",
    "check_instruction",
    "pixels_by_value",
    "read_images",
    "read_state",
]

_LIMITS = ContractLimits()


def read_state(value: Any) -> Float64Array:
    """Read a state, shape ``[S]``: finite numbers, not too many."""
    state = readonly_float64(value, field="state", axes="[S]")
    if not 1 <= len(state) <= _LIMITS.max_state:
        raise ContractError("state", f"got {len(state)} numbers, expected 1 to {_LIMITS.max_state}")
    broken = np.flatnonzero(~np.isfinite(state))
    if len(broken):
        first = int(broken[0])
        raise ContractError(
            f"state[{first}]",
            f"got {state[first]} ({len(broken)} of {len(state)} are not finite), "
            "expected finite numbers",
        )
    return state


def read_images(value: Any) -> Mapping[str, UInt8Array]:
    """Read the frames of each camera by its name, and copy each once."""
    if not isinstance(value, Mapping):
        raise ContractError(
            "images", f"got {type(value).__name__}, expected the frames of each camera by its name"
        )
    if len(value) > _LIMITS.max_cameras:  # before memory is spent on them
        require_at_most("max_cameras", len(value), _LIMITS.max_cameras)
    return MappingProxyType({name: _frames(name, frames) for name, frames in value.items()})


def _frames(name: Any, value: Any) -> UInt8Array:
    field = f"images[{shown(name)}]"
    if isinstance(value, np.ndarray) and value.ndim == 3:
        frames = readonly_image(value, field=field)[np.newaxis]
    else:
        frames = readonly_frames(value, field=field)
    require_at_most("max_frames", len(frames), _LIMITS.max_frames)
    pixels = frames.shape[1] * frames.shape[2]
    require_at_most("max_frame_pixels", pixels, _LIMITS.max_frame_pixels)
    return immutable(frames)


def pixels_by_value(images: Mapping[str, UInt8Array]) -> Any:
    """Stand for images where observations are compared; the order of the cameras counts."""
    return [(name, by_value(frames)) for name, frames in images.items()]


def check_instruction(instruction: Any) -> None:
    """Require a task in words, not too long, that can be written down."""
    require_text(instruction=instruction)
    require_at_most("max_task_characters", len(instruction), _LIMITS.max_task_characters)
    require_characters("instruction", instruction)


def check_cameras(field: str, names: tuple[Any, ...]) -> None:
    """Require the names of 1 to 16 cameras."""
    require_names(
        field,
        names,
        max_count=_LIMITS.max_cameras,
        max_characters=_LIMITS.max_name_characters,
    )


def check_history(field: str, frames: Mapping[str, int]) -> None:
    """Require as many frames of each camera, or one."""
    history = max(frames.values())
    wrong = {name: count for name, count in frames.items() if count not in (1, history)}
    if wrong:
        raise ContractError(
            field,
            f"got {wrong} frames beside {history} of others, expected as many of each, or 1",
        )
