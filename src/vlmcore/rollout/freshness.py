"""How old what a robot acts on may be: observations, single cameras, and chunks."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import attrs
import numpy as np

from vlmcore._arguments import shown
from vlmcore._arrays import UInt8Array, plain_float, require_finite, require_positive
from vlmcore.contracts.observation import Observation
from vlmcore.errors import ContractError

__all__ = ["Freshness", "MaxAges", "TimedObservation"]


def _times(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    return MappingProxyType({name: plain_float(each) for name, each in value.items()})


def _require_by_camera(field: str, value: Any) -> None:
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise ContractError(field, f"got {shown(value)}, expected seconds by the names of cameras")


@attrs.frozen(kw_only=True)
class MaxAges:
    """
    How old what a robot acts on may be, in seconds.

    Attributes:
        observation_s: How long before it is shown to the policy an observation was made. A camera
            that gives the same frame with the same time again and again is too old after as long.
        chunk_s: How long before it is executed the observation of a chunk was made: at least the
            time of an inference and of all steps of the chunk that are to be executed.
        cameras_s: The same as *observation_s* for cameras whose times are known, where it differs.
        unchanged_s: For how long all pixels of a camera may stay as they are; ``None`` for as long
            as they like. It finds a camera that froze behind a driver which stamps each copy anew.
            Frames of a real sensor are never the same twice; those of a simulator are.

    Raises:
        ContractError: If a field is not as described.
    """

    observation_s: float = attrs.field(converter=plain_float)
    chunk_s: float = attrs.field(converter=plain_float)
    cameras_s: Mapping[str, float] = attrs.field(factory=dict, converter=_times, hash=False)
    unchanged_s: float | None = attrs.field(default=None, converter=plain_float)

    def __attrs_post_init__(self) -> None:
        require_positive(observation_s=self.observation_s, chunk_s=self.chunk_s)
        _require_by_camera("cameras_s", self.cameras_s)
        for name, age_s in self.cameras_s.items():
            require_positive(**{f"cameras_s[{shown(name)}]": age_s})
        if self.unchanged_s is not None:
            require_positive(unchanged_s=self.unchanged_s)


@attrs.frozen(kw_only=True)
class TimedObservation:
    """
    An observation of which it is known when single cameras took their newest frame.

    Attributes:
        observation: What the policy is shown.
        captured_at_s: By camera, a reading of the clock of the observation; not after its own
            ``captured_at_s``, which is that of the newest frame. Cameras may be left out.

    Raises:
        ContractError: If a field is not as described.
    """

    observation: Observation
    captured_at_s: Mapping[str, float] = attrs.field(converter=_times, hash=False)

    def __attrs_post_init__(self) -> None:
        seen = self.observation
        if not isinstance(seen, Observation):
            raise ContractError(
                "observation", f"got {type(seen).__name__}, expected an Observation"
            )
        _require_by_camera("captured_at_s", self.captured_at_s)
        for name, at_s in self.captured_at_s.items():
            field = f"captured_at_s[{shown(name)}]"
            if name not in seen.images:
                known = ", ".join(seen.images)
                raise ContractError(field, f"is of no camera of the observation: {known}")
            require_finite(**{field: at_s})
            if at_s > seen.captured_at_s:
                raise ContractError(
                    field,
                    f"got {at_s!r}, expected at most captured_at_s of the observation, "
                    f"{seen.captured_at_s!r}: that of the newest frame",
                )


class Freshness:
    """
    Says of one observation after the other whether it is too old; it reads no clock.

    Args:
        ages: How old they may be.

    Example:
        >>> picture = np.zeros((2, 2, 3), np.uint8)
        >>> seen = Observation(instruction="go", state=[0.0], images={"front": picture},
        ...     frame_rate_hz=20, captured_at_s=7.0)
        >>> fresh = Freshness(MaxAges(observation_s=0.2, chunk_s=1.0))
        >>> fresh.problem(seen, now_s=7.1)
        >>> fresh.problem(seen, now_s=7.5)
        'the observation is 0.5 s old, expected at most 0.2 s'
    """

    def __init__(self, ages: MaxAges) -> None:
        if not isinstance(ages, MaxAges):
            raise ContractError("max_ages", f"got {type(ages).__name__}, expected MaxAges")
        self._ages = ages
        self.forget()

    def forget(self) -> None:
        """Forget the frames that were seen."""
        self._seen: dict[str, tuple[UInt8Array, float]] = {}  # and since when it is the same

    def problem(self, seen: Observation | TimedObservation, *, now_s: float) -> str | None:
        """
        Say what is too old in *seen*; ``None`` if nothing is.

        Args:
            seen: The next observation.
            now_s: Reading of the clock by which it is stamped.

        Raises:
            ContractError: If it was made after *now_s*; or if a camera has an age of its own, and
                nobody says when it took its frame.
        """
        times: Mapping[str, float] = {}
        if isinstance(seen, TimedObservation):
            observation, times = seen.observation, seen.captured_at_s
        else:
            observation = seen
        age_s = now_s - observation.captured_at_s
        if age_s < 0:
            raise ContractError(
                "observation.captured_at_s",
                f"got {-age_s:g} s after now, expected the same clock and before it",
            )
        for name in self._ages.cameras_s:
            if name not in times:
                raise ContractError(
                    f"max_ages.cameras_s[{name!r}]",
                    "got an age for a camera whose times nobody says, expected a TimedObservation",
                )
        unchanged = self._unchanged(observation, now_s)
        most_s = self._ages.observation_s
        if age_s > most_s:
            return _said("the observation", age_s, most_s)
        for name, at_s in times.items():
            camera_most_s = self._ages.cameras_s.get(name, most_s)
            if now_s - at_s > camera_most_s:
                return _said(f"the frame of {name!r}", now_s - at_s, camera_most_s)
        return unchanged

    def _unchanged(self, seen: Observation, now_s: float) -> str | None:
        """Note since when the newest frame of each camera is the same, and say which is too old."""
        most_s = self._ages.unchanged_s
        if most_s is None:
            return None
        before, self._seen = self._seen, {}
        for name, frames in seen.images.items():
            newest = frames[-1]
            frame, since_s = before.get(name, (newest, now_s))
            if frame is not newest and not np.array_equal(frame, newest):
                since_s = now_s
            self._seen[name] = newest, since_s
        for name, (_, since_s) in self._seen.items():
            if now_s - since_s > most_s:
                return (
                    f"the frame of {name!r} has not changed for {now_s - since_s:g} s, expected "
                    f"at most {most_s:g} s"
                )
        return None


def _said(what: str, age_s: float, most_s: float) -> str:
    return f"{what} is {age_s:g} s old, expected at most {most_s:g} s"
