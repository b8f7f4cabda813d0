"""
What the gate promises, written a second time and another way: one number at a time, in fractions.

Nothing here is imported from ``vlmcore.safety``; a mistake would have to be made twice.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from vlmcore.contracts.embodiment import ActionDim, ActionSpace, Reference

Numbers = Sequence[Sequence[float]]


def bound_of(dim: ActionDim, rate_hz: float) -> float | None:
    """Say how far one step of *dim* may go; None if nothing is said."""
    if dim.max_rate is not None:
        return dim.max_rate / rate_hz
    return dim.max_step


def slack_of(dim: ActionDim, bound: float) -> float:
    """Say what float32 is forgiven in a step."""
    largest = max(abs(dim.low), abs(dim.high), bound if bound < math.inf else 0.0)
    return min(largest / 2**21, bound / 100)


def is_outside(dim: ActionDim, rate_hz: float, start: float) -> bool:
    """Say whether a last command is out of bounds by more than float32 is forgiven."""
    if dim.reference is Reference.CHUNK_RELATIVE:
        return False  # a chunk begins at zero, whatever was sent
    slack = slack_of(dim, bound_of(dim, rate_hz) or math.inf)
    beyond = max(Fraction(start) - Fraction(dim.high), Fraction(dim.low) - Fraction(start))
    return beyond > Fraction(slack)


def is_a_step_from_a_level(dim: ActionDim, rate_hz: float, start: float) -> bool:
    """Say whether a level may follow a last command; where there are none, any number may."""
    bound = bound_of(dim, rate_hz)
    if dim.levels is None or bound is None:
        return True
    return any(went(dim, start, level) <= Fraction(bound) for level in dim.levels)


def went(dim: ActionDim, before: float, value: float) -> Fraction:
    """Measure a step, exactly."""
    a, b = Fraction(before), Fraction(value)
    if dim.reference.is_change:
        return max(b - max(a, Fraction(0)), min(a, Fraction(0)) - b, Fraction(0))
    if dim.period is not None:
        around = (b - a) % Fraction(dim.period)
        return min(around, Fraction(dim.period) - around)
    return abs(b - a)


def led_out(
    dim: ActionDim,
    rate_hz: float,
    column: Sequence[float],
    at: float | None,
    *,
    slacks: int,
    rounding: int,
) -> list[int]:
    """Say which finite changes or offsets lead out of where *dim* may be, added up exactly."""
    if dim.position_low is None or dim.position_high is None:
        return []
    if at is None:
        return [i for i, value in enumerate(column) if value != 0]
    low, high, reached = Fraction(dim.position_low), Fraction(dim.position_high), Fraction(at)
    time = 1 / Fraction(rate_hz) if dim.reference is Reference.VELOCITY else Fraction(1)
    longest = max(abs(dim.low), abs(dim.high)) * float(time)
    scale = max(abs(dim.position_low), abs(dim.position_high), longest)
    slack = min(scale / 2**21, (dim.position_high - dim.position_low) / 100)
    found = []
    before = 0.0
    for i, value in enumerate(column):
        move = Fraction(value) * time
        if dim.reference is Reference.CHUNK_RELATIVE:
            move, before = move - Fraction(before), value
        reached += move
        last_bits = Fraction(max(scale, abs(at), abs(float(reached)))) / 2**48
        allowed = slacks * Fraction(slack) + rounding * last_bits
        if (move > 0 and reached > high + allowed) or (move < 0 and reached < low - allowed):
            found.append(i)
    return found


def faults(
    space: ActionSpace,
    values: Numbers,
    last_command: Sequence[float] | None,
    position: Mapping[str, float] | None = None,
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
        is_offset = dim.reference is Reference.CHUNK_RELATIVE
        before = 0.0 if last_command is None or is_offset else last_command[j]
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
        column = [row[j] if math.isfinite(row[j]) else 0.0 for row in values]
        if is_offset:
            column = held(row[j] for row in values)
        at = None if position is None else position.get(dim.name)
        out = led_out(dim, space.rate_hz, column, at, slacks=slacks, rounding=rounding)
        found += [f"{i} {dim.name}: {column[i]} leads out from {at}" for i in out]
    return found


def held(column: Iterable[float]) -> list[float]:
    """Let what is not finite stay at what was before it, from zero on."""
    at, path = 0.0, []
    for value in column:
        at = value if math.isfinite(value) else at
        path.append(at)
    return path


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
