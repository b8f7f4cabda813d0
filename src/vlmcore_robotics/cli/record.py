"""``vlmcore policy record``: ask a policy some times, and write what it answers to an episode."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import time
from collections.abc import Iterator
from typing import Any

import attrs

from vlmcore.cli.commands import ExitCode, Terminal, add_parser
from vlmcore.contracts.embodiment import Embodiment
from vlmcore.contracts.observation import Observation
from vlmcore.errors import ContractError, PolicyError
from vlmcore.rollout.episode_reader import EpisodeReader
from vlmcore.rollout.recorded_moments import observation_of
from vlmcore_robotics.cli._observing import add_observation, observation_from
from vlmcore_robotics.cli._recording import add_kept, recorder_of
from vlmcore_robotics.cli._remotes import add_remote
from vlmcore_robotics.cli._robots import add_robot, robot_from
from vlmcore_robotics.cli._sources import HELP, policy_of

__all__ = ["add"]

_EPILOG = f"""\
{HELP}
Each call is on disk before the next one. A call that fails is written, too, and the next one is
made. Without --observations the same observation is shown each time; with it those of an episode
that kept its frames, once each. 'vlmcore policy serve SOURCE --record FILE' records between a robot
and its policy.
"""
_CALLS = 10


def add(commands: Any) -> None:
    """Add the command to *commands*."""
    parser = add_parser(
        commands,
        "record",
        work=_record,
        summary="ask a policy some times, and write what it answers to an episode",
        epilog=_EPILOG,
        done="every call was answered",
        incomplete="a call failed, or a file cannot be used",
    )
    parser.add_argument("source", metavar="SOURCE", help="where the policy comes from, see below")
    parser.add_argument("file", metavar="FILE", help="the episode; it must be new")
    add_robot(parser)
    parser.add_argument(
        "--calls", type=int, metavar="N", help=f"how often it is asked (default: {_CALLS}, or all)"
    )
    parser.add_argument(
        "--observations", metavar="EPISODE", help="show what was recorded, with its frames"
    )
    parser.add_argument(
        "--horizon", type=int, default=1, metavar="N", help="of constant:, how many steps"
    )
    parser.add_argument(
        "--import-here", action="store_true", help="of MODULE:NAME, look into this folder, too"
    )
    add_observation(parser)
    add_remote(parser, is_source=True)
    add_kept(parser.add_argument_group("recording"))
    group = parser.add_argument_group("output")
    group.add_argument("--json", action="store_true", help="one JSON object")
    group.add_argument("--quiet", "-q", action="store_true", help="no notes, only complaints")


def _record(arguments: argparse.Namespace, terminal: Terminal) -> ExitCode:
    if arguments.calls is not None and arguments.calls < 1:
        raise ContractError("--calls", f"got {arguments.calls}, expected at least 1")
    robot = robot_from(arguments)
    observations = _observations(arguments, robot)
    with contextlib.ExitStack() as stack:
        policy = policy_of(arguments.source, arguments, robot, terminal)
        stack.callback(policy.close)
        recorder = recorder_of(policy, arguments.file, arguments, robot)
        stack.callback(recorder.close)
        calls = failed = 0
        for seen in observations:
            calls += 1
            try:
                recorder.infer(attrs.evolve(seen, captured_at_s=time.monotonic()))
            except (PolicyError, ContractError) as error:
                failed += 1
                terminal.complain(f"vlmcore: call {calls}: {error}")
    if recorder.lost:
        terminal.complain(f"vlmcore: {arguments.file}: {recorder.problem}")
    said = {"file": arguments.file, "calls": calls, "failed": failed, "lost": recorder.lost}
    if arguments.json:
        terminal.document(said, indent=2)
    else:
        terminal.line(f"{arguments.file}: {calls} calls, {failed} of them failed")
    return ExitCode.INCOMPLETE if failed or recorder.lost else ExitCode.DONE


def _observations(arguments: argparse.Namespace, robot: Embodiment) -> Iterator[Observation]:
    """Give what the policy is shown, one after the other."""
    if arguments.observations is None:
        seen = observation_from(arguments, robot)
        return itertools.repeat(seen, arguments.calls or _CALLS)
    for option in ("image", "state", "instruction"):
        if getattr(arguments, option):
            raise ContractError("--observations", f"got it with --{option}, expected one of them")
    episode = EpisodeReader(arguments.observations)
    return map(observation_of, itertools.islice(episode, arguments.calls))
