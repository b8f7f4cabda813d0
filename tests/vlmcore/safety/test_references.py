"""Tests of what a chunk starts from, by what its numbers refer to: targets, offsets, torques."""

from __future__ import annotations

import math
from typing import Any

import attrs
import numpy as np
import pytest

from safety_cases import GRIPPER, JOINT, OFFSET, SLIDE, TORQUE, chunk, gate, refused, space, vetted
from vlmcore.contracts.embodiment import ActionDim, Reference
from vlmcore.errors import ContractError
from vlmcore.rollout import hold_still
from vlmcore.safety import NonFinite, Remedy, SafetyGate, ViolationKind, audit
from vlmcore.safety.references import read_last_command, read_position
from vlmcore.safety.standing import stand_still

NAN = math.nan
REACH = attrs.evolve(OFFSET, position_low=-1.0, position_high=1.0)


def reached(values: list[float], *, at: float | None, **more: Any) -> list[float]:
    """Vet an offset that is bound in where it leads, and list what left."""
    made = gate(REACH, remedy=more.pop("remedy", Remedy.CLAMP), **more)
    position = None if at is None else {"o": at}
    came = chunk([[value] for value in values], "o")
    return made.vet(came, last_command=None, position=position).values.ravel().tolist()


def led_out(values: list[float], *, at: float) -> list[tuple[int | None, float, float | None]]:
    """Audit such an offset, and list what leads out, where to, and the bound."""
    column = np.array(values)[:, np.newaxis]
    found = audit(column, space(REACH), last_command=None, position={"o": at}).violations()
    return [
        (each.step, each.value, each.limit) for each in found if each.kind is ViolationKind.POSITION
    ]


def test_the_number_of_an_offset_that_was_sent_last_is_not_looked_at() -> None:
    """
    It was counted from where another chunk began.
    """
    mixed = space(JOINT, OFFSET, SLIDE, TORQUE)
    read = read_last_command([0.3, 0.4, 0.01, 5.0], mixed)

    assert [0.3, 0.0, 0.01, 5.0] == read.tolist()
    assert not read.flags.writeable
    assert read_last_command(None, mixed) is None
    with pytest.raises(ContractError, match="got nan for 'o'"):
        read_last_command([0.3, NAN, 0.01, 5.0], mixed)


@pytest.mark.parametrize("last_command", [[0.45], [-99.0], None])
def test_the_first_step_of_offsets_is_held_against_zero(last_command: Any) -> None:
    """
    A chunk that goes on from the last offset of the one before would jump by all of it.
    """
    error = refused([[0.45], [0.45]], last_command=last_command, dims=(OFFSET,))
    assert {ViolationKind.STEP: 1} == {k: n for k, n in error.report.counts.items() if n}
    assert [0.1, 0.2] == pytest.approx(
        vetted([[0.45], [0.45]], last_command=last_command, dims=(OFFSET,))
    )
    calm = vetted([[0.1], [0.0]], last_command=last_command, remedy=Remedy.BLOCK, dims=(OFFSET,))
    assert [0.1, 0.0] == calm


def test_steps_of_offsets_are_differences_of_neighbours_also_towards_zero() -> None:
    """
    Going back to where the chunk began is a way too: zero is not standing still.
    """
    way = [[0.1], [0.2], [0.3], [0.0]]
    error = refused(way, last_command=None, dims=(OFFSET,))
    assert "step 3, 'o': -0.3 too far" in str(error.report.violations[0])
    assert [0.1, 0.2, 0.3, 0.2] == pytest.approx(vetted(way, last_command=None, dims=(OFFSET,)))


def test_holding_an_offset_keeps_the_last_value_and_a_whole_chunk_stays_where_it_began() -> None:
    """
    Zero in the middle of a chunk would be a jump back to its start.
    """
    way = [[0.1], [0.2], [NAN], [0.2]]
    known = {"last_command": [0.4], "dims": (OFFSET,)}
    assert [0.1, 0.2, 0.2, 0.2] == vetted(way, non_finite=NonFinite.HOLD, **known)
    assert [0.0] * 4 == vetted(way, remedy=Remedy.HOLD, **known)
    assert [0.0, 0.1] == vetted([[NAN], [0.1]], non_finite=NonFinite.HOLD, **known)


def test_holding_a_torque_never_repeats_it_blindly() -> None:
    """
    Hold repeats the last torque: the arm keeps pushing. It lets go here.
    """
    known = {"last_command": [6.0], "dims": (TORQUE,)}
    assert [7.0, 0.0, 2.0] == vetted([[7.0], [NAN], [4.0]], non_finite=NonFinite.HOLD, **known)
    assert [0.0, 0.0] == vetted([[9.0], [9.0]], remedy=Remedy.HOLD, **known)


def test_a_torque_may_grow_by_a_step_and_vanish_at_once() -> None:
    """
    Without a last command it grows from zero.
    """
    assert [8.0, 0.0, -2.0] == vetted(
        [[8.0], [0.0], [-2.0]], last_command=[6.0], remedy=Remedy.BLOCK, dims=(TORQUE,)
    )
    assert [2.0, 4.0] == vetted([[9.0], [9.0]], last_command=None, dims=(TORQUE,))
    error = refused([[-2.1]], last_command=[6.0], dims=(TORQUE,))
    assert -2.1 == pytest.approx(error.report.violations[0].value)


def test_a_last_torque_out_of_bounds_comes_back_to_zero_at_once() -> None:
    """
    As with changes, one step always leads back.
    """
    assert [8.0] == vetted([[9.0]], last_command=[30.0], dims=(TORQUE,))
    assert [0.0] == vetted([[9.0]], last_command=[30.0], remedy=Remedy.HOLD, dims=(TORQUE,))


def test_standing_still_is_zero_for_offsets_and_torques() -> None:
    """
    And it passes every gate, whoever knows what.
    """
    mixed = space(JOINT, OFFSET, SLIDE, TORQUE, GRIPPER)
    still = stand_still(mixed, last_command=[0.3, 0.4, 0.01, 5.0, 1.0])
    assert [0.3, 0.0, 0.0, 0.0, 1.0] == still.tolist()
    held = hold_still(SafetyGate(space=space(REACH, TORQUE)), last_command=None, now_s=1.0)
    assert [[0.0, 0.0]] == held.values.tolist()


def test_an_offset_leads_to_where_the_chunk_begins_plus_itself() -> None:
    """
    The integrated path is the reference plus the value; nothing adds up.
    """
    assert [] == led_out([0.1, 0.2, 0.3, 0.4, 0.4, 0.4], at=0.6)
    assert [(3, 1.1, 1.0)] == [
        (step, pytest.approx(value), limit)
        for step, value, limit in led_out([0.1, 0.2, 0.3, 0.4], at=0.7)
    ]
    assert [(2, pytest.approx(-1.2), -1.0)] == led_out([0.0, -0.1, -0.3], at=-0.9)


def test_an_offset_that_is_out_already_goes_no_further() -> None:
    """
    Zero is always allowed, staying is, and the way back is, though not out on the other side.
    """
    assert [] == led_out([0.0, 0.0, -0.1, -0.1], at=1.5)
    assert [(1, pytest.approx(1.5), 1.0)] == led_out([-0.1, 0.0], at=1.5)
    assert [(0, pytest.approx(1.6), 1.0)] == led_out([0.1, 0.0], at=1.5)


@pytest.mark.parametrize(
    ("values", "start", "expected"),
    [
        ([0.5, 0.5, 0.5], 0.75, [0.1, 0.2, 0.25]),
        ([-0.5, -0.5, -0.5], -0.75, [-0.1, -0.2, -0.25]),
        ([0.5, -0.5, 0.5], 1.5, [0.0, -0.1, -0.1]),
        ([-0.5, 0.5, -0.5], -1.5, [0.0, 0.1, 0.1]),
        ([0.1, NAN, 0.5], 0.75, [0.1, 0.1, 0.2]),
        ([NAN, 0.5, 0.5], 1.0, [0.0, 0.0, 0.0]),
    ],
)
def test_clamp_keeps_an_offset_within_its_steps_and_where_it_may_lead(
    values: list[float], start: float, expected: list[float]
) -> None:
    """
    The nearest allowed value, counted from the one that was made before it.
    """
    made = reached(values, at=start, non_finite=NonFinite.HOLD)
    assert expected == pytest.approx(made)


def test_an_offset_from_nobody_knows_where_is_refused_unless_it_is_zero() -> None:
    """
    As with changes.
    """
    for remedy in (Remedy.BLOCK, Remedy.CLAMP):
        error = refused([[0.1]], last_command=[0.0], remedy=remedy, dims=(REACH,))
        assert "position_unknown" == error.reason
    assert [0.0, 0.0] == reached([0.0, 0.0], at=None, remedy=Remedy.BLOCK)
    assert [0.0] == reached([0.4], at=None, remedy=Remedy.HOLD)


def test_an_offset_as_float32_keeps_its_own_rounding() -> None:
    """
    Roundings of offsets do not add up, so none is made good by the next.
    """
    values = [[0.1], [0.2], [0.3]]
    came = gate(REACH).vet(chunk(values, "o"), last_command=None, position={"o": 0.7})
    assert np.float32(values).tobytes() == came.as_float32().tobytes()


def test_a_chunk_of_offsets_alone_needs_no_last_command() -> None:
    """
    That nobody knows it is no finding: it would not be looked at.
    """
    came = gate(OFFSET).vet(chunk([[0.1]], "o"), last_command=None)
    assert (0, False) == (
        came.report.counts[ViolationKind.START_UNKNOWN],
        came.report.previous_action_provided,
    )
    both = refused([[0.1, 0.0]], last_command=None, dims=(OFFSET, JOINT))
    assert ("first_step_unchecked", 1) == (
        both.reason,
        both.report.counts[ViolationKind.START_UNKNOWN],
    )


def test_an_offset_with_levels_switches_from_zero() -> None:
    """
    Its levels are reached as those of a target are.
    """
    notches = ActionDim(
        name="o",
        reference=Reference.CHUNK_RELATIVE,
        low=-1,
        high=1,
        levels=(-1.0, 0.0, 0.5, 1.0),
        max_step=0.5,
    )
    assert [0.5, 1.0, 0.5] == vetted([[1.0], [1.0], [0.0]], last_command=[1.0], dims=(notches,))
    assert [0.0, 0.0] == vetted([[9.0]] * 2, last_command=None, remedy=Remedy.HOLD, dims=(notches,))


def test_positions_are_read_by_name_for_offsets_too() -> None:
    """
    A torque leads nowhere that can be told.
    """
    assert [0.5] == read_position({"o": 0.5}, space(REACH, TORQUE)).tolist()
    with pytest.raises(ContractError, match=r"^position_low: got -1 with Reference.TORQUE"):
        attrs.evolve(TORQUE, position_low=-1.0, position_high=1.0)
