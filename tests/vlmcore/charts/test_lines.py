"""Tests of `vlmcore.charts._lines`."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from vlmcore.charts._lines import dashed, runs, thinned


def test_a_line_is_cut_where_there_is_nothing() -> None:
    """
    Each part is listed, those of one point too.
    """
    there = np.array([True, True, False, False, True, False, True])
    assert [(0, 2), (4, 5), (6, 7)] == [(run.start, run.stop) for run in runs(there)]
    assert [] == list(runs(np.zeros(3, np.bool_)))


@given(st.integers(1, 2000), st.floats(0.5, 300.0), st.integers(0, 2**32 - 1))
def test_a_thinned_line_covers_what_all_points_cover(
    count: int, width_px: float, seed: int
) -> None:
    """
    In each column of pixels the highest and the lowest are kept, and few others.
    """
    y = np.random.default_rng(seed).normal(size=count)
    points = np.column_stack((np.linspace(0.0, width_px, count), y))
    kept = thinned(points, 1.0)
    columns = np.floor(points[:, 0])

    assert len(kept) <= max(4 * (width_px + 2), 1)
    assert points[0].tolist() == kept[0].tolist()
    assert points[-1].tolist() == kept[-1].tolist()
    for column in np.unique(columns):
        mine, theirs = y[columns == column], kept[np.floor(kept[:, 0]) == column, 1]
        assert (mine.min(), mine.max()) == (theirs.min(), theirs.max())


def test_dashes_are_as_long_as_they_say_also_around_corners() -> None:
    """
    Drawn and left out in turn, along the line.
    """
    corner = np.array([[0.0, 0.0], [5.0, 0.0], [5.0, 5.0]])
    parts = list(dashed(corner, (4.0, 2.0)))
    assert [[0, 0], [4, 0]] == parts[0].tolist()
    assert [[5, 1], [5, 5]] == parts[1].tolist()

    around = list(dashed(corner, (6.0, 2.0)))
    assert [[0, 0], [5, 0], [5, 1]] == around[0].tolist()


def test_a_line_without_dashes_is_one_line() -> None:
    """
    It is passed on as it is.
    """
    points = np.zeros((3, 2))
    assert [points] == list(dashed(points, ()))
