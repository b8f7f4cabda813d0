"""
Episodes that graphs write and play back, in the folder ``episodes`` of ComfyUI's output.

An episode goes on from one graph to the next, until another is begun or ComfyUI ends; each line is
on the disk when its node is done.
"""

from __future__ import annotations

import threading
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import attrs

from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.embodiment import Embodiment
from vlmcore.contracts.observation import Observation
from vlmcore.errors import ContractError, MediaError
from vlmcore.rollout.episode_frames import FrameEncoding, encode_frames
from vlmcore.rollout.episode_reader import EpisodeReader
from vlmcore.rollout.episode_writer import EpisodeWriter
from vlmcore.rollout.episodes import EpisodeHeader, EpisodeStep
from vlmcore.rollout.recorded_moments import observation_of
from vlmcore.safety.gate import SafetyGate
from vlmcore.safety.vetted import VettedChunk
from vlmcore_comfy.chunk_texts import named_as
from vlmcore_comfy.declaring import Blocked
from vlmcore_comfy.folders import place_in
from vlmcore_comfy.hosting import Host
from vlmcore_comfy.keeping import Kept
from vlmcore_comfy.numbered_files import claim_file
from vlmcore_comfy.seeing import SeenBy

__all__ = ["FRAMES", "Recorded", "find_episode", "record", "recorded_step", "seen_again"]

#: What the labels of the recorder mean.
FRAMES = {
    "As JPEG": FrameEncoding.JPEG,
    "As PNG, every pixel": FrameEncoding.PNG,
    "None": None,
}
_FOLDER = "episodes"
_MADE_BY = "VLAPolicyRecorder"


class _Open:
    """An episode that is being written, and where it lies."""

    def __init__(self, folder: Path, name: str, robot: Embodiment) -> None:
        self.path = claim_file(folder / _FOLDER, name, "jsonl", field="episode_name")
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        header = EpisodeHeader(embodiment=robot, made_by=_MADE_BY, made_at=now)
        self.writer = EpisodeWriter(self.path, header, overwrite=True)  # it was claimed, empty

    def close(self) -> None:
        self.writer.close()


_open: Kept[tuple[Path, str, Embodiment], _Open] = Kept(most=8)
_recording = threading.Lock()  # the clock is read in the order in which lines are written


@attrs.frozen
class Recorded:
    """
    What was written.

    Attributes:
        path: The file, from ComfyUI's output folder.
        step: What its last line says.
        steps: How many there are.
    """

    path: str
    step: EpisodeStep
    steps: int


def record(
    folder: Path,
    name: str,
    robot: Embodiment,
    observation: Observation,
    chunk: ActionChunk,
    *,
    vetted: VettedChunk | None,
    last_command: Any,
    encoding: FrameEncoding | None,
    is_new: bool,
) -> Recorded:
    """
    Write what a policy was shown, what it proposed and what the gate made of it.

    Args:
        folder: ComfyUI's output folder.
        name: What the episode is called; a number is added.
        robot: Whose it is.
        observation: What the policy was shown.
        chunk: What it proposed.
        vetted: What the gate let through of it. If ``None``, the gate is asked for a report alone.
        last_command: What was sent last, where *vetted* does not say it.
        encoding: How the newest frame of each camera is kept, if at all.
        is_new: Whether an episode of that name that is open ends before.

    Raises:
        ContractError: If the parts contradict each other, or the name leads elsewhere.
        EpisodeError: If it cannot be written.
        LimitExceededError: If it would become too large.
    """
    chunk = named_as(chunk, robot.actions.names)
    if vetted is None:
        gate = SafetyGate(embodiment=robot, execution_horizon=chunk.horizon, reorder=True)
        outcome: Any = gate.check(chunk, last_command=last_command)
        given = {"last_command": last_command}
    else:
        outcome, given = vetted, {"last_command": vetted.last_command, "position": vetted.position}
    frames = {} if encoding is None else encode_frames(observation, encoding)
    key = (folder, name, robot)
    with _recording:
        if is_new:
            _open.drop(key)
        episode = _open.get(key, lambda: _Open(folder, name, robot))
        if not episode.path.exists():  # somebody took it away; what follows would be lost
            _open.drop(key)
            episode = _open.get(key, lambda: _Open(folder, name, robot))
        step = episode.writer.record(
            observation, chunk, outcome, at_s=time.monotonic(), frames=frames, **given
        )
        steps = episode.writer.steps
    return Recorded(episode.path.relative_to(folder).as_posix(), step, steps)


def find_episode(folder: Path, text: str) -> EpisodeReader:
    """
    Open an episode of ComfyUI's output folder; a graph of a stranger opens nothing else.

    Raises:
        ContractError: If *text* is not the path of a file in it.
        EpisodeError: If there is no such file, or it is no episode.
    """
    if not text.strip():
        raise ContractError("episode", f"is blank, expected a file as {_FOLDER}/run.jsonl")
    what = "a file in ComfyUI's output folder"
    return EpisodeReader(place_in(folder, text, field="episode", what=what))


def recorded_step(episode: EpisodeReader, index: int, comfyui: Host) -> EpisodeStep:
    """
    Read one step; those before it are read, too.

    Raises:
        ContractError: If there is none of that number.
        EpisodeError: If a line has faults.
    """
    count = 0
    for step in episode:
        comfyui.raise_if_stopped()
        if count == index:
            return step
        count += 1
    expected = f"expected 0 to {count - 1}" if count else "and the episode has no step yet"
    raise ContractError("step", f"got {index}, {expected}")


def seen_again(step: EpisodeStep, robot: Embodiment) -> SeenBy | Blocked:
    """Make the observation of a step again; where no pictures were kept, say why there is none."""
    try:
        return SeenBy(observation_of(step), robot)
    except (ContractError, MediaError) as error:
        return Blocked(f"The episode does not hold what was shown: {error}")
