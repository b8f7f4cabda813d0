"""The page: a title, the key of signs, panels with their legends, the axis of steps."""

from __future__ import annotations

import math
from collections.abc import Iterator

import attrs

from vlmcore.charts._inks import INK, PAPER, QUIET
from vlmcore.charts._labels import Measure, cut
from vlmcore.charts._legend import (
    ENTRY_PX,
    KeyEntry,
    Legend,
    key_entries,
    key_rows,
    key_shapes,
    plan_legend,
    rows_needed,
)
from vlmcore.charts._panels import Panel, Plan, left_out_words, plan_panels
from vlmcore.charts._plots import Frame, plot_shapes, step_shapes
from vlmcore.charts._scales import Tick
from vlmcore.charts._shapes import Box, Picture, Shape, Text
from vlmcore.charts.chart import Chart
from vlmcore.limits import ChartLimits

__all__ = ["lay_out"]

_LIMITS = ChartLimits()
_MARGIN = 12.0
_TITLE_PX = 22.0
_KEY_PX = 19.0
_NAME_PX = 18.0
_GAP_PX = 14.0
_SINGLE_PX = 230  # columns of small panels are at least as wide
_LEGEND_BESIDE_PX = 520  # a legend stands beside its panel from this width on, else below
_SIZE, _TITLE_SIZE, _SMALL = 12, 14, 11


@attrs.frozen
class _Sheet:
    """What is known before panels are placed: the chart, the width, how wide a text is."""

    chart: Chart
    width_px: int
    measure: Measure
    key: list[list[KeyEntry]]
    grain_px: float

    @property
    def head_px(self) -> float:
        """Height above the panels."""
        title = _TITLE_PX if self.chart.title else 0.0
        return _MARGIN + title + _KEY_PX * len(self.key)

    def shortened(self, height_px: int) -> _Sheet:
        """Leave out rows of the key where they would leave no room for a panel."""
        needed = _MARGIN + self.axis_px + _LIMITS.min_panel_px + _NAME_PX + _GAP_PX
        room = height_px - needed - attrs.evolve(self, key=[]).head_px
        return attrs.evolve(self, key=self.key[: max(0, int(room / _KEY_PX))])

    @property
    def axis_px(self) -> float:
        """Height of the axis of steps."""
        return 20.0 if self.chart.rate_hz is None else 34.0


def lay_out(
    chart: Chart,
    *,
    width_px: int,
    height_px: int | None,
    measure: Measure,
    most_height_px: int = _LIMITS.max_side_px,
    grain_px: float = 1.0,
) -> Picture:
    """
    Say what is drawn where.

    Args:
        chart: What is to be drawn.
        width_px: Width of the picture.
        height_px: Height of the picture; ``None`` for as much as is needed.
        measure: How wide a text is.
        most_height_px: How much may be needed.
        grain_px: Lines are drawn as finely as this.
    """
    key = key_rows(key_entries(chart), width_px - 2 * _MARGIN, measure)
    sheet = _Sheet(chart, width_px, measure, key, grain_px)
    columns = _columns(sheet)
    if height_px is None:
        plan = plan_panels(chart, most_groups=len(chart.names), most_singles=_LIMITS.max_panels)
        height_px = min(_natural_height(sheet, plan), most_height_px)
    sheet = sheet.shortened(height_px)
    space = height_px - sheet.head_px - sheet.axis_px - _MARGIN
    rows = max(1, int((space - _NAME_PX) / (_LIMITS.min_panel_px + _NAME_PX)))
    plan = plan_panels(
        chart,
        most_groups=max(1, int(space / _least_group(sheet))),
        most_singles=min(rows * columns, _LIMITS.max_panels),
    )
    shapes: list[Shape] = [Box(0, 0, width_px, height_px, PAPER), *_head(sheet)]
    bottom = height_px - _MARGIN
    if plan.left_out:
        bottom -= _NAME_PX
        words = cut(left_out_words(plan), _SIZE, width_px - 2 * _MARGIN, measure)
        shapes.append(Text(_MARGIN, bottom + _NAME_PX / 2 + 2, words, QUIET, _SIZE))
    place = _grouped if plan.grouped else _singles
    shapes += place(sheet, plan, bottom)
    return Picture(width_px, height_px, tuple(shapes))


def _head(sheet: _Sheet) -> Iterator[Shape]:
    y = _MARGIN
    if sheet.chart.title:
        room = sheet.width_px - 2 * _MARGIN
        title = cut(sheet.chart.title, _TITLE_SIZE, room, sheet.measure)
        yield Text(_MARGIN, y + _TITLE_PX / 2 - 2, title, INK, _TITLE_SIZE)
        y += _TITLE_PX
    for row in sheet.key:
        yield from key_shapes(row, _MARGIN, y + _KEY_PX / 2 - 2, sheet.measure)
        y += _KEY_PX


def _columns(sheet: _Sheet) -> int:
    return max(1, min(len(sheet.chart.names), sheet.width_px // _SINGLE_PX))


def _least_group(sheet: _Sheet) -> float:
    return _LIMITS.min_panel_px + _NAME_PX + _GAP_PX + (0 if _beside(sheet) else 2 * ENTRY_PX)


def _beside(sheet: _Sheet) -> bool:
    return sheet.width_px >= _LEGEND_BESIDE_PX


def _natural_height(sheet: _Sheet, plan: Plan) -> int:
    height = sheet.head_px + sheet.axis_px + _MARGIN + _GAP_PX
    if plan.grouped:
        for panel in plan.panels:
            many = len(panel.dims)
            height += max(150 if len(plan.panels) > 1 else 240, ENTRY_PX * min(many, 16)) + _GAP_PX
            height += _NAME_PX
            if not _beside(sheet):
                names = [sheet.chart.names[dim] for dim in panel.dims]
                height += ENTRY_PX * rows_needed(names, _below_px(sheet), sheet.measure)
    elif len(plan.panels) == 1:
        height += 260
    else:
        height += math.ceil(len(plan.panels) / _columns(sheet)) * (76 + _NAME_PX)
    return int(height + (_NAME_PX if plan.left_out else 0))


def _ticks(panel: Panel, height: float) -> tuple[Tick, ...]:
    return panel.scale.ticks(max(3, min(8, int(height / 18))))


def _label_px(sheet: _Sheet, panels: tuple[Panel, ...], height: float) -> float:
    """Say how wide the numbers on the axes of values are."""
    labels = [tick.label for panel in panels for tick in _ticks(panel, height)]
    return 8 + max(
        8 + sheet.measure("step", _SMALL), *(sheet.measure(each, _SMALL) for each in labels)
    )


def _plot(sheet: _Sheet, panel: Panel, frame: Frame) -> list[Shape]:
    ticks = _ticks(panel, frame.height)
    return plot_shapes(sheet.chart, panel, frame, ticks, grain_px=sheet.grain_px)


def _unit(sheet: _Sheet, panel: Panel) -> str:
    return sheet.chart.unit(panel.dims[0])


def _grouped(sheet: _Sheet, plan: Plan, bottom: float) -> Iterator[Shape]:
    """Place panels below each other, each with its legend."""
    count, measure = len(plan.panels), sheet.measure
    each = (bottom - sheet.axis_px - sheet.head_px) / count
    top_px = _NAME_PX if any(_unit(sheet, panel) for panel in plan.panels) else 6.0
    high = each - top_px - _GAP_PX / 2
    legends = [_legend(sheet, panel, high) for panel in plan.panels]
    beside = _beside(sheet)
    left = _MARGIN + _label_px(sheet, plan.panels, each)
    right: float = sheet.width_px - _MARGIN
    if beside:
        right -= _GAP_PX + max(legend.width_px if legend else 0.0 for legend in legends)
    for i, (panel, legend) in enumerate(zip(plan.panels, legends, strict=True)):
        top = sheet.head_px + i * each + top_px
        below = legend.height_px if legend and not beside else 0.0
        frame = Frame(left, top, right, top + high - below)
        unit = cut(_unit(sheet, panel), _SMALL, frame.width, measure)
        yield Text(left, top - 8, unit, QUIET, _SMALL)
        yield from _plot(sheet, panel, frame)
        is_last = i + 1 == count
        if is_last:
            yield from step_shapes(sheet.chart, frame, named=True)
        if legend and beside:
            yield from legend.shapes(right + _GAP_PX, top)
        elif legend:
            axis_px = sheet.axis_px if is_last else 4.0
            yield from legend.shapes(left, frame.bottom + axis_px)


def _legend(sheet: _Sheet, panel: Panel, height: float) -> Legend | None:
    names = [sheet.chart.names[dim] for dim in panel.dims]
    if _beside(sheet):
        rows, most_px = max(1, int(height / ENTRY_PX)), 0.45 * sheet.width_px
    else:
        most_px = _below_px(sheet)
        needed = rows_needed(names, most_px, sheet.measure)
        rows = min(needed, int((height - _LIMITS.min_panel_px) / ENTRY_PX))
    if rows < 1:  # the line is worth more than its name
        return None
    legend = plan_legend(names, rows=rows, most_px=most_px, measure=sheet.measure)
    return legend if legend.labels else None


def _below_px(sheet: _Sheet) -> float:
    """Say how wide a legend below its panel may be."""
    return sheet.width_px - 5 * _MARGIN


def _singles(sheet: _Sheet, plan: Plan, bottom: float) -> Iterator[Shape]:
    """Place small panels side by side, each below its name."""
    chart, count = sheet.chart, len(plan.panels)
    columns = min(_columns(sheet), count)
    rows = math.ceil(count / columns)
    each_px = (sheet.width_px - 2 * _MARGIN + _GAP_PX) / columns
    each = (bottom - sheet.axis_px - sheet.head_px) / rows
    label_px = _label_px(sheet, plan.panels, each - _NAME_PX)
    for i, panel in enumerate(plan.panels):
        row, column = divmod(i, columns)
        top = sheet.head_px + row * each + _NAME_PX
        left = _MARGIN + column * each_px + label_px
        right = _MARGIN + (column + 1) * each_px - _GAP_PX
        frame = Frame(left, top, right, top + each - _NAME_PX - 6)
        yield Text(left, top - 9, _name(sheet, panel, frame.width), INK, _SIZE)
        yield from _plot(sheet, panel, frame)
        if i + columns >= count:
            yield from step_shapes(chart, frame, named=column == 0)


def _name(sheet: _Sheet, panel: Panel, room: float) -> str:
    dim, unit = panel.dims[0], _unit(sheet, panel)
    name = sheet.chart.names[dim] + (f"  [{unit}]" if unit else "")
    if sheet.measure(name, _SIZE) <= room:
        return name
    return cut(f"{dim}: {name}", _SIZE, room, sheet.measure)
