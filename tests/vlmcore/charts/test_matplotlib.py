"""Tests of `vlmcore.charts._matplotlib`: charts as figures."""

from __future__ import annotations

import math
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
from matplotlib.figure import Figure

from vlmcore.charts._matplotlib import figure_of
from vlmcore.charts.chart import Chart

NAN, INF = math.nan, math.inf


def png(figure: Figure) -> bytes:
    """Draw a figure as a notebook does; a warning is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return bytes(figure._repr_png_())  # type: ignore[attr-defined]


def test_a_figure_is_made_without_pyplot_and_shows_itself() -> None:
    """
    No backend is chosen and nothing global is changed; IPython finds how to show it.
    """
    program = (
        "import sys, matplotlib; before = list(dict.items(matplotlib.rcParams))\n"
        "from vlmcore.charts.chart import Chart\n"
        "from vlmcore.charts.drawing import figure\n"
        "made = figure(Chart(values=[[0.0], [1.0]], names=('x',)))\n"
        "assert made._repr_png_().startswith(b'\\x89PNG')\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
        "assert before == list(dict.items(matplotlib.rcParams))\n"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert 0 == done.returncode, done.stderr


def test_a_figure_has_axes_with_the_values() -> None:
    """
    They can be taken, zoomed and written on, as those of any figure.
    """
    figure = figure_of(Chart(values=[[0.0], [1.0], [4.0]], names=("x",), rate_hz=10))
    (axes,) = figure.axes
    assert [0.0, 1.0, 4.0] == list(axes.lines[0].get_ydata())
    assert [0.0, 1.0, 2.0] == list(axes.lines[0].get_xdata())


def test_names_that_matplotlib_would_read_are_names() -> None:
    """
    A dollar starts a formula, and an underscore hides an entry of the legend.
    """
    names = ("_hidden", r"$\frac{", "x_1^2", "%d")
    figure = figure_of(
        Chart(values=np.zeros((3, 4)), names=names, title=r"$\alpha", units=("$",) * 4)
    )
    legend = figure.axes[0].get_legend()

    assert legend is not None
    assert list(names) == [text.get_text() for text in legend.get_texts()]
    assert png(figure)
    assert png(figure_of(Chart(values=[[0.0]], names=(r"$\frac{",))))


RANGES = [[NAN, NAN], [INF, -INF], [1.7e308, -1.7e308], [0.0, 5e-324], [3.0, 3.0], [1e16, 1e16 + 2]]


@pytest.mark.parametrize("bound", [None, 5e-324, 1.0, 1.7e308])
def test_any_range_is_drawn(bound: float | None) -> None:
    """
    Without a warning; matplotlib's own arithmetic overflows on some.
    """
    values, names = np.array(RANGES).T, tuple("abcdef")
    bounds = {} if bound is None else {"low": [-bound] * 6, "high": [bound] * 6}
    marks = np.ones((1, 6), np.bool_)
    figure = figure_of(Chart(values=values, names=names, marks=marks, before=[0.0] * 6, **bounds))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure.draw_without_rendering()


def test_more_dimensions_than_fit_are_counted() -> None:
    """
    64 small panels, and words below.
    """
    figure = figure_of(Chart(values=np.zeros((2, 100)), names=tuple(map(str, range(100)))))
    assert 64 == len(figure.axes)
    assert "… and 36 more dimensions" == figure.get_supxlabel()


def test_a_figure_can_be_pickled() -> None:
    """
    As other figures can, to be looked at elsewhere.
    """
    figure = figure_of(Chart(values=[[0.0], [1.0]], names=("x",), rate_hz=10, before=[0.0]))
    assert isinstance(pickle.loads(pickle.dumps(figure)), Figure)
