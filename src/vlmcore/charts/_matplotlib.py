"""Charts as figures of matplotlib, made without pyplot: nothing outside the figure is touched."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import attrs
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator

from vlmcore._arrays import Float64Array
from vlmcore.charts._inks import BOUND, FRAME, GRID, INK, MARK, OUTSIDE, PAPER, QUIET, UNSEEN
from vlmcore.charts._legend import key_entries
from vlmcore.charts._lines import runs
from vlmcore.charts._panels import Panel, Plan, left_out_words, plan_panels
from vlmcore.charts._plots import step_scale
from vlmcore.charts._scales import Scale
from vlmcore.charts._shapes import Sign
from vlmcore.charts._styles import STYLES, Style, faded
from vlmcore.charts.chart import Chart
from vlmcore.limits import ChartLimits

__all__ = ["figure_of"]

_LIMITS = ChartLimits()
_WIDTH_IN = 9.6
_COLUMNS = 4  # of small panels
_SMALL = 8.5
# Further than this from 1, matplotlib's own arithmetic overflows: there we place values ourselves.
_PLAIN = (1e-100, 1e100)
_MARKERS: dict[Sign, tuple[str, bool]] = {  # and whether they are filled
    Sign.BROKEN: ("x", True),
    Sign.LOST: ("D", False),
    Sign.ABOVE: ("^", True),
    Sign.BELOW: ("v", True),
    Sign.BEFORE: ("o", False),
    Sign.POINT: (".", True),
}


class _ShownFigure(Figure):
    """A figure that notebooks show although pyplot, which would tell them how, was not loaded."""

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        self.savefig(file, format="png", dpi=self.dpi)
        return file.getvalue()


def figure_of(chart: Chart) -> Figure:
    """Draw a chart as a figure."""
    plan = plan_panels(chart, most_groups=len(chart.names), most_singles=_LIMITS.max_panels)
    count = len(plan.panels)
    columns = 1 if plan.grouped else min(_COLUMNS, count)
    rows = math.ceil(count / columns)
    height_in = _height_in(plan, rows)
    figure = _ShownFigure(figsize=(_WIDTH_IN, height_in), dpi=100, facecolor=PAPER)
    tight = plan.grouped or count == 1
    if tight:
        figure.set_layout_engine("constrained")
    else:  # matplotlib's own layout takes half a minute for 64 panels
        edges = {
            "left": 0.06,
            "right": 0.99,
            "top": 1 - 0.75 / height_in,
            "bottom": 0.7 / height_in,
        }
        figure.subplots_adjust(**edges, wspace=0.28, hspace=0.55)
    grid = figure.subplots(rows, columns, sharex=plan.grouped, squeeze=False)
    for i, axes in enumerate(grid.flat):
        if i >= count:
            axes.remove()
            continue
        _panel(axes, chart, plan.panels[i], grouped=plan.grouped)
        _step_axis(axes, chart, ticks=8 if columns == 1 else 3, labelled=i + columns >= count)
    _words(figure, chart, plan, "outside upper left" if tight else "upper left")
    return figure


def _height_in(plan: Plan, rows: int) -> float:
    if not plan.grouped:
        return 3.4 if len(plan.panels) == 1 else 1.45 + 0.95 * rows
    return 1.1 + sum(max(1.5, 0.2 * min(len(panel.dims), 16)) for panel in plan.panels)


def _words(figure: Figure, chart: Chart, plan: Plan, place: str) -> None:
    """Write the title and the key of signs above, and what is not drawn below."""
    handles: list[Artist] = []
    entries = key_entries(chart)
    for entry in entries:
        if entry.sign is None:
            handles.append(Patch(facecolor=entry.colour, edgecolor=BOUND, linewidth=0.6))
        else:
            handles.append(Line2D([], [], linestyle="", **_marker(entry.sign, entry.colour)))
    words = [entry.words for entry in entries]
    looks = _legend_looks() | {"title": "title", "alignment": "left", "borderpad": 0.2}
    looks |= {"loc": place, "ncols": max(1, len(words))}
    legend = figure.legend(handles, _numbered(words), **looks)
    _plain_legend(legend, words)
    title = legend.get_title()
    title.set(parse_math=False, text=_short(chart.title, 110), color=INK, fontsize=11)
    if plan.left_out:
        corner: dict[str, Any] = {"x": 0.01, "y": 0.01, "ha": "left", "fontsize": _SMALL}
        figure.supxlabel(left_out_words(plan), color=QUIET, **corner)


def _numbered(texts: Sequence[str]) -> list[str]:
    """Stand in for texts that matplotlib would read: ``_`` hides an entry, ``$`` is a formula."""
    return [str(i) for i in range(len(texts))]


def _plain_legend(legend: Legend, texts: Sequence[str]) -> None:
    for place, text in zip(legend.get_texts(), texts, strict=True):
        place.set_parse_math(False)
        place.set_text(text)


def _legend_looks() -> dict[str, Any]:
    return {"frameon": False, "fontsize": _SMALL, "labelcolor": INK, "handlelength": 2.6}


@attrs.frozen
class _Axis:
    """Axes and how values are placed on them."""

    axes: Axes
    scale: Scale
    places: Callable[[Float64Array], Float64Array]


def _axis(axes: Axes, scale: Scale) -> _Axis:
    """Place values as they are, or, where that would overflow, between 0 and 1."""
    span = scale.top / 2 - scale.bottom / 2
    if _PLAIN[0] < span and max(abs(scale.bottom), abs(scale.top)) < _PLAIN[1]:
        far = 100 * span  # what is beyond is drawn there; matplotlib would overflow
        places = partial(np.clip, a_min=scale.bottom - far, a_max=scale.top + far)
        made = _Axis(axes, scale, places)
    else:
        ticks = scale.ticks(4)
        axes.set_yticks([tick.place for tick in ticks], [tick.label for tick in ticks])
        made = _Axis(axes, Scale(0.0, 1.0), lambda values: np.clip(scale.places(values), -100, 100))
    axes.set_ylim(made.scale.bottom, made.scale.top)
    return made


def _panel(axes: Axes, chart: Chart, panel: Panel, *, grouped: bool) -> None:
    axis = _axis(axes, panel.scale)
    _ground(axis, chart, panel)
    handles = [_series(axis, chart, dim, STYLES[i]) for i, dim in enumerate(panel.dims)]
    _looks(axes)
    names = [chart.names[dim] for dim in panel.dims]
    unit = chart.unit(panel.dims[0])
    looks: dict[str, Any] = {"fontsize": _SMALL, "color": INK, "loc": "left", "parse_math": False}
    looks |= {"y": 1.0, "pad": 3}  # where it is: looking for room takes as long as all the rest
    if grouped:
        axes.set_title(unit, **{**looks, "color": QUIET})
        columns = math.ceil(len(names) / 16)
        beside: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.02)}
        legend = axes.legend(handles, _numbered(names), ncols=columns, **beside, **_legend_looks())
        _plain_legend(legend, [_short(name) for name in names])
    else:
        axes.set_title(_short(names[0]) + (f"  [{unit}]" if unit else ""), **looks)


def _short(name: str, most: int = 32) -> str:
    return name if len(name) <= most else f"{name[: most // 2]}…{name[-(most // 2 - 1) :]}"


def _ground(axis: _Axis, chart: Chart, panel: Panel) -> None:
    axes = axis.axes
    if panel.bounds is not None:
        low, high = axis.places(np.array(panel.bounds)).tolist()
        axes.axhspan(axis.scale.bottom, low, color=OUTSIDE, linewidth=0, zorder=0)
        axes.axhspan(high, axis.scale.top, color=OUTSIDE, linewidth=0, zorder=0)
        for bound in (low, high):
            axes.axhline(bound, color=BOUND, linewidth=0.8, zorder=1)
    if chart.looked_at < chart.horizon:
        start, end = chart.looked_at - 0.5, chart.horizon - 0.5
        axes.axvspan(start, end, color=UNSEEN, linewidth=0, zorder=0)


def _series(axis: _Axis, chart: Chart, dim: int, style: Style) -> Line2D:
    if chart.proposed is not None:
        _line(
            axis,
            chart,
            chart.series(chart.proposed, dim),
            attrs.evolve(style, colour=faded(style.colour)),
        )
    line = _line(axis, chart, chart.series(chart.values, dim), style)
    values, marked = chart.series(chart.marked_values, dim), chart.marked(dim)
    there = np.isfinite(values)
    placed = axis.places(np.where(there, values, np.nan))
    points = np.column_stack((chart.steps(), placed))
    if chart.before is not None:
        _signs(axis, Sign.BEFORE, points[:1][there[:1]], style.colour)
    lost, edge = np.isnan(values), axis.axes.get_xaxis_transform()
    above = (values == np.inf) | (placed > axis.scale.top)
    below = (values == -np.inf) | (placed < axis.scale.bottom)
    _signs(axis, Sign.BROKEN, points[marked & ~(lost | above | below)], MARK)
    for sign, which, height in (
        (Sign.LOST, lost, 0.03),
        (Sign.BELOW, below, 0.03),
        (Sign.ABOVE, above, 0.97),
    ):
        places = np.column_stack((points[:, 0], np.full(len(points), height)))
        for colour, part in ((INK, which & ~marked), (MARK, which & marked)):
            _signs(axis, sign, places[part], colour, transform=edge)
    return line


def _line(axis: _Axis, chart: Chart, values: Float64Array, style: Style) -> Line2D:
    there = np.isfinite(values)
    points = np.column_stack((chart.steps(), axis.places(np.where(there, values, np.nan))))
    dash: Any = (0, tuple(length / 1.4 for length in style.dash)) if style.dash else "-"
    looks: dict[str, Any] = {"color": style.colour, "linewidth": 1.4, "linestyle": dash}
    (line,) = axis.axes.plot(points[:, 0], points[:, 1], **looks)
    alone = [run.start for run in runs(there) if run.stop == run.start + 1]
    _signs(axis, Sign.POINT, points[alone], style.colour)
    return line


def _signs(axis: _Axis, sign: Sign, points: Float64Array, colour: str, **more: Any) -> None:
    if len(points):
        looks = {"linestyle": "", "zorder": 3, **_marker(sign, colour), **more}
        axis.axes.plot(points[:, 0], points[:, 1], **looks)


def _marker(sign: Sign, colour: str) -> dict[str, Any]:
    marker, filled = _MARKERS[sign]
    return {
        "marker": marker,
        "markersize": 5,
        "markeredgecolor": colour,
        "markerfacecolor": colour if filled else PAPER,
        "markeredgewidth": 1.4 if sign is Sign.BROKEN else 1.0,
    }


def _looks(axes: Axes) -> None:
    axes.set_facecolor(PAPER)
    axes.grid(visible=True, axis="y", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(colors=QUIET, labelsize=_SMALL, length=3, color=FRAME)
    for side, spine in axes.spines.items():
        spine.set_visible(side == "bottom")
        spine.set_color(FRAME)


def _step_axis(axes: Axes, chart: Chart, *, ticks: int, labelled: bool) -> None:
    steps = step_scale(chart)
    axes.set_xlim(steps.bottom, steps.top)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=ticks, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(partial(_step_label, rate_hz=chart.rate_hz)))
    axes.tick_params(labelbottom=labelled)
    if labelled:
        axes.set_xlabel("step", fontsize=_SMALL, color=QUIET, loc="left")


def _step_label(step: float, _: int | None, *, rate_hz: float | None) -> str:
    if step < 0:
        return ""
    return f"{step:g}" if rate_hz is None else f"{step:g}\n{step / rate_hz:.3g} s"
