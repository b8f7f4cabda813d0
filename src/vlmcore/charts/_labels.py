"""Names as they fit: cut in the middle, since both ends of a name say something."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

__all__ = ["Measure", "cut"]

Measure: TypeAlias = Callable[[str, int], float]
"""How wide a text of a size is, in pixels."""


def cut(text: str, size: int, width: float, measure: Measure) -> str:
    """Shorten *text* until it is at most *width* wide; what cannot fit becomes empty."""
    if measure(text, size) <= width:
        return text
    fits, too_long = 0, len(text)
    while too_long - fits > 1:
        kept = (fits + too_long) // 2
        if measure(_shortened(text, kept), size) <= width:
            fits = kept
        else:
            too_long = kept
    return _shortened(text, fits) if fits > 1 else ""


def _shortened(text: str, kept: int) -> str:
    head = (kept + 1) // 2
    return f"{text[:head]}…{text[len(text) - (kept - head) :]}"
