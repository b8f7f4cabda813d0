"""Figures of a whole run: case by case, rates over all clients, errors, the cache, goodput."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import attrs

from vlmcore._arguments import require_kind
from vlmcore._arrays import require_positive
from vlmcore.errors import ContractError
from vlmcore.lab.events import FailureKind, Sample
from vlmcore.lab.metrics import METRICS, Reading, find_metric, measure, require_measured
from vlmcore.lab.statistics import Summary, summary

__all__ = [
    "CacheState",
    "Goodput",
    "Objective",
    "Totals",
    "goodput",
    "goodput_words",
    "objectives_of",
    "summaries",
    "total",
]

_NS_IN_S = 1e9


class CacheState(enum.Enum):
    """What is known of prompts that a server had kept."""

    HITS = "hits"  # it said that it used some
    NO_HITS = "no hits"  # it said so of every request
    UNKNOWN = "unknown"  # it did not say: a time to first token may be that of a cache


@attrs.frozen(kw_only=True)
class Totals:
    """
    What came of all requests of a run together.

    Attributes:
        requests: How many were made.
        counted: Of how many figures are made.
        failures: How many failed, by their kind.
        wall_s: From the beginning of the first request to the end of the last.
        request_rate: Requests a second that count.
        token_rate: Generated tokens a second of those, over all clients: the pooled rate.
        cached_tokens: Tokens of prompts that a server had kept, together.
        cache: What is known of that.
    """

    requests: int
    counted: int
    failures: Mapping[FailureKind, int] = attrs.field(hash=False)
    wall_s: Reading
    request_rate: Reading
    token_rate: Reading
    cached_tokens: Reading
    cache: CacheState

    @property
    def error_rate(self) -> Reading:
        """The share of the requests that failed."""
        return _share(sum(self.failures.values()), self.requests)


def total(samples: Sequence[Sample]) -> Totals:
    """
    Add up a run.

    Raises:
        ContractError: If there are warm-ups among the samples, or cold starts beside others.

    Example:
        >>> total([]).token_rate.reason
        'no requests'
    """
    require_measured(samples)
    counted = [sample for sample in samples if not sample.excluded]
    wall_s = _wall_s(samples)
    tokens = _sum([sample.generated_tokens for sample in counted], "how many tokens it generated")
    cached = [None if each.usage is None else each.usage.cached_tokens for each in counted]
    failures = Counter(sample.failure.kind for sample in samples if sample.failure is not None)
    return Totals(
        requests=len(samples),
        counted=len(counted),
        failures=MappingProxyType(dict(failures)),
        wall_s=wall_s,
        request_rate=_rate(Reading(float(len(counted))), wall_s),
        token_rate=_rate(tokens, wall_s),
        cached_tokens=_sum(cached, "how many tokens of the prompt were kept"),
        cache=_cache(cached),
    )


@attrs.frozen(kw_only=True)
class Objective:
    """
    What a request has to keep to be good: a time at most, or a rate at least.

    Attributes:
        metric: The name of a formula of `vlmcore.lab.metrics.METRICS`.
        bound: In the unit of the metric.

    Raises:
        ContractError: If a field is not as described.
    """

    metric: str
    bound: float

    def __attrs_post_init__(self) -> None:
        find_metric(self.metric)
        require_positive(bound=self.bound)

    def is_kept_by(self, sample: Sample) -> bool:
        """Say whether a sample keeps it; where there is no figure, it does not."""
        value = measure(sample, self.metric).value
        if value is None:
            return False
        return value <= self.bound if find_metric(self.metric).is_time else value >= self.bound


@attrs.frozen(kw_only=True)
class Goodput:
    """
    How many requests kept all objectives.

    Attributes:
        good: How many did.
        requests: How many were made, those that failed among them.
        rate: Good requests a second.
        missed: How many missed each objective, in the order in which they were given.
    """

    good: int
    requests: int
    rate: Reading
    missed: tuple[int, ...]

    @property
    def share(self) -> Reading:
        """The share of the requests that are good."""
        return _share(self.good, self.requests)


def goodput(samples: Sequence[Sample], objectives: Sequence[Objective]) -> Goodput:
    """
    Count the requests that kept all objectives. One that failed kept none.

    Raises:
        ContractError: If there are no objectives, or warm-ups among the samples, or cold starts
            beside others.

    Example:
        >>> goodput([], [Objective(metric="ttft/1", bound=200)]).share.reason
        'no requests'
    """
    require_measured(samples)
    for i, objective in enumerate(objectives):
        require_kind(f"objectives[{i}]", objective, Objective)
    if not objectives:
        raise ContractError("objectives", "got none, expected at least one")
    kept = [[objective.is_kept_by(sample) for objective in objectives] for sample in samples]
    good = sum(map(all, kept))
    return Goodput(
        good=good,
        requests=len(samples),
        rate=_rate(Reading(float(good)), _wall_s(samples)),
        missed=tuple(len(samples) - sum(each) for each in zip(*kept, strict=True))
        or (0,) * len(objectives),
    )


def objectives_of(goals: Mapping[str, Any]) -> tuple[Objective, ...]:
    """
    Read the goals of a plan; what is no formula, or has no bound above 0, is none that is known.

    Example:
        >>> objectives_of({"ttft/1": 200, "happiness/1": 1})
        (Objective(metric='ttft/1', bound=200),)
    """
    return tuple(
        Objective(metric=metric, bound=bound)
        for metric, bound in goals.items()
        if metric in METRICS and type(bound) in {int, float} and bound > 0
    )


def goodput_words(good: Goodput, objectives: Sequence[Objective]) -> str:
    """
    Say in a line how many requests kept all objectives, and how many missed each.

    Example:
        >>> goals = objectives_of({"ttft/1": 200})
        >>> goodput_words(goodput([], goals), goals)
        'good: 0 of 0 requests; ttft/1 of at most 200 ms missed by 0'
    """
    missed = (
        f"{each.metric} of at {'most' if find_metric(each.metric).is_time else 'least'} "
        f"{each.bound:g} {find_metric(each.metric).unit} missed by {count}"
        for each, count in zip(objectives, good.missed, strict=True)
    )
    rate = "" if good.rate.value is None else f", {good.rate.value:.2f} a second"
    return f"good: {good.good} of {good.requests} requests{rate}; {', '.join(missed)}"


def summaries(samples: Sequence[Sample], metric: str) -> Mapping[str, Summary]:
    """
    Sum up one figure case by case: those of unlike cases are never pooled.

    Args:
        samples: What was measured; those without a figure are left out.
        metric: The name of a formula of `vlmcore.lab.metrics.METRICS`.

    Returns:
        The figures of each case in short, by its name.

    Raises:
        ContractError: If there are warm-ups among the samples, or cold starts beside others, or no
            such formula.
    """
    require_measured(samples)
    find_metric(metric)
    values: dict[str, list[float]] = {sample.case: [] for sample in samples}
    for sample in samples:
        value = measure(sample, metric).value
        if value is not None:
            values[sample.case].append(value)
    return MappingProxyType({case: summary(values[case]) for case in sorted(values)})


def _wall_s(samples: Sequence[Sample]) -> Reading:
    if not samples:
        return Reading(None, "no requests")
    start_ns = min(sample.start_ns for sample in samples)
    end_ns = max(map(_end_ns, samples))
    if end_ns == start_ns:
        return Reading(None, "the run took no time")
    return Reading((end_ns - start_ns) / _NS_IN_S)


def _end_ns(sample: Sample) -> int:
    last_ns = sample.last_token_ns
    return sample.closed_ns if sample.excluded or last_ns is None else last_ns


def _rate(amount: Reading, wall_s: Reading) -> Reading:
    if wall_s.value is None or amount.value is None:
        return Reading(None, wall_s.reason or amount.reason)
    return Reading(amount.value / wall_s.value)


def _share(part: int, whole: int) -> Reading:
    return Reading(part / whole) if whole else Reading(None, "no requests")


def _sum(counts: Sequence[int | None], what: str) -> Reading:
    known = [count for count in counts if count is not None]
    if not counts:
        return Reading(None, "no request that counts")
    if len(known) < len(counts):
        unknown = len(counts) - len(known)
        return Reading(None, f"nobody told of {unknown} of {len(counts)} requests {what}")
    return Reading(float(sum(known)))


def _cache(cached: Sequence[int | None]) -> CacheState:
    if any(cached):
        return CacheState.HITS
    return CacheState.UNKNOWN if None in cached or not cached else CacheState.NO_HITS
