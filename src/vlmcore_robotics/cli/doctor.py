"""``vlmcore policy doctor``: find out, step by step, what is wrong with a policy server."""

from __future__ import annotations

import argparse
from typing import Any

from vlmcore.cli.commands import ExitCode, Terminal, add_parser
from vlmcore_robotics.cli._examining import Examination
from vlmcore_robotics.cli._remotes import add_remote
from vlmcore_robotics.cli._robots import add_robot, robot_from

__all__ = ["add"]

_EPILOG = """\
The steps come in their order, and the first that fails ends it: what comes after needs it. An
example observation is shown to the policy, three times; nothing is sent to a robot. What the gate
says of an answer to it is told and no fault.
"""
_MARKS = {True: "ok", False: "FAIL", None: "note"}


def add(commands: Any) -> None:
    """Add the command to *commands*."""
    parser = add_parser(
        commands,
        "doctor",
        work=_doctor,
        summary="find out, step by step, what is wrong with a policy server",
        epilog=_EPILOG,
        done="every step works",
        incomplete="one does not; its line says what to do",
    )
    add_remote(parser)
    add_robot(parser)
    group = parser.add_argument_group("output")
    group.add_argument("--json", action="store_true", help="one JSON object")


def _doctor(arguments: argparse.Namespace, terminal: Terminal) -> ExitCode:
    robot = robot_from(arguments)
    quiet = Terminal.standard(quiet=True)  # what is noted of layouts is a step here
    examination = Examination(arguments, robot, quiet)
    found = []
    for step in examination.steps():
        found.append(step)
        if not arguments.json:
            terminal.line(f"{_MARKS[step.works]:4}  {step.name}: {step.seen}")
            if step.advice:
                terminal.line(f"      {step.advice}")
    works = all(step.works is not False for step in found)
    if arguments.json:
        steps = [
            {"step": each.name, "works": each.works, "seen": each.seen, "advice": each.advice}
            for each in found
        ]
        terminal.document({"url": arguments.url, "works": works, "steps": steps}, indent=2)
    return ExitCode.DONE if works else ExitCode.INCOMPLETE
