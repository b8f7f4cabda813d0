"""Tests of `vlmcore.charts._panels`: which dimensions share a scale."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from vlmcore.charts._panels import Plan, left_out_words, plan_panels
from vlmcore.charts.chart import Chart


def plan(columns: Any, *, groups: int = 32, singles: int = 64, **fields: Any) -> Plan:
    values = np.array(columns, np.float64).T
    names = tuple(f"d{i}" for i in range(values.shape[1]))
    chart = Chart(values=values, names=names, **fields)
    return plan_panels(chart, most_groups=groups, most_singles=singles)


def dims(made: Plan) -> list[tuple[int, ...]]:
    return [panel.dims for panel in made.panels]


def test_up_to_32_dimensions_of_one_scale_share_a_panel() -> None:
    """
    With a legend; 33 have a small panel each.
    """
    assert [tuple(range(32))] == dims(plan(np.ones((32, 3))))
    assert [(i,) for i in range(33)] == dims(plan(np.ones((33, 3))))


def test_dimensions_share_a_panel_where_bounds_and_units_agree() -> None:
    """
    Three of metres, two of radians, and a gripper have three panels.
    """
    made = plan(
        np.zeros((6, 2)),
        low=[-1, -1, -1, -2, -2, 0],
        high=[1, 1, 1, 2, 2, 1],
        units=("m", "m", "m", "rad", "rad", ""),
    )
    assert [(0, 1, 2), (3, 4), (5,)] == dims(made)
    assert [(-1.0, 1.0), (-2.0, 2.0), (0.0, 1.0)] == [panel.bounds for panel in made.panels]


def test_dimensions_whose_bounds_all_differ_have_a_panel_each() -> None:
    """
    Pairs of lines for every bound in one panel would be read by nobody.
    """
    made = plan(np.zeros((3, 2)), low=[-1, -2, -3], high=[1, 2, 3])
    assert ([(0,), (1,), (2,)], False) == (dims(made), made.grouped)


def test_without_bounds_the_order_of_magnitude_decides() -> None:
    """
    A gripper does not make a line of zeros of what moves by millimetres.
    """
    assert [(0, 1), (2, 3)] == dims(plan([[0.0, 0.01], [0.02, 0.0], [0.0, 1.0], [0.5, 0.0]]))


def test_those_with_marks_come_first_where_not_all_fit() -> None:
    """
    They stay in their order, and the others are counted.
    """
    marks = np.zeros((2, 40), np.bool_)
    marks[1, [30, 35, 38]] = True
    made = plan(np.zeros((40, 2)), singles=4, marks=marks)

    assert [(0,), (30,), (35,), (38,)] == dims(made)
    assert "… and 36 more dimensions" == left_out_words(made)
    few = plan(np.zeros((40, 2)), singles=2, marks=marks)
    note = ", 1 of them with values that break a limit"
    assert f"… and 38 more dimensions{note}" == left_out_words(few)
    assert "… and 1 more dimension" == left_out_words(plan(np.zeros((33, 1)), singles=32))


def test_bounds_stay_in_sight_and_values_far_beyond_do_not_stretch_the_scale() -> None:
    """
    One value of 1e300 would make a flat line of all others.
    """
    (panel,) = plan([[0.0, 1e300, -1.2]], low=[-1.0], high=[1.0]).panels
    assert -2.0 < panel.scale.bottom < -1.2
    assert 3.0 <= panel.scale.top < 3.5


def test_what_is_not_finite_has_no_part_in_the_scale() -> None:
    """
    Also where there is nothing else.
    """
    (panel,) = plan([[math.nan, math.inf, -math.inf, 1.0, 3.0]]).panels
    assert 0.8 < panel.scale.bottom < 1.0
    assert 3.0 < panel.scale.top < 3.2
    (empty,) = plan([[math.nan]]).panels
    assert empty.scale.bottom < empty.scale.top


def test_what_was_before_and_what_was_proposed_are_on_the_scale() -> None:
    """
    Both are drawn.
    """
    (panel,) = plan([[0.0, 0.0]], before=[5.0], proposed=[[-7.0], [0.0]]).panels
    assert panel.scale.bottom < -7.0 < 5.0 < panel.scale.top
