"""What a command line says about the robot, and how its observations are laid out on the wire."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import attrs

from vlmcore._arrays import Float64Array
from vlmcore.cli.robot_commands import Start, robot_of, start_of
from vlmcore.contracts.embodiment import Embodiment
from vlmcore.contracts.observation import Observation
from vlmcore.errors import ContractError
from vlmcore.safety.gate import SafetyGate
from vlmcore.safety.remedies import Remedy

__all__ = [
    "STATE",
    "add_gate",
    "add_robot",
    "gate_of",
    "robot_from",
    "start_from",
    "state_as_command",
]

#: The word for what the state says.
STATE = "state"


def add_robot(parser: argparse.ArgumentParser, *, is_required: bool = True) -> None:
    """Add the options that say which robot it is."""
    parser.add_argument(
        "--embodiment",
        required=is_required,
        metavar="NAME|FILE",
        help="the robot: a template by its name or label, or an embodiment document",
    )


def add_gate(parser: argparse.ArgumentParser) -> None:
    """Add the options of the safety gate."""
    group = parser.add_argument_group("safety gate")
    remedies = [remedy.value for remedy in Remedy]
    group.add_argument(
        "--mode",
        choices=remedies,
        default=Remedy.BLOCK.value,
        metavar="MODE",
        help=f"what to do about an unsafe chunk: {', '.join(remedies)} (default: %(default)s)",
    )
    group.add_argument(
        "--previous",
        metavar="NUMBERS|FILE",
        help="what was sent last; 'zero', 'unknown', or 'state': what the state says, where it has "
        "the names of the actions",
    )
    group.add_argument(
        "--position",
        metavar="NUMBERS|FILE",
        help="where what changes and rates move is, by name, where there are bounds for it",
    )


def robot_from(arguments: argparse.Namespace) -> Embodiment:
    """
    Find the robot.

    Raises:
        ContractError: If there is none; its field is ``--embodiment``, or the file.
    """
    return robot_of(arguments.embodiment)


def gate_of(robot: Embodiment, mode: str, **options: Any) -> SafetyGate:
    """Make the gate of a robot."""
    return SafetyGate(embodiment=robot, remedy=Remedy(mode), **options)


def start_from(arguments: argparse.Namespace, robot: Embodiment, observation: Observation) -> Start:
    """
    Read what is known of the robot before the first step.

    Raises:
        ContractError: If that cannot be read; its field is the option, or the file.
    """
    if arguments.previous != STATE:
        return start_of(arguments.previous, arguments.position, robot.actions)
    command = state_as_command(robot)(observation)
    return attrs.evolve(start_of(None, arguments.position, robot.actions), last_command=command)


def state_as_command(robot: Embodiment) -> Callable[[Observation], Float64Array]:
    """
    Take what an observation says of the state for what was sent last.

    Raises:
        ContractError: If the state of the robot does not name its actions; its field is
            ``--previous``.
    """
    missing = [name for name in robot.actions.names if name not in robot.state_names]
    if missing:
        raise ContractError(
            "--previous",
            f"got {STATE!r} for {robot.name!r}, whose state does not name {', '.join(missing)}",
        )
    order = [robot.state_names.index(name) for name in robot.actions.names]
    return lambda observation: observation.state[order]
