"""
What a recording says of each observation: what the robot was sent from it on, until the next one.

It is what a policy is compared with that did not drive the robot, and what data sets are made of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from typing import Any, Protocol, runtime_checkable

import attrs
import numpy as np

from vlmcore._arguments import shown
from vlmcore._arrays import Float64Array, UInt8Array, readonly_float64
from vlmcore.contracts.embodiment import ActionSpace
from vlmcore.contracts.observation import CameraSummary, Observation
from vlmcore.errors import ContractError
from vlmcore.rollout.episode_reader import EpisodeReader, require_reader
from vlmcore.rollout.episodes import EpisodeStep
from vlmcore.rollout.holding import HELD

__all__ = [
    "EpisodeMoments",
    "RecordedEpisode",
    "RecordedMoment",
    "observation_of",
    "observed_steps",
    "sent_until_the_next",
]


def _sent(value: Any) -> Float64Array:
    return readonly_float64(value, field="sent", axes="[N, D]")


@attrs.frozen(kw_only=True, eq=False)
class RecordedMoment:
    """
    An observation, and what was sent to the robot from it on.

    Attributes:
        observe: Gives the observation; pictures are decoded then, and not before.
        sent: The actions that were sent after it and before the next observation, one a control
            step, shape ``[N, D]``. A value may be NaN: then nobody knows it.
        is_followed: Whether the next moment is the control step after the last one of *sent*.
        last_command: What was sent before it, shape ``[D]``; ``None`` if nobody knows.
        position: The measured positions of then, by the name of the dimension.
    """

    observe: Callable[[], Observation]
    sent: Float64Array = attrs.field(converter=_sent)
    is_followed: bool = True
    last_command: Float64Array | None = None
    position: Mapping[str, float] = attrs.field(factory=dict)


@runtime_checkable
class RecordedEpisode(Protocol):
    """An episode of whatever kind, moment by moment."""

    @property
    def name(self) -> str:
        """What it is called in reports and errors."""
        ...

    @property
    def action_names(self) -> tuple[str, ...]:
        """What the numbers of an action are, in their order."""
        ...

    @property
    def space(self) -> ActionSpace | None:
        """What the actions are, if that is known."""
        ...

    def moments(self) -> Iterator[RecordedMoment]:
        """Give the moments in their order."""
        ...


class EpisodeMoments:
    """
    A `RecordedEpisode` of the steps that an `EpisodeWriter` recorded.

    Steps that follow each other and show the same observation are one moment, as those of a
    `ChunkBroker` between two answers of its policy.

    Args:
        episode: What was recorded.
        name: What it is called in reports and errors.
    """

    def __init__(self, episode: EpisodeReader, *, name: str = "episode") -> None:
        require_reader(episode)
        self._episode = episode
        self._name = name

    @property
    def name(self) -> str:
        """What it is called in reports and errors."""
        return self._name

    @property
    def action_names(self) -> tuple[str, ...]:
        """Those of the robot."""
        return self._episode.header.embodiment.actions.names

    @property
    def space(self) -> ActionSpace:
        """That of the robot."""
        return self._episode.header.embodiment.actions

    def moments(self) -> Iterator[RecordedMoment]:
        """
        Give the moments in their order.

        Raises:
            EpisodeError: If a line has faults, or the file cannot be read.
        """
        for steps in observed_steps(self._episode):
            yield _moment(steps, self.space.rate_hz)


def observed_steps(episode: EpisodeReader) -> Iterator[list[EpisodeStep]]:
    """
    Give the steps of each observation together; the pixels are kept of one step only.

    Raises:
        EpisodeError: If a line has faults, or the file cannot be read.
    """
    for _, steps in groupby(episode, key=lambda step: step.observation):
        together: list[EpisodeStep] = []
        for step in steps:
            has_frames = any(each.frames for each in together)
            together.append(attrs.evolve(step, frames={}) if has_frames else step)
        yield together


def sent_until_the_next(steps: list[EpisodeStep], *, rate_hz: float) -> tuple[Float64Array, bool]:
    """
    Take what was sent for one observation, one action a control step.

    Where the gate refused a step and the robot was told to stand still instead, in the same control
    step, that is what was sent: a loop with a latch does so.

    Args:
        steps: The steps of the observation.
        rate_hz: How many control steps a second has.

    Returns:
        The actions, shape ``[N, D]``, up to the first step for which nothing was sent; and whether
        there was no such step. After it nobody knows how many control steps went by.
    """
    rows: list[Float64Array] = []
    is_followed = True
    for step, following in zip(steps, [*steps[1:], None], strict=True):
        if step.executed_steps:
            rows.append(step.sent)
        elif following is None or not _stands_in(following, step, rate_hz):
            is_followed = False
            break
    width = steps[0].report.action_dim
    return np.concatenate(rows) if rows else np.empty((0, width)), is_followed


def _stands_in(held: EpisodeStep, refused: EpisodeStep, rate_hz: float) -> bool:
    """Say whether a step stands still in the control step of one that was refused."""
    is_held = held.chunk.source == HELD and held.executed_steps == 1
    return is_held and held.at_s - refused.at_s < 0.5 / rate_hz


def _moment(steps: list[EpisodeStep], rate_hz: float) -> RecordedMoment:
    sent, is_followed = sent_until_the_next(steps, rate_hz=rate_hz)
    shown = next((step for step in steps if step.frames), steps[0])
    return RecordedMoment(
        observe=lambda: observation_of(shown),
        sent=sent,
        is_followed=is_followed,
        last_command=steps[0].last_command,
        position=steps[0].position,
    )


def observation_of(step: EpisodeStep) -> Observation:
    """
    Make the observation of a recorded step again, from the frames that were kept.

    Of each camera all frames must have been kept, or the newest alone: then that is its history.
    What was kept as JPEG is not what the policy saw, pixel by pixel.

    Raises:
        ContractError: If frames are missing, or not as large as the camera showed them.
        MediaError: If one cannot be decoded.
        MissingDependencyError: If Pillow is not installed.
    """
    seen, images = step.observation, {}
    for name, camera in seen.cameras.items():
        kept = step.frames.get(name, ())
        numbers = [frame.frame_index for frame in kept]
        if numbers not in (list(range(camera.frames)), [camera.frames - 1]):
            came = f"the frames {shown(numbers)} of {camera.frames}" if numbers else "none"
            raise ContractError(
                f"frames[{shown(name)}]",
                f"got {came}, expected all or the newest: record with "
                "frames=encode_frames(observation)",
            )
        pictures = [frame.pixels() for frame in kept]
        for picture in pictures:
            _require_whole(picture, name, camera)
        images[name] = np.stack(pictures)
    return Observation(
        instruction=seen.instruction,
        state=seen.state,
        images=images,
        frame_rate_hz=seen.frame_rate_hz,
        captured_at_s=seen.captured_at_s,
    )


def _require_whole(picture: UInt8Array, name: str, camera: CameraSummary) -> None:
    """Refuse a thumbnail: no policy was shown it."""
    height_px, width_px, _ = picture.shape
    if (height_px, width_px) != (camera.height_px, camera.width_px):
        raise ContractError(
            f"frames[{shown(name)}]",
            f"got {height_px} x {width_px} pixels, expected {camera.height_px} x "
            f"{camera.width_px} (height x width), as the camera showed them: record without "
            "making frames smaller",
        )
