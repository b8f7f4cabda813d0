"""One panel: its lines in their bounds, with signs where something is to be seen."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import numpy as np

from vlmcore._arrays import BoolArray, Float64Array
from vlmcore.charts._inks import BOUND, FRAME, GRID, INK, MARK, OUTSIDE, QUIET, UNSEEN
from vlmcore.charts._lines import runs, thinned
from vlmcore.charts._panels import Panel
from vlmcore.charts._scales import Scale, Tick
from vlmcore.charts._shapes import Anchor, Box, Glyph, Line, Shape, Sign, Text
from vlmcore.charts._styles import STYLES
from vlmcore.charts.chart import Chart

__all__ = ["Frame", "plot_shapes", "step_scale", "step_shapes"]

_SMALL = 11
_APART_PX = 5.0  # signs nearer to each other than this are drawn once


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


def plot_shapes(chart: Chart, panel: Panel, frame: Frame, ticks: tuple[Tick, ...]) -> list[Shape]:
    """Draw one panel into *frame*, with *ticks* on its axis of values."""
    shapes: list[Shape] = list(_ground(chart, panel, frame))
    for tick in ticks:
        y = frame.y(tick.place)
        shapes.append(_across(frame, y, GRID, 1.0))
        shapes.append(Text(frame.left - 6, y, tick.label, QUIET, _SMALL, Anchor.END))
    if panel.bounds is not None:
        bounds = (frame.y(panel.scale.place(bound)) for bound in panel.bounds)
        shapes += [_across(frame, y, BOUND, 1.0) for y in bounds]
    shapes.append(_across(frame, frame.bottom, FRAME, 1.0))
    signs: list[Shape] = []
    for i, dim in enumerate(panel.dims):
        lines, marks = _series(chart, dim, panel.scale, frame, i)
        shapes += lines
        signs += marks
    return shapes + signs


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


def _series(
    chart: Chart, dim: int, scale: Scale, frame: Frame, index: int
) -> tuple[list[Shape], list[Shape]]:
    """Draw one dimension: its line, and the signs on it."""
    style = STYLES[index % len(STYLES)]
    steps, values, marked = chart.series(dim)
    places = scale.places(values)
    points = np.column_stack(
        (
            frame.left + step_scale(chart).places(steps) * frame.width,
            frame.bottom - np.clip(places, 0.0, 1.0) * frame.height,
        )
    )
    width = 1.8 if len(values) * 3 < frame.width else 1.3
    there = np.isfinite(values)
    lines: list[Shape] = []
    for run in runs(there):
        part = points[run]
        if len(part) == 1:
            lines.append(Glyph(Sign.POINT, float(part[0, 0]), float(part[0, 1]), style.colour))
        else:
            lines.append(Line(thinned(part), style.colour, width, style.dash))
    signs: list[Shape] = []
    if steps[0] < 0 and there[0]:
        signs.append(Glyph(Sign.BEFORE, float(points[0, 0]), float(points[0, 1]), style.colour))
    return lines, signs + _signs(values, places, points, marked, frame)


def _signs(
    values: Float64Array,
    places: Float64Array,
    points: Float64Array,
    marked: BoolArray,
    frame: Frame,
) -> list[Shape]:
    """Put signs at the values that are lost, beyond the edge, or marked."""
    inset = 5.0
    lost, above, below = np.isnan(values), places > 1, places < 0
    signs: list[Shape] = []
    drawn: set[tuple[Sign, int, int]] = set()
    for i in np.flatnonzero(lost | above | below | marked).tolist():
        x, y = points[i].tolist()
        sign = Sign.BROKEN
        if lost[i]:
            sign, y = Sign.LOST, frame.bottom - inset
        elif above[i]:
            sign, y = Sign.ABOVE, frame.top + inset
        elif below[i]:
            sign, y = Sign.BELOW, frame.bottom - inset
        place = (sign, round(x / _APART_PX), round(y / _APART_PX))
        if place not in drawn:
            drawn.add(place)
            signs.append(Glyph(sign, x, y, MARK if marked[i] else INK))
    return signs
