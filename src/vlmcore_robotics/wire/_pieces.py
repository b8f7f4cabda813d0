"""How many pieces may come at once: each takes time to read, however small it is."""

from __future__ import annotations

__all__ = ["MOST_PIECES", "Pieces"]

MOST_PIECES = 1024


class Pieces:
    """Counts the frames or chunks in what was read from a connection at one time."""

    def __init__(self) -> None:
        self._left = MOST_PIECES

    def begin(self) -> None:
        """Note that something was read."""
        self._left = MOST_PIECES

    def take(self) -> bool:
        """Note one piece of it; return whether there may be as many."""
        self._left -= 1
        return self._left >= 0
