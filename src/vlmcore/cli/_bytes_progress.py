"""One line that says how many bytes are done."""

from __future__ import annotations

import contextlib
import sys
import time

from vlmcore._closing import Closing

__all__ = ["BytesProgress", "in_bytes"]

_EVERY_S = 0.1


def in_bytes(count: int) -> str:
    """
    Write a size as a person reads it.

    Example:
        >>> in_bytes(3_825_664), in_bytes(512)
        ('3.8 MB', '512 bytes')
    """
    if count < 1000:
        return f"{count} bytes"
    size, units = count / 1000, ["kB", "MB", "GB", "TB"]
    while size >= 1000 and len(units) > 1:
        size, units = size / 1000, units[1:]
    return f"{size:.1f} {units[0]}"


class BytesProgress(Closing):
    """
    Writes over itself on standard error where a person watches, and takes itself away at the end.

    Args:
        doing: What is done, as ``"packing"``.
        quiet: Whether nothing is shown.
    """

    def __init__(self, doing: str, *, quiet: bool) -> None:
        self._doing = doing
        self._is_shown = not quiet and sys.stderr is not None and sys.stderr.isatty()
        self._began_at_s = self._shown_at_s = time.monotonic()
        self._width = 0

    def __call__(self, done: int, total: int) -> None:
        """Show it, unless it was shown just now."""
        now_s = time.monotonic()
        if not self._is_shown or now_s - self._shown_at_s < _EVERY_S:
            return
        self._shown_at_s = now_s
        rate = done / (now_s - self._began_at_s)
        percent = 100 * done // max(total, 1)
        text = f"{self._doing} {in_bytes(done)} of {in_bytes(total)}, {percent}%"
        text += f", {in_bytes(int(rate))}/s"
        self._write(text.ljust(self._width))
        self._width = len(text)

    def close(self) -> None:
        """Take the line away."""
        if self._width:
            self._write(" " * self._width + "\r")
            self._width = 0

    @staticmethod
    def _write(text: str) -> None:
        with contextlib.suppress(OSError):  # that nobody can read it ends nothing
            sys.stderr.write(f"\r{text}")
            sys.stderr.flush()
