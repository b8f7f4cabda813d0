"""Legends: which line is which dimension, and what the signs say."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import attrs
import numpy as np

from vlmcore.charts._inks import BOUND, INK, MARK, OUTSIDE, QUIET, UNSEEN
from vlmcore.charts._labels import Measure, cut
from vlmcore.charts._shapes import Box, Glyph, Line, Shape, Sign, Text
from vlmcore.charts._styles import COLOURS, STYLES, faded
from vlmcore.charts.chart import Chart

__all__ = [
    "ENTRY_PX",
    "KeyEntry",
    "Legend",
    "key_entries",
    "key_rows",
    "key_shapes",
    "plan_legend",
    "rows_needed",
]

ENTRY_PX = 17.0
_SWATCH_PX = 26.0
_GAP_PX = 8.0
_SIZE = 12
_NARROWEST_NAME_PX = 56.0
_WIDEST_NAME_PX = 180.0


@attrs.frozen
class Legend:
    """
    A legend as it is laid out.

    Attributes:
        labels: The names, as long as they fit.
        rows: Entries a column.
        column_px: Width of a column.
        width_px: Width of all columns.
        more: How many entries do not fit, in words; empty if all do.
    """

    labels: tuple[str, ...]
    rows: int
    column_px: float
    width_px: float
    more: str

    @property
    def height_px(self) -> float:
        """Height of all rows."""
        return self.rows * ENTRY_PX + 4

    def shapes(self, left: float, top: float) -> Iterator[Shape]:
        """Draw it, from its upper left corner."""
        for i, label in enumerate(self.labels):
            x = left + (i // self.rows) * self.column_px
            y = top + (i % self.rows + 0.5) * ENTRY_PX
            style = STYLES[i]
            swatch = np.array([[x, y], [x + _SWATCH_PX - 6, y]])
            yield Line(swatch, style.colour, 2.0, style.dash)
            yield Text(x + _SWATCH_PX, y, label, INK, _SIZE)
        if self.more:
            x = left + (len(self.labels) // self.rows) * self.column_px
            y = top + (len(self.labels) % self.rows + 0.5) * ENTRY_PX
            yield Text(x, y, self.more, QUIET, _SIZE)


def plan_legend(names: Sequence[str], *, rows: int, most_px: float, measure: Measure) -> Legend:
    """
    Lay out *names* in columns of *rows*, at most *most_px* wide in all.

    Args:
        names: The names in the order of their lines, at most 32.
        rows: Entries that fit below each other, at least 1.
        most_px: Width that there is.
        measure: How wide a text is.
    """
    column_px = _column_px(names, measure)
    columns = math.ceil(len(names) / rows)
    narrowest = min(column_px, _SWATCH_PX + _NARROWEST_NAME_PX + _GAP_PX)
    column_px = max(min(column_px, most_px / columns), narrowest)
    fitting = max(1, int(most_px / column_px))
    shown = len(names) if columns <= fitting else max(0, fitting * rows - 1)
    columns = min(columns, fitting)
    room = column_px - _SWATCH_PX - _GAP_PX
    labels = tuple(
        name if measure(name, _SIZE) <= room else cut(f"{i}: {name}", _SIZE, room, measure)
        for i, name in enumerate(names[:shown])
    )
    left = len(names) - shown
    more = cut(f"… and {left} more", _SIZE, column_px - _GAP_PX, measure) if left else ""
    return Legend(labels, rows, column_px, columns * column_px, more)


def rows_needed(names: Sequence[str], most_px: float, measure: Measure) -> int:
    """Say how many rows all *names* need in columns as wide as they like to be."""
    return math.ceil(len(names) / max(1, int(most_px / _column_px(names, measure))))


def _column_px(names: Sequence[str], measure: Measure) -> float:
    widest = max(measure(name, _SIZE) for name in names)
    return _SWATCH_PX + min(math.ceil(widest), _WIDEST_NAME_PX) + _GAP_PX


@attrs.frozen
class KeyEntry:
    """One sign of the key: a sign or the colour of an area, and what it says."""

    sign: Sign | None
    colour: str
    words: str


def key_entries(chart: Chart) -> tuple[KeyEntry, ...]:
    """List the signs that a chart needs, with what they say."""
    values, entries = chart.marked_values, []
    if chart.low is not None and chart.high is not None:
        entries.append(KeyEntry(None, OUTSIDE, "out of bounds"))
    if chart.looked_at < chart.horizon:
        entries.append(KeyEntry(None, UNSEEN, "not looked at"))
    if chart.before is not None:
        entries.append(KeyEntry(Sign.BEFORE, INK, "last command"))
    if chart.proposed is not None:
        entries.append(KeyEntry(None, faded(COLOURS[0]), "as proposed"))
    if chart.marks is not None and chart.marks.any():
        entries.append(KeyEntry(Sign.BROKEN, MARK, _marked_words(chart, int(chart.marks.sum()))))
    if np.isnan(values).any():
        entries.append(KeyEntry(Sign.LOST, QUIET, "NaN"))
    if _beyond(chart):
        entries.append(KeyEntry(Sign.ABOVE, QUIET, "off the scale"))
    return tuple(entries)


def _marked_words(chart: Chart, count: int) -> str:
    value = "1 value" if count == 1 else f"{count:,} values"
    together = ", alone or together" if chart.marks_together else ""
    if chart.proposed is not None:
        return f"{value} broke a limit{together}"
    return f"{value} {'breaks' if count == 1 else 'break'} a limit{together}"


def _beyond(chart: Chart) -> bool:
    values = chart.marked_values
    if np.isinf(values).any():
        return True
    if chart.low is None or chart.high is None:
        return False
    with np.errstate(over="ignore"):
        room = chart.high - chart.low
        return bool((values > chart.high + room).any() or (values < chart.low - room).any())


def key_rows(
    entries: Sequence[KeyEntry], width_px: float, measure: Measure
) -> list[list[KeyEntry]]:
    """Break the key into rows of at most *width_px*."""
    rows: list[list[KeyEntry]] = []
    left = math.inf
    for entry in entries:
        needed = _key_width(entry, measure)
        if left + needed > width_px:
            rows.append([])
            left = 0.0
        rows[-1].append(entry)
        left += needed
    return rows


def _key_width(entry: KeyEntry, measure: Measure) -> float:
    return 18 + measure(entry.words, _SIZE) + 16


def key_shapes(row: Sequence[KeyEntry], left: float, y: float, measure: Measure) -> Iterator[Shape]:
    """Draw one row of the key."""
    for entry in row:
        if entry.sign is None:
            yield Box(left, y - 6, left + 12, y + 6, BOUND if entry.colour == OUTSIDE else QUIET)
            yield Box(left + 1, y - 5, left + 11, y + 5, entry.colour)
        else:
            yield Glyph(entry.sign, left + 6, y, entry.colour)
        yield Text(left + 18, y, entry.words, QUIET, _SIZE)
        left += _key_width(entry, measure)
