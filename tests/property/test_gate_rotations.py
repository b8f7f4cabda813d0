"""Properties of the safety gate for rotations in space, against an oracle with matrices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from property.rotation_oracle import angle, faults, matrix
from vlmcore._rotations import from_quaternions, slerp, to_quaternions, written_near
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.embodiment import ActionDim, ActionSpace
from vlmcore.contracts.rotations import RotationForm, RotationGroup
from vlmcore.errors import UnsafeActionError
from vlmcore.safety import NonFinite, Remedy, SafetyGate, VettedChunk

NAN, INF = math.nan, math.inf
QUATERNIONS = (RotationForm.QUATERNION_XYZW, RotationForm.QUATERNION_WXYZ)
HOSTILE = (0.0, -0.0, 1.0, NAN, INF, -INF, 5e-324, 1e308, -1e39, 0.02, 7.0)


@st.composite
def quaternions(draw: st.DrawFn) -> Any:
    """Draw a rotation, some of them half a turn from each other."""
    if draw(st.booleans()):
        return np.array(draw(st.sampled_from(np.concatenate((np.eye(4), -np.eye(4))).tolist())))
    numbers = np.array([draw(st.floats(-1, 1)) for _ in range(4)])
    assume(np.abs(numbers).max() > 0.1)
    return numbers / np.linalg.norm(numbers)


@st.composite
def spaces(draw: st.DrawFn, forms: Any = tuple(RotationForm)) -> ActionSpace:
    """Draw a rotation beside a joint, with bounds that are wide or tight or of one side."""
    form = draw(st.sampled_from(forms))
    step = draw(st.floats(1e-3, 3.1) | st.sampled_from((1e-7, 0.1, math.pi)))
    group = RotationGroup(name="wrist", form=form, max_step_rad=step)
    most = math.pi if form is RotationForm.AXIS_ANGLE else 1.01
    low, high = draw(st.sampled_from(((-1, 1), (-2, 2), (-0.75, 0.75), (-0.125, 2))))
    dims = [
        ActionDim(name=f"r{i}", low=low * most, high=high * most, rotation="wrist")
        for i in range(form.size)
    ]
    joint = ActionDim(name="j", low=-1, high=1, max_step=0.1)
    dims = [joint, *dims] if draw(st.booleans()) else [*dims, joint]
    return ActionSpace(dims=dims, rate_hz=20, rotations=(group,))


def row_of(space: ActionSpace, numbers: Any, joint: float = 0.0) -> Any:
    """Put a rotation and a joint in their places."""
    row = np.full(len(space.dims), joint)
    row[space.rotations[0].columns(space.dims)] = numbers
    return row


@st.composite
def cases(draw: st.DrawFn, *, calm: bool = False, **options: Any) -> tuple[ActionSpace, Any, Any]:
    """Draw a space, the values of a chunk, and a last command that is in bounds."""
    space = draw(spaces(**options))
    (group,) = space.rotations
    at = draw(quaternions())
    written = from_quaternions(at, group.form)
    start = row_of(space, written)
    assume(((start >= space.low) & (start <= space.high)).all())
    rows, before = [], written
    for _ in range(draw(st.integers(1, 6))):
        manner = draw(st.sampled_from(("calm", "calm", "wild", "hostile"))) if not calm else "calm"
        goal = draw(quaternions())
        if manner != "wild":
            step = group.step_rad(20) * draw(st.sampled_from((0.0, 0.5, 0.99, 1.0)))
            way = angle(matrix(at, QUATERNIONS[0]), matrix(goal, QUATERNIONS[0]))
            goal = slerp(at, goal, min(1.0, step / way)) if way > 0 else at
        at = goal
        before = written_near(from_quaternions(at, group.form), before, group.form)
        numbers = before.copy()
        if group.form is not RotationForm.AXIS_ANGLE:
            numbers *= draw(st.sampled_from((1.0, 1.0, 0.995)))
        if manner == "hostile":
            numbers[draw(st.integers(0, group.form.size - 1))] = draw(st.sampled_from(HOSTILE))
        rows.append(row_of(space, numbers))
    values = np.array(rows)
    if draw(st.booleans()):
        with np.errstate(over="ignore"):
            values = values.astype(np.float32)
    return space, values, start


def vet(space: ActionSpace, values: Any, start: Any, remedy: Remedy) -> Any:
    """Vet, and take what comes of it."""
    chunk = ActionChunk(values=values, names=space.names, source="drawn", observed_at_s=0)
    try:
        way = NonFinite.HOLD  # so that as many steps leave as came
        gate = SafetyGate(space=space, remedy=remedy, non_finite=way)
        return gate.vet(chunk, last_command=start)
    except UnsafeActionError as error:
        return error


@given(cases(), st.sampled_from(Remedy))
def test_a_vetted_rotation_turns_no_further_than_its_step(case: Any, remedy: Remedy) -> None:
    """
    Every one is a rotation in bounds, from the last command on, also as float32.
    """
    space, values, start = case
    vetted = vet(space, values, start, remedy)
    assume(isinstance(vetted, VettedChunk))
    assert [] == faults(space, vetted.values, start)
    exported = exported_or_error(vetted)
    if isinstance(exported, UnsafeActionError):
        assert "float32_too_coarse" == exported.reason
        assert space.rotations[0].step_rad(20) < 1e-4
        return
    assert [] == faults(space, exported.astype(np.float64), start, slacks=2)


def exported_or_error(vetted: VettedChunk) -> Any:
    """Export, and take what comes of it."""
    try:
        return vetted.as_float32()
    except UnsafeActionError as error:
        return error


@given(cases())
def test_clamping_never_wants_for_a_rotation(case: Any) -> None:
    """
    From a last command in bounds there is always a way to go on: to hold.
    """
    space, values, start = case
    vetted = vet(space, values, start, Remedy.CLAMP)
    assert isinstance(vetted, VettedChunk), vetted


@given(cases(), st.sampled_from((Remedy.CLAMP, Remedy.HOLD)))
def test_clamping_twice_changes_nothing(case: Any, remedy: Remedy) -> None:
    """
    To the last bit.
    """
    space, values, start = case
    once = vet(space, values, start, remedy)
    twice = vet(space, once.values, start, remedy)
    assert (once.values.tobytes(), 0) == (twice.values.tobytes(), twice.report.total)


@given(cases(forms=(RotationForm.AXIS_ANGLE,)), st.integers(0, 2), st.floats(0.001, 0.2))
def test_clamping_twice_changes_nothing_from_a_start_out_of_bounds(
    case: Any, column: int, beyond: float
) -> None:
    """
    What is found then is the start alone; the steps that lead back are not rounded anew.
    """
    space, values, start = case
    out = start.copy()
    out[column] = max(space.high[column], start[column]) + beyond
    assume(np.linalg.norm(out[:3]) <= 2 * math.pi)  # else it is no rotation
    once = vet(space, values, out, Remedy.CLAMP)
    assume(isinstance(once, VettedChunk))
    twice = vet(space, once.values, out, Remedy.CLAMP)
    assert once.values.tobytes() == twice.values.tobytes()
    assert not twice.report.changed


@given(cases(calm=True))
def test_a_safe_rotation_passes_every_mode_unchanged(case: Any) -> None:
    """
    As it came, also where its norm is a little off.
    """
    space, values, start = case
    assume(isinstance(vet(space, values, start, Remedy.BLOCK), VettedChunk))
    for remedy in Remedy:
        vetted = vet(space, values, start, remedy)
        assert values.astype(np.float64).tobytes() == vetted.values.tobytes()


@given(cases() | cases(calm=True))
def test_blocking_blocks_what_the_oracle_would(case: Any) -> None:
    """
    Nothing that turns too far passes, and nothing is held back that does not.
    """
    space, values, start = case
    outcome = vet(space, values, start, Remedy.BLOCK)
    exact = values.astype(np.float64)
    if faults(space, exact, start):
        assert isinstance(outcome, UnsafeActionError)
    elif not faults(space, exact, start, slacks=0):
        assert isinstance(outcome, VettedChunk)


@given(cases(forms=QUATERNIONS), st.data())
def test_a_quaternion_and_its_negative_are_the_same_to_the_gate(case: Any, data: Any) -> None:
    """
    Whatever the signs are, the same is found, and the robot turns the same way.
    """
    space, values, start = case
    assume((space.low == -space.high).all())
    (group,) = space.rotations
    at = group.columns(space.dims)
    other, begin = values.copy(), start.copy()
    for row in other:
        row[at] *= data.draw(st.sampled_from((1, -1)))
    begin[at] *= data.draw(st.sampled_from((1, -1)))
    one, two = vet(space, values, start, Remedy.CLAMP), vet(space, other, begin, Remedy.CLAMP)
    assert one.report.counts == two.report.counts
    for a, b in zip(one.values[:, at], two.values[:, at], strict=True):
        assert angle(matrix(a, group.form), matrix(b, group.form)) < 1e-12


@given(cases())
def test_clamping_goes_straight_to_what_was_proposed(case: Any) -> None:
    """
    Each step is on the short way from the last one to the proposal, or it stays.
    """
    space, values, start = case
    (group,) = space.rotations
    at = group.columns(space.dims)
    vetted = vet(space, values, start, Remedy.CLAMP)
    before = matrix(start[at], group.form)
    for came, made in zip(values.astype(np.float64)[:, at], vetted.values[:, at], strict=True):
        wanted, now = matrix(came, group.form), matrix(made, group.form)
        if wanted is not None and angle(before, now) > 1e-7:
            rest, way = angle(now, wanted), angle(before, wanted)
            assert abs(angle(before, now) + rest - way) < 1e-6
        before = now


def test_reading_is_not_the_gate_alone() -> None:
    """
    The oracle and the package read the same numbers as the same rotation.
    """
    for form in RotationForm:
        some = np.array([0.1, -0.7, 0.5, 0.5])
        numbers = from_quaternions(some / np.linalg.norm(some), form)
        again = to_quaternions(numbers, form)
        assert angle(matrix(numbers, form), matrix(again, QUATERNIONS[0])) < 1e-14
