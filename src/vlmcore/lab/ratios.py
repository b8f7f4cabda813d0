"""
How much faster one target is than another, by pairs of the same case in the same block.

Machines drift: one that gets warm is slower an hour later, and so is whatever was measured then.
What is paired within a block was measured at nearly the same time, and the blocks say how much such
a pair varies.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from statistics import NormalDist
from types import MappingProxyType

import attrs
import numpy as np

from vlmcore._arrays import Float64Array, require_count, require_finite_between
from vlmcore.errors import ContractError
from vlmcore.lab._seeds import require_seed
from vlmcore.lab.events import Sample
from vlmcore.lab.metrics import find_metric, measure, require_measured
from vlmcore.lab.statistics import fewest_pairs
from vlmcore.limits import ResamplingLimits, require_at_most

__all__ = ["Comparison", "Ratio", "Resampling", "compare_pairs", "compare_with_itself"]

_LIMITS = ResamplingLimits()
_METHOD = "log ratios paired by case and block, bootstrap over blocks, expanded percentiles/1"


@attrs.frozen(kw_only=True)
class Resampling:
    """
    How an interval is made; kept with it, so that it can be made again.

    Attributes:
        seed: Of what is drawn.
        resamples: How often the blocks are drawn anew.
        confidence: How sure the interval is, from 0.5 to 0.999.
        method: The name and version of the way.

    Raises:
        ContractError: If a field is not as described.
    """

    seed: int = 0
    resamples: int = 4000
    confidence: float = 0.95
    method: str = attrs.field(default=_METHOD, init=False)

    def __attrs_post_init__(self) -> None:
        require_seed("seed", self.seed)
        require_count(resamples=self.resamples)
        require_at_most("max_resamples", self.resamples, _LIMITS.max_resamples)
        require_finite_between(0.5, 0.999, confidence=self.confidence)


@attrs.frozen(kw_only=True)
class Ratio:
    """
    Times of one target over those of another: below 1 it is faster.

    Attributes:
        estimate: The geometric mean over the pairs; ``None`` if there is none.
        low: The lower end of its confidence interval; ``None`` if there are too few blocks.
        high: The upper end.
        blocks: How many blocks it is made of.
        reason: Why there is no interval; empty if there is one.
    """

    estimate: float | None
    low: float | None = None
    high: float | None = None
    blocks: int
    reason: str = ""


@attrs.frozen(kw_only=True)
class Comparison:
    """
    Two targets compared by one figure.

    Attributes:
        metric: The name of the formula. Of a rate, its inverse is compared, so that less is better.
        ratio: The geometric mean of the ratios of the cases, each of which counts the same; there
            is none if a case has none.
        cases: The ratio of each case of which one of both has a figure, by its name.
        unpaired: How many readings had no counterpart, and were left out.
        resampling: How the intervals were made.
    """

    metric: str
    ratio: Ratio
    cases: Mapping[str, Ratio] = attrs.field(hash=False)
    unpaired: int
    resampling: Resampling


def compare_pairs(
    before: Sequence[Sample],
    after: Sequence[Sample],
    metric: str,
    *,
    resampling: Resampling | None = None,
) -> Comparison:
    """
    Compare two targets of one run, whose blocks hold both of them.

    What both were asked in a leg of the same number was not measured in turn, but in two runs: it
    is left out.

    Args:
        before: The samples of the baseline. Those without a figure are left out.
        after: The samples of the other target.
        metric: The name of a formula of `vlmcore.lab.metrics.METRICS`.
        resampling: How intervals are made.

    Raises:
        ContractError: If there are warm-ups among the samples, or cold starts beside others, no
            such formula, or a figure of 0, which has no ratio.

    Source:
        The bootstrap of B. Efron 1979 over blocks; expanded percentiles as in T. Hesterberg 2015,
        What Teachers Should Know About the Bootstrap (arXiv:1411.5279).
    """
    resampling = resampling or Resampling()
    require_measured([*before, *after])
    first, second = _readings(before, metric), _readings(after, metric)
    pairs = {
        key: _mean_log(second[key]) - _mean_log(first[key])
        for key in first.keys() & second.keys()
        if not {leg for leg, _ in first[key]} & {leg for leg, _ in second[key]}
    }
    unpaired = sum(
        len(readings)
        for side in (first, second)
        for key, readings in side.items()
        if key not in pairs
    )
    names = {case for case, _ in first.keys() | second.keys()}
    return _compared(metric, names, pairs, unpaired, resampling)


def compare_with_itself(
    samples: Sequence[Sample], metric: str, *, resampling: Resampling | None = None
) -> Comparison:
    """
    Compare a target with itself, as a control: what differs here is the machine.

    The first reading of a case in a block is compared with the last one. Which of them is called
    the earlier target changes every two blocks, so that a steady drift cancels out, as it does
    between two targets.

    Args:
        samples: The samples of one target, two or more of each case in each block.
        metric: The name of a formula.
        resampling: How intervals are made.

    Raises:
        ContractError: As `compare_pairs`.
    """
    resampling = resampling or Resampling()
    require_measured(samples)
    found = _readings(samples, metric)
    pairs = {}
    unpaired = 0
    for (case, block), readings in found.items():
        if len(readings) < 2:
            unpaired += len(readings)
            continue
        sign = -1 if block // 2 % 2 else 1
        pairs[case, block] = sign * (_mean_log(readings[-1:]) - _mean_log(readings[:1]))
    return _compared(metric, {case for case, _ in found}, pairs, unpaired, resampling)


def _readings(
    samples: Sequence[Sample], metric: str
) -> dict[tuple[str, int], list[tuple[int, float]]]:
    """Collect legs and figures by case and block, in the order of legs; of a rate, one over it."""
    is_time = find_metric(metric).is_time
    found: dict[tuple[str, int], list[tuple[int, float]]] = {}
    for sample in sorted(samples, key=lambda sample: (sample.leg, sample.start_ns)):
        value = measure(sample, metric).value
        if value is None:
            continue
        if value <= 0:
            raise ContractError(
                "metric", f"got 0 of {metric} in case {sample.case!r}, expected figures above 0"
            )
        reading = sample.leg, value if is_time else 1 / value
        found.setdefault((sample.case, sample.block), []).append(reading)
    return found


def _mean_log(readings: Sequence[tuple[int, float]]) -> float:
    return math.fsum(math.log(value) for _, value in readings) / len(readings)


def _compared(
    metric: str,
    cases: Collection[str],
    pairs: Mapping[tuple[str, int], float],
    unpaired: int,
    resampling: Resampling,
) -> Comparison:
    names, blocks = sorted(cases), sorted({block for _, block in pairs})
    rows = {block: i for i, block in enumerate(blocks)}
    columns = {name: i for i, name in enumerate(names)}
    logs = np.full((len(blocks), len(names)), np.nan)
    for (case, block), log in pairs.items():
        logs[rows[block], columns[case]] = log
    overall, by_case = _drawn(logs, resampling)
    counts = {name: int(np.isfinite(logs[:, i]).sum()) for name, i in columns.items()}
    means = {name: _mean_of(logs[:, i]) for name, i in columns.items()}
    return Comparison(
        metric=metric,
        ratio=_overall(means, counts, overall, resampling),
        cases=MappingProxyType(
            {
                name: _ratio(means[name], by_case[:, i], counts[name], resampling)
                for name, i in columns.items()
            }
        ),
        unpaired=unpaired,
        resampling=resampling,
    )


def _mean_of(logs: Float64Array) -> float | None:
    known = logs[np.isfinite(logs)]
    return float(known.mean()) if len(known) else None


def _overall(
    means: Mapping[str, float | None],
    counts: Mapping[str, int],
    drawn: Float64Array,
    resampling: Resampling,
) -> Ratio:
    """Average the cases, if all of them are there: the others would be another suite."""
    logs = [mean for mean in means.values() if mean is not None]
    if not logs:
        return Ratio(estimate=None, blocks=0, reason="no case has readings of both in one block")
    rarest = min(counts, key=lambda case: counts[case])
    mean_log = math.fsum(logs) / len(logs) if len(logs) == len(means) else None
    made = _ratio(mean_log, drawn, counts[rarest], resampling)
    if not made.reason or len({*counts.values()}) == 1:
        return made
    return attrs.evolve(made, reason=f"case {rarest!r}: {made.reason}")


def _ratio(
    mean_log: float | None, drawn: Float64Array, blocks: int, resampling: Resampling
) -> Ratio:
    fewest = fewest_pairs(confidence=resampling.confidence)
    estimate = None if mean_log is None else math.exp(mean_log)
    if estimate is None or blocks < fewest:
        said = f"{blocks} block{'s' * (blocks != 1)}"
        reason = f"n: {said}, and an interval needs {fewest}"
        return Ratio(estimate=estimate, blocks=blocks, reason=reason)
    tail = _tail(blocks, resampling.confidence)
    low, high = np.quantile(drawn[np.isfinite(drawn)], [tail, 1 - tail])
    return Ratio(estimate=estimate, low=math.exp(low), high=math.exp(high), blocks=blocks)


def _tail(blocks: int, confidence: float) -> float:
    """
    Find the tail to cut off the drawn means.

    What is drawn from few blocks varies less than what is measured anew: by the factor between the
    two ways to estimate a variance, and by that between Student's distribution and the normal one.
    """
    normal = NormalDist()
    z = normal.inv_cdf(0.5 + confidence / 2)
    return normal.cdf(-math.sqrt(blocks / (blocks - 1)) * _student(z, blocks - 1))


def _student(z: float, degrees: int) -> float:
    """Turn a quantile of the normal distribution into one of Student's: Abramowitz 26.7.5."""
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return z + math.fsum(term / math.pow(degrees, i + 1) for i, term in enumerate(terms))


def _drawn(logs: Float64Array, resampling: Resampling) -> tuple[Float64Array, Float64Array]:
    """
    Draw blocks anew, and average them.

    Returns:
        The means over cases, shape ``[R]``, and those of each case, shape ``[R, C]``; NaN where no
        block that was drawn has the case.
    """
    blocks, cases = logs.shape
    if not logs.size:
        return np.empty(0), np.empty((0, cases))
    known = np.isfinite(logs).astype(np.float64)
    values = np.nan_to_num(logs)
    # Raw bits, since their stream is the same in every version of NumPy.
    bits = np.random.PCG64(resampling.seed)
    means = []
    left = resampling.resamples
    while left:
        rows = min(left, max(1, _LIMITS.max_drawn // blocks))
        left -= rows
        raw = bits.random_raw(rows * blocks).reshape(rows, blocks) >> np.uint64(11)
        picked = (raw * (0.5**53 * blocks)).astype(np.int64)
        picked += blocks * np.arange(rows)[:, np.newaxis]
        times = np.bincount(picked.ravel(), minlength=rows * blocks).reshape(rows, blocks)
        with np.errstate(invalid="ignore"):
            means.append((times @ values) / (times @ known))
    by_case = np.concatenate(means)
    return _mean_known(by_case), by_case


def _mean_known(by_case: Float64Array) -> Float64Array:
    known = np.isfinite(by_case)
    with np.errstate(invalid="ignore"):
        means: Float64Array = np.where(known, by_case, 0.0).sum(axis=1) / known.sum(axis=1)
    return means
