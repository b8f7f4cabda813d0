"""
Which modality key of a GR00T policy holds which part of an observation and of an action.

A policy server checks little of what it is sent: keys that it does not know are not looked at, and
what it misses ends in a text as short as ``'side'``. So the tables here are held against what the
policy says of itself, and everything that differs is told before the first action.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from vlmcore._arrays import as_tuple, require_name, require_names
from vlmcore.contracts.embodiment import Embodiment
from vlmcore.contracts.observation import Observation
from vlmcore.errors import ContractError
from vlmcore.limits import ContractLimits, require_at_most
from vlmcore_robotics.wire.groot_modalities import ModalityConfig, PolicyModalities
from vlmcore_robotics.wire.histories import (
    MissingHistory,
    frames_at,
    require_steps,
    states_at,
)

__all__ = ["ActionStream", "GrootLayout", "StateSlice", "VideoKey"]

_LIMITS = ContractLimits()
_LONGEST = _LIMITS.max_name_characters


@attrs.frozen(kw_only=True)
class VideoKey:
    """
    Under which key a policy sees through a camera.

    Attributes:
        key: The modality key, as ``"ego_view"``.
        camera: The name of the camera in observations.

    Raises:
        ContractError: If a field is not as described.
    """

    key: str
    camera: str

    def __attrs_post_init__(self) -> None:
        require_name("key", self.key, max_characters=_LONGEST)
        require_name("camera", self.camera, max_characters=_LONGEST)


@attrs.frozen(kw_only=True)
class StateSlice:
    """
    Under which key a policy is told of a part of the state.

    Attributes:
        key: The modality key, as ``"single_arm"``.
        start: The first of its numbers in the state of an observation.
        end: The number after its last, ``start < end``.

    Raises:
        ContractError: If a field is not as described.
    """

    key: str
    start: int
    end: int

    def __attrs_post_init__(self) -> None:
        require_name("key", self.key, max_characters=_LONGEST)
        for field, value in (("start", self.start), ("end", self.end)):
            if type(value) is not int or value < 0:
                raise ContractError(
                    field, f"got {value!r:.80}, expected a whole number of at least 0"
                )
        if not self.start < self.end:
            raise ContractError("end", f"got {self.end}, expected more than start, {self.start}")
        require_at_most("max_state", self.end, _LIMITS.max_state)


@attrs.frozen(kw_only=True)
class ActionStream:
    """
    What the numbers are that a policy proposes under a key.

    Attributes:
        key: The modality key, as ``"gripper"``.
        names: What its numbers are, as the action names of the robot, in the policy's order.

    Raises:
        ContractError: If a field is not as described.
    """

    key: str
    names: tuple[str, ...] = attrs.field(converter=as_tuple)

    def __attrs_post_init__(self) -> None:
        require_name("key", self.key, max_characters=_LONGEST)
        require_names("names", self.names, max_count=_LIMITS.max_actions, max_characters=_LONGEST)


@attrs.frozen(kw_only=True)
class GrootLayout:
    """
    Which modality key holds which part of an observation and of an action.

    Attributes:
        video: The keys of the cameras.
        state: The slices of the state. Together they are all of it: each number is in one of them.
            Empty for a policy that is not told the state.
        action: The streams, in the order in which they are joined to one action, whatever order
            they are sent in.
        language: The key of the instruction; ``None`` for a policy without.

    Raises:
        ContractError: If a field is not as described, or something is there twice.

    Example:
        >>> layout = GrootLayout(
        ...     video=[VideoKey(key="front", camera="observation.images.front")],
        ...     state=[StateSlice(key="single_arm", start=0, end=5),
        ...            StateSlice(key="gripper", start=5, end=6)],
        ...     action=[ActionStream(key="single_arm", names=("j1", "j2", "j3", "j4", "j5")),
        ...             ActionStream(key="gripper", names=("jaw",))],
        ...     language="annotation.human.task_description",
        ... )
        >>> layout.state_count, layout.action_names[-1]
        (6, 'jaw')
    """

    video: tuple[VideoKey, ...] = attrs.field(converter=as_tuple)
    state: tuple[StateSlice, ...] = attrs.field(converter=as_tuple)
    action: tuple[ActionStream, ...] = attrs.field(converter=as_tuple)
    language: str | None

    def __attrs_post_init__(self) -> None:
        for field, kind in (("video", VideoKey), ("state", StateSlice), ("action", ActionStream)):
            parts = getattr(self, field)
            good = isinstance(parts, tuple) and all(isinstance(part, kind) for part in parts)
            if not good or (not parts and field != "state"):
                raise ContractError(
                    field, f"got {parts!r:.80}, expected one {kind.__name__} or more"
                )
            most = _LIMITS.max_actions
            if parts:
                keys = tuple(part.key for part in parts)
                require_names(f"{field} keys", keys, max_count=most, max_characters=_LONGEST)
        cameras = tuple(video.camera for video in self.video)
        most = _LIMITS.max_cameras
        require_names("cameras", cameras, max_count=most, max_characters=_LONGEST)
        most = _LIMITS.max_actions
        require_names("action names", self.action_names, max_count=most, max_characters=_LONGEST)
        if self.language is not None:
            require_name("language", self.language, max_characters=_LONGEST)
        self._check_slices()

    @property
    def state_count(self) -> int:
        """How many numbers the state has."""
        return sum(part.end - part.start for part in self.state)

    @property
    def action_names(self) -> tuple[str, ...]:
        """What the numbers of an action are, in their order."""
        return tuple(name for stream in self.action for name in stream.names)

    @property
    def streams(self) -> dict[str, int]:
        """How many dimensions each stream of an action has, in their order."""
        return {stream.key: len(stream.names) for stream in self.action}

    def differences(
        self, modalities: PolicyModalities | None, *, embodiment: Embodiment | None = None
    ) -> tuple[str, ...]:
        """
        List everything in which the tables differ from what the policy and the robot say.

        Args:
            modalities: What the policy says of itself; ``None`` as long as it was not asked.
            embodiment: The robot, if that is to be compared too.
        """
        found = [] if modalities is None else list(self._from_policy(modalities))
        return tuple(found if embodiment is None else [*found, *self._from_robot(embodiment)])

    def require_fits(
        self, modalities: PolicyModalities, *, embodiment: Embodiment | None = None
    ) -> None:
        """
        Check the tables against what the policy says of itself, before the first action.

        Raises:
            ContractError: If they differ; all differences are listed.
        """
        found = self.differences(modalities, embodiment=embodiment)
        if found:
            raise ContractError(
                "layout", "got tables that do not fit the policy:\n  " + "\n  ".join(found)
            )

    def request_from(
        self,
        steps: Sequence[Observation],
        modalities: PolicyModalities,
        *,
        missing: MissingHistory = MissingHistory.REFUSE,
    ) -> dict[str, dict[str, Any]]:
        """
        Lay out observations as the modalities of a request, a batch of one.

        Args:
            steps: Observations, oldest first, the last of them that of now.
            modalities: What the policy asks for.
            missing: What is done where it asks for more of the past than there is.

        Returns:
            video, uint8 ``[1, T, H, W, 3]``; state, float32 ``[1, T, D]``; language, lists of text.

        Raises:
            ContractError: If they do not have what the policy asks for.
        """
        require_steps(steps)
        deltas = modalities.video.delta_indices
        request: dict[str, dict[str, Any]] = {
            "video": {
                video.key: frames_at(video.camera, steps, deltas, missing)[np.newaxis]
                for video in self.video
            }
        }
        self._check_cameras(steps[-1])
        request["state"] = {}
        if self.state and modalities.state is not None:
            states = _as_float32(states_at(steps, modalities.state.delta_indices, missing))
            if states.shape[1] != self.state_count:
                raise ContractError(
                    "state", f"got {states.shape[1]} numbers, expected {self._expected_state()}"
                )
            for part in self.state:
                request["state"][part.key] = states[np.newaxis, :, part.start : part.end]
        request["language"] = {}
        if self.language is not None:
            request["language"][self.language] = [[steps[-1].instruction]]
        return request

    def _check_cameras(self, observation: Observation) -> None:
        known = [video.camera for video in self.video]
        extra = [name for name in observation.images if name not in known]
        if extra:
            raise ContractError(
                "images", f"got {extra}, expected {', '.join(known)}: others are not looked at"
            )

    def _check_slices(self) -> None:
        end = 0
        for part in sorted(self.state, key=lambda part: part.start):
            if part.start != end:
                raise ContractError(
                    "state",
                    f"got {part.key!r} from {part.start} on, expected {end}: "
                    "each number of the state in one slice",
                )
            end = part.end

    def _expected_state(self) -> str:
        parts = ", ".join(f"{part.end - part.start} for {part.key}" for part in self.state)
        return f"{self.state_count}: {parts}"

    def _from_policy(self, modalities: PolicyModalities) -> Iterator[str]:
        language = () if self.language is None else (self.language,)
        tables: Mapping[str, tuple[str, ...]] = {
            "video": tuple(video.key for video in self.video),
            "state": tuple(part.key for part in self.state),
            "action": tuple(stream.key for stream in self.action),
        }
        for name, ours in tables.items():
            yield from _key_differences(name, ours, getattr(modalities, name))
        said = modalities.language.modality_keys[:1] if modalities.language else ()
        if language != said:
            yield f"language: ours is {_listed(language)}, the policy's is {_listed(said)}"
        for name in ("video", "state", "language"):
            config: ModalityConfig | None = getattr(modalities, name)
            if config is not None and config.delta_indices[-1] > 0:
                yield f"{name}: the policy asks for step {config.delta_indices[-1]}, in the future"
        deltas = modalities.action.delta_indices
        if deltas != tuple(range(len(deltas))):
            yield f"action: the policy's steps are {deltas!r:.80}, expected 0, 1, 2 and so on"

    def _from_robot(self, embodiment: Embodiment) -> Iterator[str]:
        for video in self.video:
            if video.camera not in embodiment.camera_names:
                yield f"video: {video.key!r} is camera {video.camera!r}, which the robot has not"
        states = len(embodiment.state_names)
        if self.state and states != self.state_count:
            yield f"state: the robot has {states} numbers, the tables {self.state_count}"
        if embodiment.actions.names != self.action_names:
            theirs, ours = embodiment.actions.names, self.action_names
            yield f"action: the robot has {_listed(theirs)}, the tables {_listed(ours)}"


def _key_differences(
    name: str, ours: tuple[str, ...], config: ModalityConfig | None
) -> Iterator[str]:
    theirs = () if config is None else config.modality_keys
    missing = [key for key in theirs if key not in ours]
    unknown = [key for key in ours if key not in theirs]
    if missing:
        yield f"{name}: the policy has {_listed(missing)}, the tables have not"
    if unknown:
        yield f"{name}: the tables have {_listed(unknown)}, the policy has not"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)[:200] or "none"


def _as_float32(states: Any) -> Any:
    with np.errstate(over="ignore"):
        narrow = states.astype("<f4")
    if not np.isfinite(narrow).all():
        raise ContractError("state", "got numbers that float32 cannot hold, expected smaller ones")
    return narrow
