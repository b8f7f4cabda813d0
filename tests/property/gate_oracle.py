"""
What the gate promises, written a second time and another way: one number at a time, in fractions.

Nothing here is imported from ``vlmcore.safety``; a mistake would have to be made twice.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from vlmcore.contracts.embodiment import ActionDim, ActionSpace

Numbers = Sequence[Sequence[float]]


def bound_of(dim: ActionDim, rate_hz: float) -> float | None:
    """Say how far one step of *dim* may go; None if nothing is said."""
    if dim.max_rate is not None:
        return dim.max_rate / rate_hz
    return dim.max_step


def slack_of(dim: ActionDim, bound: float) -> float:
    """Say what float32 is forgiven in a step."""
    largest = max(abs(dim.low), abs(dim.high), bound)
    return max(min(largest / 2**21, bound / 100), largest / 2**48)


def went(dim: ActionDim, before: float, value: float) -> Fraction:
    """Measure a step, exactly."""
    a, b = Fraction(before), Fraction(value)
    if dim.reference.is_change:
        return max(b - max(a, Fraction(0)), min(a, Fraction(0)) - b, Fraction(0))
    if dim.period is not None:
        around = (b - a) % Fraction(dim.period)
        return min(around, Fraction(dim.period) - around)
    return abs(b - a)


def faults(
    space: ActionSpace,
    values: Numbers,
    start: Sequence[float] | None,
    *,
    slacks: int = 1,
    rounding: int = 1,
) -> list[str]:
    """
    Find what is wrong with vetted values; *rounding* is -1 to be stricter than float64 can be.
    """
    found = []
    for j, dim in enumerate(space.dims):
        bound = bound_of(dim, space.rate_hz)
        before = 0.0 if start is None else start[j]
        for i, row in enumerate(values):
            value = row[j]
            if not math.isfinite(value):
                found.append(f"{i} {dim.name}: {value}")
                continue
            if value < dim.low or value > dim.high:
                found.append(f"{i} {dim.name}: {value} out of bounds")
            if dim.levels is not None:
                off = min(abs(value - level) for level in dim.levels)
                if off > max(abs(level) for level in dim.levels) / 2**21:
                    found.append(f"{i} {dim.name}: {value} no level")
            if bound is not None:
                allowed = Fraction(bound) + slacks * Fraction(slack_of(dim, bound))
                last_bits = Fraction(max(abs(dim.low), abs(dim.high), bound)) / 2**49
                if went(dim, before, value) > allowed + rounding * last_bits:
                    found.append(f"{i} {dim.name}: too far from {before} to {value}")
            before = value
    return found


def clamped_targets(
    dim: ActionDim, bound: float, column: Sequence[float], start: float
) -> list[float]:
    """Clamp one plain target from a start in bounds: the middle of three numbers, step by step."""
    path = []
    for value in column:
        if math.isfinite(value):
            first, last = max(dim.low, start - bound), min(dim.high, start + bound)
            start = sorted((first, value, last))[1]
        path.append(start)
    return path
