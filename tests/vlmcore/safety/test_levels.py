"""Tests of `vlmcore.safety.levels`: when a level is left for another."""

from __future__ import annotations

import numpy as np
import pytest

from vlmcore.safety.levels import LevelSwitch

GEARS = LevelSwitch(values=np.array([-4.0, -2.0, 0.0, 6.0]))


def test_a_level_is_left_beyond_60_percent_of_the_way_to_the_next() -> None:
    """
    On the way up and on the way down, however wide the gap is.
    """
    gears = LevelSwitch(values=GEARS.values)
    np.testing.assert_allclose([-3.0, -1.0, 3.0], gears.middles)
    np.testing.assert_allclose([-2.8, -0.8, 3.6], gears.rising)
    np.testing.assert_allclose([-3.2, -1.2, 2.4], gears.falling)


@pytest.mark.parametrize(
    ("number", "nearest", "of_starts"),
    [
        (-9.0, 0, [0, 0, 0, 0]),
        (-3.0, 0, [0, 1, 1, 1]),  # between the thresholds it stays, or comes as near as it must
        (-2.0, 1, [1, 1, 1, 1]),
        (0.0, 2, [2, 2, 2, 2]),
        (2.9, 2, [2, 2, 2, 3]),
        (3.1, 3, [2, 2, 2, 3]),
        (3.7, 3, [3, 3, 3, 3]),
    ],
)
def test_where_a_number_leads_depends_on_the_level_it_comes_from(
    number: float, nearest: int, of_starts: list[int]
) -> None:
    """
    Between two levels the present one stays.
    """
    numbers = np.array([number])
    assert [nearest] == GEARS.nearest(numbers).tolist()
    assert of_starts == [int(GEARS.switched(numbers, start=start)[0]) for start in range(4)]


def test_a_threshold_itself_leaves_nothing() -> None:
    """
    60 % of the way is not beyond it; the middle is still the lower one's.
    """
    at = GEARS.rising
    assert [[0, 1, 2], [0, 1, 2]] == [
        GEARS.stays(at)[0].tolist(),
        [int(GEARS.switched(at[i : i + 1], start=i)[0]) for i in range(3)],
    ]
    at = GEARS.falling
    assert [[1, 2, 3], [1, 2, 3]] == [
        GEARS.stays(at)[1].tolist(),
        [int(GEARS.switched(at[i : i + 1], start=i + 1)[0]) for i in range(3)],
    ]
    assert [0, 1, 2] == GEARS.nearest(GEARS.middles).tolist()


@pytest.mark.parametrize("level", [1.0, -3.0, 0.02, 5e-324, -5e-324, 1.7e308])
def test_levels_that_are_neighbours_in_float64_are_told_apart(level: float) -> None:
    """
    Each level is nearest to itself, and is switched to from every other, however close they are.
    """
    first = np.nextafter(level, -np.inf)
    levels = np.array([first, level, np.nextafter(level, np.inf)])
    switch = LevelSwitch(values=levels)
    assert [0, 1, 2] == switch.nearest(levels).tolist()
    for start in range(3):
        assert [0, 1, 2] == switch.switched(levels, start=start).tolist()
