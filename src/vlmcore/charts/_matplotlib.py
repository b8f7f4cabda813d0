"""Charts as figures of matplotlib."""

from __future__ import annotations

from matplotlib.figure import Figure

from vlmcore.charts.chart import Chart

__all__ = ["figure_of"]


def figure_of(chart: Chart) -> Figure:
    """Draw a chart as a figure."""
    figure = Figure()
    axes = figure.subplots()
    axes.plot(chart.values)
    return figure
