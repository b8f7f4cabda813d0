"""``vlmcore policy replay``: what the gate of today says of what was recorded."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from vlmcore.cli.commands import CODES, ExitCode, Terminal, add_parser
from vlmcore.cli.robot_commands import note_template, robot_of
from vlmcore.errors import ContractError
from vlmcore.rollout.episode_calls import EpisodeFailure
from vlmcore.rollout.episode_differences import ReportDifference, limit_differences, recheck
from vlmcore.rollout.episode_reader import EpisodeReader
from vlmcore.safety.remedies import Remedy
from vlmcore.safety.report import SafetySummary
from vlmcore_robotics.cli._robots import add_robot, gate_of

__all__ = ["add"]

_EPILOG = """\
Nothing moves. Each chunk is put to a gate of today with the last command and the position that were
known then, and the steps are listed of which it says something else. 'vlmcore policy serve
episode:FILE' plays an episode as a policy.
"""
_LISTED = 20


def add(commands: Any) -> None:
    """Add the command to *commands*."""
    parser = add_parser(
        commands,
        "replay",
        work=_replay,
        summary="put what was recorded to the safety gate of today, and list the differences",
        epilog=_EPILOG,
        codes=(*CODES[:3], ExitCode.UNSAFE, CODES[-1]),
        done="what was safe then is safe today",
        incomplete="the file cannot be used, or its last line is cut off",
    )
    parser.add_argument("file", metavar="FILE", help="the episode")
    add_robot(parser, is_required=False)
    parser.add_argument(
        "--mode",
        choices=[remedy.value for remedy in Remedy],
        default=Remedy.BLOCK.value,
        metavar="MODE",
        help="what the gate does about an unsafe chunk (default: %(default)s)",
    )
    group = parser.add_argument_group("output")
    group.add_argument("--json", action="store_true", help="one JSON object")
    group.add_argument("--quiet", "-q", action="store_true", help="no notes, only complaints")


def _replay(arguments: argparse.Namespace, terminal: Terminal) -> ExitCode:
    episode = EpisodeReader(arguments.file)
    robot = episode.header.embodiment
    if arguments.embodiment is not None:
        robot = robot_of(arguments.embodiment)
    gate = gate_of(robot, arguments.mode, reorder=True)
    if set(robot.actions.names) != set(episode.header.embodiment.actions.names):
        raise ContractError(
            "--embodiment",
            f"got {robot.name!r}, expected a robot with the actions of the episode: "
            f"{', '.join(episode.header.embodiment.actions.names)}",
        )
    limits = limit_differences(episode.header.embodiment, gate)
    steps, failures, refused = _counted(episode)
    differences = [each for each in recheck(episode, gate) if set(each.fields) - {"mode"}]
    newly = sum(each.is_newly_refused for each in differences)
    if arguments.json:
        terminal.document(
            {
                "file": arguments.file,
                "steps": steps,
                "failed_calls": failures,
                "refused_then": refused,
                "refused_today": refused + newly - sum(d.is_newly_safe for d in differences),
                "newly_refused": newly,
                "limits": [str(each) for each in limits],
                "differences": [
                    {
                        "step": each.index,
                        "recorded": _said(each.recorded),
                        "today": _said(each.today),
                    }
                    for each in differences
                ],
            },
            indent=2,
        )
    else:
        terminal.line(f"{steps} steps, {refused} refused then, {failures} calls failed")
        for limit in limits:
            terminal.line(f"  {limit}")
        for line in _table(differences):
            terminal.line(line)
    note_template(terminal, robot)
    if episode.truncated:
        terminal.complain(f"vlmcore: {arguments.file}: its last line is cut off")
        return ExitCode.INCOMPLETE
    return ExitCode.UNSAFE if newly else ExitCode.DONE


def _counted(episode: EpisodeReader) -> tuple[int, int, int]:
    steps = failures = refused = 0
    for event in episode.events():
        if isinstance(event, EpisodeFailure):
            failures += 1
        else:
            steps += 1
            refused += not event.report.safe_for_handoff
    return steps, failures, refused


def _table(differences: list[ReportDifference]) -> Iterator[str]:
    if not differences:
        yield "the gate of today says the same of every step"
        return
    yield f"  {'step':>6}  {'recorded':40}  today"
    for each in differences[:_LISTED]:
        yield f"  {each.index:6}  {_verdict(each.recorded):40}  {_verdict(each.today)}"
    if len(differences) > _LISTED:
        yield f"  and {len(differences) - _LISTED} more"
    newly = sum(each.is_newly_refused for each in differences)
    yield f"{len(differences)} steps differ, {newly} of them are refused today and were not"


def _verdict(report: SafetySummary) -> str:
    if report.reason is not None:
        return f"refused: {report.reason.value.replace('_', ' ')} ({report.total})"
    return f"made safe ({report.total})" if report.changed else "safe"


def _said(report: SafetySummary) -> dict[str, Any]:
    return {
        "safe": report.safe_for_handoff,
        "changed": report.changed,
        "reason": None if report.reason is None else report.reason.value,
        "counts": {kind.value: count for kind, count in report.counts.items() if count},
    }
