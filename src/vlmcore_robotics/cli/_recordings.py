"""What a command line names as recorded: episodes in files, and data sets in folders."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator
from pathlib import Path

from vlmcore.cli.commands import Terminal
from vlmcore.cli.robot_commands import robot_of
from vlmcore.contracts.embodiment import Embodiment
from vlmcore.errors import ContractError
from vlmcore.rollout.episode_reader import EpisodeReader
from vlmcore.rollout.recorded_moments import EpisodeMoments, RecordedEpisode
from vlmcore_robotics.datasets.lerobot_reader import LeRobotDatasetReader

__all__ = ["HELP", "recorded_episodes", "robot_of_recordings"]

HELP = """\
RECORDED is an episode, as FILE, or a LeRobotDataset of version 3.0, as FOLDER.
"""

_ROBOT = Path("meta", "embodiment.json")  # where an export puts it


def robot_of_recordings(arguments: argparse.Namespace) -> Embodiment:
    """
    Find the robot: that of ``--embodiment``, or the one that the first recording names.

    Raises:
        ContractError: If there is none; its field is ``--embodiment``, or the file.
        EpisodeError: If the first recording cannot be read.
    """
    if arguments.embodiment is not None:
        return robot_of(arguments.embodiment)
    first = Path(arguments.recorded[0])
    if not first.is_dir():
        return EpisodeReader(first).header.embodiment
    if (first / _ROBOT).is_file():
        return robot_of(str(first / _ROBOT))
    raise ContractError("--embodiment", f"is missing, expected the robot of {first}")


def recorded_episodes(
    arguments: argparse.Namespace, robot: Embodiment, terminal: Terminal
) -> Iterator[RecordedEpisode]:
    """
    Give the episodes, as many of each data set as ``--episodes`` says; note in what they differ.

    Raises:
        EpisodeError: If a recording cannot be read.
        ContractError: If it is of other actions or states than the robot.
    """
    for word in arguments.recorded:
        if Path(word).is_dir():
            data = LeRobotDatasetReader(word, robot=robot, instruction=arguments.instruction)
            for difference in data.differences:
                terminal.note(f"{word}: {difference}")
            yield from itertools.islice(data, arguments.episodes)
        else:
            yield EpisodeMoments(EpisodeReader(word), name=word)
