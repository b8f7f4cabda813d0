"""What of an observation a LeRobot policy is fed, under its keys and in its order."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from vlmcore._arrays import Float64Array, UInt8Array
from vlmcore.contracts.observation import Observation
from vlmcore.errors import ContractError
from vlmcore_robotics.adapters._lerobot_fitting import Fitting, FrameSize
from vlmcore_robotics.wire.resizing import resize_with_pad

__all__ = ["Seen", "seen_from"]


@attrs.frozen(kw_only=True, eq=False)
class Seen:
    """
    What a policy is fed of one observation.

    Attributes:
        task: The instruction.
        state: Its numbers in the order of the policy, ``[S]``; ``None`` if it is fed none.
        frames: One frame for each key of its features, uint8 RGB ``[H, W, 3]``.
    """

    task: str
    state: Float64Array | None
    frames: Mapping[str, UInt8Array]


def seen_from(observation: Observation, fitting: Fitting) -> Seen:
    """
    Take the newest frame of each camera, and the state.

    Raises:
        ContractError: If cameras, sizes or numbers are others than those of *fitting*.
    """
    if not isinstance(observation, Observation):
        raise ContractError(
            "observation", f"got {type(observation).__name__}, expected an Observation"
        )
    wanted, there = set(fitting.cameras), set(observation.images)
    if not wanted <= there <= wanted | fitting.unused:
        raise ContractError(
            "images",
            f"got {', '.join(observation.images)}, expected {', '.join(fitting.cameras) or 'none'}",
        )
    frames = {
        key: _frame(name, observation.images[name][-1], fitting)
        for name, key in fitting.cameras.items()
    }
    state = _state(observation.state, fitting)
    return Seen(task=observation.instruction, state=state, frames=frames)


def _state(state: Float64Array, fitting: Fitting) -> Float64Array | None:
    order, names = fitting.state_order, fitting.state_names
    if names is None and not order:
        return None
    count = len(order) if names is None else len(names)
    if len(state) != count:
        said = "" if names is None else f": {', '.join(names)}"
        raise ContractError("state", f"got {len(state)} numbers, expected {count}{said}")
    return state[list(order)] if order else None


def _frame(camera: str, frame: UInt8Array, fitting: Fitting) -> UInt8Array:
    height_px, width_px = fitting.sizes[camera]
    if fitting.frame_size is FrameSize.ANY or frame.shape[:2] == (height_px, width_px):
        return frame
    if fitting.frame_size is FrameSize.PADDED:
        return resize_with_pad(frame, height_px=height_px, width_px=width_px)
    raise ContractError(
        f"images[{camera!r}]",
        f"got {frame.shape[0]} x {frame.shape[1]} pixels, expected {height_px} x {width_px} "
        "(height x width): load the policy with frame_size=FrameSize.PADDED to have it resized",
    )
