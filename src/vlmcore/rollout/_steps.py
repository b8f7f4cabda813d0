"""Steps of an episode, made of what came of a chunk and held against it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.observation import Observation, ObservationSummary
from vlmcore.errors import ContractError
from vlmcore.rollout._checks import require_chunk
from vlmcore.rollout._outcomes import Outcome, report_of, require_belongs
from vlmcore.rollout.episode_calls import PolicyCall
from vlmcore.rollout.episode_frames import EncodedFrame
from vlmcore.rollout.episodes import EpisodeHeader, EpisodeStep
from vlmcore.safety.references import read_last_command
from vlmcore.safety.vetted import VettedChunk

__all__ = ["step_of"]


def step_of(
    header: EpisodeHeader,
    observation: Observation | ObservationSummary,
    chunk: ActionChunk,
    outcome: Outcome,
    *,
    last_command: Any,
    at_s: float,
    executed_steps: int = 0,
    position: Mapping[str, float] | None = None,
    frames: Mapping[str, tuple[EncodedFrame, ...]] | None = None,
    call: PolicyCall | None = None,
) -> EpisodeStep:
    """
    Make a step; the arguments are those of `vlmcore.rollout.episode_writer.EpisodeWriter.record`.

    Raises:
        ContractError: If the parts contradict each other, or are not of the robot in *header*.
    """
    if not isinstance(observation, (Observation, ObservationSummary)):
        raise ContractError(
            "observation", f"got {type(observation).__name__}, expected an Observation"
        )
    require_chunk("chunk", chunk)
    robot = header.embodiment
    step = EpisodeStep(
        at_s=at_s,
        observation=observation.summary() if isinstance(observation, Observation) else observation,
        chunk=chunk,
        report=report_of(outcome).summary(),
        last_command=read_last_command(last_command, robot.actions),
        vetted=outcome.values if isinstance(outcome, VettedChunk) else None,
        executed_steps=executed_steps,
        position=position or getattr(outcome, "position", None) or {},
        frames=frames or {},
        call=call,
    )
    header.require_fits(step)
    require_belongs(outcome, step, robot)
    return step
