"""What a policy is shown: an instruction, the state of the robot, and what its cameras see."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import attrs
import numpy as np

from vlmcore._arguments import shown
from vlmcore._arrays import (
    Float64Array,
    UInt8Array,
    as_tuple,
    plain_float,
    require_count,
    require_finite,
    require_names,
    require_positive,
)
from vlmcore._copying import by_value, through_constructor
from vlmcore.contracts._html import observation_html
from vlmcore.contracts._observation_fields import (
    check_cameras,
    check_history,
    check_instruction,
    pixels_by_value,
    read_images,
    read_state,
)
from vlmcore.contracts.embodiment import Embodiment
from vlmcore.errors import ContractError
from vlmcore.limits import ContractLimits, require_at_most

__all__ = [
    "CameraSummary",
    "Observation",
    "ObservationSummary",
    "check_fits",
    "state_from",
]

_LIMITS = ContractLimits()


@attrs.frozen(kw_only=True, repr=False)
class Observation:
    """
    What a policy is shown.

    Every camera has the same number of frames, or one, which then stands for all of them. Arrays
    are copies that cannot be written to, but by what does not ask, as torch; each frame is copied
    once. Observations are equal if they hold the same in every field, pixel by pixel, with their
    cameras in the same order.

    Attributes:
        instruction: The task in words, not blank, at most 16,384 characters.
        state: What the robot reports, finite, shape ``[S]``, 1 to 2,048 numbers ordered as
            ``Embodiment.state_names``.
        images: For each of 1 to 16 cameras its frames, shape ``[T, H, W, 3]``, uint8 RGB, oldest
            first, 1 to 256 frames of at most 16 Mi pixels. An image ``[H, W, 3]`` is one frame.
        frame_rate_hz: Rate of the frames, in frames a second.
        captured_at_s: Reading of the caller's monotonic clock at the newest frame.

    Raises:
        ContractError: If a field is not as described.
        LimitExceededError: If there is more of something than `vlmcore.limits.ContractLimits`
            allows.
    """

    instruction: str
    state: Float64Array = attrs.field(converter=read_state, eq=by_value)
    images: Mapping[str, UInt8Array] = attrs.field(
        converter=read_images, eq=pixels_by_value, hash=False
    )
    frame_rate_hz: float = attrs.field(converter=plain_float)
    captured_at_s: float = attrs.field(converter=plain_float)

    def __attrs_post_init__(self) -> None:
        check_instruction(self.instruction)
        check_cameras("images", tuple(self.images))
        check_history("images", {name: len(frames) for name, frames in self.images.items()})
        require_positive(frame_rate_hz=self.frame_rate_hz)
        require_finite(captured_at_s=self.captured_at_s)

    __reduce__ = through_constructor

    @property
    def history(self) -> int:
        """How many frames the cameras show, ``T``."""
        return max(map(len, self.images.values()))

    def frames(self, camera: str) -> UInt8Array:
        """
        Take the frames of *camera*, shape ``[T, H, W, 3]``; one frame is repeated, not copied.

        Raises:
            ContractError: If there is no camera of this name.
        """
        if not isinstance(camera, str) or camera not in self.images:
            raise ContractError(
                "camera", f"got {shown(camera)}, expected one of {', '.join(self.images)}"
            )
        frames, history = self.images[camera], self.history
        if len(frames) == history:
            return frames
        return np.broadcast_to(frames, (history, *frames.shape[1:]))

    def summary(self) -> ObservationSummary:
        """Tell what was shown, without the pixels."""
        cameras = {
            name: CameraSummary(
                frames=len(frames), height_px=frames.shape[1], width_px=frames.shape[2]
            )
            for name, frames in self.images.items()
        }
        return ObservationSummary(
            instruction=self.instruction,
            state=self.state,
            cameras=cameras,
            frame_rate_hz=self.frame_rate_hz,
            captured_at_s=self.captured_at_s,
        )

    def __repr__(self) -> str:
        size = {
            name: " x ".join(map(str, frames.shape[:3])) for name, frames in self.images.items()
        }
        cameras = ", ".join(f"{name!r}: {said}" for name, said in size.items())
        return (
            f"<Observation {shown(self.instruction)}: {len(self.state)} numbers, {cameras} pixels, "
            f"at {self.captured_at_s:g} s>"
        )

    def _repr_html_(self) -> str:
        return observation_html(self)


@attrs.frozen(kw_only=True)
class CameraSummary:
    """
    How much one camera showed.

    Attributes:
        frames: How many frames.
        height_px: Their height.
        width_px: Their width.

    Raises:
        ContractError: If one is not a whole number of at least 1.
    """

    frames: int
    height_px: int
    width_px: int

    def __attrs_post_init__(self) -> None:
        require_count(frames=self.frames, height_px=self.height_px, width_px=self.width_px)
        require_at_most("max_frames", self.frames, _LIMITS.max_frames)
        pixels = self.height_px * self.width_px
        require_at_most("max_frame_pixels", pixels, _LIMITS.max_frame_pixels)


def _summaries(value: Any) -> Any:
    return MappingProxyType(dict(value)) if isinstance(value, Mapping) else value


@attrs.frozen(kw_only=True)
class ObservationSummary:
    """
    An observation without its pixels, for logs and reports.

    Attributes:
        instruction: As in the observation.
        state: As in the observation.
        cameras: How much each camera showed, by its name.
        frame_rate_hz: As in the observation.
        captured_at_s: As in the observation.

    Raises:
        ContractError: If a field is not as in `Observation`.
    """

    instruction: str
    state: Float64Array = attrs.field(converter=read_state, eq=by_value)
    cameras: Mapping[str, CameraSummary] = attrs.field(converter=_summaries, hash=False)
    frame_rate_hz: float = attrs.field(converter=plain_float)
    captured_at_s: float = attrs.field(converter=plain_float)

    def __attrs_post_init__(self) -> None:
        check_instruction(self.instruction)
        cameras = self.cameras
        if not isinstance(cameras, Mapping) or not all(
            isinstance(camera, CameraSummary) for camera in cameras.values()
        ):
            raise ContractError(
                "cameras", f"got {shown(cameras)}, expected names and CameraSummary"
            )
        check_cameras("cameras", tuple(cameras))
        check_history("cameras", {name: camera.frames for name, camera in cameras.items()})
        require_positive(frame_rate_hz=self.frame_rate_hz)
        require_finite(captured_at_s=self.captured_at_s)

    __reduce__ = through_constructor


def state_from(names: tuple[str, ...], values: Any) -> Float64Array:
    """
    Read a state that is given as numbers in order, or by their names.

    Args:
        names: What the numbers are, in their order; ``Embodiment.state_names``.
        values: Finite numbers, as a list or an array, or a mapping from names to numbers.

    Returns:
        The state, shape ``[S]``, read-only.

    Raises:
        ContractError: If *names* are no names; if some are missing or unknown, which are listed; if
            there are more or fewer numbers than names; if something is not a finite number.

    Example:
        >>> state_from(("x", "y"), {"y": 2, "x": 1}).tolist()
        [1.0, 2.0]
    """
    if isinstance(names, Embodiment):
        raise ContractError("names", "got an Embodiment, expected its state_names")
    names = as_tuple(names)
    require_names(
        "names",
        names,
        max_count=_LIMITS.max_state,
        max_characters=_LIMITS.max_name_characters,
    )
    if isinstance(values, Mapping):
        _check_listed("state", tuple(values), names)
        for name in names:
            require_finite(**{f"state[{name!r}]": plain_float(values[name])})
        values = [values[name] for name in names]
    state = read_state(values)
    if len(state) != len(names):
        raise ContractError(
            "state", f"got {len(state)} numbers, expected {len(names)}: {', '.join(names)}"
        )
    return state


def check_fits(
    observation: Observation, embodiment: Embodiment, *, all_cameras: bool = True
) -> None:
    """
    Check that *observation* is one of *embodiment*: its state, its cameras, and their sizes.

    Args:
        observation: What a policy is to be shown.
        embodiment: The robot that it is to come from.
        all_cameras: Whether each camera of the robot must be there; others must never be.

    Raises:
        ContractError: If it is not; the names that are missing or unknown are listed.
    """
    for field, came, kind in (
        ("observation", observation, Observation),
        ("embodiment", embodiment, Embodiment),
    ):
        if not isinstance(came, kind):
            raise ContractError(field, f"got {type(came).__name__}, expected {kind.__name__}")
    states = len(embodiment.state_names)
    if len(observation.state) != states:
        raise ContractError(
            "state",
            f"got {len(observation.state)} numbers, expected the {states} of {embodiment.name!r}: "
            f"{', '.join(embodiment.state_names)}",
        )
    cameras = {camera.name: camera for camera in embodiment.cameras}
    seen = tuple(observation.images)
    _check_listed("images", seen, tuple(cameras) if all_cameras else (), allowed=tuple(cameras))
    for name, frames in observation.images.items():
        camera, sides = cameras[name], frames.shape[1:3]
        if camera.height_px is not None and sides != (camera.height_px, camera.width_px):
            raise ContractError(
                f"images[{name!r}]",
                f"got {sides[0]} x {sides[1]} pixels, expected {camera.height_px} x "
                f"{camera.width_px} (height x width)",
            )


def _check_listed(
    field: str,
    came: tuple[Any, ...],
    required: tuple[str, ...],
    allowed: tuple[str, ...] | None = None,
) -> None:
    allowed = required if allowed is None else allowed
    there, known = set(came), set(allowed)
    missing = [name for name in required if name not in there]
    extra = [name for name in came if name not in known]
    if missing or extra:
        said = [f"missing {missing}"] if missing else []
        said += [f"not known {extra}"] if extra else []
        raise ContractError(
            field, f"got names with {', '.join(said)}, expected {', '.join(allowed)}"
        )
