"""The command ``comfy`` and its sub-commands."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from vlmcore.cli.commands import ExitCode, Terminal, add_parser
from vlmcore_comfy.cli import _running
from vlmcore_comfy.installing import install_pack, uninstall_pack

__all__ = ["add_command"]

_FOLDER = "the folder of ComfyUI, which holds custom_nodes"


def add_command(commands: Any) -> None:
    """Add the command to *commands*, as `vlmcore.cli` says."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "comfy",
        help="put the nodes into a ComfyUI, and run graphs there",
        description="Put the nodes into a ComfyUI, and run graphs there.",
        allow_abbrev=False,
    )
    own = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    install = add_parser(
        own,
        "install",
        work=_install,
        summary="make the nodes known to a ComfyUI",
        epilog="It writes one small file, which imports this package: ComfyUI has to be started "
        "by the Python\nthat vlmcore is installed in.",
        codes=(ExitCode.DONE, ExitCode.INCOMPLETE, ExitCode.USAGE),
        incomplete="the folder is no ComfyUI, or cannot be written",
    )
    uninstall = add_parser(
        own,
        "uninstall",
        work=_uninstall,
        summary="take the nodes out of a ComfyUI",
        epilog="The package itself stays installed, and so do models and saved workflows.",
        codes=(ExitCode.DONE, ExitCode.INCOMPLETE, ExitCode.USAGE),
        incomplete="the folder is no ComfyUI, or what is there is not of this command",
    )
    for each in (install, uninstall):
        each.add_argument("folder", metavar="COMFYUI", help=_FOLDER)
    _running.add_command(own)


def _install(arguments: argparse.Namespace, terminal: Terminal) -> ExitCode:
    pack, is_new = install_pack(arguments.folder)
    if is_new:
        terminal.line(f"{pack}: written; restart ComfyUI, with {sys.executable}")
    else:
        terminal.line(f"{pack}: is there already; nothing was written")
    return ExitCode.DONE


def _uninstall(arguments: argparse.Namespace, terminal: Terminal) -> ExitCode:
    pack, was_there = uninstall_pack(arguments.folder)
    terminal.line(f"{pack}: {'removed; restart ComfyUI' if was_there else 'is not there'}")
    return ExitCode.DONE
