"""An observation to show to a policy where no recorded one is at hand."""

from __future__ import annotations

from typing import Any

import numpy as np

from vlmcore._arrays import UInt8Array, require_count
from vlmcore.contracts.embodiment import ActionDim, CameraSpec, Embodiment
from vlmcore.contracts.observation import Observation
from vlmcore.errors import ContractError
from vlmcore.policy.interface import PolicyInfo

__all__ = ["example_observation"]

_SIDE_PX = 224  # what most policies resize their frames to
_RATE_HZ = 10.0


def example_observation(
    expected: Embodiment | PolicyInfo,
    *,
    instruction: str = "pick up the cube",
    frames: int = 1,
    captured_at_s: float = 0.0,
) -> Observation:
    """
    Make an observation of a robot, or of what a policy says that it expects.

    Each camera shows a slope of colours, in the size that is declared, else 224 x 224. A number of
    the state is 0, or, if a target of the same name may be commanded, one that it may take: the
    middle of its range, or its lowest level.

    Args:
        expected: The robot; or what a policy says about itself, with its state and its cameras.
        instruction: The task in words.
        frames: How many frames of history each camera shows.
        captured_at_s: Reading of the caller's monotonic clock at the newest frame.

    Raises:
        ContractError: If the policy says neither what state nor what cameras it expects, or another
            argument is not as `Observation` wants it.

    Example:
        >>> from vlmcore.contracts.presets import find_embodiment
        >>> seen = example_observation(find_embodiment("generic_7dof_joint_gripper"))
        >>> seen.state.tolist()
        [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.5]
    """
    require_count(frames=frames)
    names, cameras, dims = _said_by(expected)
    targets = {dim.name: _target(dim) for dim in dims if dim.reference.is_target}
    return Observation(
        instruction=instruction,
        state=[targets.get(name, 0.0) for name in names],
        images={camera.name: _slopes(camera, frames) for camera in cameras},
        frame_rate_hz=_RATE_HZ,
        captured_at_s=captured_at_s,
    )


def _said_by(
    expected: Any,
) -> tuple[tuple[str, ...], tuple[CameraSpec, ...], tuple[ActionDim, ...]]:
    if isinstance(expected, Embodiment):
        return expected.state_names, expected.cameras, expected.actions.dims
    if not isinstance(expected, PolicyInfo):
        raise ContractError(
            "expected", f"got {type(expected).__name__}, expected an Embodiment or a PolicyInfo"
        )
    if expected.state_names is None or expected.cameras is None:
        missing = [name for name in ("state_names", "cameras") if getattr(expected, name) is None]
        raise ContractError(
            "expected",
            f"got the info of {expected.name!r} without {' and '.join(missing)}, "
            "expected both, or an Embodiment",
        )
    return expected.state_names, expected.cameras, ()


def _target(dim: ActionDim) -> float:
    return dim.levels[0] if dim.levels else dim.low / 2 + dim.high / 2


def _slopes(camera: CameraSpec, frames: int) -> UInt8Array:
    """Shape ``[frames, H, W, 3]``: red grows to the right, green downwards, blue with time."""
    height = camera.height_px or _SIDE_PX
    width = camera.width_px or _SIDE_PX
    pixels = np.empty((frames, height, width, 3), np.uint8)
    pixels[..., 0] = np.linspace(0, 255, width)
    pixels[..., 1] = np.linspace(0, 255, height)[:, np.newaxis]
    pixels[..., 2] = np.linspace(0, 255, frames)[:, np.newaxis, np.newaxis]
    return pixels
