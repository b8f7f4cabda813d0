"""Sub-commands of other packages: found by entry point, and never able to break ours."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Any

import attrs

__all__ = ["COMMAND_GROUP", "BrokenCommand", "add_plugin_commands"]

COMMAND_GROUP = "vlmcore.commands"


@attrs.frozen
class BrokenCommand:
    """
    An entry point that could not add its command.

    Attributes:
        name: The name of the entry point.
        value: Where it points.
        reason: What went wrong.
    """

    name: str
    value: str
    reason: str


def add_plugin_commands(commands: Any) -> tuple[BrokenCommand, ...]:
    """
    Add the commands of every installed package to *commands*, an action of ``add_subparsers``.

    Returns:
        The entry points that are broken, or that take the name of a command that exists. Their
        commands are not there; all others are.
    """
    broken = []
    for entry_point in sorted(entry_points(group=COMMAND_GROUP), key=lambda each: each.name):
        reason = _add(entry_point, commands)
        if reason:
            broken.append(BrokenCommand(entry_point.name, entry_point.value, reason))
    return tuple(broken)


def _add(entry_point: EntryPoint, commands: Any) -> str:
    taken = dict(commands.choices)
    try:
        add_command = entry_point.load()
        add_command(commands)
    except Exception as error:  # noqa: BLE001 - foreign code: whatever it raises stays its own
        return f"{type(error).__name__}: {error}"
    # Python 3.10 lets a second parser take the name of the first in silence.
    stolen = [name for name, parser in taken.items() if commands.choices.get(name) is not parser]
    commands.choices.update({name: taken[name] for name in stolen})
    return f"takes the name of a command that exists: {', '.join(stolen)}" if stolen else ""
