"""What travels through the observation socket: what a robot saw, and which robot that is."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from vlmcore._arguments import shown
from vlmcore._arrays import Float64Array, UInt8Array
from vlmcore.contracts.embodiment import (
    ActionDim,
    ActionSpace,
    CameraSpec,
    Embodiment,
    LimitsSource,
    Reference,
)
from vlmcore.contracts.observation import Observation, state_from
from vlmcore.errors import ContractError
from vlmcore_comfy.images import pictures_of
from vlmcore_comfy.widgets import value_in

__all__ = ["SeenBy", "images_from", "newest", "require_robot", "require_seen", "state_from_text"]

_FAR = 1e9  # of numbers that nobody bounds; the gate needs a robot that says more


@attrs.frozen
class SeenBy:
    """
    An observation and its robot.

    Attributes:
        observation: What it saw.
        embodiment: The robot; ``None`` where none was given.
    """

    observation: Observation
    embodiment: Embodiment | None

    def robot(self) -> Embodiment:
        """
        Give the robot as a policy client needs it, with the cameras that it was seen through.

        Saved graphs name cameras as they like, and some have no robot at all: that one then has a
        number of action for each of its state, with no bounds. Nothing that it does can be vetted.
        """
        cameras = tuple(CameraSpec(name=name) for name in self.observation.images)
        robot = self.embodiment
        if robot is None:
            return _nameless(len(self.observation.state), cameras)
        known = {camera.name for camera in robot.cameras}
        if known >= {camera.name for camera in cameras}:
            return robot
        return attrs.evolve(robot, cameras=cameras)


def _nameless(states: int, cameras: tuple[CameraSpec, ...]) -> Embodiment:
    dims = tuple(
        ActionDim(
            name=f"action_{index}",
            unit="",
            low=-_FAR,
            high=_FAR,
            max_step=2 * _FAR,
            reference=Reference.ABSOLUTE,
        )
        for index in range(states)
    )
    return Embodiment(
        name="unnamed",
        state_names=tuple(f"state_{index}" for index in range(states)),
        actions=ActionSpace(dims=dims, rate_hz=1.0),
        cameras=cameras,
        limits_source=LimitsSource.TEMPLATE,
    )


def require_seen(name: str, seen: Any) -> SeenBy:
    """
    Take what came through an observation socket.

    Raises:
        ContractError: If it is no observation.
    """
    if not isinstance(seen, SeenBy):
        raise ContractError(name, f"got {shown(seen)}, expected an observation")
    return seen


def require_robot(name: str, robot: Any) -> Embodiment:
    """
    Take what came through an embodiment socket.

    Raises:
        ContractError: If it is no robot.
    """
    if not isinstance(robot, Embodiment):
        raise ContractError(name, f"got {shown(robot)}, expected a robot")
    return robot


def newest(seen: SeenBy) -> SeenBy:
    """Keep the newest frame of each camera."""
    observation = seen.observation
    if observation.history == 1:
        return seen
    images = {name: frames[-1:] for name, frames in observation.images.items()}
    return attrs.evolve(seen, observation=attrs.evolve(observation, images=images))


def images_from(**views: tuple[str, Any]) -> dict[str, UInt8Array]:
    """
    Take what cameras saw: the name of each, and its IMAGE or ``None``, by the name of the input.

    Raises:
        ContractError: If two are called the same, or one is no IMAGE.
    """
    images: dict[str, UInt8Array] = {}
    for view, (camera, image) in views.items():
        if image is None:
            continue
        name = camera.strip()
        if name in images:
            raise ContractError(
                f"{view}_camera", f"got {name!a:.80} again, expected a name of its own"
            )
        images[name] = np.stack(pictures_of(f"{view}_image", image))
    return images


def state_from_text(name: str, text: str, robot: Embodiment | None) -> Float64Array:
    """
    Read a state: a list of numbers, or numbers by the names of the robot.

    Raises:
        ContractError: If it is none, or not one of the robot.
    """
    value = value_in(name, text)
    if not isinstance(value, (list, dict)) or (isinstance(value, dict) and robot is None):
        raise ContractError(name, "expected a JSON list of numbers, the state of the robot")
    names = (
        tuple(f"state_{index}" for index in range(len(value)))
        if robot is None
        else robot.state_names
    )
    try:
        return state_from(names, value)
    except ContractError as error:
        raise ContractError(name, error.problem) from None
