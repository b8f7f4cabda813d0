"""
What a number of measurements allows to be said, and no more.

A quantile is given only where enough was measured to have probably seen beyond it; below that
number it would be the largest value, or something between two values, under another name. What is
never in doubt is always there: how many values, the smallest and the largest.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import attrs
import numpy as np

from vlmcore._arrays import (
    Float64Array,
    readonly_float64,
    require_count,
    require_finite,
    require_positive,
)
from vlmcore.errors import ContractError

__all__ = [
    "QUANTILES",
    "Quantile",
    "Summary",
    "fewest_pairs",
    "fewest_values",
    "geometric_mean",
    "quantile",
    "smallest_p",
    "summary",
]

#: The quantiles of a summary.
QUANTILES = (0.5, 0.9, 0.95, 0.99, 0.999)


@attrs.frozen(kw_only=True)
class Quantile:
    """
    A quantile of what was measured, and where that of all that could be measured probably is.

    Attributes:
        q: Which, as 0.95.
        value: The quantile of the values, between two of them where it falls there; ``None`` if
            there are too few.
        low: The lower end of its confidence interval, one of the values; ``None`` if there are too
            few for an interval.
        high: The upper end.
        reason: Why there is no value; empty if there is one.
    """

    q: float
    value: float | None
    low: float | None = None
    high: float | None = None
    reason: str = ""


@attrs.frozen(kw_only=True)
class Summary:
    """
    Measured values in short.

    Attributes:
        count: How many there are.
        smallest: The smallest; ``None`` if there are none.
        largest: The largest.
        quantiles: In the order in which they were asked for.
    """

    count: int
    smallest: float | None
    largest: float | None
    quantiles: tuple[Quantile, ...]


def fewest_values(q: float, *, confidence: float = 0.95) -> int:
    """
    Count the values that are needed before a quantile is given.

    With as many, one of them is beyond the quantile with the probability *confidence*.

    Args:
        q: Which quantile, above 0 and below 1.
        confidence: Above 0 and below 1.

    Raises:
        ContractError: If an argument is not as described.

    Example:
        >>> [fewest_values(q) for q in (0.5, 0.9, 0.95, 0.99, 0.999)]
        [5, 29, 59, 299, 2995]
    """
    _require_share(q=q, confidence=confidence)
    return math.ceil(math.log1p(-confidence) / math.log(max(q, 1 - q)))


def quantile(values: Iterable[float], q: float, *, confidence: float = 0.95) -> Quantile:
    """
    Find a quantile, if there are enough values for it, and its confidence interval.

    The interval goes from one value to another, by their ranks: it assumes nothing about how the
    values are distributed. Where they are too few for equal tails, it ends at the last value and
    the other tail is shorter.

    Args:
        values: What was measured.
        q: Which quantile, above 0 and below 1.
        confidence: How sure the interval is, and whether there are enough values.

    Raises:
        ContractError: If there is NaN or infinity among the values, or an argument is not as
            described.

    Source:
        The intervals of order statistics: H. A. David and H. N. Nagaraja, Order Statistics, 2003,
        section 7.1. The value between two: type 7 of R. J. Hyndman and Y. Fan 1996, as in NumPy.

    Example:
        >>> quantile([100.0] * 9 + [1000.0], 0.95).reason
        '10 values, and p95 needs 59'
    """
    return _quantile(_ordered(values), q, confidence)


def _quantile(ordered: Sequence[float], q: float, confidence: float = 0.95) -> Quantile:
    fewest = fewest_values(q, confidence=confidence)
    count = len(ordered)
    if count < fewest:
        said = f"{count} value{'s' * (count != 1)}"
        return Quantile(q=q, value=None, reason=f"{said}, and p{100 * q:g} needs {fewest}")
    ranks = _ranks(count, q, 1 - confidence)
    low, high = (None, None) if ranks is None else (ordered[ranks[0] - 1], ordered[ranks[1] - 1])
    return Quantile(q=q, value=_between(ordered, q * (count - 1)), low=low, high=high)


def _between(ordered: Sequence[float], place: float) -> float:
    """Interpolate, without a difference that could be too large for a float."""
    before, share = int(place), place % 1
    if not share:
        return ordered[before]
    lower, upper = ordered[before], ordered[before + 1]
    return min(max(lower * (1 - share) + upper * share, lower), upper)


def summary(values: Iterable[float], *, quantiles: Sequence[float] = QUANTILES) -> Summary:
    """
    Sum up what was measured.

    Raises:
        ContractError: If there is NaN or infinity among the values.

    Example:
        >>> made = summary([3.0, 1.0, 2.0])
        >>> made.smallest, made.largest, made.quantiles[0].value
        (1.0, 3.0, None)
    """
    ordered = _ordered(values)
    return Summary(
        count=len(ordered),
        smallest=ordered[0] if ordered else None,
        largest=ordered[-1] if ordered else None,
        quantiles=tuple(_quantile(ordered, q) for q in quantiles),
    )


def geometric_mean(ratios: Iterable[float]) -> float:
    """
    Average ratios, so that twice as fast and half as fast make no difference together.

    Raises:
        ContractError: If there are none, or one is not a finite number above 0.

    Example:
        >>> geometric_mean([2.0, 0.5])
        1.0
    """
    given = list(ratios)
    require_positive(**{f"ratios[{i}]": ratio for i, ratio in enumerate(given)})
    if not given:
        raise ContractError("ratios", "got none, expected at least one")
    return math.exp(math.fsum(map(math.log, given)) / len(given))


def smallest_p(first: int, second: int) -> float:
    """
    Find the smallest two-sided p that two groups of values can reach, however far apart they are.

    Args:
        first: Values of one.
        second: Values of the other.

    Raises:
        ContractError: If a number is not a whole number of at least 1.

    Example:
        >>> smallest_p(3, 3), smallest_p(4, 4) < 0.05
        (0.1, True)
    """
    require_count(first=first, second=second)
    return min(1.0, 2 / math.comb(first + second, first))


def fewest_pairs(*, confidence: float = 0.95) -> int:
    """
    Count the pairs that are needed before a difference can be told from chance at all.

    If there were none, that many pairs would all fall on one side once in ``1 / (1 - confidence)``
    times at most.

    Raises:
        ContractError: If *confidence* is not above 0 and below 1.

    Example:
        >>> fewest_pairs()
        6
    """
    _require_share(confidence=confidence)
    return math.ceil(1 - math.log2(1 - confidence))


def _ordered(values: Iterable[float]) -> list[float]:
    given = list(values)
    require_finite(**{f"values[{i}]": value for i, value in enumerate(given)})
    return sorted(float(value) for value in given)


def _require_share(**shares: float) -> None:
    require_finite(**shares)
    for field, share in shares.items():
        if not 0 < share < 1:
            raise ContractError(field, f"got {share}, expected a number above 0 and below 1")


def _ranks(count: int, q: float, miss: float) -> tuple[int, int] | None:
    """Find two ranks, from 1, between which the quantile is but for the probability *miss*."""
    below = _binomial(count, q)  # the probability that at most k of the values are below it
    above = 1 - below  # more than k
    least = (float(below[0]), float(above[count - 1]))  # what the first and the last value miss
    if sum(least) > miss:
        return None
    # Equal tails, if there are values for that; or what the one that is too long leaves.
    lower = max(miss / 2, least[0]) if least[1] <= miss / 2 else miss - least[1]
    low = int(np.searchsorted(below, lower, side="right"))
    high = int(np.argmax(above <= max(miss - lower, least[1]))) + 1
    return low, high


def _binomial(count: int, q: float) -> Float64Array:
    """Return the cumulative probabilities of 0 to *count* successes, shape ``[count + 1]``."""
    k = np.arange(1, count + 1)
    logs = np.concatenate([[0.0], np.cumsum(np.log(count - k + 1) - np.log(k))])
    successes = np.arange(count + 1)
    logs += successes * math.log(q) + (count - successes) * math.log1p(-q)
    return readonly_float64(np.cumsum(np.exp(logs)), field="probabilities", axes="[K]")
