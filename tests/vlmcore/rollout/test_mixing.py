"""Tests of `vlmcore.rollout._mixing` through what mixes chunks: rotations in space."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from rotation_cases import AXIS_ANGLE, XYZW, turn, turning, wrist
from vlmcore._rotations import angle_between, from_quaternions, is_rotation, to_quaternions
from vlmcore.contracts.rotations import RotationForm
from vlmcore.errors import ContractError
from vlmcore.rollout import ActionPlan, TemporalEnsemble, blend_chunks, smallest_overlap

forms = st.sampled_from(RotationForm)


@st.composite
def plans(draw: st.DrawFn, form: RotationForm) -> Any:
    """Draw a chunk of rotations."""
    steps = draw(st.integers(1, 4))
    numbers = draw(hnp.arrays("float64", (steps, 4), elements=st.floats(-1, 1)))
    numbers[:, 3] += np.where(np.linalg.norm(numbers, axis=1) < 0.1, 1.0, 0.0)
    return turning(*from_quaternions(to_quaternions(numbers, XYZW), form))


@pytest.mark.parametrize("form", RotationForm)
def test_rotations_are_not_blended_linearly(form: RotationForm) -> None:
    """
    B2: "linear blend of rotations/angles/binary". From no turn to one of 2.4 there are thirds.
    """
    old, new = turning(*[turn(0, form)] * 3), turning(*[turn(2.4, form)] * 3)
    made = blend_chunks(old, new, executed=0, overlap=2, space=wrist(form)).values
    np.testing.assert_allclose(made, [turn(each, form) for each in (0.8, 1.6, 2.4)], atol=1e-14)


def test_a_quaternion_and_its_negative_do_not_cancel() -> None:
    """
    Linearly, the middle of the two would be zero; numbers are written as those of the new plan.
    """
    old, new = turning(*[turn(1.0)] * 2), turning(*[-turn(1.0)] * 2)
    made = blend_chunks(old, new, executed=0, overlap=1, space=wrist()).values
    np.testing.assert_allclose(made, [-turn(1.0)] * 2, atol=1e-15)


def test_an_axis_and_angle_goes_on_past_pi() -> None:
    """
    Between 3.1 and -3.1 is half a turn, not none.
    """
    old, new = turning([0, 0, 3.1]), turning([0, 0, -3.1])
    made = blend_chunks(old, new, executed=0, overlap=1, space=wrist(AXIS_ANGLE)).values
    np.testing.assert_allclose(made, [[0, 0, -math.pi]], atol=1e-14)


@given(st.data(), forms)
def test_blended_rotations_are_between_both(data: st.DataObject, form: RotationForm) -> None:
    """
    Each is a rotation, and no way round is made.
    """
    old, new = data.draw(plans(form)), data.draw(plans(form))
    made = blend_chunks(old, new, executed=0, overlap=9, space=wrist(form)).values
    assert is_rotation(made, form).all()
    steps = min(old.horizon, new.horizon)
    start, end, now = (
        to_quaternions(each[:steps], form) for each in (old.values, new.values, made)
    )
    shares = np.arange(1, steps + 1) / (steps + 1)
    way = angle_between(start, end)
    np.testing.assert_allclose(angle_between(start, now), shares * way, atol=1e-13)
    np.testing.assert_allclose(angle_between(now, end), (1 - shares) * way, atol=1e-13)
    assert new.values[steps:].tobytes() == made[steps:].tobytes()


def test_the_overlap_is_as_long_as_the_angle_asks_for() -> None:
    """
    0.35 in steps of 0.1 takes three steps between.
    """
    old, new = turning(*[turn(0)] * 9), turning(*[turn(0.35)] * 9)
    assert 3 == smallest_overlap(old, new, executed=1, space=wrist())


@pytest.mark.parametrize("form", RotationForm)
def test_the_ensemble_takes_the_mean_rotation(form: RotationForm) -> None:
    """
    Of three about one axis it is the one in the middle, whatever the signs are.
    """
    ensemble = TemporalEnsemble(m=0.0, space=wrist(form))
    sign = -1 if form is XYZW else 1
    for angle in (1.0, 1.6):
        ensemble.add(turning(turn(angle, form)), starts_at_step=0)
    ensemble.add(turning(sign * turn(1.3, form)), starts_at_step=0)
    np.testing.assert_allclose(ensemble.action(0), sign * turn(1.3, form), atol=1e-14)


@given(st.data(), forms, st.floats(-3, 3))
def test_the_mean_of_rotations_is_one(data: st.DataObject, form: RotationForm, m: float) -> None:
    """
    And that of one rotation is this rotation.
    """
    chunks = [data.draw(plans(form)) for _ in range(data.draw(st.integers(1, 4)))]
    ensemble, alone = (TemporalEnsemble(m=m, space=wrist(form)) for _ in range(2))
    for each in chunks:
        ensemble.add(each, starts_at_step=0)
        alone.add(chunks[0], starts_at_step=0)
    assert bool(is_rotation(ensemble.action(0), form))
    same = to_quaternions(np.stack((alone.action(0), chunks[0].values[0])), form)
    assert angle_between(*same) < 1e-12


def test_what_is_no_rotation_is_not_mixed() -> None:
    """
    There is no way to zeros; without a space nothing says that they are meant as a rotation.
    """
    good, zeros = turning(turn(0.1)), turning([0, 0, 0, 0])
    space = wrist()
    with pytest.raises(
        ContractError, match=r"^new\.values\[0\]\[0:4\]: got .* for 'wrist', expected"
    ):
        blend_chunks(good, zeros, executed=0, overlap=1, space=space)
    with pytest.raises(ContractError, match=r"^old\.values\[0\]\[0:4\]: got "):
        blend_chunks(zeros, good, executed=0, overlap=1, space=space)
    with pytest.raises(ContractError, match=r"^chunk\.values\[0\]\[0:4\]: got "):
        TemporalEnsemble(space=space).add(zeros, starts_at_step=0)
    with pytest.raises(ContractError, match=r"^chunk\.values\[0\]\[0:4\]: got "):
        ActionPlan(space=space).offer(zeros, observed_at_step=0)
    assert 1 == blend_chunks(good, zeros, executed=0, overlap=1, space=None).horizon
