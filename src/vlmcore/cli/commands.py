"""
What the sub-commands of other packages are made of: how they are added, speak and end.

An entry point of the group ``vlmcore.commands`` names a function that adds them, see `vlmcore.cli`.
What those about robots read and say beside that is in `vlmcore.cli.robot_commands`.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable
from typing import Any, TypeAlias

from vlmcore.cli._exit_codes import ExitCode, exit_codes_help
from vlmcore.cli._files import read_bytes, told_of, write_bytes
from vlmcore.cli._status_line import StatusLine
from vlmcore.cli._terminal import Terminal
from vlmcore.errors import ContractError, MissingDependencyError, VlmcoreError
from vlmcore.secrets import Secret

__all__ = [
    "CODES",
    "ExitCode",
    "StatusLine",
    "Terminal",
    "Work",
    "add_parser",
    "option_error",
    "read_bytes",
    "token_of",
    "told_of",
    "write_bytes",
]

_WORDS = ("SOURCE", "URL")  # what is no option, and on the command line all the same

# What an error tells a program to pass, and what somebody at a shell can do instead.
_SAID_TO_PROGRAMS = {
    "pass allow_remote=True": "--allow-remote says that it is meant",
    "; overwrite=True empties it": "",
    "; overwrite=True replaces it": "",
    "; download=True fetches it": "",
    "frames=encode_frames(observation)": "--frames png",
}

#: What a sub-command does with its words.
Work: TypeAlias = Callable[[argparse.Namespace, Terminal], ExitCode]

#: The exit codes of most of them.
CODES = (
    ExitCode.DONE,
    ExitCode.INCOMPLETE,
    ExitCode.USAGE,
    ExitCode.NO_PACKAGE,
    ExitCode.INTERRUPTED,
)


def add_parser(
    commands: Any,
    name: str,
    *,
    work: Work,
    summary: str,
    epilog: str,
    codes: tuple[ExitCode, ...] = CODES,
    words: tuple[str, ...] = _WORDS,
    **meanings: str,
) -> argparse.ArgumentParser:
    """
    Add the parser of a sub-command.

    A `ContractError` of the work whose field is an option, as ``"--url"``, ends as a wrong command
    line does; other errors of vlmcore are told in one line, and end as ``INCOMPLETE``.

    Args:
        commands: The action of ``add_subparsers``.
        name: What it is called.
        work: What it does.
        summary: What it is for, as half a sentence.
        epilog: What else is to be known.
        codes: Its exit codes.
        words: The fields of errors that are, beside those of options, about the command line.
        meanings: What some of them mean for it, by their names in lower case.
    """
    said = {"interrupted": "stopped with Ctrl-C", **meanings}
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=f"{epilog.strip()}\n\n{exit_codes_help(*codes, **said)}\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(run=functools.partial(_run, parser=parser, work=work, words=words))
    return parser


def _run(
    arguments: argparse.Namespace,
    *,
    parser: argparse.ArgumentParser,
    work: Work,
    words: tuple[str, ...],
) -> ExitCode:
    """Do the work, and tell a wrong command line from what goes wrong later."""
    terminal = Terminal.standard(quiet=getattr(arguments, "quiet", False))
    try:
        return work(arguments, terminal)
    except MissingDependencyError:
        raise
    except ContractError as error:
        if error.field.startswith("--") or error.field in words:
            parser.error(_for_a_shell(error))
        terminal.complain(f"vlmcore: {_for_a_shell(error)}")
    except VlmcoreError as error:
        terminal.complain(f"vlmcore: {_for_a_shell(error)}")
    return ExitCode.INCOMPLETE


def _for_a_shell(error: VlmcoreError) -> str:
    text = str(error)
    for said, instead in _SAID_TO_PROGRAMS.items():
        text = text.replace(said, instead)
    return text


def option_error(error: ContractError, *options: str) -> ContractError:
    """Say of an error about an argument that it is about the option of this name, if there is."""
    option = f"--{error.field.replace('_', '-')}"
    return ContractError(option, error.problem) if option in options else error


def token_of(variable: str | None, option: str = "--token-env") -> Secret | None:
    """
    Take the token in an environment variable; it is in no argument, where others could read it.

    Raises:
        ContractError: If the variable is not set, or holds no token; its field is *option*.
    """
    if variable is None:
        return None
    try:
        token = Secret.from_env(variable)
    except (ContractError, ValueError) as error:
        raise ContractError(option, getattr(error, "problem", str(error))) from None
    if token is None:
        # It is not named: somebody may have written the token itself there.
        raise ContractError(
            option, "the variable that it names is not set, or is blank: it has to hold the token"
        )
    return token
