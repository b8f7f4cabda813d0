"""``vlmcore actions``: gate recorded action chunks, and look at them."""

from __future__ import annotations

import argparse
import functools
from typing import Any

from vlmcore.cli._checking import Checking
from vlmcore.cli._exit_codes import ExitCode, exit_codes_help
from vlmcore.cli._recordings import Recordings
from vlmcore.cli._robots import last_command, robot_of
from vlmcore.cli._terminal import Terminal
from vlmcore.errors import ContractError
from vlmcore.safety.gate import SafetyGate
from vlmcore.safety.remedies import Remedy

__all__ = ["add_command"]

_CHECK = f"""\
FILE is an action chunk document, the answer of a policy (bare numbers, too), or an array of shape
[T, D] as numpy.save writes it; '-' reads standard input. An unsafe chunk is refused by block and
report; clamp and hold make it safe where they can, which is exit code 0 and said.

--previous is what was sent to the robot last: 0.1,-0.2,... in the order of the embodiment, or
elbow=0.1,wrist=-0.2,..., or a JSON file (a list, an object, an action step), or 'zero'. It has no
default: without it nobody knows where the robot is, and no target is safe.

This gate is not a safety controller.

{exit_codes_help()}
"""


def add_command(commands: Any) -> None:
    """Add the command to *commands*."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "actions",
        help="check recorded actions against the limits of a robot",
        description="Check recorded actions against the limits of a robot, and look at them.",
        allow_abbrev=False,
    )
    inner = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_check(inner)


def _add_check(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "check",
        help="pass a recorded chunk through the safety gate",
        description="Pass a recorded chunk through the safety gate, and say what is wrong with it.",
        epilog=_CHECK,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    _add_chunk(parser, is_robot_required=True)
    group = parser.add_argument_group("gate")
    remedies = [remedy.value for remedy in Remedy]
    group.add_argument(
        "--mode",
        choices=remedies,
        default=Remedy.BLOCK.value,
        metavar="MODE",
        help=f"what to do about an unsafe chunk: {', '.join(remedies)} (default: %(default)s)",
    )
    group.add_argument(
        "--execution-horizon",
        type=int,
        metavar="N",
        help="how many steps will be executed; only these are looked at (default: all)",
    )
    group.add_argument(
        "--reorder",
        action="store_true",
        help="put actions with the names of the embodiment in its order",
    )
    group = parser.add_argument_group("output")
    group.add_argument("--json", action="store_true", help="the safety report as one JSON object")
    group.add_argument(
        "--output",
        "-o",
        metavar="OUT",
        help="write what may be executed to OUT, a chunk document; nothing is written if refused",
    )
    group.add_argument("--quiet", "-q", action="store_true", help="no notes, only complaints")
    parser.set_defaults(run=functools.partial(_check, parser=parser))


def _add_chunk(parser: argparse.ArgumentParser, *, is_robot_required: bool) -> None:
    parser.add_argument("file", metavar="FILE", help="the recorded chunk, or '-'")
    group = parser.add_argument_group("robot")
    group.add_argument(
        "--embodiment",
        required=is_robot_required,
        metavar="NAME|FILE",
        help="a template by its name or label, or an embodiment document",
    )
    group.add_argument(
        "--previous",
        metavar="NUMBERS|FILE",
        help="what was sent last; 'unknown' if nobody knows, which is as without it",
    )
    group.add_argument(
        "--allow-nan",
        action="store_true",
        help="read NaN, Infinity and null in JSON, so that the gate finds them",
    )


def _check(arguments: argparse.Namespace, *, parser: argparse.ArgumentParser) -> int:
    terminal = Terminal.standard(quiet=arguments.quiet)
    try:
        robot = robot_of(arguments.embodiment)
        command = last_command(arguments.previous, robot.actions)
        gate = _gate(
            embodiment=robot,
            remedy=Remedy(arguments.mode),
            execution_horizon=arguments.execution_horizon,
            reorder=arguments.reorder,
        )
        recordings = Recordings(
            word=arguments.file, names=robot.actions.names, allow_nan=arguments.allow_nan
        )
        checking = Checking(
            terminal=terminal, gate=gate, last_command=command, output=arguments.output
        )
        return checking.run(recordings, as_json=arguments.json)
    except ContractError as error:
        return _failed(error, terminal, parser)


def _gate(**fields: Any) -> SafetyGate:
    try:
        return SafetyGate(**fields)
    except ContractError as error:
        raise ContractError(f"--{error.field.replace('_', '-')}", error.problem) from None


def _failed(error: ContractError, terminal: Terminal, parser: argparse.ArgumentParser) -> ExitCode:
    """Tell a wrong command line from a file that cannot be used."""
    if error.field.startswith("--"):
        parser.error(str(error))
    terminal.complain(f"vlmcore: {error}")
    return ExitCode.INCOMPLETE
