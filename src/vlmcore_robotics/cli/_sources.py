"""Policies as a command line names them: where each comes from, and how it is made."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from vlmcore.cli.commands import Terminal
from vlmcore.cli.robot_commands import RecordingFile, start_of
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.embodiment import Embodiment
from vlmcore.errors import ContractError
from vlmcore.policy.interface import Policy, PolicyInfo
from vlmcore.rollout.episode_reader import EpisodeReader
from vlmcore.rollout.recorded_policies import ConstantPolicy, EpisodePolicy, episode_horizon
from vlmcore_robotics.cli._modules import made_by
from vlmcore_robotics.cli._remotes import client_of

__all__ = ["HELP", "policy_of"]

HELP = """\
SOURCE is where the policy comes from:

  lerobot:FOLDER       a policy of LeRobot, as save_pretrained writes it
  episode:FILE         what was recorded, chunk by chunk; an error after the last one
  chunk:FILE           a recorded chunk (a document, an answer, an array), again and again
  constant:NUMBERS     one action of the robot: 0.1,-0.2,..., name=number,... or zero
  MODULE:NAME          a Policy, or a function or class that makes one when it is called without
                       arguments; this runs the code of the module
  URL                  a policy behind a server: ws://, wss://, http://, https://, tcp://
"""


def policy_of(
    word: str, arguments: argparse.Namespace, robot: Embodiment, terminal: Terminal
) -> Policy:
    """
    Make the policy that *word* names.

    Raises:
        ContractError: If there is none; its field is the word, or a file.
        EpisodeError: If an episode cannot be read.
        PolicyError: If it cannot be loaded.
        EndpointError: If an address is not one that may be dialled.
        MissingDependencyError: If a package is not installed.
    """
    kind, colon, rest = word.partition(":")
    if not (kind and colon and rest):
        raise ContractError(
            "SOURCE", f"got {word!r:.80}, expected one of those that --help lists, as chunk:FILE"
        )
    if rest.startswith("//"):
        return client_of(word, arguments, robot, terminal)
    match kind:
        case "lerobot":
            return _lerobot(rest, robot)
        case "episode":
            episode = EpisodeReader(rest)
            # Clients of GR00T are told beforehand; for no others the whole file is read first.
            is_told = getattr(arguments, "protocol", None) == "groot"
            horizon = episode_horizon(episode) if is_told else None
            return EpisodePolicy(episode, name=_name(rest), horizon=horizon)
        case "chunk":
            recording = RecordingFile(word=rest, names=robot.actions.names, reorder=True).read()
            return _constant(recording.chunk, robot)
        case "constant":
            return _constant(_action(rest, arguments.horizon, robot), robot)
        case _:
            return made_by(kind, rest, terminal, is_here=arguments.import_here)


def _constant(chunk: ActionChunk, robot: Embodiment) -> ConstantPolicy:
    info = PolicyInfo(
        name=chunk.source,
        action_names=chunk.names,
        action_units=[dim.unit for dim in robot.actions.dims],
        state_names=robot.state_names,
        horizon=chunk.horizon,
        rate_hz=robot.actions.rate_hz,
    )
    return ConstantPolicy(chunk, info=info)


def _action(word: str, horizon: int, robot: Embodiment) -> ActionChunk:
    try:
        command = start_of(word, None, robot.actions).last_command
    except ContractError as error:
        if error.field != "--previous":
            raise
        raise ContractError("SOURCE", f"constant: {error.problem}") from None
    if command is None:
        raise ContractError("SOURCE", f"constant: got {word!r:.80}, expected numbers, or zero")
    if not horizon >= 1:
        raise ContractError("--horizon", f"got {horizon}, expected at least 1")
    values = np.repeat(command[np.newaxis], horizon, axis=0)
    names = robot.actions.names
    return ActionChunk(values=values, names=names, source="constant", observed_at_s=0.0)


def _lerobot(folder: str, robot: Embodiment) -> Policy:
    from vlmcore_robotics.adapters.lerobot import LeRobotPolicy  # noqa: PLC0415 - what needs it

    return LeRobotPolicy.from_pretrained(folder, embodiment=robot)


def _name(path: str) -> str:
    name = Path(path).name
    return name if name.isprintable() and name.strip() else "episode"
