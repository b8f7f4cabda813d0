"""One line that says how far a call has come."""

from __future__ import annotations

import contextlib
import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

from vlmcore.cli.commands import Terminal
from vlmcore_audio.music import MusicProgress

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["ProgressLine"]

_EVERY_S = 0.1


class ProgressLine:
    """
    Writes over itself where a person watches; elsewhere each phase is a line of its own.

    That nobody can read it does not end the call, which costs money. Leaving it takes it away.

    Args:
        terminal: Where lines go.
        quiet: Whether nothing is shown.
    """

    def __init__(self, terminal: Terminal, *, quiet: bool) -> None:
        self._terminal = terminal
        self._quiet = quiet
        self._is_watched = sys.stderr is not None and sys.stderr.isatty()
        self._phase = ""
        self._shown_at_s = 0.0
        self._width = 0

    def show(self, progress: MusicProgress) -> bool:
        """Show how far it is, unless that was shown just now; the call goes on: False."""
        if self._quiet:
            return False
        is_new = progress.phase != self._phase
        self._phase = progress.phase
        with contextlib.suppress(OSError):
            if self._is_watched:
                self._watched(progress, is_new=is_new)
            elif is_new:
                self._terminal.note(f"{progress.phase} ...")
        return False

    def _watched(self, progress: MusicProgress, *, is_new: bool) -> None:
        now_s = time.monotonic()
        if not is_new and now_s - self._shown_at_s < _EVERY_S:
            return
        self._shown_at_s = now_s
        size = f" {progress.received_bytes / 1e6:.1f} MB" if progress.received_bytes else ""
        text = f"{progress.phase} ...{size}"
        self._write(text.ljust(self._width))
        self._width = len(text)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._width:
            with contextlib.suppress(OSError):
                self._write(" " * self._width + "\r")

    @staticmethod
    def _write(text: str) -> None:
        sys.stderr.write(f"\r{text}")
        sys.stderr.flush()
