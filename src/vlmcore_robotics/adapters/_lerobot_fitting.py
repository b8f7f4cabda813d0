"""How a robot and the features of a LeRobot policy go together: cameras, states, actions, rate."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from vlmcore.contracts.embodiment import ActionSpace, CameraSpec, Embodiment
from vlmcore.errors import ContractError
from vlmcore_robotics.adapters._lerobot_features import IMAGES, PolicyFeatures
from vlmcore_robotics.adapters._lerobot_training import TrainedOn

__all__ = ["Fitting", "FrameSize", "fit"]


class FrameSize(enum.Enum):
    """What is done with frames of another size than that of the policy's features."""

    EXACT = "exact"  # they are refused
    PADDED = "padded"  # they are resized to it, on black, as openpi-client does
    ANY = "any"  # they are passed on as they are, to a policy that resizes them itself


@attrs.frozen(kw_only=True)
class Fitting:
    """
    What goes where.

    Attributes:
        cameras: For each camera that the policy is shown, the key of its feature.
        unused: The cameras of the robot that it is not shown.
        sizes: The height and width of each of *cameras*.
        state_names: What observations hold, if that is known.
        state_order: Where the numbers that the policy is fed stand in the state.
        action_names: What the policy gives.
        action_units: The unit of each, as the robot has it.
        rate_hz: How many steps a second there are, if that is known.
        frame_size: What is done with frames of another size.
    """

    cameras: Mapping[str, str]
    unused: frozenset[str]
    sizes: Mapping[str, tuple[int, int]]
    state_names: tuple[str, ...] | None
    state_order: tuple[int, ...]
    action_names: tuple[str, ...]
    action_units: tuple[str, ...] | None
    rate_hz: float | None
    frame_size: FrameSize

    @property
    def camera_specs(self) -> tuple[CameraSpec, ...] | None:
        """What the policy expects to see through."""
        if self.frame_size is not FrameSize.EXACT:
            return tuple(CameraSpec(name=name) for name in self.sizes) or None
        return (
            tuple(
                CameraSpec(name=name, height_px=height_px, width_px=width_px)
                for name, (height_px, width_px) in self.sizes.items()
            )
            or None
        )


def fit(
    features: PolicyFeatures,
    trained: TrainedOn,
    *,
    embodiment: Embodiment | None,
    rename: Mapping[str, str | None],
    frame_size: FrameSize,
) -> Fitting:
    """
    Match a policy with a robot, both ways.

    Args:
        features: Those of the policy.
        trained: What is known of its data.
        embodiment: The robot; ``None`` for one that reports what the policy is fed.
        rename: For cameras whose name is not that of the feature, its key; ``None`` for a camera
            that the policy is not shown.
        frame_size: What is done with frames of another size.

    Raises:
        ContractError: If they do not go together; all differences are listed.
    """
    given: Any = embodiment
    if given is not None and not isinstance(given, Embodiment):
        raise ContractError("embodiment", f"got {type(given).__name__}, expected an Embodiment")
    robot = None if embodiment is None else embodiment.actions
    cameras = _cameras(features, embodiment, rename)
    sizes = {name: size for name, key in cameras.items() if (size := features.cameras.get(key))}
    state_names = trained.state_names if embodiment is None else embodiment.state_names
    action_names = trained.action_names or (None if robot is None else robot.names)
    rate_hz = trained.rate_hz or (None if robot is None else robot.rate_hz)
    differences = [
        *_unlike_cameras(features, embodiment, cameras, rename),
        *(_unlike_sizes(embodiment, sizes) if frame_size is FrameSize.EXACT else ()),
        *_unlike_states(features, trained, state_names),
        *_unlike_actions(features, robot, action_names),
        *_unlike_rates(features, robot, rate_hz),
    ]
    if differences:
        whom = "what it is shown" if embodiment is None else repr(embodiment.name)
        raise ContractError(
            "embodiment", f"the policy does not fit {whom}: {'; '.join(differences)}"
        )
    assert action_names is not None  # that they are missing is a difference
    return Fitting(
        cameras=cameras,
        unused=frozenset(name for name, key in rename.items() if key is None),
        sizes=sizes,
        state_names=state_names,
        state_order=_order(features, trained, state_names),
        action_names=action_names,
        action_units=None if robot is None else tuple(dim.unit for dim in robot.dims),
        rate_hz=rate_hz,
        frame_size=frame_size,
    )


def _cameras(
    features: PolicyFeatures, embodiment: Embodiment | None, rename: Mapping[str, str | None]
) -> dict[str, str]:
    """Find the feature of each camera, by *rename* or by its name."""
    if embodiment is None:
        renamed = {key: name for name, key in rename.items() if key is not None}
        return {renamed.get(key, key): key for key in features.cameras}
    found: dict[str, str] = {}
    for name in embodiment.camera_names:
        longer = f"{IMAGES}.{name}"
        key = rename.get(name, longer if longer in features.cameras else name)
        if key is not None:
            found[name] = key
    return found


def _unlike_cameras(
    features: PolicyFeatures,
    embodiment: Embodiment | None,
    cameras: Mapping[str, str],
    rename: Mapping[str, str | None],
) -> Iterator[str]:
    known = ", ".join(features.cameras) or "none"
    if embodiment is not None:
        for name in sorted(rename.keys() - set(embodiment.camera_names)):
            yield f"rename has the camera {name!r}, which the robot has not"
    for name, key in {**cameras, **rename}.items():
        if key is not None and key not in features.cameras:
            yield (
                f"the camera {name!r} has no feature ({known} are there): name it in rename, or "
                "give None for it there if the policy is not to see it"
            )
    fed = list(cameras.values())
    for key in features.cameras:
        if fed.count(key) != 1:
            yield f"the feature {key!r} is fed by {fed.count(key)} cameras, expected 1"


def _unlike_sizes(
    embodiment: Embodiment | None, sizes: Mapping[str, tuple[int, int]]
) -> Iterator[str]:
    for camera in () if embodiment is None else embodiment.cameras:
        mine, wanted = (camera.height_px, camera.width_px), sizes.get(camera.name)
        if wanted is not None and None not in mine and mine != wanted:
            yield (
                f"the camera {camera.name!r} has {mine[0]} x {mine[1]} pixels, the policy "
                f"{wanted[0]} x {wanted[1]} (height x width): pass frame_size=FrameSize.PADDED to "
                "have them resized, or FrameSize.ANY for a policy that resizes them itself"
            )


def _unlike_states(
    features: PolicyFeatures, trained: TrainedOn, state_names: tuple[str, ...] | None
) -> Iterator[str]:
    fed = features.state_count
    if fed is None:
        return
    if trained.state_names is not None and len(trained.state_names) != fed:
        yield (
            f"the policy is fed {fed} numbers of state, expected {len(trained.state_names)} "
            f"({', '.join(trained.state_names)})"
        )
    elif state_names is None:
        return
    elif trained.state_names is not None and sorted(state_names) != sorted(trained.state_names):
        yield (
            f"the state is {', '.join(state_names)}, the policy was trained on "
            f"{', '.join(trained.state_names)}"
        )
    elif len(state_names) != fed:
        yield f"the state has {len(state_names)} numbers, the policy is fed {fed}"


def _unlike_actions(
    features: PolicyFeatures, robot: ActionSpace | None, names: tuple[str, ...] | None
) -> Iterator[str]:
    gives = features.action_count
    if names is None:
        yield (
            f"nobody says what the {gives} numbers of an action are: pass embodiment, dataset or "
            "action_names"
        )
    elif len(names) != gives:
        yield (
            f"an action of the policy has {gives} numbers, expected {len(names)} "
            f"({', '.join(names)}): nothing is filled up or cut"
        )
    elif robot is not None and names != robot.names:
        yield (
            f"an action of the policy is {', '.join(names)}, expected that of the robot, "
            f"{', '.join(robot.names)}"
        )


def _unlike_rates(
    features: PolicyFeatures, robot: ActionSpace | None, rate_hz: float | None
) -> Iterator[str]:
    if rate_hz is None:
        if features.n_obs_steps > 1:
            yield (
                f"the policy looks at {features.n_obs_steps} steps, and nobody says how many there "
                "are a second: pass embodiment, dataset or rate_hz"
            )
    elif robot is not None and rate_hz != robot.rate_hz:
        yield (
            f"the policy was trained at {rate_hz:g} steps a second, the robot makes "
            f"{robot.rate_hz:g}"
        )


def _order(
    features: PolicyFeatures, trained: TrainedOn, state_names: tuple[str, ...] | None
) -> tuple[int, ...]:
    if features.state_count is None:
        return ()
    if state_names is None or trained.state_names is None:
        return tuple(range(features.state_count))
    return tuple(state_names.index(name) for name in trained.state_names)
