"""One line on standard error that is written over, where a person watches."""

from __future__ import annotations

import contextlib
import shutil
import sys

from vlmcore._closing import Closing
from vlmcore.cli._terminal import shortened, visible

__all__ = ["StatusLine"]


class StatusLine(Closing):
    """
    Says what goes on, and takes itself away at the end.

    Args:
        quiet: Whether nothing is shown.

    Attributes:
        is_shown: Whether anybody sees it.
    """

    def __init__(self, *, quiet: bool) -> None:
        self.is_shown = not quiet and sys.stderr is not None and sys.stderr.isatty()
        self._width = 0

    def write(self, text: str) -> None:
        """Show *text* in the place of what was there, as much of it as the terminal is wide."""
        if self.is_shown:
            columns = max(shutil.get_terminal_size().columns - 1, 20)
            text = shortened(visible(text, one_line=True), columns)
            self._put(text.ljust(self._width))
            self._width = len(text)

    def close(self) -> None:
        """Take the line away."""
        if self._width:
            self._put(" " * self._width + "\r")
            self._width = 0

    @staticmethod
    def _put(text: str) -> None:
        with contextlib.suppress(OSError):  # that nobody can read it ends nothing
            sys.stderr.write(f"\r{text}")
            sys.stderr.flush()
