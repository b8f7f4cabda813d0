"""One line that says how far a call has come."""

from __future__ import annotations

import sys
import time

from vlmcore.cli._terminal import Terminal
from vlmcore_audio.music import MusicProgress

__all__ = ["ProgressLine"]

_EVERY_S = 0.1


class ProgressLine:
    """
    Writes over itself where a person watches; elsewhere each phase is a line of its own.

    Args:
        terminal: Where lines go.
        quiet: Whether nothing is shown.
    """

    def __init__(self, terminal: Terminal, *, quiet: bool) -> None:
        self._terminal = terminal
        self._quiet = quiet
        self._is_watched = sys.stderr.isatty()
        self._phase = ""
        self._shown_at_s = 0.0
        self._width = 0

    def show(self, progress: MusicProgress) -> bool:
        """Show how far it is, unless that was shown just now; the call goes on: False."""
        if self._quiet:
            return False
        if not self._is_watched:
            if progress.phase != self._phase:
                self._terminal.note(f"{progress.phase} ...")
        elif progress.phase != self._phase or time.monotonic() - self._shown_at_s >= _EVERY_S:
            self._shown_at_s = time.monotonic()
            size = f" {progress.received_bytes / 1e6:.1f} MB" if progress.received_bytes else ""
            text = f"{progress.phase} ...{size}"
            sys.stderr.write(f"\r{text.ljust(self._width)}")
            sys.stderr.flush()
            self._width = len(text)
        self._phase = progress.phase
        return False

    def end(self) -> None:
        """Take the line away."""
        if self._width:
            sys.stderr.write(f"\r{' ' * self._width}\r")
            sys.stderr.flush()
            self._width = 0
