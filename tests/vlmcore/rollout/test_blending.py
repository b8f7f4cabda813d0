"""Tests of `vlmcore.rollout.blending`."""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rollout_cases import column, finite_chunks, spaces
from safety_cases import GRIPPER, JOINT, SLIDE, WHEEL, chunk, joint, space
from vlmcore.contracts.actions import ActionChunk, Stream
from vlmcore.contracts.embodiment import ActionDim
from vlmcore.errors import ContractError, UnsafeActionError
from vlmcore.rollout import ActionPlan, TemporalEnsemble, blend_chunks, smallest_overlap
from vlmcore.safety import Remedy, SafetyGate, ViolationKind, audit

NAN = math.nan
ANGLE = ActionDim(name="x", low=-math.pi, high=math.pi, period=2 * math.pi, max_step=0.1)


def blended(old: ActionChunk, new: ActionChunk, **more: Any) -> list[float]:
    """Blend, and list the only dimension."""
    options = {"executed": 0, "overlap": 2, "space": None, **more}
    return blend_chunks(old, new, **options).values.ravel().tolist()


def test_two_transition_steps_from_zero_to_one_are_a_third_two_thirds_and_one() -> None:
    """
    The example of the formula, ``a = (i + 1) / (overlap + 1)``.
    """
    assert [1 / 3, 2 / 3, 1.0] == blended(column(0, 0, 0), column(1, 1, 1))


def test_what_is_blended_is_the_rest_of_the_old_plan() -> None:
    """
    Step i of the new plan with step executed + i of the old one.
    """
    assert [(3 + 30) / 2, 40] == blended(column(1, 2, 3), column(30, 40), executed=2, overlap=5)


@pytest.mark.parametrize(
    ("executed", "overlap", "applied"),
    [(0, 0, 0), (0, 9, 2), (2, 9, 1), (3, 9, 0), (0, 1, 1)],
)
def test_as_many_steps_are_blended_as_both_plans_still_have(
    executed: int, overlap: int, applied: int
) -> None:
    """
    The smallest of what is asked for, what is left of the old, and what there is of the new.
    """
    came = blended(column(0, 0, 0), column(1, 1), executed=executed, overlap=overlap)
    assert [(i + 1) / (applied + 1) for i in range(applied)] + [1.0] * (2 - applied) == came


def test_b1_rows_that_are_past_are_not_blended_with_rows_that_come() -> None:
    """
    new[0] was predicted for the observation, and two steps have been sent since.
    """
    old, new = column(0, 1, 2, 3, 4), column(1, 2, 3, 4, 5)
    assert [3.0, 4.0, 5.0] == blended(old, new, executed=3, elapsed=2)


def test_b1_a_plan_that_is_past_as_a_whole_is_refused() -> None:
    """
    None of its rows is left.
    """
    with pytest.raises(ContractError, match=r"^elapsed: got 2, expected fewer than the 2 steps"):
        blended(column(0, 0, 0), column(1, 1), elapsed=2)


def test_b2_a_linear_blend_of_angles_does_not_point_the_opposite_way() -> None:
    """
    3.1 and -3.1 meet at pi, not at 0.0.
    """
    (came, last) = blended(column(3.1), column(-3.1, -3.1), overlap=1, space=space(ANGLE))
    assert pytest.approx(math.pi) == abs(came)
    assert -3.1 == last
    assert [0.0] == blended(column(3.1), column(-3.1), overlap=1)


def test_angles_are_not_averaged_to_zero_because_nobody_said_what_they_are() -> None:
    """
    3.1 and -3.1 are 0 if all is linear, and a gripper is half closed: who means that says None.
    """
    with pytest.raises(TypeError, match="space"):
        blend_chunks(column(3.1), column(-3.1), executed=0, overlap=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="space"):
        ActionPlan()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="space"):
        TemporalEnsemble()  # type: ignore[call-arg]


def test_b2_angles_are_written_in_bounds() -> None:
    """
    Also where a policy counts on after a turn.
    """
    wheel = space(WHEEL)  # from -3 to 3
    came = blended(column(2.0, 2.0, name="turn"), column(5, 5, name="turn"), space=wheel)
    assert [1.0, 0.0] == pytest.approx(came)  # 5 is -1 a turn later


def test_b2_a_blended_gripper_is_never_half_closed() -> None:
    """
    It switches in the middle, and what a policy says is kept as it is.
    """
    old, new = column(0, 0, 0, 0, name="gripper"), column(*[0.98] * 4, name="gripper")
    for overlap, expected in ((1, [0.98] * 4), (2, [0, 0.98, 0.98, 0.98]), (4, [0, 0, 0.98, 0.98])):
        assert expected == blended(old, new, overlap=overlap, space=space(GRIPPER))
    assert 0.37 == pytest.approx(blended(old, column(0.74, name="gripper"), overlap=1)[0])


def test_each_dimension_is_blended_as_what_it_is() -> None:
    """
    Side by side in one chunk.
    """
    names = ("x", "dx", "turn", "gripper")
    old = chunk([[0.0, 0.02, 2.9, 0.0]], *names)
    new = chunk([[0.5, 0.04, -2.9, 1.0]] * 2, *names)
    dims = space(JOINT, SLIDE, WHEEL, GRIPPER)
    came = blend_chunks(old, new, executed=0, overlap=1, space=dims)
    assert [0.25, 0.03, 3.0, 1.0] == pytest.approx(np.abs(came.values[0]).tolist())


@pytest.mark.parametrize("bad", [NAN, math.inf, -math.inf])
def test_b4_nan_in_the_previous_plan_does_not_poison_the_new_one(bad: float) -> None:
    """
    It is refused where it would be used; in rows that are past it is not.
    """
    with pytest.raises(ContractError, match=r"^old.values\[1\]\[0\]: got -?(nan|inf) for 'x'"):
        blended(column(0, bad, 0), column(1, 1), executed=1)
    with pytest.raises(ContractError, match=r"^new.values\[2\]\[0\]: got -?(nan|inf) for 'x'"):
        blended(column(0, 0, 0), column(1, 1, bad))
    assert [0.5, 1.0] == blended(
        column(bad, 0, bad), column(bad, 1, 1), executed=1, overlap=1, elapsed=1
    )


def test_b4_the_end_of_the_transition_may_exceed_the_step_and_the_gate_sees_it() -> None:
    """
    The last weight is n/(n+1), then 1: what leaves is a chunk, and the gate makes it safe again.
    """
    dims = space(JOINT)
    came = blend_chunks(column(0, 0), column(0.9, 0.9, 0.9), executed=0, overlap=2, space=dims)
    assert ActionChunk is type(came)
    gate = SafetyGate(space=dims)
    with pytest.raises(UnsafeActionError):
        gate.vet(came, last_command=[0.0])


def test_the_result_is_of_the_new_plan_and_says_nothing_that_was_said_of_it() -> None:
    """
    S14: validated=true is just metadata, and is not copied to other values.
    """
    old = ActionChunk(values=[[0.0]] * 2, names=("x",), source="old", observed_at_s=1)
    arm = (Stream(name="arm", start=0, end=1),)
    new = chunk([[1.0]] * 2, streams=arm, metadata={"validated": True})
    came = blend_chunks(old, new, executed=0, overlap=1, space=space(JOINT))
    assert ("test", 12.5, arm, {}) == (
        came.source,
        came.observed_at_s,
        came.streams,
        dict(came.metadata),
    )


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"old": [[0.0]]}, "old: got list, expected an ActionChunk"),
        ({"new": None}, "new: got NoneType, expected an ActionChunk"),
        ({"new": chunk([[1, 1]], "y", "x")}, "new.names: got y, x, expected x, in this order"),
        ({"executed": 4}, "executed: got 4, expected a whole number from 0 to 3"),
        ({"executed": -1}, "executed: got -1, expected a whole number from 0 to 3"),
        ({"executed": True}, "executed: got True, expected a whole number from 0 to 3"),
        ({"executed": 1.0}, "executed: got 1.0, expected a whole number from 0 to 3"),
        ({"overlap": -1}, "overlap: got -1, expected a whole number from 0 to 4096"),
        ({"overlap": 10**5000}, "overlap: got a huge number, expected a whole number from 0"),
        ({"elapsed": "1"}, "elapsed: got '1', expected a whole number of at least 0"),
        ({"space": JOINT}, "space: got ActionDim, expected an ActionSpace"),
        ({"space": space(SLIDE)}, "new.names: got x, expected dx, in this order"),
    ],
)
def test_an_argument_that_is_none_is_named(change: dict[str, Any], problem: str) -> None:
    """
    One clear error each.
    """
    old, new, numbers = column(0, 0, 0), column(1, 1), {"executed": 0, "overlap": 1}
    options = {"old": old, "new": new, "space": None, **numbers, **change}
    with pytest.raises(ContractError) as error:
        blend_chunks(options.pop("old"), options.pop("new"), **options)
    assert str(error.value).startswith(problem)


def test_b4_the_transition_is_as_long_as_each_step_needs() -> None:
    """
    From 0 to 0.35 in steps of at most 0.1 takes three steps on the way.
    """
    old, new = column(*[0.0] * 9), column(*[0.35] * 9)
    assert 3 == smallest_overlap(old, new, executed=1, space=space(JOINT))
    assert 0 == smallest_overlap(old, column(0.1), executed=1, space=space(JOINT))


def test_b4_a_transition_that_cannot_be_long_enough_is_refused() -> None:
    """
    Because too little is left of the old plan, or no longer one was allowed.
    """
    old, new = column(*[0.0] * 4), column(*[0.35] * 9)
    for options in ({"executed": 2}, {"executed": 1, "most": 2}):
        with pytest.raises(ContractError, match=r"^new: got a plan whose transition breaks .* x "):
            smallest_overlap(old, new, space=space(JOINT), **options)


def test_the_transition_starts_from_what_was_really_sent() -> None:
    """
    A gate may have changed the last step; without one, the first step may start anywhere.
    """
    old, new = column(*[0.0] * 9), column(*[0.1] * 9)
    dims = space(JOINT)
    assert 0 == smallest_overlap(old, new, executed=1, space=dims)
    assert 1 == smallest_overlap(old, new, executed=1, space=dims, last_command=[-0.05])
    assert 0 == smallest_overlap(old, column(0.9), executed=0, space=dims)


def test_a_transition_of_angles_is_measured_the_short_way() -> None:
    """
    3.1 to -3.1 is one step of 0.083.
    """
    assert 0 == smallest_overlap(column(3.1, 3.1), column(-3.1), executed=1, space=space(ANGLE))


def test_a_transition_needs_a_space() -> None:
    """
    Its bounds are what is kept.
    """
    for wrong in (None, JOINT):
        with pytest.raises(ContractError, match=r"^space: got .*, expected an ActionSpace"):
            smallest_overlap(column(0), column(0), executed=0, space=wrong)  # type: ignore[arg-type]
    with pytest.raises(ContractError, match=r"^most: got -1"):
        smallest_overlap(column(0), column(0), executed=0, space=space(JOINT), most=-1)


@pytest.mark.parametrize("overlap", range(1, 20))
def test_a_blend_of_the_largest_number_with_itself_does_not_overflow(overlap: int) -> None:
    """
    Rounded shares add up to a little more than 1 now and then.
    """
    plan = column(*[sys.float_info.max] * overlap)
    assert plan.values.ravel().tolist() == blended(plan, plan, overlap=overlap)


@st.composite
def replans(draw: st.DrawFn, *, with_space: bool = True) -> tuple[Any, ...]:
    """Draw two chunks of one space, and numbers of steps that fit them."""
    dims = draw(spaces())
    old, new = (draw(finite_chunks(dims)) for _ in range(2))
    return (
        dims if with_space else None,
        old,
        new,
        draw(st.integers(0, old.horizon)),
        draw(st.integers(0, 8)),
        draw(st.integers(0, new.horizon - 1)),
    )


@given(replans(with_space=False))
def test_a_linear_blend_of_finite_plans_is_finite_and_between_both(case: Any) -> None:
    """
    In exact arithmetic, and as near to the formula as float64 is.
    """
    linear, old, new, executed, overlap, elapsed = case
    options = {"executed": executed, "overlap": overlap, "elapsed": elapsed}
    came = blend_chunks(old, new, **options, space=linear).values
    steps = min(overlap, old.horizon - executed, new.horizon - elapsed)

    assert new.horizon - elapsed == len(came)
    assert came[steps:].tobytes() == new.values[elapsed + steps :].tobytes()
    for i in range(steps):
        share = Fraction(i + 1, steps + 1)
        for before, after, value in zip(
            old.values[executed + i], new.values[elapsed + i], came[i], strict=True
        ):
            exact = Fraction(before) * (1 - share) + Fraction(after) * share
            assert min(before, after) <= value <= max(before, after)
            size = max(abs(Fraction(before)), abs(Fraction(after)))
            assert abs(Fraction(value) - exact) <= size / 2**50 + Fraction(1, 2**1070)


@given(replans())
def test_a_blend_in_a_space_of_finite_plans_is_finite(case: Any) -> None:
    """
    Whatever is periodic or discrete in it.
    """
    dims, old, new, executed, overlap, elapsed = case
    options = {"executed": executed, "overlap": overlap, "elapsed": elapsed}
    assert blend_chunks(old, new, **options, space=dims).is_finite


@given(st.data())
def test_blending_a_plan_with_itself_changes_nothing(data: st.DataObject) -> None:
    """
    To the last bit, if its angles are in bounds.
    """
    dims = data.draw(spaces())
    plan = data.draw(finite_chunks(dims))
    turns = np.isfinite(dims.period)
    values = np.where(turns, np.clip(plan.values, dims.low, dims.high), plan.values)
    plan = ActionChunk(values=values, names=plan.names, source="drawn", observed_at_s=0)

    came = blend_chunks(plan, plan, executed=0, overlap=data.draw(st.integers(0, 8)), space=dims)

    assert np.array_equal(plan.values, came.values)


@given(replans())
def test_a_blend_that_is_vetted_keeps_all_limits(case: Any) -> None:
    """
    From a last command in bounds there is always a way to go on by clamping.
    """
    dims, old, new, executed, overlap, elapsed = case
    come_from = {
        "last_command": [dim.levels[0] if dim.levels else dim.low for dim in dims.dims],
        "position": {
            dim.name: dim.position_low for dim in dims.dims if dim.position_low is not None
        },
    }
    came = blend_chunks(old, new, executed=executed, overlap=overlap, elapsed=elapsed, space=dims)
    vetted = SafetyGate(space=dims, remedy=Remedy.CLAMP).vet(came, **come_from)
    assert not audit(vetted.values, dims, **come_from).kinds


@given(
    st.lists(st.floats(-1, 1), min_size=2, max_size=8),
    st.lists(st.floats(-1, 1), min_size=1, max_size=8),
)
def test_the_smallest_overlap_keeps_the_steps_and_no_smaller_one_does(
    old: list[float], new: list[float]
) -> None:
    """
    Counted to the first step that is of the new plan alone.
    """
    dims = space(joint(0.3))
    try:
        found = smallest_overlap(column(*old), column(*new), executed=1, space=dims)
    except ContractError:
        found = -1
    assume(found >= 0)

    def is_kept(overlap: int) -> bool:
        came = blended(column(*old), column(*new), executed=1, overlap=overlap)
        rows = [[value] for value in came[: overlap + 1]]
        return ViolationKind.STEP not in audit(rows, dims, last_command=old[:1]).kinds

    assert is_kept(found)
    assert not any(is_kept(overlap) for overlap in range(found))
