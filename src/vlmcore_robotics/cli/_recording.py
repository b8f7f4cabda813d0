"""Recording what a policy does to a file, call by call."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import vlmcore
from vlmcore.cli.commands import Terminal
from vlmcore.contracts.embodiment import Embodiment
from vlmcore.policy.interface import ForkingPolicy, Policy
from vlmcore.rollout.episode_writer import EpisodeWriter
from vlmcore.rollout.episodes import EpisodeHeader
from vlmcore.rollout.flight_recorder import FlightRecorder, FramesKept
from vlmcore.rollout.forking_recorder import ForkingFlightRecorder
from vlmcore_robotics.cli._robots import STATE, state_as_command

__all__ = ["add_kept", "add_recording", "recorded", "recorder_of"]

_UNKNOWN = "unknown"


def add_recording(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what is recorded."""
    group = parser.add_argument_group("recording")
    group.add_argument(
        "--record",
        metavar="FILE",
        help="write every call to an episode; the file must be new. Sessions that are kept apart "
        "have one each: the next ones FILE-2, FILE-3 and so on, before its suffix",
    )
    add_kept(group)


def add_kept(group: argparse._ArgumentGroup) -> None:
    """Add the options that say what is kept of each call."""
    group.add_argument(
        "--previous",
        choices=(_UNKNOWN, STATE),
        default=_UNKNOWN,
        help="what was sent to the robot last, for the word of the gate that is recorded "
        "(default: %(default)s)",
    )
    group.add_argument(
        "--frames",
        choices=[kept.value for kept in FramesKept],
        default=FramesKept.NONE.value,
        help="what is kept of the newest frame of each camera (default: %(default)s)",
    )


def recorder_of(
    policy: Policy, path: str, arguments: argparse.Namespace, robot: Embodiment
) -> FlightRecorder:
    """
    Record a policy to a new file.

    Raises:
        EpisodeError: If the file is there, or cannot be written.
        PolicyError: If the policy is behind a server that cannot be reached.
        MissingDependencyError: If frames are to be kept, and Pillow is not installed.
    """
    _ = policy.info  # what is wrong with a server or an option is told before there is a file
    options = _options(arguments, robot)
    writer = EpisodeWriter(path, _header(robot))
    return FlightRecorder(policy, robot, writer=writer, **options)


@contextlib.contextmanager
def _recorder_of_sessions(
    policy: ForkingPolicy, path: str, arguments: argparse.Namespace, robot: Embodiment
) -> Iterator[FlightRecorder]:
    """Record each session to a file of its own; the first of them is made at once."""
    options = _options(arguments, robot)
    unused = [EpisodeWriter(path, _header(robot))]

    def new_writer() -> EpisodeWriter:
        return unused.pop() if unused else EpisodeWriter(_next_to(path), _header(robot))

    try:
        yield ForkingFlightRecorder(policy, robot, new_writer=new_writer, **options)
    finally:
        for writer in unused:
            writer.close()


def _options(arguments: argparse.Namespace, robot: Embodiment) -> dict[str, Any]:
    return {
        "clock": time.monotonic,
        "last_command": None if arguments.previous == _UNKNOWN else state_as_command(robot),
        "frames": FramesKept(arguments.frames),
        "keep": 1,  # what was written need not be held, too
    }


def _header(robot: Embodiment) -> EpisodeHeader:
    return EpisodeHeader(embodiment=robot, made_by=f"vlmcore {vlmcore.__version__}")


def _next_to(file: str) -> Path:
    """Name the next file that is not there yet, by a number before the suffix of *file*."""
    path = Path(file)
    names = (path.with_name(f"{path.stem}-{n}{path.suffix}") for n in itertools.count(2))
    return next(each for each in names if not each.exists())


@contextlib.contextmanager
def recorded(
    policy: Policy, arguments: argparse.Namespace, robot: Embodiment, terminal: Terminal
) -> Iterator[Policy]:
    """Record *policy* if ``--record`` says so, and tell in the end what could not be."""
    if arguments.record is None:
        yield policy
        return
    with contextlib.ExitStack() as stack:
        if isinstance(policy, ForkingPolicy):
            recorder = stack.enter_context(
                _recorder_of_sessions(policy, arguments.record, arguments, robot)
            )
        else:
            recorder = recorder_of(policy, arguments.record, arguments, robot)
        try:
            yield recorder
        finally:
            recorder.close()
        if recorder.lost:
            terminal.complain(
                f"vlmcore: {arguments.record}: {recorder.lost} calls are not in it, the last "
                f"because {recorder.problem}"
            )
