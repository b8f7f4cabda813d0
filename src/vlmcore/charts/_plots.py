"""One panel: its lines in their bounds, with signs where something is to be seen."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import numpy as np

from vlmcore._arrays import Float64Array
from vlmcore.charts._inks import BOUND, FRAME, GRID, INK, MARK, OUTSIDE, QUIET, UNSEEN
from vlmcore.charts._lines import runs, thinned
from vlmcore.charts._panels import Panel
from vlmcore.charts._scales import Scale, Tick
from vlmcore.charts._shapes import Anchor, Box, Glyph, Line, Shape, Sign, Text
from vlmcore.charts._styles import STYLES, Style, faded
from vlmcore.charts.chart import Chart

__all__ = ["Frame", "plot_shapes", "step_scale", "step_shapes"]

_SMALL = 11
_APART_PX = 4.0  # signs nearer to each other than about this are drawn once
_INSET_PX = 5.0  # how far from the edge signs are that stand at it


@attrs.frozen
class Frame:
    """Where a panel is, in pixels."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def width(self) -> float:
        """From left to right."""
        return self.right - self.left

    @property
    def height(self) -> float:
        """From top to bottom."""
        return self.bottom - self.top

    def x(self, place: float) -> float:
        """Say where on the axis of steps is."""
        return self.left + place * self.width

    def y(self, place: float) -> float:
        """Say where on the axis of values is; what is beyond it is at its edge."""
        return self.bottom - min(max(place, 0.0), 1.0) * self.height


def step_scale(chart: Chart) -> Scale:
    """Make the axis of steps, with the last command one step before the first."""
    first = 0 if chart.before is None else -1
    return Scale(first - 0.5, chart.horizon - 0.5)


def plot_shapes(
    chart: Chart, panel: Panel, frame: Frame, ticks: tuple[Tick, ...], *, grain_px: float
) -> list[Shape]:
    """
    Draw one panel.

    Args:
        chart: What it is from.
        panel: What is drawn.
        frame: Where.
        ticks: Round numbers on its axis of values.
        grain_px: Lines are drawn as finely as this.
    """
    shapes: list[Shape] = list(_ground(chart, panel, frame))
    for tick in ticks:
        y = frame.y(tick.place)
        shapes.append(_across(frame, y, GRID, 1.0))
        shapes.append(Text(frame.left - 6, y, tick.label, QUIET, _SMALL, Anchor.END))
    if panel.bounds is not None:
        bounds = (frame.y(panel.scale.place(bound)) for bound in panel.bounds)
        shapes += [_across(frame, y, BOUND, 1.0) for y in bounds]
    shapes.append(_across(frame, frame.bottom, FRAME, 1.0))
    signs: list[Glyph] = []
    for i, dim in enumerate(panel.dims):
        series = _Series(chart, dim, panel.scale, frame, STYLES[i])
        shapes += series.lines(grain_px)
        signs += series.signs()
    return [*shapes, *_apart(signs, _APART_PX + grain_px)]


def step_shapes(chart: Chart, frame: Frame, *, named: bool) -> Iterator[Shape]:
    """Draw the axis of steps below *frame*: their numbers, and their time if the rate is known."""
    y, y_time = frame.bottom + 10, frame.bottom + 24
    for tick in step_scale(chart).ticks(max(3, int(frame.width / 64)), whole=True):
        if tick.value < 0:
            continue
        x = frame.x(tick.place)
        yield Line(np.array([[x, frame.bottom], [x, frame.bottom + 3]]), FRAME, 1.0)
        yield Text(x, y, tick.label, QUIET, _SMALL, Anchor.MIDDLE)
        if chart.rate_hz is not None:
            time = f"{tick.value / chart.rate_hz:.3g} s"
            yield Text(x, y_time, time, QUIET, _SMALL, Anchor.MIDDLE)
    if named:
        yield Text(frame.left - 14, y, "step", QUIET, _SMALL, Anchor.END)


def _ground(chart: Chart, panel: Panel, frame: Frame) -> Iterator[Shape]:
    if panel.bounds is not None:
        low, high = (frame.y(panel.scale.place(bound)) for bound in panel.bounds)
        yield Box(frame.left, frame.top, frame.right, high, OUTSIDE)
        yield Box(frame.left, low, frame.right, frame.bottom, OUTSIDE)
    if chart.looked_at < chart.horizon:
        start = frame.x(step_scale(chart).place(chart.looked_at - 0.5))
        yield Box(start, frame.top, frame.right, frame.bottom, UNSEEN)


def _across(frame: Frame, y: float, colour: str, width: float) -> Line:
    return Line(np.array([[frame.left, y], [frame.right, y]]), colour, width)


def _apart(signs: list[Glyph], apart_px: float) -> Iterator[Glyph]:
    """Leave out signs that another one hides: thousands of them look the same as some."""
    drawn = set()
    for sign in signs:
        cell = (sign.sign, sign.colour, sign.x // apart_px, sign.y // apart_px)
        if cell not in drawn:
            drawn.add(cell)
            yield sign


@attrs.frozen
class _Series:
    """One dimension: its line, what was proposed behind it, and the signs on them."""

    chart: Chart
    dim: int
    scale: Scale
    frame: Frame
    style: Style

    def lines(self, grain_px: float) -> Iterator[Shape]:
        """Draw the values, and behind them what was proposed."""
        chart = self.chart
        if chart.proposed is not None:
            yield from self._line(chart.proposed, faded(self.style.colour), grain_px)
        yield from self._line(chart.values, self.style.colour, grain_px)

    def signs(self) -> Iterator[Glyph]:
        """Put signs at the values that are lost, beyond the edge, or marked."""
        values = self.chart.series(self.chart.marked_values, self.dim)
        marked = self.chart.marked(self.dim)
        places, points = self.scale.places(values), self._points(values)
        if self.chart.before is not None and np.isfinite(values[0]):
            yield Glyph(Sign.BEFORE, *_pair(points[0]), self.style.colour)
        lost, above, below = np.isnan(values), places > 1, places < 0
        for i in np.flatnonzero(lost | above | below | marked).tolist():
            x, y = _pair(points[i])
            sign = Sign.BROKEN
            if lost[i]:
                sign, y = Sign.LOST, self.frame.bottom - _INSET_PX
            elif above[i]:
                sign, y = Sign.ABOVE, self.frame.top + _INSET_PX
            elif below[i]:
                sign, y = Sign.BELOW, self.frame.bottom - _INSET_PX
            yield Glyph(sign, x, y, MARK if marked[i] else INK)

    def _line(self, all_values: Float64Array, colour: str, grain_px: float) -> Iterator[Shape]:
        values = self.chart.series(all_values, self.dim)
        points = self._points(values)
        width = 1.8 if len(values) * 3 < self.frame.width else 1.3
        for run in runs(np.isfinite(values)):
            part = points[run]
            if len(part) == 1:
                yield Glyph(Sign.POINT, *_pair(part[0]), colour)
            else:
                yield Line(thinned(part, grain_px), colour, width, self.style.dash)

    def _points(self, values: Float64Array) -> Float64Array:
        steps = step_scale(self.chart).places(self.chart.steps())
        places = np.clip(self.scale.places(values), 0.0, 1.0)
        frame = self.frame
        return np.column_stack(
            (frame.left + steps * frame.width, frame.bottom - places * frame.height)
        )


def _pair(point: Float64Array) -> tuple[float, float]:
    return float(point[0]), float(point[1])
