"""The command ``policy`` and its sub-commands, each a module with a function ``add``."""

from __future__ import annotations

import argparse
from typing import Any

from vlmcore_robotics.cli import call, conformance, doctor, evaluate, export, record, replay, serve

__all__ = ["add_command"]

_COMMANDS = (serve, call, doctor, conformance, record, replay, evaluate, export)


def add_command(commands: Any) -> None:
    """Add the command to *commands*, as `vlmcore.cli` says."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "policy",
        help="serve policies, ask those behind a server, record and replay what they do",
        description="Serve policies, ask those behind a server, record and replay what they do.",
        allow_abbrev=False,
    )
    inner = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in _COMMANDS:
        command.add(inner)
