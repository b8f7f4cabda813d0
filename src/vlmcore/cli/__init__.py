"""
The console command ``vlmcore``: describe images, look at the installation, list models.

Other packages add sub-commands through the entry-point group ``vlmcore.commands``. Each entry point
names a callable that is given the action of ``ArgumentParser.add_subparsers``, adds a parser to it,
and sets ``run`` as a default of that parser: a function from the parsed arguments to an exit code.
"""

from vlmcore.cli._main import main

__all__ = ["main"]
