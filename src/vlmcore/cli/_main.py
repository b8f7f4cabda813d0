"""From the words of a command line to an exit code."""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import vlmcore
from vlmcore.cli import actions, caption, catalog, describe, detect, doctor, lab, weights
from vlmcore.cli._exit_codes import ExitCode, exit_codes_help
from vlmcore.cli._loading import LoadPredictor
from vlmcore.cli._plugins import BrokenCommand, add_plugin_commands
from vlmcore.cli._terminal import OutputError, Terminal, visible
from vlmcore.errors import MissingDependencyError, ModelError, VlmcoreError
from vlmcore.vlm.loading import load_predictor

__all__ = ["run"]

_OPTION = re.compile(r"--[^=]+")
_NEGATIVE = re.compile(r"-\.?\d.*[,eE].*", re.DOTALL)  # numbers that argparse takes for an option


def run(argv: Sequence[str] | None, *, load: LoadPredictor | None) -> int:
    """Run the command, as `vlmcore.cli.main` says."""
    terminal = Terminal.standard()
    try:
        try:
            code = _run(sys.argv[1:] if argv is None else list(argv), load or load_predictor)
        except SystemExit as end:  # how argparse ends after --help, and where words are wrong
            code = end.code if isinstance(end.code, int) else ExitCode.DONE
        terminal.flush()
    except KeyboardInterrupt:
        code = ExitCode.INTERRUPTED
    except BrokenPipeError:
        terminal.abandon()
        code = ExitCode.NO_READER
    except OutputError as error:
        terminal.abandon()
        terminal.complain(f"vlmcore: standard output: cannot be written: {error.strerror}")
        code = ExitCode.INCOMPLETE
    except VlmcoreError as error:
        terminal.complain(f"vlmcore: {error}")
        code = _code_of(error)
    return int(code)


def _run(words: list[str], load: LoadPredictor) -> int:
    parser = _Parser(
        prog="vlmcore",
        description="Vision-language models on the command line.",
        epilog=exit_codes_help(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    version = f"vlmcore {vlmcore.__version__}"
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    describe.add_command(commands, load=load)
    detect.add_command(commands)
    caption.add_command(commands, load=load)
    catalog.add_command(commands)
    actions.add_command(commands)
    weights.add_command(commands)
    lab.add_command(commands, load=load)
    doctor.add_command(commands, load=load)
    command = words[0] if words else "--help"
    # Foreign code is loaded when it may be meant, and not to describe an image.
    broken = () if command in commands.choices else add_plugin_commands(commands)
    if not command.startswith("-") and command not in commands.choices:
        parser.error(_no_such_command(command, sorted(commands.choices), broken))
    arguments = parser.parse_args(caption.with_run(_with_negative_values(words)) or ["--help"])
    return int(arguments.run(arguments))


def _with_negative_values(words: Sequence[str]) -> list[str]:
    """Join an option and a value with a minus: people type ``--previous -0.1,0.2``."""
    joined: list[str] = []
    for word in words:
        if joined and _NEGATIVE.fullmatch(word) and _OPTION.fullmatch(joined[-1]):
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


def _code_of(error: Exception) -> ExitCode:
    if isinstance(error, MissingDependencyError):
        return ExitCode.NO_PACKAGE
    return ExitCode.NO_MODEL if isinstance(error, ModelError) else ExitCode.USAGE


def _no_such_command(command: str, known: Sequence[str], broken: Sequence[BrokenCommand]) -> str:
    near = difflib.get_close_matches(command, known, n=1)
    if near:
        hint = f"did you mean {near[0]!r}?"
    elif command == "-" or command.startswith("data:") or Path(command).exists():
        meant = "actions check" if Path(command).suffix in {".json", ".npy"} else "describe"
        hint = f"did you mean 'vlmcore {meant} {command}'?"
    else:
        hint = f"there are {', '.join(known)}"
    if broken:
        names = ", ".join(each.name for each in broken)
        hint = f"{hint} (not loaded, see 'vlmcore doctor': {names})"
    return f"there is no command {command!r}; {hint}"


class _Parser(argparse.ArgumentParser):
    """A parser whose complaints cannot control the terminal; its sub-parsers are such parsers."""

    def error(self, message: str) -> NoReturn:
        text = visible(f"{self.prog}: error: {message}", one_line=True)
        self.exit(ExitCode.USAGE, f"{text}\nsee '{self.prog} --help'\n")

    def print_help(self, file: Any = None) -> None:
        """Write the help where it is seen when that fails; argparse would go on in silence."""
        if file is None:
            Terminal.standard().write(self.format_help())
        else:
            super().print_help(file)
