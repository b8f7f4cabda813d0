"""Tests of `vlmcore.lab.schedules`."""

from __future__ import annotations

import math
import random
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmcore.errors import ContractError, LimitExceededError
from vlmcore.lab.events import Phase
from vlmcore.lab.schedules import Arrivals, arrivals_ns, measured_legs, nonce, warm_up_legs

NAMES = st.lists(st.text("abcdefgh", min_size=1, max_size=3), min_size=1, max_size=5, unique=True)


@given(targets=NAMES, cases=NAMES, blocks=st.integers(1, 6), seed=st.integers(0, 9))
def test_every_block_has_every_case_of_every_target_equally_often(
    targets: list[str], cases: list[str], blocks: int, seed: int
) -> None:
    """
    In their middle all targets of a block stand at the same place, for every case.
    """
    legs = measured_legs(targets, cases, blocks=blocks, seed=seed)

    times = 1 if len(targets) == 1 else 2
    for block in range(blocks):
        of_block = [leg for leg in legs if leg.block == block]
        assert list(range(times * len(targets))) == [leg.leg for leg in of_block]
        assert {len(cases)} == {len(set(leg.cases)) for leg in of_block}
        assert Counter(dict.fromkeys(targets, times)) == Counter(leg.target for leg in of_block)
        places: dict[tuple[str, str], int] = Counter()
        for leg in of_block:
            for place, case in enumerate(leg.cases):
                places[leg.target, case] += leg.leg * len(cases) + place
        if len(targets) > 1:
            for case in cases:
                assert 1 == len({places[target, case] for target in targets})


@pytest.mark.parametrize(("cases", "runs"), [(3, 10), (7, 4), (40, 30)])
def test_no_case_is_measured_less_than_another(cases: int, runs: int) -> None:
    """
    10 runs of 3 cases were 4, 3 and 3 of them; of 40 cases and 30 runs 10 were never measured.
    """
    names = [f"case {i}" for i in range(cases)]
    legs = measured_legs(["mine"], names, blocks=runs, seed=0)

    assert {runs} == set(Counter(case for leg in legs for case in leg.cases).values())


def test_every_case_is_warmed_up() -> None:
    """
    3 warm-ups of 7 cases left four of them cold; of 40 cases 37.
    """
    names = [f"case {i}" for i in range(40)]
    legs = warm_up_legs(["A", "B"], names, per_case=1, seed=0)

    assert [("A", 40), ("B", 40)] == [(leg.target, len(set(leg.cases))) for leg in legs]
    assert {Phase.WARM_UP} == {leg.phase for leg in legs}
    assert () == warm_up_legs(["A"], names, per_case=0, seed=0)


def test_two_targets_are_measured_in_turn() -> None:
    """
    Not one on one day and the other on another.
    """
    legs = measured_legs(["A", "B"], ["dog"], blocks=4, seed=0)

    assert "ABBA BAAB ABBA BAAB" == " ".join(
        "".join(leg.target for leg in legs if leg.block == block) for block in range(4)
    )


def test_a_block_has_an_order_of_its_own_and_a_seed_gives_it_again() -> None:
    """
    On every machine: the order is written down here.
    """
    cases = ["a", "b", "c", "d", "e"]
    legs = measured_legs(["mine"], cases, blocks=3, seed=1)

    assert legs == measured_legs(["mine"], cases, blocks=3, seed=1)
    assert legs != measured_legs(["mine"], cases, blocks=3, seed=2)
    assert ["dcaeb", "bdeac", "adcbe"] == ["".join(leg.cases) for leg in legs]


def test_cold_starts_are_ordered_as_well() -> None:
    """
    They say what they are.
    """
    legs = measured_legs(["A", "B"], ["dog"], blocks=1, seed=0, phase=Phase.COLD_START)

    assert [Phase.COLD_START] * 4 == [leg.phase for leg in legs]


def test_constant_arrivals_do_not_add_up_errors() -> None:
    """
    The last of many is due when it is, to the nanosecond.
    """
    due = arrivals_ns(3001, rate_per_s=3, arrivals=Arrivals.CONSTANT)

    assert (0, 333_333_333, 666_666_667, 10**9) == due[:4]
    assert 1000 * 10**9 == due[-1]


def test_poisson_arrivals_have_the_rate_and_the_spread_of_independent_people() -> None:
    """
    The times between them are exponential: the mean is also the deviation.
    """
    due = arrivals_ns(20_001, rate_per_s=50, seed=3)
    gaps = [after - before for before, after in pairwise(due)]
    mean = sum(gaps) / len(gaps)
    deviation = math.sqrt(sum((gap - mean) ** 2 for gap in gaps) / len(gaps))

    assert 20e6 == pytest.approx(mean, rel=0.03)
    assert 20e6 == pytest.approx(deviation, rel=0.05)
    assert (0, 11_919_426, 40_411_877) == due[:3]


@given(
    count=st.integers(1, 50),
    rate_per_s=st.floats(1e-3, 1e9),
    arrivals=st.sampled_from(Arrivals),
    seed=st.integers(0, 99),
)
def test_arrivals_begin_at_once_and_never_go_back(
    count: int, rate_per_s: float, arrivals: Arrivals, seed: int
) -> None:
    """
    And come again from their seed.
    """
    due = arrivals_ns(count, rate_per_s=rate_per_s, arrivals=arrivals, seed=seed)

    assert 0 == due[0]
    assert sorted(due) == list(due)
    assert count == len(due)
    assert due == arrivals_ns(count, rate_per_s=rate_per_s, arrivals=arrivals, seed=seed)


def test_the_order_and_the_times_disturb_nobody_elses_random_numbers() -> None:
    """
    Nor do theirs disturb these.
    """
    random.seed(0)
    before = random.getstate()
    made = measured_legs(["A"], ["dog", "cat"], blocks=2, seed=0), arrivals_ns(9, rate_per_s=1)
    assert before == random.getstate()
    random.seed(1)
    assert made == (
        measured_legs(["A"], ["dog", "cat"], blocks=2, seed=0),
        arrivals_ns(9, rate_per_s=1),
    )


def test_no_two_requests_of_a_run_begin_alike() -> None:
    """
    All of one length, so that they take as many tokens.
    """
    made = {nonce(seed, request) for seed in range(20) for request in range(100)}

    assert 2000 == len(made)
    assert {16} == {len(each) for each in made}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"targets": "AB"}, "targets: got str, expected a tuple of names"),
        ({"targets": []}, "targets: got 0 names, expected 1 to"),
        ({"targets": ["A", "A"]}, r"targets: got \['A'\] more than once"),
        ({"cases": []}, "cases: got 0 names"),
        ({"cases": ["dog", ""]}, r"cases\[1\]: got blank text"),
        ({"cases": [1]}, r"cases\[0\]: got int, expected text"),
        ({"blocks": 0}, "blocks: got 0"),
        ({"blocks": True}, "blocks: got True"),
        ({"seed": -1}, "seed: got -1, expected a whole number from 0 to 2"),
        ({"seed": None}, "seed: got None"),
        ({"seed": 10**5000}, "seed: got a huge int"),
    ],
)
def test_an_order_that_cannot_be_kept_is_refused(changes: dict[str, Any], message: str) -> None:
    """
    Before anything is paid for.
    """
    plan: dict[str, Any] = {"targets": ["A"], "cases": ["dog"], "blocks": 1, "seed": 0}
    with pytest.raises(ContractError, match=f"^{message}"):
        measured_legs(**plan | changes)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"count": 0}, "count: got 0"),
        ({"rate_per_s": 0}, "rate_per_s: got 0, expected a finite number above 0"),
        ({"rate_per_s": math.nan}, "rate_per_s: got nan"),
        ({"rate_per_s": math.inf}, "rate_per_s: got inf"),
        ({"rate_per_s": 1e-300}, "rate_per_s: got 1e-300, expected one at which the last is due"),
        ({"rate_per_s": 5e-324}, "rate_per_s: got 5e-324, expected one"),
        ({"arrivals": "poisson"}, "arrivals: got 'poisson', expected one of Arrivals.CONSTANT"),
        ({"seed": 0.5}, "seed: got 0.5"),
    ],
)
@pytest.mark.parametrize("arrivals", Arrivals)
def test_arrivals_that_cannot_be_are_refused(
    fields: dict[str, Any], message: str, arrivals: Arrivals
) -> None:
    """
    With the name of the argument.
    """
    with pytest.raises(ContractError, match=f"^{message}"):
        arrivals_ns(**{"count": 3, "rate_per_s": 1.0, "arrivals": arrivals} | fields)


def test_requests_are_bounded() -> None:
    """
    A plan that nobody would live to see is refused at once.
    """
    with pytest.raises(LimitExceededError, match="max_requests"):
        measured_legs(["A", "B"], ["dog"], blocks=1 << 60, seed=0)
    with pytest.raises(LimitExceededError, match="max_requests"):
        warm_up_legs(["A"], ["dog"], per_case=1 << 60, seed=0)
    with pytest.raises(LimitExceededError, match="max_requests"):
        arrivals_ns(1 << 60, rate_per_s=1)
    with pytest.raises(ContractError, match="per_case: got False"):
        warm_up_legs(["A"], ["dog"], per_case=False, seed=0)
    with pytest.raises(ContractError, match="request: got -1"):
        nonce(0, -1)
