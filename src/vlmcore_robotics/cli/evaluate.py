"""``vlmcore policy eval``: what a policy would have done, held against what was recorded."""

from __future__ import annotations

import argparse
import contextlib
from typing import Any

from vlmcore.charts.drawing import draw
from vlmcore.cli.commands import ExitCode, Terminal, add_parser, option_error, write_bytes
from vlmcore.cli.robot_commands import note_template
from vlmcore.errors import ContractError
from vlmcore.media.encoding import encode_png
from vlmcore.rollout.open_loop import evaluate_open_loop
from vlmcore.rollout.open_loop_documents import open_loop_report_to_document
from vlmcore.rollout.open_loop_report import OpenLoopReport
from vlmcore_robotics.cli._recordings import HELP as RECORDED
from vlmcore_robotics.cli._recordings import recorded_episodes, robot_of_recordings
from vlmcore_robotics.cli._remotes import add_remote
from vlmcore_robotics.cli._robots import add_robot, gate_of
from vlmcore_robotics.cli._sources import HELP as SOURCES
from vlmcore_robotics.cli._sources import policy_of

__all__ = ["add"]

_EPILOG = f"""\
{SOURCES}
{RECORDED}
Nothing moves. The policy is shown what was recorded, and its chunks are compared with what was sent
to the robot then. A small error is no promise that it drives a robot.
"""


def add(commands: Any) -> None:
    """Add the command to *commands*."""
    parser = add_parser(
        commands,
        "eval",
        work=_eval,
        summary="compare what a policy proposes with what was recorded",
        epilog=_EPILOG,
        done="every observation was answered",
        incomplete="the policy failed at one of them, or a file cannot be used",
    )
    parser.add_argument("source", metavar="SOURCE", help="where the policy comes from, see below")
    parser.add_argument("recorded", nargs="+", metavar="RECORDED", help="what was recorded")
    add_robot(parser, is_required=False)
    parser.add_argument(
        "--every", type=int, default=1, metavar="N", help="show one of so many observations"
    )
    parser.add_argument(
        "--steps", type=int, metavar="N", help="compare so many steps of a chunk at most"
    )
    parser.add_argument(
        "--episodes", type=int, metavar="N", help="take so many episodes of a data set at most"
    )
    parser.add_argument(
        "--instruction", metavar="TEXT", help="the task, in place of those of a data set"
    )
    parser.add_argument(
        "--gate", action="store_true", help="count what the safety gate of the robot would stop"
    )
    parser.add_argument(
        "--horizon", type=int, default=1, metavar="N", help="of constant:, how many steps"
    )
    parser.add_argument(
        "--import-here", action="store_true", help="of MODULE:NAME, look into this folder, too"
    )
    add_remote(parser, is_source=True)
    group = parser.add_argument_group("output")
    group.add_argument("--json", action="store_true", help="one JSON object")
    group.add_argument("--plot", metavar="PNG", help="draw the error by step of a chunk")
    group.add_argument("--plot-episode", metavar="PNG", help="draw the first episode")
    group.add_argument("--quiet", "-q", action="store_true", help="no notes, only complaints")


def _eval(arguments: argparse.Namespace, terminal: Terminal) -> ExitCode:
    if arguments.episodes is not None and arguments.episodes < 1:
        raise ContractError("--episodes", f"got {arguments.episodes}, expected at least 1")
    robot = robot_of_recordings(arguments)
    with contextlib.ExitStack() as stack:
        policy = policy_of(arguments.source, arguments, robot, terminal)
        stack.callback(policy.close)
        try:
            report = evaluate_open_loop(
                policy,
                recorded_episodes(arguments, robot, terminal),
                space=robot,
                every=arguments.every,
                horizon=arguments.steps,
                gate=gate_of(robot, "report") if arguments.gate else None,
            )
        except ContractError as error:
            if error.field == "horizon":
                raise ContractError("--steps", error.problem) from None
            raise option_error(error, "--every") from None
    _draw(report, arguments)
    if arguments.json:
        terminal.document(open_loop_report_to_document(report), indent=2)
    else:
        for line in str(report).splitlines():
            terminal.line(line)
    note_template(terminal, robot if arguments.gate else None)
    return ExitCode.INCOMPLETE if report.failures else ExitCode.DONE


def _draw(report: OpenLoopReport, arguments: argparse.Namespace) -> None:
    if arguments.plot is not None:
        write_bytes(arguments.plot, encode_png(draw(report.error_chart())))
    if arguments.plot_episode is not None:
        if report.trace is None:
            raise ContractError(arguments.plot_episode, "is not written, nothing was sent")
        write_bytes(arguments.plot_episode, encode_png(draw(report.trace.chart())))
