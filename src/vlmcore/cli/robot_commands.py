"""What sub-commands about robots read from a command line, and say of actions."""

from __future__ import annotations

from vlmcore.cli._checking import note_template
from vlmcore.cli._recordings import RecordingFile, read_document
from vlmcore.cli._robots import Start, robot_of, start_of
from vlmcore.cli._sources import ImageSource
from vlmcore.cli._verdicts import verdict_lines

__all__ = [
    "ImageSource",
    "RecordingFile",
    "Start",
    "note_template",
    "read_document",
    "robot_of",
    "start_of",
    "verdict_lines",
]
