"""Tests of `vlmcore.lab.statistics`: what n allows, and no more."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmcore.errors import ContractError
from vlmcore.lab.statistics import (
    fewest_pairs,
    fewest_values,
    geometric_mean,
    quantile,
    smallest_p,
    summary,
)

FINITE = st.floats(-1e9, 1e9)


@pytest.mark.parametrize(
    ("q", "fewest"),
    [(0.5, 5), (0.9, 29), (0.95, 59), (0.99, 299), (0.999, 2995), (0.05, 59), (0.01, 299)],
)
def test_a_quantile_needs_as_many_values_as_probably_reach_beyond_it(q: float, fewest: int) -> None:
    """
    One value fewer, and there is none.
    """
    assert fewest == fewest_values(q)
    assert quantile(range(fewest), q).value is not None
    assert quantile(range(fewest - 1), q).value is None


def test_nine_times_100_and_once_1000_have_no_p95_and_no_p99() -> None:
    """
    Interpolation calls the p95 595 and the p99 919, both inside of one value. The largest stays.
    """
    made = summary([100.0] * 9 + [1000.0])

    by_q = {each.q: each for each in made.quantiles}
    assert (10, 100, 1000) == (made.count, made.smallest, made.largest)
    assert (None, None) == (by_q[0.95].value, by_q[0.99].value)
    assert "10 values, and p99 needs 299" == by_q[0.99].reason
    assert 100 == by_q[0.5].value


def test_a_p95_of_ten_would_be_anything() -> None:
    """
    Ten values of a distribution whose p95 is 211 said 203 in one run and 263 in another.
    """
    drawn = random.Random(0)
    draws = [[200 * math.exp(drawn.gauss(0, 0.03)) for _ in range(10)] for _ in range(20)]

    assert all(quantile(values, 0.95).value is None for values in draws)


def test_no_values_have_no_figure_and_not_nan() -> None:
    """
    JSON does not know NaN.
    """
    made = summary([])

    assert (0, None, None) == (made.count, made.smallest, made.largest)
    assert [None] * 5 == [each.value for each in made.quantiles]
    assert "0 values, and p50 needs 5" == made.quantiles[0].reason


@pytest.mark.parametrize(
    ("count", "q", "ranks"),
    [
        (5, 0.5, None),
        (6, 0.5, (1, 6)),
        (10, 0.5, (2, 9)),
        (100, 0.5, (40, 61)),
        (59, 0.95, (50, 59)),
        (73, 0.95, (65, 73)),
    ],
)
def test_an_interval_goes_from_rank_to_rank(
    count: int, q: float, ranks: tuple[int, int] | None
) -> None:
    """
    As the tables of order statistics say; at the last value the other tail is shorter.
    """
    found = quantile(range(1, count + 1), q)

    assert ranks == (None if found.low is None else (found.low, found.high))


@pytest.mark.parametrize(("count", "q"), [(6, 0.5), (20, 0.5), (59, 0.95), (100, 0.9)])
def test_an_interval_holds_the_true_quantile_as_often_as_it_says(count: int, q: float) -> None:
    """
    In at least 95 of 100 runs, whatever is drawn: the quantile of uniform numbers is q.
    """
    rows = np.random.default_rng(3).uniform(size=(1500, count))
    found = [quantile(row.tolist(), q) for row in rows]

    held = sum((each.low or 0) <= q <= (each.high or 0) for each in found)
    assert 0.94 * len(rows) <= held


@given(values=st.lists(FINITE, min_size=1, max_size=80), q=st.sampled_from([0.05, 0.5, 0.9, 0.95]))
def test_a_quantile_is_where_numpy_finds_it_and_in_its_interval(
    values: list[float], q: float
) -> None:
    """
    Within the values, in any order.
    """
    found = quantile(values, q)

    assert found == quantile(sorted(values, reverse=True), q)
    assert (found.value is None) == (len(values) < fewest_values(q)) == bool(found.reason)
    if found.value is not None:
        assert found.value == pytest.approx(np.quantile(values, q))
        assert min(values) <= found.value <= max(values)
    if found.low is not None and found.high is not None and found.value is not None:
        assert found.low <= found.value <= found.high
        assert {found.low, found.high} <= set(values)


@pytest.mark.parametrize("bad", [math.nan, math.inf, True, "1", None])
def test_what_is_no_number_is_refused(bad: Any) -> None:
    """
    With its place.
    """
    with pytest.raises(ContractError, match=r"values\[1\]: got"):
        summary([1.0, bad])


@pytest.mark.parametrize("q", [0, 1, -0.5, 95, math.nan, True])
def test_a_quantile_is_between_0_and_1(q: Any) -> None:
    """
    0.95, not 95.
    """
    with pytest.raises(ContractError, match="q: got"):
        quantile([1.0], q)
    with pytest.raises(ContractError, match="confidence: got"):
        fewest_values(0.5, confidence=q)


def test_twice_as_fast_and_half_as_fast_make_no_difference() -> None:
    """
    A mean would say 1.25.
    """
    assert 1 == geometric_mean([2.0, 0.5])
    assert 3 == pytest.approx(geometric_mean([1.0, 9.0]))


@pytest.mark.parametrize("bad", [[], [0.0], [-1.0], [math.nan], [1.0, math.inf]])
def test_a_ratio_is_above_0(bad: list[float]) -> None:
    """
    And there is at least one.
    """
    with pytest.raises(ContractError, match="ratios"):
        geometric_mean(bad)


def test_the_largest_floats_have_a_median() -> None:
    """
    Their difference is infinite.
    """
    assert 0 == quantile([-1.7e308] * 3 + [1.7e308] * 3, 0.5).value


def test_three_against_three_can_never_be_significant() -> None:
    """
    "26.3% faster" of three cold starts each: the smallest two-sided p is 0.10.
    """
    assert 0.1 == smallest_p(3, 3)
    assert 1 == smallest_p(1, 1)
    assert smallest_p(4, 4) == pytest.approx(2 / 70)
    with pytest.raises(ContractError, match="first: got 0"):
        smallest_p(0, 3)


def test_six_pairs_are_needed_to_tell_a_difference_from_chance() -> None:
    """
    Five heads in a row happen once in sixteen times, on either side.
    """
    assert 6 == fewest_pairs()
    assert 2 * 0.5**6 <= 0.05 < 2 * 0.5**5
    assert 8 == fewest_pairs(confidence=0.99)
