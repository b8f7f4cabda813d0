"""Small episodes for tests: a robot of two dimensions, and what a gate made of some chunks."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from safety_cases import joint
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.embodiment import ActionSpace, CameraSpec, Embodiment, LimitsSource
from vlmcore.contracts.observation import Observation
from vlmcore.errors import UnsafeActionError
from vlmcore.rollout.episode_writer import EpisodeWriter
from vlmcore.rollout.episodes import EpisodeHeader, EpisodeStep
from vlmcore.safety import Remedy, SafetyGate, SafetyReport, VettedChunk

ROBOT = Embodiment(
    name="two joints",
    state_names=("x", "y", "battery"),
    actions=ActionSpace(dims=(joint(name="x"), joint(name="y")), rate_hz=20),
    cameras=(CameraSpec(name="front"),),
    limits_source=LimitsSource.DATASET,
)
HEADER = EpisodeHeader(embodiment=ROBOT, made_by="tests 1", made_at="2026-05-04 12:00 UTC")
GATE = SafetyGate(embodiment=ROBOT, remedy=Remedy.CLAMP)
NAN, INF = math.nan, math.inf


def observation(at_s: float = 7.0, *, frames: int = 1, instruction: str = "wait") -> Observation:
    """Make an observation; its frames are one grey after the other."""
    greys = np.arange(frames, dtype=np.uint8)[:, None, None, None]
    return Observation(
        instruction=instruction,
        state=[0.0, 0.0, 11.5],
        images={"front": np.broadcast_to(10 * greys, (frames, 6, 8, 3))},
        frame_rate_hz=10.0,
        captured_at_s=at_s,
    )


def proposal(values: Any, at_s: float = 7.0, **more: Any) -> ActionChunk:
    """Make a chunk of the two joints."""
    fields = {"names": ("x", "y"), "source": "test", **more}
    return ActionChunk(values=values, observed_at_s=at_s, **fields)


def outcome(
    chunk: ActionChunk, last_command: Any, gate: SafetyGate = GATE
) -> VettedChunk | UnsafeActionError:
    """Let the gate decide."""
    try:
        return gate.vet(chunk, last_command=last_command)
    except UnsafeActionError as error:
        return error


def step(
    values: Any = ((0.05, 0.0), (0.1, 0.0)),
    *,
    last_command: Any = (0.0, 0.0),
    executed_steps: int = 0,
    **more: Any,
) -> EpisodeStep:
    """Make a step as a writer would."""
    chunk = proposal(np.array(values))
    came = outcome(chunk, None if last_command is None else list(last_command))
    report = came.report
    assert isinstance(report, SafetyReport)
    fields: dict[str, Any] = {
        "at_s": 7.5,
        "observation": observation().summary(),
        "chunk": chunk,
        "report": report.summary(),
        "last_command": last_command,
        "vetted": came.values if isinstance(came, VettedChunk) else None,
        "executed_steps": executed_steps,
    }
    return EpisodeStep(**fields | more)


def write(path: Path, *steps: EpisodeStep, header: EpisodeHeader = HEADER) -> Path:
    """Write an episode."""
    with EpisodeWriter(path, header) as writer:
        for each in steps:
            writer.append(each)
    return path


def some_steps() -> tuple[EpisodeStep, ...]:
    """Make one step that is kept, one that is clamped and holds NaN, and one that is refused."""
    return (
        step(executed_steps=2),
        step([[0.15, 0.0], [NAN, -INF], [0.9, 0.1]], last_command=(0.1, 0.0), executed_steps=1),
        step([[0.2, 0.0]], last_command=None),
    )
