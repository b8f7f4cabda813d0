"""
Which key of a request holds which part of an observation.

A policy server takes a map whose keys its policy was trained with, and checks nothing: what is
missing ends in a traceback, what is under another key is not looked at. A layout says the keys in
one place, for both directions.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np

from vlmcore._arguments import require_switch
from vlmcore._arrays import (
    Float64Array,
    UInt8Array,
    as_tuple,
    readonly_float64,
    require_count,
    require_member,
    require_name,
    require_names,
)
from vlmcore.contracts.observation import Observation
from vlmcore.errors import ContractError
from vlmcore.limits import ContractLimits, require_at_most
from vlmcore_robotics.wire._paths import Path, get, leaves, named, put
from vlmcore_robotics.wire.resizing import resize_with_pad

__all__ = [
    "CameraKey",
    "ImageAxes",
    "ObservationLayout",
    "StateKey",
]

_LIMITS = ContractLimits()


class ImageAxes(enum.Enum):
    """The axes of a frame on the wire: height H, width W, three channels C of RGB."""

    HWC = "[H, W, 3]"
    CHW = "[3, H, W]"


def _path(value: Any) -> Any:
    return (value,) if isinstance(value, str) else as_tuple(value)


def _require_path(path: Any) -> None:
    if not isinstance(path, tuple) or not 1 <= len(path) <= 4:
        raise ContractError("key", f"got {path!r:.80}, expected a key, or 1 to 4 from outside in")
    for key in path:
        require_name("key", key, max_characters=_LIMITS.max_name_characters)


@attrs.frozen(kw_only=True)
class CameraKey:
    """
    Where the frame of one camera stands.

    Attributes:
        camera: The name of the camera in observations.
        key: Its key in the request; for a map within the map, the keys from the outside in.
        required: Whether the policy fails without it.

    Raises:
        ContractError: If a field is not as described.
    """

    camera: str
    key: Path = attrs.field(converter=_path)
    required: bool = True

    def __attrs_post_init__(self) -> None:
        require_name("camera", self.camera, max_characters=_LIMITS.max_name_characters)
        _require_path(self.key)
        require_switch(required=self.required)


@attrs.frozen(kw_only=True)
class StateKey:
    """
    Where one part of the state stands; the parts follow each other, as in the observation.

    Attributes:
        key: Its key in the request; for a map within the map, the keys from the outside in.
        count: How many numbers it has.

    Raises:
        ContractError: If a field is not as described.
    """

    key: Path = attrs.field(converter=_path)
    count: int

    def __attrs_post_init__(self) -> None:
        _require_path(self.key)
        require_count(count=self.count)
        require_at_most("max_state", self.count, _LIMITS.max_state)


@attrs.frozen(kw_only=True)
class ObservationLayout:
    """
    Which key of a request holds which part of an observation.

    One frame of each camera is sent, the newest: these protocols know no history. The state is sent
    as float64, so that nothing of it is lost.

    Attributes:
        cameras: Where the frame of each camera stands; at least one.
        state: Where the parts of the state stand, in the order of the state.
        prompt: Where the instruction stands.
        axes: How frames lie.
        height_px: The height that frames are resized to before they are sent, on black, as the
            policy was trained; None sends them as they are.
        width_px: The same for their width; both or none.

    Raises:
        ContractError: If a field is not as described, or two parts have the same key.

    Example:
        >>> layout = ObservationLayout(
        ...     cameras=[CameraKey(camera="front", key=("images", "base"))],
        ...     state=[StateKey(key="arm", count=6), StateKey(key="hand", count=1)],
        ... )
        >>> layout.state_count, layout.prompt
        (7, ('prompt',))
    """

    cameras: tuple[CameraKey, ...] = attrs.field(converter=as_tuple)
    state: tuple[StateKey, ...] = attrs.field(converter=as_tuple)
    prompt: Path = attrs.field(default=("prompt",), converter=_path)
    axes: ImageAxes = ImageAxes.HWC
    height_px: int | None = None
    width_px: int | None = None

    def __attrs_post_init__(self) -> None:
        for field, parts, kind in (
            ("cameras", self.cameras, CameraKey),
            ("state", self.state, StateKey),
        ):
            good = isinstance(parts, tuple) and all(isinstance(part, kind) for part in parts)
            if not (good and parts):
                raise ContractError(
                    field, f"got {parts!r:.80}, expected one {kind.__name__} or more"
                )
        require_names(
            "cameras",
            tuple(camera.camera for camera in self.cameras),
            max_count=_LIMITS.max_cameras,
            max_characters=_LIMITS.max_name_characters,
        )
        _require_path(self.prompt)
        require_member(ImageAxes, axes=self.axes)
        require_at_most("max_state", self.state_count, _LIMITS.max_state)
        self._check_keys()
        self._check_size()

    @property
    def state_count(self) -> int:
        """How many numbers the state has."""
        return sum(part.count for part in self.state)

    def request_from(self, observation: Observation) -> dict[str, Any]:
        """
        Lay out an observation as a request.

        Raises:
            ContractError: If it has a state of another length, a camera that the layout does not
                know, or lacks one that the policy needs.
            MissingDependencyError: If a frame is to be resized and Pillow is not installed.
        """
        self._check_cameras(tuple(observation.images))
        if len(observation.state) != self.state_count:
            raise ContractError(
                "state", f"got {len(observation.state)} numbers, expected {self._expected_state()}"
            )
        request: dict[str, Any] = {}
        for camera in self.cameras:
            if camera.camera in observation.images:
                frame = observation.images[camera.camera][-1]
                put(request, camera.key, self._as_sent(frame))
        start = 0
        for part in self.state:
            put(request, part.key, observation.state[start : start + part.count])
            start += part.count
        put(request, self.prompt, observation.instruction)
        return request

    def observation_from(
        self,
        request: Any,
        *,
        captured_at_s: float,
        frame_rate_hz: float = 1.0,
        default_prompt: str | None = None,
    ) -> Observation:
        """
        Read a request as an observation.

        Args:
            request: The decoded map.
            captured_at_s: Reading of the server's monotonic clock when it came.
            frame_rate_hz: Rate of the camera; a request has one frame of each and does not say.
            default_prompt: The instruction where it has none.

        Raises:
            ContractError: If a part is missing or not as declared, or if there is a frame under a
                key that the layout does not know. Other unknown keys are not looked at.
        """
        if not isinstance(request, Mapping):
            raise ContractError("request", f"got {type(request).__name__}, expected a map")
        images = {}
        for camera in self.cameras:
            value = get(request, camera.key)
            if value is not None:
                images[camera.camera] = self._as_seen(value, camera.key)
            elif camera.required:
                raise ContractError(named(camera.key), "got nothing, expected a frame")
        known = {camera.key for camera in self.cameras}
        unknown = [key for key, value in leaves(request) if key not in known and _is_frame(value)]
        if unknown:
            raise ContractError(
                named(unknown[0]),
                "got a frame that the policy does not look at, expected one of "
                f"{', '.join(named(camera.key) for camera in self.cameras)}",
            )
        prompt = get(request, self.prompt)
        prompt = default_prompt if prompt is None else prompt
        if prompt is None:
            raise ContractError(named(self.prompt), "got nothing, expected the instruction")
        return Observation(
            instruction=prompt,
            state=np.concatenate([_numbers(request, part) for part in self.state]),
            images=images,
            frame_rate_hz=frame_rate_hz,
            captured_at_s=captured_at_s,
        )

    def _as_sent(self, frame: UInt8Array) -> UInt8Array:
        if self.height_px is not None and self.width_px is not None:
            frame = resize_with_pad(frame, height_px=self.height_px, width_px=self.width_px)
        return frame if self.axes is ImageAxes.HWC else frame.transpose(2, 0, 1)

    def _as_seen(self, value: Any, key: Path) -> UInt8Array:
        is_frame = isinstance(value, np.ndarray) and value.dtype == np.uint8 and value.ndim == 3
        channels = {ImageAxes.HWC: -1, ImageAxes.CHW: 0}[self.axes]
        if not is_frame or value.shape[channels] != 3:
            raise ContractError(
                named(key), f"got {_described(value)}, expected a frame, uint8 {self.axes.value}"
            )
        frame: UInt8Array = value
        return frame if self.axes is ImageAxes.HWC else frame.transpose(1, 2, 0)

    def _check_cameras(self, came: tuple[str, ...]) -> None:
        known = [camera.camera for camera in self.cameras]
        missing = [
            each.camera for each in self.cameras if each.required and each.camera not in came
        ]
        extra = [name for name in came if name not in known]
        if missing or extra:
            said = [f"missing {missing}"] if missing else []
            said += [f"not known {extra}"] if extra else []
            raise ContractError(
                "images", f"got cameras with {', '.join(said)}, expected {', '.join(known)}"
            )

    def _check_keys(self) -> None:
        paths = [camera.key for camera in self.cameras] + [part.key for part in self.state]
        paths.append(self.prompt)
        for i, path in enumerate(paths):
            for other in paths[i + 1 :]:
                shared = min(len(path), len(other))
                if path[:shared] == other[:shared]:
                    raise ContractError(
                        "key", f"got {named(path)} and {named(other)}, expected a place for each"
                    )

    def _check_size(self) -> None:
        if self.height_px is None and self.width_px is None:
            return
        if self.height_px is None or self.width_px is None:
            missing = "height_px" if self.height_px is None else "width_px"
            raise ContractError(missing, "got None, expected both sides or neither")
        require_count(height_px=self.height_px, width_px=self.width_px)
        pixels = self.height_px * self.width_px
        require_at_most("max_frame_pixels", pixels, _LIMITS.max_frame_pixels)

    def _expected_state(self) -> str:
        parts = ", ".join(f"{part.count} for {named(part.key)}" for part in self.state)
        return f"{self.state_count}: {parts}"


def _is_frame(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.ndim >= 3


def _numbers(request: Mapping[str, Any], part: StateKey) -> Float64Array:
    """Read one part of the state; one number may come without an axis, as grippers do."""
    value = get(request, part.key)
    if value is None:
        raise ContractError(named(part.key), f"got nothing, expected {part.count} numbers")
    scalar = not isinstance(value, (list, tuple)) and np.ndim(value) == 0
    if scalar and part.count == 1 and not isinstance(value, (str, bytes)):
        value = value[np.newaxis] if isinstance(value, np.ndarray) else [value]
    numbers = readonly_float64(value, field=named(part.key), axes="[S]")
    if len(numbers) != part.count:
        raise ContractError(named(part.key), f"got {len(numbers)} numbers, expected {part.count}")
    return numbers


def _described(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype} of shape {list(value.shape)}"
    return type(value).__name__
