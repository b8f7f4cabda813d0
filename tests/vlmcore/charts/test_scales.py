"""Tests of `vlmcore.charts._scales`: every range of float64 has an axis."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vlmcore.charts._scales import Scale, scale_around

LARGEST = 1.7976931348623157e308
finite = st.floats(allow_nan=False, allow_infinity=False)


def labels(low: float, high: float, most: int = 5) -> list[str]:
    return [tick.label for tick in Scale(low, high).ticks(most)]


def test_ticks_are_round_numbers() -> None:
    """
    One, two or five times a power of ten apart.
    """
    assert ["0", "0.2", "0.4", "0.6", "0.8", "1.0"] == labels(0.0, 1.0)
    assert ["-2", "0", "2"] == labels(-3.2, 3.2, most=4)
    assert ["100", "105", "110"] == labels(99.0, 112.0, most=4)
    assert ["0", "50000", "100000"] == labels(0.0, 123456.0, most=4)
    assert ["-0.05", "0", "0.05"] == labels(-0.06, 0.06, most=3)


def test_numbers_that_are_large_or_small_have_exponents() -> None:
    """
    A column of zeros would be counted by nobody.
    """
    assert ["0", "1e7", "2e7", "3e7"] == labels(0.0, 3.0e7, most=4)
    assert ["-1e308", "0", "1e308"] == labels(-LARGEST, LARGEST, most=4)
    assert ["0", "2e-310", "4e-310"] == labels(0.0, 5e-310, most=3)
    assert ["0", "5e-6", "1e-5"] == labels(0.0, 1.2e-5, most=3)


def test_steps_are_whole_numbers() -> None:
    """
    There is no step 0.5.
    """
    ticks = Scale(-0.5, 3.5).ticks(15, whole=True)
    assert [0.0, 1.0, 2.0, 3.0] == [tick.value for tick in ticks]


@given(finite, finite, st.integers(1, 12))
@example(-LARGEST, LARGEST, 4)
@example(0.0, 5e-324, 4)
@example(5e-324, 5e-324, 4)
@example(LARGEST, LARGEST, 4)
@example(1e16, 1e16 + 2, 4)
def test_any_range_has_an_axis_and_a_bounded_number_of_ticks(
    one: float, other: float, most: int
) -> None:
    """
    Where differences overflow, where quotients are subnormal, and where nothing is between.
    """
    low, high = sorted((one, other))
    scale = scale_around(low, high)
    places = scale.places(np.array([low, high]))
    ticks = scale.ticks(most)

    assert scale.bottom < scale.top
    assert scale.bottom <= low
    assert high <= scale.top
    assert ((places >= 0) & (places <= 1)).all()
    assert places[0] <= places[1]
    assert len(ticks) <= most + 1
    assert all(0 <= tick.place <= 1 for tick in ticks)
    assert len({tick.label for tick in ticks}) == len(ticks)


@given(st.floats(-1e300, 1e300), st.integers(1, 9))
def test_a_tick_is_what_it_says(low: float, most: int) -> None:
    """
    Its label is its value, to the last digit of it.
    """
    for tick in scale_around(low, low + 1.0).ticks(most):
        assert tick.value == float(Fraction(tick.label))


@pytest.mark.parametrize("value", [math.inf, LARGEST])
def test_what_is_beyond_is_beyond(value: float) -> None:
    """
    It is not brought back, and NaN stays NaN.
    """
    places = Scale(-1.0, 1.0).places(np.array([value, -value, math.nan]))
    assert [True, True, True] == [places[0] > 1, places[1] < 0, math.isnan(places[2])]
