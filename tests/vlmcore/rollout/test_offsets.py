"""Tests of offsets from where a chunk begins: made into targets, blended, and refused."""

from __future__ import annotations

import math
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from safety_cases import GRIPPER, JOINT, OFFSET, chunk, space
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.embodiment import ActionDim, ActionSpace, Reference
from vlmcore.errors import ContractError
from vlmcore.policy import PolicyInfo
from vlmcore.rollout import (
    ActionPlan,
    ChunkBroker,
    PrefetchingBroker,
    TemporalEnsemble,
    blend_chunks,
    smallest_overlap,
    space_of_targets,
    to_targets,
)
from vlmcore.safety import Remedy, SafetyGate
from vlmcore.testing import ScriptedPolicy

REACH = attrs.evolve(OFFSET, position_low=-2.0, position_high=2.0)
ARM = space(REACH, attrs.evolve(JOINT, name="y"), GRIPPER)


def at(observed_at_s: float, *values: float) -> ActionChunk:
    """Make a chunk of offsets that answers the observation of *observed_at_s*."""
    made = chunk([[value] for value in values], "o")
    return attrs.evolve(made, observed_at_s=observed_at_s)


def test_offsets_become_targets_and_all_else_stays() -> None:
    """
    q0 + a_t, and not q_{t-1} + a_t: each is counted from where the chunk begins.
    """
    came = chunk([[0.1, 0.5, 1.0], [0.2, 0.6, 0.0]], "o", "y", "gripper")
    made = to_targets(came, ARM, start={"o": 1.5})

    np.testing.assert_allclose(made.values, [[1.6, 0.5, 1.0], [1.7, 0.6, 0.0]])
    assert (came.names, came.source, came.observed_at_s) == (
        made.names,
        made.source,
        made.observed_at_s,
    )


def test_the_targets_of_offsets_have_the_bounds_of_the_position() -> None:
    """
    What is no offset stays as it is, and so does the rate.
    """
    made = space_of_targets(ARM)
    target = ActionDim(name="o", low=-2.0, high=2.0, max_step=0.1)

    assert ActionSpace(dims=(target, *ARM.dims[1:]), rate_hz=ARM.rate_hz) == made
    assert made == space_of_targets(made)


@given(
    st.lists(st.floats(-0.5, 0.5), min_size=1, max_size=5),
    st.floats(-2.0, 2.0),
    st.sampled_from(Remedy),
)
def test_a_gate_says_the_same_of_offsets_and_of_their_targets(
    values: list[float], start: float, remedy: Remedy
) -> None:
    """
    From where the chunk begins: what passes one, passes the other, and leads to the same places.
    """
    came = at(0.0, *(round(value, 3) for value in values))
    offsets, targets = space(REACH), space_of_targets(space(REACH))
    start = round(start, 3)
    first = SafetyGate(space=offsets, remedy=remedy).check(
        came, last_command=[9.0], position={"o": start}
    )
    second = SafetyGate(space=targets, remedy=remedy).check(
        to_targets(came, offsets, start={"o": start}), last_command=[start]
    )
    # An offset has bounds of its own, and what is out already may stay out.
    if first.safe_for_handoff:
        assert second.safe_for_handoff


@pytest.mark.parametrize(
    ("start", "problem"),
    [
        ({}, "start: got {}, expected numbers by name for o"),
        ({"o": 0.0, "y": 0.0}, "start: got {'o': 0.0, 'y': 0.0}, expected numbers by name for o"),
        ([0.0], "start: got [0.0], expected numbers by name for o"),
        ({"o": math.nan}, "start['o']: got nan"),
        ({"o": "0"}, "start['o']: got '0'"),
    ],
)
def test_where_a_chunk_begins_must_be_said(start: Any, problem: str) -> None:
    """
    Nothing is taken to begin at zero.
    """
    came = chunk([[0.0, 0.0, 0.0]], "o", "y", "gripper")
    with pytest.raises(ContractError) as error:
        to_targets(came, ARM, start=start)
    assert str(error.value).startswith(problem)


def test_what_cannot_be_targets_is_refused() -> None:
    """
    One clear error each.
    """
    with pytest.raises(ContractError, match=r"^position_low: got None for 'o', expected where"):
        space_of_targets(space(OFFSET))
    with pytest.raises(ContractError, match=r"^space: got ActionDim"):
        space_of_targets(OFFSET)
    with pytest.raises(ContractError, match=r"^space: got ActionDim"):
        to_targets(at(0.0, 0.1), OFFSET, start={"o": 0.0})
    with pytest.raises(ContractError, match=r"^chunk: got list"):
        to_targets([[0.1]], space(OFFSET), start={"o": 0.0})
    with pytest.raises(ContractError, match=r"^chunk.names"):
        to_targets(chunk([[0.1]]), space(OFFSET), start={"o": 0.0})


def test_what_overflows_is_a_target_that_no_gate_lets_pass() -> None:
    """
    It becomes infinite, and not a large number that fits by chance.
    """
    made = to_targets(at(0.0, 1e308), space(OFFSET), start={"o": 1.7e308})
    assert [math.inf] == made.values.ravel().tolist()


def test_blending_chunk_relative_chunks_with_different_reference_states_is_refused() -> None:
    """
    Blend of chunk-relative chunks with different reference states is meaningless.
    """
    with pytest.raises(ContractError, match=r"^space: got o counted from where a chunk begins"):
        blend_chunks(at(0.0, 0.0), at(0.1, 0.3), executed=0, overlap=1, space=space(OFFSET))
    same = blend_chunks(at(0.0, 0.0), at(0.0, 0.3), executed=0, overlap=1, space=space(OFFSET))
    assert [0.15] == same.values.ravel().tolist()
    targets = [to_targets(at(t, 0.1), space(REACH), start={"o": t}) for t in (0.0, 0.1)]
    blended = blend_chunks(*targets, executed=0, overlap=1, space=space_of_targets(space(REACH)))
    assert [0.15] == pytest.approx(blended.values.ravel().tolist())


def test_an_ensemble_of_offsets_is_of_one_observation() -> None:
    """
    The mean of two answers to one observation is one; of two observations it is nothing.
    """
    ensemble = TemporalEnsemble(space=space(OFFSET), m=0.0)
    ensemble.add(at(1.0, 0.0, 0.1), starts_at_step=0)
    ensemble.add(at(1.0, 0.2, 0.3), starts_at_step=0)
    assert [0.1] == ensemble.action(0).tolist()
    with pytest.raises(ContractError, match=r"chunk answers another observation than what it is"):
        ensemble.add(at(1.1, 0.0, 0.1), starts_at_step=1)
    assert [0.2] == ensemble.action(1).tolist()
    ensemble.clear()
    ensemble.add(at(1.1, 0.0), starts_at_step=0)
    assert [0.0] == ensemble.action(0).tolist()


def test_what_sends_single_steps_takes_no_offsets() -> None:
    """
    Each step is vetted for itself there, and would be held against zero.
    """
    gate = SafetyGate(space=space(OFFSET))
    policy = ScriptedPolicy([[[0.1]]], info=PolicyInfo(name="p", action_names=("o",)))
    made = (
        lambda: ActionPlan(space=space(OFFSET)),
        lambda: ChunkBroker(policy, gate, replan_every=1),
        lambda: PrefetchingBroker(policy, gate, prefetch_at=1),
        lambda: smallest_overlap(at(0.0, 0.0), at(0.0, 0.1), executed=0, space=space(OFFSET)),
    )
    for make in made:
        with pytest.raises(ContractError, match=r"^space: got o counted .* makes targets of them"):
            make()


def test_changes_rates_and_torques_are_blended_as_they_are() -> None:
    """
    They are counted from nowhere.
    """
    for reference in (Reference.DELTA, Reference.VELOCITY, Reference.TORQUE):
        dim = ActionDim(name="o", reference=reference, low=-1, high=1, max_step=1)
        mixed = blend_chunks(at(0.0, 0.0), at(0.1, 0.5), executed=0, overlap=1, space=space(dim))
        assert [0.25] == mixed.values.ravel().tolist()
