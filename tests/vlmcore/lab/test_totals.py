"""Tests of `vlmcore.lab.totals`."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sample_cases import sample, samples
from vlmcore.errors import ContractError
from vlmcore.lab.events import Failure, FailureKind, Phase, Sample, TokenSource, Usage
from vlmcore.lab.metrics import METRICS
from vlmcore.lab.totals import CacheState, Objective, goodput, summaries, total

FAILED = sample(closed_ms=500, failure=Failure(kind=FailureKind.SERVER_ERROR))


def cached(tokens: int | None) -> Sample:
    """Make a sample of a server that says how much of a prompt it had kept."""
    usage = Usage(source=TokenSource.SERVER, generated_tokens=9, cached_tokens=tokens)
    return sample(10, 90, usage=usage)


def test_the_pooled_rate_is_over_the_time_of_the_run() -> None:
    """
    Two clients at once: each 100 tokens in 1 s, 200 tok/s together.
    """
    two = [sample(10, 1000, tokens=100), sample(20, 1000, tokens=100)]

    assert 200 == total(two).token_rate.value
    assert 2 == total(two).request_rate.value


def test_a_run_is_timed_from_its_first_request_to_its_last_token() -> None:
    """
    Wherever its clock began; of a request that failed to where it was given up.
    """
    later = sample(1200, tokens=1, request_ns=1_000_000_000, closed_ms=1900)
    broken = sample(1300, request_ns=1_100_000_000, closed_ms=1500, failure=FAILED.failure)

    assert 0.2 == pytest.approx(total([later]).wall_s.value)
    assert 0.5 == pytest.approx(total([later, broken]).wall_s.value)


def test_one_refusal_of_seven_is_counted_and_loses_nothing() -> None:
    """
    The run has a summary, with its error rate.
    """
    summed = total([*[sample(10, 100, tokens=9)] * 6, FAILED])

    assert (7, 6) == (summed.requests, summed.counted)
    assert {FailureKind.SERVER_ERROR: 1} == summed.failures
    assert 1 / 7 == summed.error_rate.value
    assert 0.5 == summed.wall_s.value


def test_a_tail_after_the_last_token_is_no_time_of_the_run() -> None:
    """
    As it is none of the request.
    """
    assert 0.1 == total([sample(10, 100, closed_ms=400)]).wall_s.value


def test_a_run_without_every_count_of_tokens_has_no_pooled_rate() -> None:
    """
    Half of the tokens over all of the time would be a figure of nothing.
    """
    rate = total([sample(1, 9, tokens=2), sample(1, 9)]).token_rate

    assert rate.value is None
    assert "nobody told of 1 of 2 requests how many tokens it generated" == rate.reason


@pytest.mark.parametrize(
    ("told", "state", "tokens"),
    [
        ([None, None], CacheState.UNKNOWN, None),
        ([0, None], CacheState.UNKNOWN, None),
        ([64, None], CacheState.HITS, None),
        ([0, 64], CacheState.HITS, 64),
        ([0, 0], CacheState.NO_HITS, 0),
        ([], CacheState.UNKNOWN, None),
    ],
)
def test_a_cache_that_nobody_told_of_is_unknown(
    told: list[int | None], state: CacheState, tokens: int | None
) -> None:
    """
    Thirteen equal requests in 35 ms each may be the cache's.
    """
    summed = total([cached(each) for each in told])

    assert state is summed.cache
    assert tokens == summed.cached_tokens.value


def test_a_request_that_failed_is_not_good() -> None:
    """
    Nor is one without the figure that is asked for.
    """
    objectives = [Objective(metric="ttft/1", bound=50), Objective(metric="rate/1", bound=20)]
    slow = sample(60, 160, tokens=11)
    unknown = sample(10, 20)
    summed = goodput([sample(10, 110, tokens=11), slow, unknown, FAILED], objectives)

    assert (1, 4) == (summed.good, summed.requests)
    assert (2, 2) == summed.missed
    assert 0.25 == summed.share.value
    assert 1 / 0.5 == summed.rate.value


def test_a_bound_that_is_met_exactly_is_kept() -> None:
    """
    At most, and at least.
    """
    one = sample(50, 150, tokens=2)

    assert Objective(metric="ttft/1", bound=50).is_kept_by(one)
    assert Objective(metric="rate/1", bound=10).is_kept_by(one)
    assert not Objective(metric="ttft/1", bound=49.9).is_kept_by(one)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"metric": "ttft", "bound": 1}, "metric: got 'ttft'"),
        ({"metric": "ttft/1", "bound": 0}, "bound: got 0, expected a finite number above 0"),
        ({"metric": "ttft/1", "bound": math.nan}, "bound: got nan"),
        ({"metric": "ttft/1", "bound": "fast"}, "bound: got 'fast'"),
    ],
)
def test_an_objective_that_cannot_be_kept_or_missed_is_refused(
    fields: dict[str, Any], message: str
) -> None:
    """
    Before anything is paid for.
    """
    with pytest.raises(ContractError, match=message):
        Objective(**fields)


def test_figures_are_summed_up_case_by_case() -> None:
    """
    A median of unlike cases jumps from one to the other.
    """
    cats = [sample(1000 + i, case="cat") for i in range(7)]
    found = summaries([*cats, *[sample(10 + i) for i in range(6)], FAILED], "ttft/1")

    assert {"cat": (7, 1000, 1006), "dog": (6, 10, 15)} == {
        case: (each.count, each.smallest, each.largest) for case, each in found.items()
    }
    assert 1003 == found["cat"].quantiles[0].value
    assert 0 == summaries([FAILED], "ttft/1")["dog"].count
    with pytest.raises(ContractError, match="metric: got 'ttft'"):
        summaries([], "ttft")


def test_phases_are_not_added_up() -> None:
    """
    Cold starts are a run of their own.
    """
    mixed = [sample(5), sample(5, phase=Phase.COLD_START)]
    with pytest.raises(ContractError, match="a cold start is never mixed"):
        total(mixed)
    with pytest.raises(ContractError, match="a cold start is never mixed"):
        goodput(mixed, [Objective(metric="ttft/1", bound=1)])
    with pytest.raises(ContractError, match="objectives: got none"):
        goodput([sample(5)], [])
    with pytest.raises(ContractError, match=r"objectives\[0\]: got str, expected Objective"):
        goodput([sample(5)], ["ttft/1"])  # type: ignore[list-item]


@given(
    some=st.lists(samples().filter(lambda one: one.phase is Phase.STEADY), max_size=5),
    metric=st.sampled_from(sorted(METRICS)),
)
def test_a_total_is_a_number_or_there_is_a_reason(some: list[Sample], metric: str) -> None:
    """
    Never NaN, which JSON does not know.
    """
    summed, good = total(some), goodput(some, [Objective(metric=metric, bound=25)])

    for reading in (
        *(summed.wall_s, summed.request_rate, summed.token_rate, summed.cached_tokens),
        *(summed.error_rate, good.rate, good.share),
    ):
        assert (reading.value is None) == bool(reading.reason)
        assert reading.value is None or (math.isfinite(reading.value) and reading.value >= 0)
    assert summed.counted + sum(summed.failures.values()) <= summed.requests == len(some)
    assert good.good + good.missed[0] == good.requests


def test_a_run_of_no_time_has_no_rate() -> None:
    """
    Not an infinite one.
    """
    assert "the run took no time" == total([sample(0, tokens=1)]).token_rate.reason
    assert "no requests" == total([]).wall_s.reason
