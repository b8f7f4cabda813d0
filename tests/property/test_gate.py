"""Properties of the safety gate, against an oracle of its own."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from property.gate_oracle import bound_of, clamped_targets, faults
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.embodiment import ActionDim, ActionSpace, Reference
from vlmcore.errors import UnsafeActionError
from vlmcore.safety import Remedy, SafetyGate, VettedChunk, ViolationKind

HOSTILE = (math.nan, math.inf, -math.inf, -0.0, 5e-324, -5e-324, 1e308, -1e308, 1e39)
SCALES = (1e-6, 1.0, 1.0, 1e4)
_shares = st.floats(0, 1, exclude_min=True)


@st.composite
def dims(draw: st.DrawFn, name: str, kinds: str = "target angle change switch notch") -> ActionDim:
    """Draw a dimension of any kind and size."""
    kind = draw(st.sampled_from(kinds.split()))
    scale = draw(st.sampled_from(SCALES))
    low, high = -draw(st.floats(0.1, 4)) * scale, draw(st.floats(0.1, 4)) * scale
    step = draw(st.one_of(st.floats(1e-3, 8), st.sampled_from((0.12, 1e-9)))) * scale
    match kind:
        case "angle":
            turn = draw(st.sampled_from((2 * math.pi, 360.0, 1.0)))
            return ActionDim(
                name=name, low=-turn / 2, high=turn / 2, period=turn, max_step=step / scale
            )
        case "switch" | "notch":
            count = draw(st.integers(2, 5))
            change = draw(st.booleans())
            levels = sorted({0.0, *(low + (high - low) * i / (count - 1) for i in range(count))})
            return ActionDim(
                name=name,
                low=low,
                high=max(high, levels[-1]),
                levels=levels,
                max_step=step if kind == "notch" else None,
                reference=Reference.DELTA if change else Reference.ABSOLUTE,
            )
        case "change":
            reference = draw(st.sampled_from((Reference.DELTA, Reference.VELOCITY)))
            return ActionDim(name=name, low=low, high=high, max_step=step, reference=reference)
        case _:
            if draw(st.booleans()):
                return ActionDim(name=name, low=low, high=high, max_rate=step)
            low += draw(st.sampled_from((0.0, 1.0, 10.0))) * scale
            return ActionDim(name=name, low=low, high=low + 5 * scale, max_step=step)


@st.composite
def spaces(draw: st.DrawFn, **options: str) -> ActionSpace:
    """Draw a space."""
    count = draw(st.integers(1, 4))
    rate = draw(st.sampled_from((1.0, 20.0, 30.0)))
    return ActionSpace(
        dims=tuple(draw(dims(f"d{i}", **options)) for i in range(count)), rate_hz=rate
    )


def resting(draw: st.DrawFn, dim: ActionDim) -> float:
    """Draw a last command in bounds."""
    if dim.levels is not None:
        return draw(st.sampled_from(dim.levels))
    inside = st.floats(dim.low, dim.high)
    return draw(st.one_of(inside, st.sampled_from((dim.low, dim.high))))


@st.composite
def cases(
    draw: st.DrawFn, *, calm: bool = False, **options: str
) -> tuple[ActionSpace, ActionChunk, list[float] | None]:
    """Draw a space, a chunk that walks about in it, *calm* or not at all, and a last command."""
    space = draw(spaces(**options))
    start: list[float] | None = [resting(draw, dim) for dim in space.dims]
    horizon = draw(st.integers(1, 6))
    manners = st.just("calm") if calm else st.sampled_from(("calm", "calm", "mixed", "wild"))
    columns = [
        column(draw, space, j, start=start[j], horizon=horizon, manner=draw(manners))
        for j in range(len(start))
    ]
    values = np.array(columns, np.float64).T
    if draw(st.booleans()):
        with np.errstate(over="ignore"):
            values = values.astype(np.float32)
    known = ("known",) * 3
    match draw(st.sampled_from(known if calm else (*known, "unknown", "outside"))):
        case "unknown":
            start = None
        case "outside":
            j = draw(st.integers(0, len(start) - 1))
            start[j] += draw(st.sampled_from((-2.0, -0.1, 0.1, 2.0))) * space.high[j]
    chunk = ActionChunk(values=values, names=space.names, source="drawn", observed_at_s=0)
    return space, chunk, start


def column(
    draw: st.DrawFn, space: ActionSpace, j: int, *, start: float, horizon: int, manner: str
) -> list[float]:
    """Draw one dimension: hostile, wild, or in steps that are near what is allowed."""
    dim = space.dims[j]
    step = bound_of(dim, space.rate_hz) or dim.high - dim.low
    wild = st.one_of(st.sampled_from(HOSTILE), st.floats(2 * dim.low, 2 * dim.high))
    path, at = [], start
    for _ in range(horizon):
        if manner == "wild" or (manner == "mixed" and draw(st.booleans())):
            at = draw(wild)
        elif dim.levels is not None:
            at = draw(st.sampled_from(dim.levels))
        else:
            at = at + step * draw(st.sampled_from((-1.0, -0.5, 0.0, 0.3, 1.0)))
            at = min(max(at, dim.low), dim.high) if math.isfinite(at) else 0.0
        path.append(at)
    return path


def outcome(gate: SafetyGate, chunk: ActionChunk, start: Any) -> VettedChunk | UnsafeActionError:
    """Vet, and take what comes of it."""
    try:
        return gate.vet(chunk, last_command=start)
    except UnsafeActionError as error:
        return error


def passed(gate: SafetyGate, chunk: ActionChunk, start: Any) -> VettedChunk:
    """Vet, or skip what is refused."""
    vetted = outcome(gate, chunk, start)
    assume(isinstance(vetted, VettedChunk))
    assert isinstance(vetted, VettedChunk)
    return vetted


def is_in_bounds(space: ActionSpace, start: list[float]) -> bool:
    """Say whether a last command is within the bounds."""
    return all(dim.low <= at <= dim.high for dim, at in zip(space.dims, start, strict=True))


@given(cases(), st.sampled_from(Remedy))
def test_a_vetted_chunk_is_finite_in_bounds_and_within_its_steps(case: Any, remedy: Remedy) -> None:
    """
    From the last command on, in exact arithmetic, whatever the remedy.
    """
    space, chunk, start = case
    vetted = passed(SafetyGate(space=space, remedy=remedy), chunk, start)

    assert vetted.report.safe_for_handoff
    assert [] == faults(space, vetted.values.tolist(), start)


@given(cases(), st.sampled_from(Remedy))
def test_a_vetted_chunk_is_still_safe_as_float32(case: Any, remedy: Remedy) -> None:
    """
    A controller that compares float32 values with float64 limits finds nothing.
    """
    space, chunk, start = case
    vetted = passed(SafetyGate(space=space, remedy=remedy), chunk, start)
    exported = exported_or_error(vetted)
    if isinstance(exported, UnsafeActionError):
        assert "float32_too_coarse" == exported.reason
        coarse = [bound_of(dim, space.rate_hz) for dim in space.dims]
        assert any(
            bound is not None and bound < 1e-4 * max(abs(dim.low), abs(dim.high))
            for dim, bound in zip(space.dims, coarse, strict=True)
        )
        return

    assert exported.dtype == np.float32
    assert [] == faults(space, exported.astype(np.float64).tolist(), start, slacks=2)
    if (vetted.values == vetted.values.astype(np.float32)).all():
        assert exported.tobytes() == vetted.values.astype(np.float32).tobytes()


def exported_or_error(vetted: VettedChunk) -> Any:
    """Export, and take what comes of it."""
    try:
        return vetted.as_float32()
    except UnsafeActionError as error:
        return error


@given(cases(), st.sampled_from(Remedy))
def test_vetting_twice_changes_nothing(case: Any, remedy: Remedy) -> None:
    """
    S9: a gate accepts its own output, to the last bit.
    """
    space, chunk, start = case
    gate = SafetyGate(space=space, remedy=remedy)
    once = passed(gate, chunk, start)

    twice = gate.vet(once.as_chunk(), last_command=start)

    assert once.values.tobytes() == twice.values.tobytes()
    assert not twice.report.changed
    kinds = {kind for kind, count in twice.report.counts.items() if count}
    assert kinds <= {ViolationKind.REFERENCE_OUT_OF_BOUNDS}


@given(cases())
def test_report_mode_never_changes_values(case: Any) -> None:
    """
    Neither does looking; and both say the same as blocking.
    """
    space, chunk, start = case
    before = chunk.values.tobytes()
    looked = SafetyGate(space=space).check(chunk, last_command=start)
    came = outcome(SafetyGate(space=space, remedy=Remedy.REPORT), chunk, start)

    assert looked.safe_for_handoff is isinstance(came, VettedChunk)
    assert (looked.reason, looked.counts) == (came.report.reason, came.report.counts)
    assert isinstance(came, UnsafeActionError) or before == came.values.tobytes()
    assert before == chunk.values.tobytes()


@given(cases(calm=True))
def test_a_safe_chunk_passes_every_mode_unchanged(case: Any) -> None:
    """
    The same bytes leave.
    """
    space, chunk, start = case
    assume(SafetyGate(space=space).check(chunk, last_command=start).safe_for_handoff)

    for remedy in Remedy:
        vetted = SafetyGate(space=space, remedy=remedy).vet(chunk, last_command=start)
        assert chunk.values.tobytes() == vetted.values.tobytes()
        assert (False, 0) == (vetted.report.changed, vetted.report.total)


@given(st.one_of(cases(), cases(calm=True)))
def test_blocking_blocks_what_the_oracle_would(case: Any) -> None:
    """
    Both ways: nothing unsafe passes, and nothing safe is held back.
    """
    space, chunk, start = case
    assume(start is not None)
    outside = not is_in_bounds(space, start)
    report = SafetyGate(space=space).check(chunk, last_command=start)
    if outside or faults(space, chunk.values.tolist(), start):
        assert not report.safe_for_handoff
    if not outside and not faults(space, chunk.values.tolist(), start, rounding=-1):
        assert report.safe_for_handoff


@given(cases(kinds="target"))
def test_clamp_takes_the_nearest_allowed_value(case: Any) -> None:
    """
    Nothing is moved further than it must be, counted from the last step as it was made.
    """
    space, chunk, start = case
    assume(start is not None)
    assume(is_in_bounds(space, start))
    vetted = SafetyGate(space=space, remedy=Remedy.CLAMP).vet(chunk, last_command=start)

    for j, dim in enumerate(space.dims):
        bound = bound_of(dim, space.rate_hz)
        assert bound is not None
        expected = clamped_targets(dim, bound, chunk.values[:, j].tolist(), start[j])
        size = max(abs(dim.low), abs(dim.high))
        np.testing.assert_allclose(vetted.values[:, j], expected, rtol=0, atol=6e-6 * size)


@given(cases(kinds="target angle change switch notch"))
def test_clamp_refuses_only_for_want_of_a_reference(case: Any) -> None:
    """
    Whatever a policy says, from a last command that could have been sent there is a way to go on.
    """
    space, chunk, start = case
    came = outcome(SafetyGate(space=space, remedy=Remedy.CLAMP), chunk, start)
    reasons = {"first_step_unchecked", "no_reference", "reference_out_of_bounds"}
    if isinstance(came, UnsafeActionError) and came.reason == "remedy_failed":
        # A switch that stands between its levels, with none of them a step away, cannot go on.
        assert start is not None
        assert any(
            dim.levels is not None and at not in dim.levels
            for dim, at in zip(space.dims, start, strict=True)
        )
    elif isinstance(came, UnsafeActionError):
        assert start is None or not is_in_bounds(space, start)
        assert came.reason in reasons


@given(cases(kinds="change switch notch"))
def test_hold_stops_a_robot_that_is_driven_by_changes(case: Any) -> None:
    """
    S6: repeating the last change would keep it moving.
    """
    space, chunk, start = case
    vetted = passed(SafetyGate(space=space, remedy=Remedy.HOLD), chunk, start)
    assume(vetted.report.changed)
    assert not vetted.values[:, space.is_change].any()


@given(st.integers(1, 12), st.sampled_from((0.12, 0.1, 0.3, 0.15, 0.025)))
@example(5, 0.12)
def test_exact_limit_moves_in_float32_are_not_blocked(steps: int, limit: float) -> None:
    """
    S9: .12, .24, .36, .48, .60 with a limit of .12, as a policy computes them.
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
