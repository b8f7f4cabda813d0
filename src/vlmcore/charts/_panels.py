"""Which dimensions are drawn together, on which scale, and which are left out."""

from __future__ import annotations

import math
from typing import Any

import attrs
import numpy as np

from vlmcore._arrays import Float64Array
from vlmcore.charts._scales import Scale, scale_around
from vlmcore.charts._styles import STYLES
from vlmcore.charts.chart import Chart

__all__ = ["Panel", "Plan", "left_out_words", "plan_panels"]

_ALIKE = 8.0  # dimensions without bounds share a scale up to this ratio of their ranges
_BEYOND = 1.0  # how far beyond its bounds a value is drawn in place, in widths of the range


@attrs.frozen
class Panel:
    """
    Dimensions that share a scale.

    Attributes:
        dims: Which they are, at most 32.
        scale: From bottom to top.
        bounds: The bounds that all of them have; ``None`` if there are none.
    """

    dims: tuple[int, ...]
    scale: Scale
    bounds: tuple[float, float] | None


@attrs.frozen
class Plan:
    """
    What is drawn.

    Attributes:
        panels: From the first to the last.
        grouped: Whether panels hold several dimensions and a legend; if not, each holds one.
        left_out: How many dimensions are not drawn.
        left_out_marked: How many of these have a mark.
    """

    panels: tuple[Panel, ...]
    grouped: bool
    left_out: int
    left_out_marked: int


def plan_panels(chart: Chart, *, most_groups: int, most_singles: int) -> Plan:
    """
    Decide which dimensions share a panel.

    Up to 32 dimensions do so where unit and bounds agree, or, without bounds, where unit and order
    of magnitude do. If there are more, or if not all groups fit, each has a small panel of its
    own. Where these do not all fit either, those with marks come first.

    Args:
        chart: What is to be drawn.
        most_groups: How many panels with a legend fit.
        most_singles: How many small panels fit.
    """
    width = len(chart.names)
    if width <= len(STYLES):
        groups = _groups(chart)
        shares = any(len(dims) > 1 for dims in groups)
        if shares and len(groups) <= max(1, min(most_groups, width // 2)):
            panels = tuple(_panel(chart, dims) for dims in groups)
            return Plan(panels, grouped=True, left_out=0, left_out_marked=0)
    marks: Any = np.zeros((1, width), np.bool_) if chart.marks is None else chart.marks
    marked = marks.any(axis=0)
    order = sorted(range(width), key=lambda dim: (not marked[dim], dim))
    shown, hidden = sorted(order[:most_singles]), order[most_singles:]
    return Plan(
        tuple(_panel(chart, (dim,)) for dim in shown),
        grouped=False,
        left_out=len(hidden),
        left_out_marked=int(marked[hidden].sum()),
    )


def left_out_words(plan: Plan) -> str:
    """Say what is not drawn."""
    many, marked = plan.left_out, plan.left_out_marked
    note = "" if not marked else f", {marked:,} of them with values that break a limit"
    return f"… and {many:,} more dimension{'' if many == 1 else 's'}{note}"


def _groups(chart: Chart) -> list[tuple[int, ...]]:
    groups: list[tuple[tuple[str, float, float] | str, float, list[int]]] = []
    for dim in range(len(chart.names)):
        key: tuple[str, float, float] | str = chart.unit(dim)
        size = 0.0
        if chart.low is not None and chart.high is not None:
            key = (chart.unit(dim), float(chart.low[dim]), float(chart.high[dim]))
        else:
            size = max(map(abs, _ends(_finite(chart, dim)) or (0.0,)))
        for other, others_size, dims in groups:
            if key == other and _alike(size, others_size):
                dims.append(dim)
                break
        else:
            groups.append((key, size, [dim]))
    return [tuple(dims) for *_, dims in groups]


def _alike(one: float, other: float) -> bool:
    small, large = sorted((one, other))
    return large / _ALIKE <= small or small == 0.0


def _panel(chart: Chart, dims: tuple[int, ...]) -> Panel:
    ends = _ends(np.concatenate([_finite(chart, dim) for dim in dims]))
    if chart.low is None or chart.high is None:
        low, high = ends or (0.0, 1.0)
        return Panel(dims, scale_around(low, high), None)
    low, high = float(chart.low[dims[0]]), float(chart.high[dims[0]])
    room = min(high / 2 - low / 2, math.ldexp(1.0, 1022)) * 2 * _BEYOND
    bottom, top = ends or (low, high)
    bottom, top = max(min(bottom, low), low - room), min(max(top, high), high + room)
    most = np.finfo(np.float64).max
    return Panel(dims, scale_around(max(bottom, -most), min(top, most)), (low, high))


def _finite(chart: Chart, dim: int) -> Float64Array:
    values = chart.series(chart.values, dim)
    if chart.proposed is not None:
        values = np.append(values, chart.proposed[:, dim])
    return values[np.isfinite(values)]


def _ends(values: Float64Array) -> tuple[float, float] | None:
    return (float(values.min()), float(values.max())) if values.size else None
