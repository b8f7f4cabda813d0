"""One line that says how many bytes are done."""

from __future__ import annotations

import time

from vlmcore._closing import Closing
from vlmcore.cli._status_line import StatusLine

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
        self._line = StatusLine(quiet=quiet)
        self._began_at_s = self._shown_at_s = time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        """Show it, unless it was shown just now."""
        now_s = time.monotonic()
        if not self._line.is_shown or now_s - self._shown_at_s < _EVERY_S:
            return
        self._shown_at_s = now_s
        rate = done / (now_s - self._began_at_s)
        percent = 100 * done // max(total, 1)
        text = f"{self._doing} {in_bytes(done)} of {in_bytes(total)}, {percent}%"
        self._line.write(f"{text}, {in_bytes(int(rate))}/s")

    def close(self) -> None:
        """Take the line away."""
        self._line.close()
