"""One process at a time at a journal."""

from __future__ import annotations

import os
from typing import IO, Any

__all__ = ["is_taken"]

if os.name == "nt":  # pragma: no cover - an open file cannot be deleted there, which is enough

    def is_taken(file: IO[Any]) -> bool:
        """Say that it is not: locks would keep others from reading."""
        return file.closed

else:
    import fcntl

    def is_taken(file: IO[Any]) -> bool:
        """Lock *file* until it is closed, or its process ends; say whether another has it."""
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
        return False
