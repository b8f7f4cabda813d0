"""
What is recorded of a rollout: whose it is, and for each step of the policy what came of it.

An episode is for looking and for playing back. Nothing in it is vetted: what was a `VettedChunk`
when it was recorded is an array here, and passes a gate again before a robot moves by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import attrs
import numpy as np

from vlmcore._arguments import require_kind, shown
from vlmcore._arrays import (
    Float64Array,
    plain_float,
    readonly_float64,
    require_finite,
    require_name,
)
from vlmcore._copying import by_value, through_constructor
from vlmcore._json_values import frozen_object
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.embodiment import Embodiment
from vlmcore.contracts.observation import ObservationSummary
from vlmcore.errors import ContractError
from vlmcore.limits import ContractLimits
from vlmcore.rollout.episode_calls import PolicyCall, require_call
from vlmcore.rollout.episode_frames import EncodedFrame
from vlmcore.safety.report import SafetySummary

__all__ = ["EpisodeHeader", "EpisodeStep"]

_LIMITS = ContractLimits()


def _metadata(value: Any) -> Mapping[str, Any]:
    return frozen_object(value, field="metadata")


@attrs.frozen(kw_only=True)
class EpisodeHeader:
    """
    Whose episode it is.

    Attributes:
        embodiment: The robot whose limits the gate kept.
        made_by: What recorded it, as a program and its version; empty if nobody says.
        made_at: When, as the caller writes it; empty if nobody says. The times of the steps are of
            a monotonic clock, which does not know the day.
        metadata: What else is to be known, as JSON values; read-only.

    Raises:
        ContractError: If a field is not as described.
    """

    embodiment: Embodiment
    made_by: str = ""
    made_at: str = ""
    metadata: Mapping[str, Any] = attrs.field(factory=dict, converter=_metadata, hash=False)

    def __attrs_post_init__(self) -> None:
        require_kind("embodiment", self.embodiment, Embodiment)
        for field in ("made_by", "made_at"):
            longest = _LIMITS.max_name_characters
            require_name(field, getattr(self, field), max_characters=longest, may_be_empty=True)

    __reduce__ = through_constructor

    def require_fits(self, step: EpisodeStep) -> None:
        """
        Require that *step* is one of this robot.

        Raises:
            ContractError: If it has more or fewer numbers in its state than the robot, or other
                actions.
        """
        robot, came = self.embodiment, len(step.observation.state)
        if came != len(robot.state_names):
            raise ContractError(
                "observation.state",
                f"got {came} numbers, expected the {len(robot.state_names)} of {robot.name!r}",
            )
        names = set(robot.actions.names)
        for field, called, fits in (
            ("chunk.names", step.chunk.names, set(step.chunk.names) == names),
            ("position", step.position, step.position.keys() <= names),
        ):
            if not fits:
                wanted = ", ".join(robot.actions.names)
                raise ContractError(
                    field, f"got {', '.join(called)}, expected the actions {wanted}"
                )


def _last_command(value: Any) -> Float64Array | None:
    if value is None:
        return None
    command = readonly_float64(value, field="last_command", axes="[D]")
    _require_all_finite("last_command", command)
    return command


def _vetted(value: Any) -> Float64Array | None:
    if value is None:
        return None
    values = readonly_float64(value, field="vetted", axes="[T, D]")
    _require_all_finite("vetted", values)
    return values


def _position(value: Any) -> Mapping[str, float]:
    if not isinstance(value, Mapping):
        raise ContractError(
            "position", f"got {type(value).__name__}, expected numbers by the names of dimensions"
        )
    position = {name: plain_float(each) for name, each in value.items()}
    for name, each in position.items():
        require_finite(**{f"position[{shown(name)}]": each})
    return frozen_object(position, field="position")


def _frames(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    return MappingProxyType(
        {name: tuple(each) if isinstance(each, list) else each for name, each in value.items()}
    )


@attrs.frozen(kw_only=True)
class EpisodeStep:
    """
    One step of the policy: what it was shown, what it proposed, and what the gate made of it.

    Attributes:
        at_s: Reading of the caller's monotonic clock when the gate had decided.
        observation: What the policy was shown, without the pixels.
        chunk: What was put to the gate, as it came: it may hold NaN and infinity.
        report: What the gate found.
        last_command: What it was vetted with, shape ``[D]`` in the order of the embodiment's
            actions; ``None`` if nobody knew.
        vetted: The values that left the gate, shape ``[T, D]`` in the same order; ``None`` if it
            refused, or was only asked.
        executed_steps: How many of them were sent to the robot, from the first; 0 if none was.
        position: The measured positions that it was vetted with, by the name of the dimension;
            empty if none was needed.
        frames: What was kept of the pixels, by camera.
        call: How the policy was asked; ``None`` if nobody says.

    Raises:
        ContractError: If a field is not as described, or they contradict each other.
    """

    at_s: float = attrs.field(converter=plain_float)
    observation: ObservationSummary
    chunk: ActionChunk
    report: SafetySummary
    last_command: Float64Array | None = attrs.field(converter=_last_command, eq=by_value)
    vetted: Float64Array | None = attrs.field(default=None, converter=_vetted, eq=by_value)
    executed_steps: int = 0
    position: Mapping[str, float] = attrs.field(factory=dict, converter=_position, hash=False)
    frames: Mapping[str, tuple[EncodedFrame, ...]] = attrs.field(
        factory=dict, converter=_frames, hash=False
    )
    call: PolicyCall | None = None

    def __attrs_post_init__(self) -> None:
        require_finite(at_s=self.at_s)
        require_kind("observation", self.observation, ObservationSummary)
        require_kind("chunk", self.chunk, ActionChunk)
        require_kind("report", self.report, SafetySummary)
        require_call(self.call)
        self._check_report()
        self._check_executed()
        self._check_frames()

    def __reduce__(self) -> tuple[Any, ...]:
        rebuild, (contract, fields) = through_constructor(self)
        return rebuild, (contract, fields | {"frames": dict(self.frames)})

    @property
    def sent(self) -> Float64Array:
        """The values that were sent to the robot, shape ``[executed_steps, D]``."""
        if self.vetted is None:
            return np.empty((0, self.report.action_dim))
        return self.vetted[: self.executed_steps]

    def _check_report(self) -> None:
        report, chunk = self.report, self.chunk
        for field, said, true in (
            ("policy_source", report.policy_source, chunk.source),
            ("input_horizon", report.input_horizon, chunk.horizon),
            ("action_dim", report.action_dim, len(chunk.names)),
        ):
            if said != true:
                raise ContractError(
                    f"report.{field}", f"got {said!r}, expected that of the chunk, {true!r}"
                )
        if self.last_command is not None and len(self.last_command) != report.action_dim:
            raise ContractError(
                "last_command",
                f"got {len(self.last_command)} numbers, expected {report.action_dim}",
            )
        if self.vetted is not None:
            steps, width = expected = (report.execution_horizon, report.action_dim)
            # A gate that was told to may have cut a chunk off before what is not finite.
            is_part = report.changed and 1 <= len(self.vetted) <= steps
            if self.vetted.shape[1] != width or not (is_part or len(self.vetted) == steps):
                raise ContractError(
                    "vetted",
                    f"got shape {list(self.vetted.shape)}, expected that of the report, "
                    f"{list(expected)}",
                )
            if not report.safe_for_handoff:
                raise ContractError("vetted", "got values with a report that says they are unsafe")

    def _check_executed(self) -> None:
        most = 0 if self.vetted is None else len(self.vetted)
        if type(self.executed_steps) is not int or not 0 <= self.executed_steps <= most:
            raise ContractError(
                "executed_steps",
                f"got {shown(self.executed_steps)}, expected 0 to {most}, the steps that left "
                "the gate",
            )

    def _check_frames(self) -> None:
        if not isinstance(self.frames, Mapping):
            raise ContractError("frames", f"got {shown(self.frames)}, expected frames by camera")
        cameras = self.observation.cameras
        for name, frames in self.frames.items():
            field = f"frames[{shown(name)}]"
            if name not in cameras:
                known = ", ".join(cameras)
                raise ContractError(field, f"is of no camera of the observation: {known}")
            if not isinstance(frames, tuple) or not all(
                isinstance(frame, EncodedFrame) for frame in frames
            ):
                raise ContractError(field, f"got {shown(frames)}, expected a tuple of EncodedFrame")
            indices = [frame.frame_index for frame in frames]
            if indices != sorted(set(indices)) or max(indices, default=0) >= cameras[name].frames:
                raise ContractError(
                    field,
                    f"got the frames {indices}, expected each once, in order, of "
                    f"{cameras[name].frames}",
                )


def _require_all_finite(field: str, values: Float64Array) -> None:
    broken = np.argwhere(~np.isfinite(values))
    if len(broken):
        place = tuple(broken[0].tolist())
        where = "".join(f"[{i}]" for i in place)
        raise ContractError(f"{field}{where}", f"got {values[place]}, expected a finite number")
