"""How the command ends, for scripts."""

from __future__ import annotations

import enum

__all__ = ["ExitCode", "exit_codes_help"]


class ExitCode(enum.IntEnum):
    """What the exit code says; those above 128 are what a shell shows for a signal."""

    DONE = 0
    INCOMPLETE = 1
    USAGE = 2
    NO_MODEL = 3
    GATE = 3  # of the lab, where a model that cannot be loaded is a run that was not done
    NO_PACKAGE = 4
    UNSAFE = 5
    INTERRUPTED = 130
    NO_READER = 141


_MEANINGS = {
    ExitCode.DONE: "everything was done; an answer that is cut at --max-new-tokens counts as done",
    ExitCode.INCOMPLETE: "an image could not be described, the model fell into a loop over it, "
    "or a file cannot be used",
    ExitCode.USAGE: "the command line is not right; nothing was done",
    ExitCode.NO_MODEL: "the model could not be loaded",
    ExitCode.NO_PACKAGE: "a package is not installed; the message says which",
    ExitCode.UNSAFE: "actions break a limit, and nothing that was allowed makes them safe",
    ExitCode.INTERRUPTED: "stopped with Ctrl-C; what was written until then was printed",
    ExitCode.NO_READER: "the program that read the output went away, as `| head` does",
}


def exit_codes_help(*codes: ExitCode, **meanings: str) -> str:
    """
    Write exit codes and their meanings, one a line.

    Args:
        codes: Those that a command knows; all if there are none.
        meanings: What some of them mean for it, by their names in lower case.
    """
    said = {code: meanings.get(code.name.lower(), _MEANINGS[code]) for code in codes or ExitCode}
    return "\n".join(["exit codes:", *(f"  {code.value:3}  {said[code]}" for code in said)])
