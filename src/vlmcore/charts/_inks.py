"""The colours of everything that is not a line of values, on white."""

from __future__ import annotations

__all__ = ["BOUND", "FRAME", "GRID", "INK", "MARK", "OUTSIDE", "PAPER", "QUIET", "UNSEEN"]

PAPER = "#ffffff"
INK = "#1f2328"
QUIET = "#59636e"
GRID = "#e6e9ed"
FRAME = "#9aa3ad"
BOUND = "#8c5a5a"
OUTSIDE = "#fbeaea"  # where no value may be
UNSEEN = "#edeff2"  # steps that were not looked at
MARK = "#d1001f"
