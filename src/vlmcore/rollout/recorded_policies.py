"""Policies that answer with what was recorded or written down: an episode, or one chunk."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, final

import attrs

from vlmcore._arguments import require_switch, shown
from vlmcore._closing import Closing
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.embodiment import Embodiment
from vlmcore.contracts.observation import Observation
from vlmcore.errors import ContractError, EpisodeError, PolicyError
from vlmcore.policy.fitting import require_expected
from vlmcore.policy.interface import PolicyInfo
from vlmcore.rollout._checks import require_chunk
from vlmcore.rollout._ordering import in_order
from vlmcore.rollout.episode_calls import EpisodeFailure, digest_of
from vlmcore.rollout.episode_reader import EpisodeReader, require_reader
from vlmcore.rollout.episodes import EpisodeStep

__all__ = ["ConstantPolicy", "EpisodePolicy", "episode_horizon"]


@final
class ConstantPolicy(Closing):
    """
    A `vlmcore.policy.interface.Policy` that answers with one chunk to whatever it is shown.

    It keeps nothing between calls, and is safe for threads. A chunk in a file is read by
    `vlmcore.contracts.documents.action_chunk_from_json`.

    Args:
        chunk: The answer; its time is that of the observation each time.
        info: What it says about itself, its name and the names of *chunk* unless given.

    Raises:
        ContractError: If an argument is not as described, or they contradict each other.

    Example:
        >>> from vlmcore.contracts.presets import find_embodiment
        >>> from vlmcore.testing import example_observation
        >>> seen = example_observation(find_embodiment("aloha_bimanual_template"))
        >>> nod = ActionChunk(values=[[0.1]], names=("neck",), source="nod", observed_at_s=0.0)
        >>> ConstantPolicy(nod).infer(seen).values.tolist()
        [[0.1]]
    """

    def __init__(self, chunk: ActionChunk, *, info: PolicyInfo | None = None) -> None:
        require_chunk("chunk", chunk)
        if info is None:
            info = PolicyInfo(name=chunk.source, action_names=chunk.names, horizon=chunk.horizon)
        _require_info(info)
        for field, said, true in (
            ("action_names", info.action_names, chunk.names),
            ("horizon", info.horizon, chunk.horizon),
        ):
            if said not in (None, true):
                raise ContractError(
                    f"info.{field}",
                    f"got {shown(said, 200)}, expected that of the chunk, {shown(true, 200)}",
                )
        self._chunk = attrs.evolve(chunk, source=info.name)
        self._info = info
        self._is_closed = False

    @property
    def info(self) -> PolicyInfo:
        """What it says about itself."""
        return self._info

    def infer(self, observation: Observation, /) -> ActionChunk:
        """
        Give the chunk.

        Raises:
            PolicyError: If it is closed.
            ContractError: If it is shown something else than an observation of what `info` says.
        """
        _require_open(self._info, is_closed=self._is_closed)
        require_expected(observation, self._info)
        return attrs.evolve(self._chunk, observed_at_s=observation.captured_at_s)

    def reset(self) -> None:
        """
        Do nothing: it knows no episode.

        Raises:
            PolicyError: If it is closed.
        """
        _require_open(self._info, is_closed=self._is_closed)

    def fork(self) -> ConstantPolicy:
        """Make another one that is closed by itself."""
        return ConstantPolicy(self._chunk, info=self._info)

    def close(self) -> None:
        """Refuse further calls. Closing twice is no error."""
        self._is_closed = True


@final
class EpisodePolicy(Closing):
    """
    A `vlmcore.policy.interface.Policy` that answers as it was recorded, call by call.

    The first call is answered with the chunk of the first step, as it was proposed, and so on; a
    call that failed then fails again. What is shown makes no difference, unless *is_checked* says
    that it must be what was shown then. Nothing of what was recorded is vetted.

    One thread calls it. One step is read at a time.

    Args:
        episode: What was recorded.
        name: What it is called in chunks and errors.
        horizon: How many steps each chunk has, if that is known: `episode_horizon` reads it from
            the file. A chunk of another length is an error.
        is_checked: Whether an observation must have the digest that was recorded; a
            `vlmcore.rollout.flight_recorder.FlightRecorder` records it.

    Raises:
        ContractError: If an argument is not as described.

    Example:
        ::

            policy = EpisodePolicy(EpisodeReader("run.jsonl"), is_checked=True)
            chunk = policy.infer(observation)
    """

    def __init__(
        self,
        episode: EpisodeReader,
        *,
        name: str = "replay",
        horizon: int | None = None,
        is_checked: bool = False,
    ) -> None:
        require_reader(episode)
        require_switch(is_checked=is_checked)
        robot = episode.header.embodiment
        self._episode = episode
        self._is_checked = is_checked
        self._info = _info_of(robot, name, horizon)
        self._names = robot.actions.names
        self._events = _events(episode)
        self._calls = 0
        self._is_closed = False

    @property
    def info(self) -> PolicyInfo:
        """What the robot of the episode says of it, and the horizon that was given."""
        return self._info

    def infer(self, observation: Observation, /) -> ActionChunk:
        """
        Give the next chunk of the episode.

        Raises:
            PolicyError: If the episode is at its end, the policy failed at this call, the next line
                cannot be read, its chunk is of another length than `info` says, something else was
                shown than then, or it is closed.
            ContractError: If it is shown something else than an observation of what `info` says.
        """
        _require_open(self._info, is_closed=self._is_closed)
        require_expected(observation, self._info)
        event = self._next()
        if self._is_checked:
            self._check(event, observation)
        if isinstance(event, EpisodeFailure):
            raise self._problem(f"it failed when it was recorded: {event.error}")
        chunk = in_order(event.chunk, self._names)
        if self._info.horizon not in (None, chunk.horizon):
            raise self._problem(
                f"its chunk at call {self._calls - 1} has {chunk.horizon} steps, expected "
                f"{self._info.horizon}"
            )
        return attrs.evolve(chunk, source=self._info.name, observed_at_s=observation.captured_at_s)

    def reset(self) -> None:
        """
        Begin again with the first call.

        Raises:
            PolicyError: If it is closed.
        """
        _require_open(self._info, is_closed=self._is_closed)
        self._events.close()
        self._events = _events(self._episode)
        self._calls = 0

    def fork(self) -> EpisodePolicy:
        """Make another one, at the first call."""
        return EpisodePolicy(
            self._episode,
            name=self._info.name,
            horizon=self._info.horizon,
            is_checked=self._is_checked,
        )

    def close(self) -> None:
        """Refuse further calls, and close the file. Closing twice is no error."""
        self._is_closed = True
        self._events.close()

    def _next(self) -> EpisodeStep | EpisodeFailure:
        try:
            event = next(self._events, None)
        except EpisodeError as error:
            raise self._problem(str(error)) from error
        if event is None:
            raise self._problem(f"its episode of {self._calls} calls is at its end")
        self._calls += 1
        return event

    def _check(self, event: EpisodeStep | EpisodeFailure, observation: Observation) -> None:
        if event.call is None:
            raise self._problem(
                f"call {self._calls - 1} was recorded without a digest, expected one: "
                "a FlightRecorder records it"
            )
        if digest_of(observation) != event.call.digest:
            raise self._problem(
                f"something else is shown at call {self._calls - 1} than when it was recorded"
            )

    def _problem(self, words: str) -> PolicyError:
        return PolicyError(self._info.name, words)


def _events(episode: EpisodeReader) -> Generator[EpisodeStep | EpisodeFailure, None, None]:
    yield from episode.events()


def episode_horizon(episode: EpisodeReader) -> int | None:
    """
    Read the whole episode once, and say how many steps each of its chunks has.

    Returns:
        That number; ``None`` where they differ, or there are none.

    Raises:
        EpisodeError: If a line has faults, or the file cannot be read.
        ContractError: If it is no EpisodeReader.
    """
    require_reader(episode)
    found = {step.chunk.horizon for step in episode}
    return found.pop() if len(found) == 1 else None


def _info_of(robot: Embodiment, name: str, horizon: int | None) -> PolicyInfo:
    return PolicyInfo(
        name=name,
        action_names=robot.actions.names,
        action_units=[dim.unit for dim in robot.actions.dims],
        state_names=robot.state_names,
        horizon=horizon,
        rate_hz=robot.actions.rate_hz,
    )


def _require_info(info: Any) -> None:
    if not isinstance(info, PolicyInfo):
        raise ContractError("info", f"got {type(info).__name__}, expected a PolicyInfo")


def _require_open(info: PolicyInfo, *, is_closed: bool) -> None:
    if is_closed:
        raise PolicyError(info.name, "this policy is closed: make it again")
