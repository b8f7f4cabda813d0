"""HTML for notebooks: no script, nothing from outside, readable on light and on dark."""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Iterable, Sequence

__all__ = ["card", "details", "number", "paragraph", "table", "text"]

_EDGE = "1px solid rgba(128,128,128,.35)"
_SHOWN_CHARACTERS = 200
_DIRECTIONS = frozenset(("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"))


def text(value: str, most: int = _SHOWN_CHARACTERS) -> str:
    """
    Show text of somebody else's: escaped, cut, and kept from turning around what is beside it.

    Args:
        value: Any text.
        most: Characters that are shown.
    """
    shown = value if len(value) <= most else f"{value[:most]}…"
    return f"<bdi>{html.escape(''.join(map(_visible, shown)))}</bdi>"


def _visible(character: str) -> str:
    if character == "\n":
        return character
    hidden = unicodedata.category(character) in ("Cc", "Cs") or (
        unicodedata.bidirectional(character) in _DIRECTIONS
    )
    return character.encode("unicode_escape").decode() if hidden else character


def number(value: float) -> str:
    """Write a number shortly."""
    return html.escape(f"{value:.4g}")


def paragraph(content: str, *, quiet: bool = False) -> str:
    """Set HTML as a paragraph."""
    look = ";opacity:.75" if quiet else ""
    return f'<p style="margin:.3em 0{look}">{content}</p>'


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, texts: int = 1) -> str:
    """
    Set cells of HTML as a table.

    Args:
        head: What each column is.
        rows: The cells of each row.
        texts: How many columns, from the first, hold texts; the others hold numbers.
    """
    cells = [_row("th", head, texts), *(_row("td", row, texts) for row in rows)]
    look = "border-collapse:collapse;margin:.3em 0;font-size:.92em"
    return f'<table style="{look}">{"".join(cells)}</table>'


def _row(tag: str, cells: Sequence[str], texts: int) -> str:
    made = []
    for i, cell in enumerate(cells):
        side = "left" if i < texts else "right"
        look = f"text-align:{side};padding:.1em .7em .1em 0;border-bottom:{_EDGE}"
        made.append(f'<{tag} style="{look}">{cell}</{tag}>')
    return f"<tr>{''.join(made)}</tr>"


def details(summary: str, content: str) -> str:
    """Hide HTML until somebody opens it."""
    return f"<details><summary>{html.escape(summary)}</summary>{content}</details>"


def card(title: str, *parts: str) -> str:
    """Set HTML below a title, as one piece."""
    look = f"border:{_EDGE};border-radius:6px;padding:.5em .9em;overflow-x:auto"
    return f'<div style="{look}"><strong>{title}</strong>{"".join(parts)}</div>'
