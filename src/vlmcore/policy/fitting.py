"""Whether a policy is one for a robot, as far as it says itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from vlmcore.contracts.embodiment import ActionSpace, CameraSpec, Embodiment
from vlmcore.contracts.observation import Observation
from vlmcore.errors import ContractError
from vlmcore.policy.interface import PolicyInfo

__all__ = ["differences_between", "require_expected"]


def differences_between(
    info: PolicyInfo, robot: Embodiment | ActionSpace, *, reorder: bool = False
) -> tuple[str, ...]:
    """
    List in what *info* says something else than *robot*, one sentence each.

    What one of the two does not say is no difference. Units are compared by the name of the action.

    Args:
        info: What the policy says of itself.
        robot: The robot that it is to move, or its actions alone: then states and cameras are not
            compared.
        reorder: Whether the names of actions may come in another order.

    Raises:
        ContractError: If an argument is not as described.

    Example:
        >>> from vlmcore.contracts.embodiment import ActionDim
        >>> elbow = ActionDim(name="elbow", unit="rad", low=-1.0, high=1.0, max_step=0.1)
        >>> info = PolicyInfo(name="mine", action_names=["elbow"], action_units=["deg"], rate_hz=50)
        >>> for difference in differences_between(info, ActionSpace(dims=(elbow,), rate_hz=20)):
        ...     print(difference)
        rate_hz is 50.0, expected that of the space, 20.0
        action_units has 'deg' for 'elbow', expected 'rad'
    """
    if not isinstance(info, PolicyInfo):
        raise ContractError("info", f"got {type(info).__name__}, expected a PolicyInfo")
    if not isinstance(robot, (Embodiment, ActionSpace)):
        raise ContractError(
            "robot", f"got {type(robot).__name__}, expected an Embodiment or an ActionSpace"
        )
    return tuple(_differences(info, robot, reorder=reorder))


def require_expected(observation: Any, info: PolicyInfo) -> None:
    """
    Refuse an observation that a policy does not expect; where it does not say, anything will do.

    Raises:
        ContractError: If it is none, has more or fewer numbers in its state, or a camera is missing
            or of another size.
    """
    if not isinstance(observation, Observation):
        raise ContractError(
            "observation", f"got {type(observation).__name__}, expected an Observation"
        )
    names = info.state_names
    if names is not None and len(observation.state) != len(names):
        raise ContractError(
            "state",
            f"got {len(observation.state)} numbers, expected {len(names)}: {', '.join(names)}",
        )
    for camera in info.cameras or ():
        frames = observation.images.get(camera.name)
        if frames is None:
            raise ContractError(
                "images", f"got {', '.join(observation.images)}, expected {camera.name!r} too"
            )
        sides = frames.shape[1:3]
        if camera.height_px is not None and sides != (camera.height_px, camera.width_px):
            raise ContractError(
                f"images[{camera.name!r}]",
                f"got {sides[0]} x {sides[1]} pixels, expected {camera.height_px} x "
                f"{camera.width_px} (height x width)",
            )


def _differences(
    info: PolicyInfo, robot: Embodiment | ActionSpace, *, reorder: bool
) -> Iterator[str]:
    body = robot if isinstance(robot, Embodiment) else None
    space = robot.actions if isinstance(robot, Embodiment) else robot
    names: Any = info.action_names
    if reorder and names is not None and set(names) == set(space.names):
        names = space.names
    for field, said, true in (
        ("action_names", names, space.names),
        ("state_names", info.state_names, None if body is None else body.state_names),
        ("rate_hz", info.rate_hz, space.rate_hz),
    ):
        if said is not None and true is not None and said != true:
            whose = "the space" if body is None else repr(body.name)
            yield f"{field} is {_listed(said)}, expected that of {whose}, {_listed(true)}"
    yield from _unlike_units(info, space)
    if body is not None:
        yield from _unlike_cameras(info.cameras or (), body)


def _unlike_units(info: PolicyInfo, space: ActionSpace) -> Iterator[str]:
    said = dict(zip(info.action_names or (), info.action_units or (), strict=False))
    for dim in space.dims:
        unit = said.get(dim.name)
        if unit and dim.unit and unit != dim.unit:
            yield f"action_units has {unit!r} for {dim.name!r}, expected {dim.unit!r}"


def _unlike_cameras(cameras: tuple[CameraSpec, ...], body: Embodiment) -> Iterator[str]:
    there = {camera.name: camera for camera in body.cameras}
    for camera in cameras:
        mine = there.get(camera.name)
        if mine is None:
            yield f"cameras has {camera.name!r}, expected one of {', '.join(there)}"
        elif camera.height_px and mine.height_px and camera != mine:
            yield (
                f"cameras has {camera.name!r} with {camera.height_px} x {camera.width_px} pixels, "
                f"expected {mine.height_px} x {mine.width_px}"
            )


def _listed(value: Any) -> str:
    return ", ".join(value) if isinstance(value, tuple) else str(value)
