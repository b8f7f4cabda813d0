"""Tests of `vlmcore.rollout.holding`."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout_cases import spaces
from safety_cases import GRIPPER, JOINT, SLIDE, WHEEL, space
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.embodiment import ActionDim, ActionSpace
from vlmcore.errors import ContractError, UnsafeActionError
from vlmcore.rollout import Starvation, hold_still
from vlmcore.safety import Remedy, SafetyGate


def held(*dims: ActionDim, last_command: Any) -> list[float]:
    gate = SafetyGate(space=space(*dims))
    return hold_still(gate, last_command=last_command, now_s=3.0).values[0].tolist()


def test_standing_still_is_what_each_dimension_means_by_it() -> None:
    """
    Hold repeats no last change; a gripper keeps its level, an angle its place.
    """
    assert [0.5, 0.0, 2.5, 1.0] == held(
        JOINT, SLIDE, WHEEL, GRIPPER, last_command=[0.5, 0.04, 2.5, 1.0]
    )


def test_standing_still_passes_the_gate_and_is_as_young_as_its_decision() -> None:
    """
    It is made on no observation.
    """
    vetted = hold_still(SafetyGate(space=space(JOINT)), last_command=[0.5], now_s=3.0)
    assert (3.0, "hold", None) == (vetted.observed_at_s, vetted.source, vetted.report.findings)


def test_nobody_can_hold_where_nobody_knows_where_the_robot_is() -> None:
    """
    Nothing is invented; what is driven by changes alone can be stopped all the same.
    """
    with pytest.raises(UnsafeActionError, match=r"^first_step_unchecked"):
        held(JOINT, last_command=None)
    assert [0.0] == held(SLIDE, last_command=None)
    with pytest.raises(UnsafeActionError):
        held(JOINT, last_command=[1.5])  # out of its bounds
    with pytest.raises(ContractError, match=r"^gate: got ActionSpace"):
        hold_still(space(JOINT), last_command=[0.0], now_s=0.0)  # type: ignore[arg-type]


@given(st.data(), spaces(), st.sampled_from(Remedy))
def test_a_robot_that_is_within_its_limits_can_always_be_held(
    data: st.DataObject, dims: ActionSpace, remedy: Remedy
) -> None:
    """
    Whatever kinds of dimensions it has: what a gate let pass can be followed by standing still.
    """
    at = [data.draw(st.floats(dim.low, dim.high), label=dim.name) for dim in dims.dims]
    gate = SafetyGate(space=dims, remedy=Remedy.CLAMP)
    first = ActionChunk(values=[at], names=dims.names, source="drawn", observed_at_s=0.0)
    try:
        sent = gate.vet(first, last_command=at).values[-1]
    except (UnsafeActionError, ContractError):
        return  # positions that nobody knows, and numbers that are no rotation
    held = hold_still(SafetyGate(space=dims, remedy=remedy), last_command=sent, now_s=0.0)
    assert held.report.findings is None


def test_zero_stands_still_for_changes_and_rates_only() -> None:
    """
    For a target it is a place to go to.
    """
    Starvation.ZERO.require_fits(space(SLIDE))
    for each in (Starvation.HOLD, Starvation.STOP):
        each.require_fits(space(JOINT, SLIDE))
    with pytest.raises(ContractError, match=r"^starvation: got .* with the targets x, gripper, "):
        Starvation.ZERO.require_fits(space(JOINT, SLIDE, GRIPPER))
