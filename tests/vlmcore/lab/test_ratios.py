"""Tests of `vlmcore.lab.ratios`: pairs, blocks, drift, and a target against itself."""

from __future__ import annotations

import math
import random
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sample_cases import sample
from vlmcore.errors import ContractError, LimitExceededError
from vlmcore.lab.events import Phase, Sample
from vlmcore.lab.ratios import (
    Comparison,
    Ratio,
    Resampling,
    compare_pairs,
    compare_with_itself,
)

QUICK = Resampling(resamples=500)
WORDS = {"A": "ABBA", "B": "BAAB"}


def timed(target: str, took_ms: float, **fields: Any) -> Sample:
    """Make a sample that took so long, of a leg of its target unless told otherwise."""
    return sample(took_ms, **{"target": target, "leg": int(target == "B")} | fields)


def simulated(
    blocks: int,
    *,
    seed: int,
    factor: float = 1.0,
    drift: float = 0.05,
    noise: float = 0.04,
    cases: tuple[str, ...] = ("dog",),
) -> tuple[list[Sample], list[Sample]]:
    """
    Simulate a run of ABBA and BAAB in turn on a machine that gets slower by *drift*.

    The second target takes *factor* times as long, and every case ten times the one before.
    """
    drawn, sides = random.Random(seed), {"A": list[Sample](), "B": list[Sample]()}
    steps = [
        (block, leg, target, i)
        for block in range(blocks)
        for leg, target in enumerate(WORDS["AB"[block % 2]])
        for i in range(len(cases))
    ]
    for step, (block, leg, target, i) in enumerate(steps):
        slower = 1 + drift * step / len(steps)
        took = 100 * 10**i * slower * math.exp(drawn.gauss(0, noise))
        took *= factor if target == "B" else 1
        sides[target].append(timed(target, took, case=cases[i], block=block, leg=leg))
    return sides["A"], sides["B"]


def differs(ratio: Ratio) -> bool:
    """Say whether the interval calls a difference."""
    assert ratio.low is not None
    assert ratio.high is not None
    return not ratio.low <= 1 <= ratio.high


@pytest.mark.parametrize("blocks", [30, 10])
def test_a_target_against_itself_is_rarely_called_different(blocks: int) -> None:
    """
    200 runs each, while the machine gets 5 % slower: one target after the other called a difference
    in 67 % of them with 30 readings, and in 26 % with 10.
    """
    wrong = after_another = control = 0
    for seed in range(200):
        first, second = simulated(blocks, seed=seed)
        wrong += differs(compare_pairs(first, second, "e2e/1", resampling=QUICK).ratio)
        control += differs(compare_with_itself(first, "e2e/1", resampling=QUICK).ratio)
        after_another += _differs_in_sequence(blocks, seed)

    assert wrong / 200 <= 0.07
    assert control / 200 <= 0.07
    assert after_another / 200 >= 0.2 if blocks == 10 else 0.6


def _differs_in_sequence(count: int, seed: int) -> bool:
    """Measure one target after the other, and compare their means as is often done."""
    drawn = np.random.default_rng(seed)
    drift = 1 + 0.05 * np.arange(2 * count) / (2 * count)
    logs = np.log(drift) + drawn.normal(0, 0.04, 2 * count)
    first, second = logs[:count], logs[count:]
    error = math.sqrt((first.var(ddof=1) + second.var(ddof=1)) / count)
    return abs(second.mean() - first.mean()) > 1.96 * error


def test_a_difference_is_found_through_a_drift_that_is_larger() -> None:
    """
    4 % faster, on a machine that gets 5 % slower meanwhile.
    """
    first, second = simulated(30, seed=1, factor=0.96, noise=0.01)
    ratio = compare_pairs(first, second, "e2e/1").ratio

    assert 0.96 == pytest.approx(ratio.estimate, abs=0.005)
    assert ratio.low is not None
    assert ratio.high is not None
    assert 0.95 < ratio.low < 0.96 < ratio.high < 0.97


def test_a_steady_drift_cancels_out() -> None:
    """
    Without noise nothing is left of it, between two targets nor within one.
    """
    first, second = simulated(8, seed=0, drift=1e-3, noise=0)

    assert 1 == pytest.approx(compare_pairs(first, second, "e2e/1").ratio.estimate, abs=1e-7)
    assert 1 == pytest.approx(compare_with_itself(first, "e2e/1").ratio.estimate, abs=1e-7)


def test_every_case_counts_the_same_whatever_its_size() -> None:
    """
    A case of 100 ms that takes twice as long and one of 1000 ms that takes half of the time: no
    difference together. Pooled values would call it 46 % faster.
    """
    first, second = simulated(6, seed=0, drift=0, noise=0, cases=("small", "large"))
    changed = [
        timed("B", (each.last_token_ns or 0) / 1e6 * (2 if each.case == "small" else 0.5))
        for each in second
    ]
    second = [
        attrs.evolve(new, case=old.case, block=old.block, leg=old.leg)
        for new, old in zip(changed, second, strict=True)
    ]
    made = compare_pairs(first, second, "e2e/1")

    assert 1 == pytest.approx(made.ratio.estimate)
    assert 2 == pytest.approx(made.cases["small"].estimate)
    assert 0.5 == pytest.approx(made.cases["large"].estimate)


def test_three_blocks_have_an_estimate_and_no_interval() -> None:
    """
    Three cold starts each were once called 26.3 % faster.
    """
    first, second = simulated(3, seed=0, factor=0.737)
    ratio = compare_pairs(first, second, "e2e/1").ratio

    assert 0.737 == pytest.approx(ratio.estimate, abs=0.06)
    assert (None, None) == (ratio.low, ratio.high)
    assert "n: 3 blocks, and an interval needs 6" == ratio.reason


def test_a_case_that_is_rarely_there_leaves_the_whole_without_an_interval() -> None:
    """
    An interval over the others would be one of another suite.
    """
    first, second = simulated(8, seed=0, cases=("dog", "cat"))
    second = [each for each in second if each.case == "dog" or each.block < 2]
    made = compare_pairs(first, second, "e2e/1")

    assert made.cases["dog"].low is not None
    assert "n: 2 blocks, and an interval needs 6" == made.cases["cat"].reason
    assert "case 'cat': n: 2 blocks, and an interval needs 6" == made.ratio.reason
    assert made.ratio.estimate is not None
    assert 12 == made.unpaired


def test_a_case_that_one_target_never_answers_leaves_the_whole_without_a_ratio() -> None:
    """
    The cases that it did answer may be the easy ones.
    """
    first, second = simulated(8, seed=0, factor=0.5, cases=("dog", "cat"))
    made = compare_pairs(first, [each for each in second if each.case == "dog"], "e2e/1")

    assert 0.5 == pytest.approx(made.cases["dog"].estimate, rel=0.05)
    assert made.cases["cat"].estimate is None
    assert made.ratio.estimate is None
    assert "case 'cat': n: 0 blocks, and an interval needs 6" == made.ratio.reason
    assert 16 == made.unpaired


def test_samples_that_do_not_count_are_left_out_of_both_sides() -> None:
    """
    A request that failed, and its counterpart if there is no other in the block.
    """
    first, second = simulated(7, seed=0)
    broken = [attrs.evolve(s, attempts=2) if s.block == 6 else s for s in second]
    made = compare_pairs(first, broken, "e2e/1")

    assert 6 == made.ratio.blocks
    assert 2 == made.unpaired
    assert made.ratio.estimate == pytest.approx(
        compare_pairs(first[:12], second[:12], "e2e/1").ratio.estimate
    )


def test_targets_that_were_not_in_one_block_are_no_pairs() -> None:
    """
    A on one day and B on another: nobody knows what the day did.
    """
    first, second = simulated(8, seed=0)
    another_day = [attrs.evolve(each, block=each.block + 8) for each in second]
    made = compare_pairs(first, another_day, "e2e/1")

    assert made.ratio.estimate is None
    assert "no case has readings of both in one block" == made.ratio.reason
    assert 32 == made.unpaired
    assert made.ratio == compare_pairs([], [], "ttft/1").ratio
    assert {} == compare_pairs([], [], "ttft/1").cases


def test_two_runs_are_not_one_that_took_turns() -> None:
    """
    Both have a block 0, which was here one day and there another.
    """
    first = [timed("A", 100, block=i, leg=0) for i in range(8)]
    second = [timed("B", 90, block=i, leg=0) for i in range(8)]
    made = compare_pairs(first, second, "e2e/1")

    assert made.ratio.estimate is None
    assert 16 == made.unpaired


def test_a_control_needs_two_readings_of_a_case_in_a_block() -> None:
    """
    Otherwise there is nothing to hold against each other.
    """
    first, _ = simulated(8, seed=0)
    once = [each for each in first if each.leg in {0, 1}]
    made = compare_with_itself(once, "e2e/1")

    assert made.ratio.estimate is None
    assert 8 == made.unpaired


def test_a_rate_is_compared_by_its_inverse() -> None:
    """
    Below 1 is faster, of every figure.
    """
    first = [sample(0, 100, tokens=11, target="A", block=i) for i in range(6)]
    second = [sample(0, 50, tokens=11, target="B", block=i, leg=1) for i in range(6)]

    assert 0.5 == pytest.approx(compare_pairs(first, second, "rate/1").ratio.estimate)


def test_what_was_drawn_is_drawn_again_from_its_seed() -> None:
    """
    In every version of NumPy: the figures are written down here.
    """
    first, second = simulated(6, seed=0, factor=0.9)
    made = compare_pairs(first, second, "e2e/1", resampling=Resampling(seed=7, resamples=1000))

    assert made == compare_pairs(
        first[::-1], second[::-1], "e2e/1", resampling=Resampling(seed=7, resamples=1000)
    )
    assert made != compare_pairs(first, second, "e2e/1", resampling=Resampling(seed=8))
    assert 0.838870307701 == pytest.approx(made.ratio.low)
    assert 0.924396460199 == pytest.approx(made.ratio.high)
    assert 7 == made.resampling.seed
    assert made.resampling.method.startswith("log ratios paired by case and block, bootstrap")


@given(
    logs=st.lists(st.floats(-1, 1), min_size=6, max_size=10),
    scale=st.floats(0.5, 2),
    seed=st.integers(0, 9),
)
def test_an_interval_holds_its_estimate_and_scales_with_it(
    logs: list[float], scale: float, seed: int
) -> None:
    """
    Twice as slow moves all three by two.
    """

    def made(factor: float) -> Comparison:
        first = [timed("A", 100, block=i) for i in range(len(logs))]
        second = [timed("B", 100 * factor * math.exp(log), block=i) for i, log in enumerate(logs)]
        resampling = Resampling(seed=seed, resamples=200)
        return compare_pairs(first, second, "e2e/1", resampling=resampling)

    one, other = made(1).ratio, made(scale).ratio
    assert one.low is not None
    assert one.high is not None
    assert one.estimate is not None
    assert one.low <= one.estimate * (1 + 1e-9)
    assert one.estimate * (1 - 1e-9) <= one.high
    assert [scale * each for each in (one.low, one.estimate, one.high)] == pytest.approx(
        [other.low, other.estimate, other.high], rel=1e-6
    )


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"seed": -1}, "seed: got -1"),
        ({"seed": 1.5}, "seed: got 1.5"),
        ({"seed": 10**5000}, "seed: got a huge int"),
        ({"resamples": 0}, "resamples: got 0"),
        ({"resamples": True}, "resamples: got True"),
        ({"confidence": 95}, "confidence: got 95"),
        ({"confidence": math.nan}, "confidence: got nan"),
    ],
)
def test_an_interval_that_cannot_be_made_is_refused(fields: dict[str, Any], message: str) -> None:
    """
    Before anything is drawn.
    """
    with pytest.raises(ContractError, match=message):
        Resampling(**fields)


def test_what_is_drawn_is_bounded() -> None:
    """
    More of it is no more sure.
    """
    with pytest.raises(LimitExceededError, match="max_resamples: got 100001, limit is 100000"):
        Resampling(resamples=100_001)


def test_a_time_of_0_has_no_ratio_and_phases_are_not_mixed() -> None:
    """
    Nor is there one of a warm-up.
    """
    with pytest.raises(ContractError, match=r"metric: got 0 of e2e/1 in case 'dog'"):
        compare_pairs([timed("A", 0)], [timed("B", 1)], "e2e/1")
    with pytest.raises(ContractError, match="a cold start is never mixed"):
        compare_pairs([timed("A", 1)], [timed("B", 1, phase=Phase.COLD_START)], "e2e/1")
    with pytest.raises(ContractError, match="metric: got 'e2e'"):
        compare_pairs([], [], "e2e")
