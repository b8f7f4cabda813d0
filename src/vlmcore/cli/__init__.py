"""
The console command ``vlmcore``: describe images, look at the installation, list models.

Other packages add sub-commands through the entry-point group ``vlmcore.commands``. Each entry point
names a callable that is given the action of ``ArgumentParser.add_subparsers``, adds a parser to it,
and sets ``run`` as a default of that parser: a function from the parsed arguments to an exit code.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vlmcore.cli._loading import LoadPredictor

__all__ = ["main"]

_INTERRUPTED = 130  # `ExitCode.INTERRUPTED`, before there is anything to import it from


def main(argv: Sequence[str] | None = None, *, load: LoadPredictor | None = None) -> int:
    """
    Run the command ``vlmcore``.

    Args:
        argv: The words after ``vlmcore``; those of this process by default.
        load: What loads models, `vlmcore.load_predictor` by default; a program that has
            predictors of its own can give them here.

    Returns:
        The exit code, one of those that ``vlmcore --help`` lists.
    """
    try:
        # Imported here, so that Ctrl-C while Python is still importing ends like any other.
        from vlmcore.cli._main import run  # noqa: PLC0415
    except KeyboardInterrupt:
        return _INTERRUPTED
    return run(argv, load=load)
