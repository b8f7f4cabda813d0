"""``vlmcore policy export``: recorded episodes as a data set, or for a viewer."""

from __future__ import annotations

import argparse
from typing import Any

from vlmcore.cli.commands import ExitCode, Terminal, add_parser
from vlmcore.errors import ContractError
from vlmcore.rollout.episode_reader import EpisodeReader
from vlmcore.rollout.rerun_export import export_to_rerun
from vlmcore_robotics.datasets.lerobot_export import Pictures, RowsOf, export_lerobot

__all__ = ["add"]

_EPILOG = """\
A LeRobotDataset holds what was sent to the robot, and pictures if they were recorded. By default a
row is one observation with the first action after it, so that nothing is in it that nobody saw;
'--rows actions' makes a row of each action, and repeats the observation before it.
"""


def add(commands: Any) -> None:
    """Add the command to *commands*."""
    parser = add_parser(
        commands,
        "export",
        work=_export,
        summary="write recorded episodes as a LeRobotDataset, or one as a recording of Rerun",
        epilog=_EPILOG,
        done="it was written",
        incomplete="a file cannot be used, or the folder exists already",
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="the episodes")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument(
        "--lerobot", metavar="FOLDER", help="the data set, version 3.0; a new folder"
    )
    where.add_argument("--rerun", metavar="RRD", help="the recording of one episode; a new file")
    group = parser.add_argument_group("LeRobotDataset")
    group.add_argument(
        "--rows",
        choices=[rows.value for rows in RowsOf],
        default=RowsOf.OBSERVATIONS.value,
        help="what makes a row (default: %(default)s)",
    )
    group.add_argument(
        "--pictures",
        choices=[pictures.value for pictures in Pictures],
        default=Pictures.IMAGES.value,
        help="how pictures are kept (default: %(default)s)",
    )
    group = parser.add_argument_group("output")
    group.add_argument("--json", action="store_true", help="one JSON object")
    group.add_argument("--quiet", "-q", action="store_true", help="no notes, only complaints")


def _export(arguments: argparse.Namespace, terminal: Terminal) -> ExitCode:
    episodes = [EpisodeReader(file) for file in arguments.files]
    if arguments.rerun is not None:
        if len(episodes) > 1:
            raise ContractError("--rerun", f"got {len(episodes)} episodes, expected one")
        said: dict[str, Any] = {
            "file": arguments.rerun,
            "steps": export_to_rerun(episodes[0], arguments.rerun),
        }
        line = f"{arguments.rerun}: {said['steps']} steps"
    else:
        made = export_lerobot(
            episodes,
            arguments.lerobot,
            rows=RowsOf(arguments.rows),
            pictures=Pictures(arguments.pictures),
        )
        counts = {"episodes": made.episodes, "rows": made.rows, "left_out": made.left_out}
        said = {"folder": str(made.folder), "fps": made.fps, **counts}
        line = (
            f"{made.folder}: {made.episodes} episodes, {made.rows} rows at {made.fps:g} Hz, "
            f"{made.left_out} observations left out, since nothing was sent after them"
        )
    if arguments.json:
        terminal.document(said, indent=2)
    else:
        terminal.line(line)
    return ExitCode.DONE
