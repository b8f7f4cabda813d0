"""``vlmcore actions``: gate recorded action chunks, and look at them."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable
from typing import Any, TypeAlias

from vlmcore.cli._checking import Checking
from vlmcore.cli._exit_codes import ExitCode, exit_codes_help
from vlmcore.cli._plotting import Plotting
from vlmcore.cli._recordings import RecordingFile
from vlmcore.cli._robots import Start, robot_of, start_of, streams_of
from vlmcore.cli._terminal import Terminal
from vlmcore.errors import ContractError
from vlmcore.safety.gate import SafetyGate
from vlmcore.safety.remedies import NonFinite, Remedy

__all__ = ["add_command"]

_FILE = """\
FILE is an action chunk document, the answer of a policy (bare numbers, too), or an array of shape
[T, D] as numpy.save writes it; '-' reads standard input.

--previous is what was sent to the robot last: 0.1,-0.2,... in the order of the embodiment, or
elbow=0.1,wrist=-0.2,..., or a JSON file (a list, an object, an action step), or 'zero'. It has no
default: without it nobody knows where the robot is, and no target is safe. --position is the same
for what changes, rates and offsets move, where it is bounded: x=0.4,y=0.1, or a JSON file.
"""
_CHECK_CODES = exit_codes_help(
    ExitCode.DONE,
    ExitCode.INCOMPLETE,
    ExitCode.USAGE,
    ExitCode.UNSAFE,
    ExitCode.INTERRUPTED,
    ExitCode.NO_READER,
    done="the actions are safe, as they came or as they were made",
    incomplete="a file or the output cannot be used",
    interrupted="stopped with Ctrl-C",
)
_PLOT_CODES = exit_codes_help(
    ExitCode.DONE,
    ExitCode.INCOMPLETE,
    ExitCode.USAGE,
    ExitCode.NO_PACKAGE,
    ExitCode.INTERRUPTED,
    done="the picture was written",
    incomplete="a file cannot be used",
    interrupted="stopped with Ctrl-C",
)
_CHECK = f"""\
{_FILE}
Modes block and report refuse an unsafe chunk; clamp and hold make it safe where they can, which is
exit code 0 and said. The gate is not a safety controller.

{_CHECK_CODES}
"""
_PLOT = f"""\
{_FILE}
With --embodiment the bounds are drawn, and what breaks a limit is marked; without it, FILE has to
be a document, which names its dimensions. An unsafe chunk is drawn like any other: the exit code
says only whether there is a picture.

{_PLOT_CODES}
"""
_Work: TypeAlias = Callable[[argparse.Namespace, Terminal], ExitCode]


def add_command(commands: Any) -> None:
    """Add the command to *commands*."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "actions",
        help="check recorded actions against the limits of a robot, and draw them",
        description="Check recorded actions against the limits of a robot, and draw them.",
        allow_abbrev=False,
    )
    inner = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_check(inner)
    _add_plot(inner)


def _add_check(commands: Any) -> None:
    parser = _add_parser(
        commands,
        "check",
        work=_check,
        summary="pass a recorded chunk through the safety gate, and say what is wrong with it",
        epilog=_CHECK,
    )
    _add_robot(parser, is_required=True)
    remedies = [remedy.value for remedy in Remedy]
    parser.add_argument(
        "--mode",
        choices=remedies,
        default=Remedy.BLOCK.value,
        metavar="MODE",
        help=f"what to do about an unsafe chunk: {', '.join(remedies)} (default: %(default)s)",
    )
    endings = [ending.value for ending in NonFinite]
    parser.add_argument(
        "--non-finite",
        choices=endings,
        metavar="WAY",
        help="what --mode clamp does about NaN and infinity: truncate ends the chunk there, hold "
        "fills it with the step before in that dimension (default: truncate)",
    )
    group = parser.add_argument_group("output")
    group.add_argument("--json", action="store_true", help="the safety report as one JSON object")
    group.add_argument(
        "--output",
        "-o",
        metavar="OUT",
        help="write what may be executed, as a chunk document; nothing is written if refused",
    )
    group.add_argument("--quiet", "-q", action="store_true", help="no notes, only complaints")


def _add_plot(commands: Any) -> None:
    parser = _add_parser(
        commands,
        "plot",
        work=_plot,
        summary="draw a recorded chunk in its bounds, as a picture",
        epilog=_PLOT,
    )
    _add_robot(parser, is_required=False)
    group = parser.add_argument_group("output")
    group.add_argument("--output", "-o", required=True, metavar="PNG", help="where to write it")
    group.add_argument(
        "--width", type=int, default=960, metavar="PIXELS", help="default: %(default)s"
    )
    group.add_argument("--height", type=int, metavar="PIXELS", help="default: as is needed")
    group.add_argument("--quiet", "-q", action="store_true", help="no notes, only complaints")


def _add_parser(
    commands: Any, name: str, *, work: _Work, summary: str, epilog: str
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("file", metavar="FILE", help="the recorded chunk, or '-'")
    parser.add_argument(
        "--allow-nan",
        action="store_true",
        help="read NaN, Infinity and null in JSON, so that the gate finds them",
    )
    group = parser.add_argument_group("answer of a policy")
    group.add_argument(
        "--streams",
        metavar="NAME=D,...",
        help="its named parts and how many dimensions each has, as arm=6,gripper=1",
    )
    group.add_argument(
        "--ignored",
        action="append",
        default=[],
        metavar="KEY",
        help="a key that holds numbers and no actions, as state; may be given again",
    )
    parser.set_defaults(run=functools.partial(_run, parser=parser, work=work))
    return parser


def _add_robot(parser: argparse.ArgumentParser, *, is_required: bool) -> None:
    group = parser.add_argument_group("robot")
    group.add_argument(
        "--embodiment",
        required=is_required,
        metavar="NAME|FILE",
        help="a template by its name or label, or an embodiment document",
    )
    group.add_argument(
        "--previous",
        metavar="NUMBERS|FILE",
        help="what was sent last; 'unknown' if nobody knows, which is as without it",
    )
    group.add_argument(
        "--position",
        metavar="NUMBERS|FILE",
        help="where what changes, rates and offsets move is, by name, where it is bounded",
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
        help="put a document with the names of the embodiment in its order",
    )


def _run(
    arguments: argparse.Namespace, *, parser: argparse.ArgumentParser, work: _Work
) -> ExitCode:
    """Do the work, and tell a wrong command line from a file that cannot be used."""
    terminal = Terminal.standard(quiet=arguments.quiet)
    try:
        return work(arguments, terminal)
    except ContractError as error:
        if error.field.startswith("--"):
            parser.error(str(error))
        terminal.complain(f"vlmcore: {error}")
        return ExitCode.INCOMPLETE


def _check(arguments: argparse.Namespace, terminal: Terminal) -> ExitCode:
    remedy, word = Remedy(arguments.mode), arguments.non_finite
    non_finite = None if word is None else NonFinite(word)
    if non_finite is NonFinite.TRUNCATE and remedy is not Remedy.CLAMP:
        raise ContractError(
            "--non-finite",
            f"got {word} with --mode {arguments.mode}, expected --mode {Remedy.CLAMP.value}, which "
            "alone lets a part of a chunk pass",
        )
    gate, start = _robot(arguments, remedy, non_finite)
    checking = Checking(terminal=terminal, gate=gate, start=start, output=arguments.output)
    return checking.run(_recording_file(arguments, gate), as_json=arguments.json)


def _plot(arguments: argparse.Namespace, terminal: Terminal) -> ExitCode:
    gate, start = None, Start()
    if arguments.embodiment is not None:
        gate, start = _robot(arguments, Remedy.REPORT)
    else:
        for option in ("previous", "position", "execution_horizon"):
            if getattr(arguments, option) is not None:
                name = f"--{option.replace('_', '-')}"
                raise ContractError(name, "got a value without --embodiment, expected both")
    plotting = Plotting(
        terminal=terminal,
        gate=gate,
        start=start,
        output=arguments.output,
        width_px=arguments.width,
        height_px=arguments.height,
    )
    return plotting.run(_recording_file(arguments, gate))


def _robot(
    arguments: argparse.Namespace, remedy: Remedy, non_finite: NonFinite | None = None
) -> tuple[SafetyGate, Start]:
    robot = robot_of(arguments.embodiment)
    start = start_of(arguments.previous, arguments.position, robot.actions)
    horizon = arguments.execution_horizon
    try:
        gate = SafetyGate(
            embodiment=robot, remedy=remedy, non_finite=non_finite, execution_horizon=horizon
        )
    except ContractError as error:
        raise ContractError(f"--{error.field.replace('_', '-')}", error.problem) from None
    return gate, start


def _recording_file(arguments: argparse.Namespace, gate: SafetyGate | None) -> RecordingFile:
    return RecordingFile(
        word=arguments.file,
        names=None if gate is None else gate.actions.names,
        reorder=arguments.reorder,
        streams=streams_of(arguments.streams),
        ignored=tuple(arguments.ignored),
        allow_nan=arguments.allow_nan,
    )
