"""Properties of the safety gate, against an oracle of its own."""

from __future__ import annotations

import functools
import math
from itertools import pairwise
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from property.gate_oracle import (
    bound_of,
    clamped_targets,
    faults,
    is_a_step_from_a_level,
    is_outside,
)
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.embodiment import ActionDim, ActionSpace, Reference
from vlmcore.errors import UnsafeActionError
from vlmcore.safety import NonFinite, Remedy, SafetyGate, VettedChunk, ViolationKind

HOSTILE = (math.nan, math.inf, -math.inf, -0.0, 5e-324, -5e-324, 1e308, -1e308, 1e39)
SCALES = (1e-6, 1.0, 1.0, 1e4)
ALL_KINDS = "target angle change move offset reach torque switch notch"
Known = dict[str, Any]  # what is known of the robot: its last command and its position
FILLING = {"remedy": Remedy.CLAMP, "non_finite": NonFinite.HOLD}
WAYS = (*({"remedy": each} for each in Remedy), FILLING)

MEANT = {
    "change": (Reference.DELTA, Reference.VELOCITY),
    "move": (Reference.DELTA, Reference.VELOCITY),
    "offset": (Reference.CHUNK_RELATIVE,),
    "reach": (Reference.CHUNK_RELATIVE,),
    "torque": (Reference.TORQUE,),
}

# Strategies are made once: making them takes longer than drawing from them.
among = functools.lru_cache(maxsize=None, typed=True)(lambda *values: st.sampled_from(values))
between = functools.lru_cache(maxsize=None)(st.floats)
whole = functools.lru_cache(maxsize=None)(st.integers)
YES = st.booleans()
STEPS = st.floats(1e-3, 8) | st.sampled_from((0.12, 1e-9))
WIDTHS = st.floats(1e-2, 8) | st.sampled_from((0.1, 1.0, 3.0, 1e-3))
SHARES = st.floats(0, 1) | st.sampled_from((0.0, 1.0))
PLACES = st.floats(0, 1) | st.sampled_from((0.0, 0.5, 1.0, -0.1, 1.1, 3.0))


def within(low: float, high: float, share: float) -> float:
    """Take a number between two others; at a share of 0 and of 1 one of them."""
    return min(max((1 - share) * low + share * high, low), high)


@st.composite
def dims(draw: st.DrawFn, name: str, kinds: str = ALL_KINDS) -> ActionDim:
    """Draw a dimension of any kind and size."""
    kind = draw(among(*kinds.split()))
    scale = draw(among(*SCALES))
    low, high = -draw(between(0.1, 4)) * scale, draw(between(0.1, 4)) * scale
    step = draw(STEPS) * scale
    match kind:
        case "angle":
            turn = draw(among(2 * math.pi, 360.0, 1.0))
            return ActionDim(
                name=name, low=-turn / 2, high=turn / 2, period=turn, max_step=step / scale
            )
        case "switch" | "notch":
            count = draw(whole(2, 5))
            reference = draw(among(Reference.ABSOLUTE, *Reference))
            levels = sorted({0.0, *(low + (high - low) * i / (count - 1) for i in range(count))})
            gaps = (
                levels
                if reference.is_change
                else [after - before for before, after in pairwise(levels)]
            )
            least = min(abs(gap) for gap in gaps if gap)  # a space refuses what never moves
            return ActionDim(
                name=name,
                low=low,
                high=max(high, levels[-1]),
                levels=levels,
                max_step=max(step, least) if kind == "notch" else None,
                reference=reference,
            )
        case "change" | "move" | "offset" | "reach" | "torque":
            reference = draw(among(*MEANT[kind]))
            where = {}
            if kind in ("move", "reach"):
                lowest = draw(among(-2.0, 0.0, 0.3, 100.0)) * scale
                width = draw(WIDTHS) * scale
                where = {"position_low": lowest, "position_high": lowest + width}
            low = draw(among(low, low, -0.0))
            fields = {"low": low, "high": high, "max_step": step, "reference": reference}
            return ActionDim(name=name, **fields, **where)
        case _:
            if draw(YES):
                return ActionDim(name=name, low=low, high=high, max_rate=step)
            low += draw(among(0.0, 1.0, 10.0)) * scale
            return ActionDim(name=name, low=low, high=low + 5 * scale, max_step=step)


@st.composite
def spaces(draw: st.DrawFn, **options: str) -> ActionSpace:
    """Draw a space."""
    count = draw(whole(1, 4))
    rate = draw(among(1.0, 20.0, 30.0))
    return ActionSpace(
        dims=tuple(draw(dims(f"d{i}", **options)) for i in range(count)), rate_hz=rate
    )


def begin_of(dim: ActionDim, start: float) -> float:
    """Say what the first step of a chunk follows: an offset begins at zero."""
    return 0.0 if dim.reference is Reference.CHUNK_RELATIVE else start


def resting(draw: st.DrawFn, dim: ActionDim) -> float:
    """Draw a last command in bounds, as measured: between levels, or at a bound in float32."""
    if draw(whole(0, 9)) == 9:
        return float(np.float32(draw(among(dim.low, dim.high))))
    if dim.levels is not None and draw(YES):
        return dim.levels[draw(whole(0, len(dim.levels) - 1))]
    return within(dim.low, dim.high, draw(SHARES))


@st.composite
def cases(
    draw: st.DrawFn, *, calm: bool = False, **options: str
) -> tuple[ActionSpace, ActionChunk, Known]:
    """Draw a space, a chunk that walks about in it, *calm* or not at all, and what is known."""
    space = draw(spaces(**options))
    start: list[float] | None = [resting(draw, dim) for dim in space.dims]
    horizon = draw(whole(1, 6))
    manners = among("calm") if calm else among("calm", "calm", "mixed", "wild")
    columns = [
        column(draw, space, j, start=begin_of(dim, start[j]), horizon=horizon, manner=draw(manners))
        for j, dim in enumerate(space.dims)
    ]
    values = np.array(columns, np.float64).T
    if draw(YES):
        with np.errstate(over="ignore"):
            values = values.astype(np.float32)
    usual = ("known",) * 3
    match draw(among(*usual) if calm else among(*usual, "unknown", "outside")):
        case "unknown":
            start = None
        case "outside":
            j = draw(whole(0, len(start) - 1))
            start[j] += draw(among(-2.0, -0.1, 0.1, 2.0)) * space.high[j]
            if space.dims[j].period is not None:
                start[j] += draw(among(0, 1, -7, 10**9, 10**13)) * space.dims[j].period
    chunk = ActionChunk(values=values, names=space.names, source="drawn", observed_at_s=0)
    return space, chunk, {"last_command": start, "position": positions(draw, space, calm=calm)}


def positions(draw: st.DrawFn, space: ActionSpace, *, calm: bool) -> dict[str, float] | None:
    """Draw where the things are that move: inside, at a bound, outside, or unknown."""
    if not calm and draw(whole(0, 5)) == 5:
        return None
    found = {}
    for dim in space.dims:
        if dim.position_low is not None and dim.position_high is not None:
            width = dim.position_high - dim.position_low
            share = draw(PLACES)
            found[dim.name] = dim.position_low + share * width
    return found


def column(
    draw: st.DrawFn, space: ActionSpace, j: int, *, start: float, horizon: int, manner: str
) -> list[float]:
    """Draw one dimension: hostile, wild, or in steps that are near what is allowed."""
    dim = space.dims[j]
    step = bound_of(dim, space.rate_hz) or dim.high - dim.low
    path, at = [], start
    for _ in range(horizon):
        if manner == "wild" or (manner == "mixed" and draw(YES)):
            at = (
                draw(among(*HOSTILE))
                if draw(YES)
                else within(2 * dim.low, 2 * dim.high, draw(SHARES))
            )
        elif dim.levels is not None:
            at = dim.levels[draw(whole(0, len(dim.levels) - 1))]
        else:
            at = at + step * draw(among(-1.0, -0.5, 0.0, 0.3, 1.0))
            at = min(max(at, dim.low), dim.high) if math.isfinite(at) else 0.0
        path.append(at)
    return path


def outcome(gate: SafetyGate, chunk: ActionChunk, known: Known) -> VettedChunk | UnsafeActionError:
    """Vet, and take what comes of it."""
    try:
        return gate.vet(chunk, **known)
    except UnsafeActionError as error:
        return error


def passed(gate: SafetyGate, chunk: ActionChunk, known: Known) -> VettedChunk:
    """Vet, or skip what is refused."""
    vetted = outcome(gate, chunk, known)
    assume(isinstance(vetted, VettedChunk))
    assert isinstance(vetted, VettedChunk)
    return vetted


def is_in_bounds(space: ActionSpace, start: list[float]) -> bool:
    """Say whether a last command is within the bounds, as far as float32 can say."""
    places = zip(space.dims, start, strict=True)
    return not any(is_outside(dim, space.rate_hz, at) for dim, at in places)


@given(cases(), st.sampled_from(WAYS))
def test_a_vetted_chunk_is_finite_in_bounds_and_within_its_steps(case: Any, way: Known) -> None:
    """
    From the last command on, in exact arithmetic, whatever the remedy.
    """
    space, chunk, known = case
    vetted = passed(SafetyGate(space=space, **way), chunk, known)

    assert vetted.report.safe_for_handoff
    assert [] == faults(space, vetted.values.tolist(), **known)


@given(cases(), st.sampled_from(WAYS))
def test_a_vetted_chunk_is_still_safe_as_float32(case: Any, way: Known) -> None:
    """
    A controller that compares float32 values with float64 limits finds nothing.
    """
    space, chunk, known = case
    vetted = passed(SafetyGate(space=space, **way), chunk, known)
    exported = exported_or_error(vetted)
    if isinstance(exported, UnsafeActionError):
        assert "float32_too_coarse" == exported.reason
        assert any(is_too_coarse(dim, space.rate_hz) for dim in space.dims)
        return

    assert exported.dtype == np.float32
    assert [] == faults(space, exported.astype(np.float64).tolist(), **known, slacks=2)
    if (vetted.values == vetted.values.astype(np.float32)).all():
        assert exported.tobytes() == vetted.values.astype(np.float32).tobytes()


def is_too_coarse(dim: ActionDim, rate_hz: float) -> bool:
    """Say whether a bound of *dim* is fine for its numbers, so that float32 may not hold it."""
    bounds = [bound_of(dim, rate_hz)]
    largest = max(abs(dim.low), abs(dim.high))
    if dim.position_low is not None and dim.position_high is not None:
        bounds.append(dim.position_high - dim.position_low)
        largest = max(largest, abs(dim.position_low), abs(dim.position_high))
    return any(bound is not None and bound < 1e-4 * largest for bound in bounds)


def exported_or_error(vetted: VettedChunk) -> Any:
    """Export, and take what comes of it."""
    try:
        return vetted.as_float32()
    except UnsafeActionError as error:
        return error


@given(cases(), st.sampled_from(WAYS))
def test_vetting_twice_changes_nothing(case: Any, way: Known) -> None:
    """
    "Clamp safely" rejects its own output: this gate accepts it, to the last bit.
    """
    space, chunk, known = case
    gate = SafetyGate(space=space, **way)
    once = passed(gate, chunk, known)

    twice = gate.vet(once.as_chunk(), **known)

    assert once.values.tobytes() == twice.values.tobytes()
    assert not twice.report.changed
    kinds = {kind for kind, count in twice.report.counts.items() if count}
    assert kinds <= {ViolationKind.REFERENCE_OUT_OF_BOUNDS}


@given(cases())
def test_any_non_finite_value_truncates_the_chunk_there(case: Any) -> None:
    """
    Unless the user asks for fill, what leaves is what CLAMP makes of the steps before it.
    """
    space, chunk, known = case
    gate = SafetyGate(space=space, remedy=Remedy.CLAMP)
    came = outcome(gate, chunk, known)
    lost = ~np.isfinite(chunk.values).all(axis=1)
    count = int(np.argmax(lost)) if lost.any() else chunk.horizon
    if not count:
        assert isinstance(came, UnsafeActionError)
        is_known = known["last_command"] is not None or not space.is_target.any()
        assert is_known is (came.reason == "nothing_left")
        return

    start = attrs.evolve(chunk, values=chunk.values[:count])
    clamped = outcome(SafetyGate(space=space, remedy=Remedy.CLAMP), start, known)

    assert type(clamped) is type(came)
    if isinstance(came, VettedChunk) and isinstance(clamped, VettedChunk):
        assert clamped.values.tobytes() == came.values.tobytes()
        assert came.report.changed is (clamped.report.changed or count < chunk.horizon)
        assert chunk.horizon - count == came.report.cut_steps
    assert isinstance(came, VettedChunk) or came.reason == clamped.reason


@given(cases())
def test_report_mode_never_changes_values(case: Any) -> None:
    """
    Neither does looking; and both say the same as blocking.
    """
    space, chunk, known = case
    before = chunk.values.tobytes()
    looked = SafetyGate(space=space).check(chunk, **known)
    came = outcome(SafetyGate(space=space, remedy=Remedy.REPORT), chunk, known)

    assert looked.safe_for_handoff is isinstance(came, VettedChunk)
    assert (looked.reason, looked.counts) == (came.report.reason, came.report.counts)
    assert isinstance(came, UnsafeActionError) or before == came.values.tobytes()
    assert before == chunk.values.tobytes()


@given(cases(calm=True))
def test_a_safe_chunk_passes_every_mode_unchanged(case: Any) -> None:
    """
    The same bytes leave.
    """
    space, chunk, known = case
    assume(SafetyGate(space=space).check(chunk, **known).safe_for_handoff)

    for remedy in Remedy:
        vetted = SafetyGate(space=space, remedy=remedy).vet(chunk, **known)
        assert chunk.values.tobytes() == vetted.values.tobytes()
        assert (False, 0) == (vetted.report.changed, vetted.report.total)


@given(st.one_of(cases(), cases(calm=True)))
def test_blocking_blocks_what_the_oracle_would(case: Any) -> None:
    """
    Both ways: nothing unsafe passes, and nothing safe is held back.
    """
    space, chunk, known = case
    assume(known["last_command"] is not None)
    outside = not is_in_bounds(space, known["last_command"])
    report = SafetyGate(space=space).check(chunk, **known)
    if outside or faults(space, chunk.values.tolist(), **known):
        assert not report.safe_for_handoff
    if not outside and not faults(space, chunk.values.tolist(), **known, rounding=-1):
        assert report.safe_for_handoff


@given(cases(kinds="target"))
def test_clamp_takes_the_nearest_allowed_value(case: Any) -> None:
    """
    Nothing is moved further than it must be, counted from the last step as it was made.
    """
    space, chunk, known = case
    start = known["last_command"]
    assume(start is not None)
    assume(is_in_bounds(space, start))
    vetted = SafetyGate(space=space, **FILLING).vet(chunk, **known)

    for j, dim in enumerate(space.dims):
        bound = bound_of(dim, space.rate_hz)
        assert bound is not None
        expected = clamped_targets(dim, bound, chunk.values[:, j].tolist(), start[j])
        size = max(abs(dim.low), abs(dim.high))
        np.testing.assert_allclose(vetted.values[:, j], expected, rtol=0, atol=6e-6 * size)


@given(cases())
def test_clamp_refuses_only_for_want_of_a_reference(case: Any) -> None:
    """
    Whatever a policy says, from a last command that could have been sent there is a way to go on.
    """
    space, chunk, known = case
    came = outcome(SafetyGate(space=space, **FILLING), chunk, known)
    start = known["last_command"]
    unknown = {"first_step_unchecked", "no_reference"}
    if isinstance(came, UnsafeActionError) and came.reason == "remedy_failed":
        # A switch that stands between its levels, with none of them a step away, cannot go on.
        assert start is not None
        assert any(
            not is_a_step_from_a_level(dim, space.rate_hz, at)
            for dim, at in zip(space.dims, start, strict=True)
        )
    elif isinstance(came, UnsafeActionError) and came.reason == "position_unknown":
        assert known["position"] is None
    elif isinstance(came, UnsafeActionError) and came.reason == "reference_out_of_bounds":
        assert not is_in_bounds(space, start)
    elif isinstance(came, UnsafeActionError):
        assert start is None
        assert came.reason in unknown


@given(cases(kinds="change move torque switch notch"))
def test_hold_stops_a_robot_that_is_driven_by_changes(case: Any) -> None:
    """
    Hold repeats the last delta for the whole chunk: that would keep it moving.
    """
    space, chunk, known = case
    vetted = passed(SafetyGate(space=space, remedy=Remedy.HOLD), chunk, known)
    assume(vetted.report.changed)
    assert not vetted.values[:, space.is_change].any()


@given(st.integers(1, 12), st.sampled_from((0.12, 0.1, 0.3, 0.15, 0.025)))
@example(5, 0.12)
def test_exact_limit_moves_in_float32_are_not_blocked(steps: int, limit: float) -> None:
    """
    Exact-limit moves blocked: [.12, .24, .36, .48, .60], limit .12, as a policy computes them.
    """
    space = ActionSpace(dims=(ActionDim(name="x", low=-4.0, high=4.0, max_step=limit),), rate_hz=20)
    ramps = {
        "products": np.float32(limit) * np.arange(1, steps + 1, dtype=np.float32),
        "sums": np.cumsum(np.full(steps, limit, np.float32), dtype=np.float32),
    }
    for name, ramp in ramps.items():
        chunk = ActionChunk(values=ramp[:, None], names=("x",), source=name, observed_at_s=0)
        vetted = SafetyGate(space=space).vet(chunk, last_command=[0.0])
        assert ramp.tobytes() == vetted.as_float32().tobytes()


@pytest.mark.parametrize("remedy", Remedy)
def test_a_step_that_is_really_too_long_is_not_forgiven(remedy: Remedy) -> None:
    """
    A ten-thousandth more than the limit is more than float32 can explain.
    """
    space = ActionSpace(dims=(ActionDim(name="x", low=-1, high=1, max_step=0.1),), rate_hz=20)
    chunk = ActionChunk(values=[[0.10001]], names=("x",), source="test", observed_at_s=0)
    report = SafetyGate(space=space, remedy=remedy).check(chunk, last_command=[0.0])
    assert 1 == report.counts[ViolationKind.STEP]
