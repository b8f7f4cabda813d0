"""Tests of the motion that changes and rates add up to, in the audit, the gate and its remedies."""

from __future__ import annotations

import math
import pickle
from typing import Any

import attrs
import numpy as np
import pytest

from safety_cases import JOINT, SLIDE, chunk, space
from vlmcore.contracts.embodiment import ActionDim, Reference
from vlmcore.errors import ContractError, UnsafeActionError
from vlmcore.safety import (
    NonFinite,
    RefusalReason,
    Remedy,
    SafetyGate,
    SafetyReport,
    ViolationKind,
    audit,
)
from vlmcore.safety._float32 import round_sums
from vlmcore.safety._positions import Positions, walk_within

NAN = math.nan
MOVED = attrs.evolve(SLIDE, max_step=0.1, position_low=-0.5, position_high=0.5)
DRIVEN = attrs.evolve(MOVED, name="v", reference=Reference.VELOCITY, low=-2, high=2, max_step=4)


def found(values: list[float], *, at: float | None, dim: ActionDim = MOVED) -> list[tuple]:
    """Audit one dimension, and list what breaks a bound of positions, and where it leads."""
    position = None if at is None else {dim.name: at}
    column = np.array(values)[:, np.newaxis]
    findings = audit(column, space(dim), last_command=[0.0], position=position)
    return [
        (each.kind.value, each.step, each.value, each.limit)
        for each in findings.violations()
        if "position" in each.kind.value
    ]


def vetted(
    values: list[float],
    *,
    at: float | None,
    dim: ActionDim = MOVED,
    remedy: Remedy = Remedy.CLAMP,
) -> list[float]:
    """Vet one dimension, fill where a value is lost, and list what left."""
    gate = SafetyGate(space=space(dim), remedy=remedy, non_finite=NonFinite.HOLD)
    column = np.array(values)[:, np.newaxis]
    position = None if at is None else {dim.name: at}
    came = gate.vet(chunk(column, dim.name), last_command=[0.0], position=position)
    return came.values.ravel().tolist()


def refused(values: list[float], *, at: float | None, remedy: Remedy) -> SafetyReport:
    """Vet what is refused, and take the report."""
    with pytest.raises(UnsafeActionError) as error:
        vetted(values, at=at, remedy=remedy)
    return error.value.report


def test_cumulative_displacement_16_x_0_05_is_0_8_and_is_not_unchecked() -> None:
    """
    Cumulative displacement (16 x 0.05 = 0.8) is unchecked: it is not, where bounds are declared.
    """
    steps = [0.05] * 16
    assert ("position", 10, pytest.approx(0.55), 0.5) == found(steps, at=0.0)[0]
    assert 6 == len(found(steps, at=0.0))
    assert ViolationKind.POSITION in refused(steps, at=0.0, remedy=Remedy.BLOCK).findings.kinds

    came = vetted(steps, at=0.0)

    assert [0.05] * 10 == pytest.approx(came[:10], abs=1e-15)
    assert [0.0] * 6 == pytest.approx(came[10:], abs=1e-15)
    assert 0.5 == pytest.approx(math.fsum(came))


def test_a_violation_says_where_the_change_leads() -> None:
    """
    And which bound is in the way, on either side.
    """
    gate = SafetyGate(space=space(MOVED))
    report = gate.check(chunk([[0.04]], "dx"), last_command=[0.0], position={"dx": 0.48})
    assert "step 0, 'dx': 0.52 leads out of the positions that are allowed (limit 0.5)" == str(
        report.violations[0]
    )
    assert [("position", 0, pytest.approx(-0.52), -0.5)] == found([-0.04], at=-0.48)
    assert [[True]] == report.marks().tolist()
    assert (1, RefusalReason.VIOLATIONS) == (report.total, report.reason)


def test_standing_still_is_allowed_wherever_the_robot_is() -> None:
    """
    Also outside; and there the way in is allowed, the way further out is not, however short.
    """
    for at in (-9.0, -0.5, 0.0, 0.5, 0.7, 9.0):
        assert [] == found([0.0, -0.0], at=at)
    assert [] == found([-0.05, 0.0, -0.05], at=0.7)
    assert [] == found([0.05], at=-0.7)
    assert [("position", 0, 0.7, 0.5)] == found([5e-324], at=0.7)
    assert [("position", 0, -0.7, -0.5)] == found([-5e-324], at=-0.7)


def test_from_outside_the_way_in_passes_as_it_came() -> None:
    """
    It is not further out, though it is still outside.
    """
    for side in (1, -1):
        assert [-0.05 * side] == vetted([-0.05 * side], at=0.7 * side, remedy=Remedy.BLOCK)


def test_what_is_found_of_positions_is_found_where_it_is() -> None:
    """
    One row for what nobody knows, one a step for what leads out; and where there is no bound of
    positions there is no place that is reached.
    """
    both = space(JOINT, MOVED)
    values = [[0.0, 0.04], [0.0, 0.04]]
    (unknown,) = audit(values, both, last_command=[0, 0]).masks.values()
    assert (np.bool_, [[False, True]]) == (unknown.dtype, unknown.tolist())
    findings = audit(values, both, last_command=[0, 0], position={"dx": 0.45})
    (out,) = findings.masks.values()
    assert (np.bool_, [[False, False], [False, True]]) == (out.dtype, out.tolist())
    np.testing.assert_allclose([[NAN, 0.49], [NAN, 0.53]], findings.reached)


def test_from_outside_the_way_in_does_not_lead_out_on_the_other_side() -> None:
    """
    A narrow range can be jumped over.
    """
    narrow = attrs.evolve(MOVED, position_low=0.0, position_high=0.01)
    assert [("position", 0, pytest.approx(-0.02), 0.0)] == found([-0.05], at=0.03, dim=narrow)
    assert [pytest.approx(-0.03)] == vetted([-0.05], at=0.03, dim=narrow)


def test_a_rate_leads_as_far_as_a_step_takes_time() -> None:
    """
    2 m/s at 20 Hz is 0.1 m a step.
    """
    assert [] == found([2.0] * 5, at=0.0, dim=DRIVEN)
    assert [("position", 5, pytest.approx(0.6), 0.5)] == found([2.0] * 6, at=0.0, dim=DRIVEN)
    assert [2.0] * 4 + [1.0, 0.0] == pytest.approx(vetted([2.0] * 6, at=0.05, dim=DRIVEN))


def test_what_is_lost_moves_nothing() -> None:
    """
    NaN is zero, in the audit and in what leaves.
    """
    assert [("position", 2, pytest.approx(0.51), 0.5)] == found([0.04, NAN, 0.04], at=0.43)
    assert [0.04, 0.0, 0.03] == pytest.approx(vetted([0.04, NAN, 0.04], at=0.43))
    assert [0.0] == vetted([NAN], at=None)


def test_nobody_knows_where_the_robot_is() -> None:
    """
    Then nothing that moves is safe; what stands still is, and so is holding.
    """
    assert [("position_unknown", 0, 0.01, None)] == found([0.01, 0.01], at=None)
    assert [] == found([0.0, 0.0], at=None)
    for remedy in (Remedy.BLOCK, Remedy.CLAMP, Remedy.REPORT):
        report = refused([0.01], at=None, remedy=remedy)
        assert (RefusalReason.POSITION_UNKNOWN, 0) == (report.reason, report.total)
        assert [[False]] == report.marks().tolist()
        assert "without a measured position" in str(report)
    assert [0.0, 0.0] == vetted([0.01, 0.05], at=None, remedy=Remedy.HOLD)
    assert [0.0, 0.0] == vetted([0.0, 0.0], at=None, remedy=Remedy.BLOCK)
    two = space(MOVED, attrs.evolve(MOVED, name="dy"))
    (only,) = audit([[0.0, 0.01]], two, last_command=[0, 0]).violations()
    assert "dy" == only.name


def test_a_target_that_nobody_knows_the_start_of_is_named_first() -> None:
    """
    Of two things that nobody knows.
    """
    gate = SafetyGate(space=space(JOINT, MOVED), remedy=Remedy.CLAMP)
    with pytest.raises(UnsafeActionError) as error:
        gate.vet(chunk([[0.0, 0.01]], "x", "dx"), last_command=None)
    assert "first_step_unchecked" == error.value.reason
    assert RefusalReason.FIRST_STEP_UNCHECKED is (
        gate.check(chunk([[0.0, 0.01]], "x", "dx"), last_command=None).reason
    )


def test_speeding_up_is_bounded_on_the_way_in_too() -> None:
    """
    Position and step bound both hold; at the bound of positions it stops at once.
    """
    slow = attrs.evolve(MOVED, max_step=0.02)
    assert [0.02, 0.04, 0.05, 0.03, 0.0] == pytest.approx(vetted([0.05] * 5, at=0.36, dim=slow))
    assert [-0.02, -0.04] == pytest.approx(vetted([-0.05, -0.05], at=0.7, dim=slow))


@pytest.mark.parametrize(
    ("came", "at", "rate_hz", "made"),
    [
        (-0.05, 0.7, 1.0, -0.05),  # the way in
        (-0.05, 0.7, 20.0, -0.05),
        (math.nextafter(0.25, 1), 0.25, 1.0, math.nextafter(0.25, 1)),  # to the bound, as it rounds
        (99.0, 0.0, 20.0, 10.0),
        (99.0, 0.0, 0.5, 0.25),
        (0.3, 0.0, 0.5, 0.25),  # 0.6 m in two seconds
        (0.0, 9.0, 1.0, 0.0),
        (0.05, 0.7, 1.0, 0.0),  # the way further out
    ],
)
@pytest.mark.parametrize("side", [1, -1])
def test_clamping_moves_nothing_that_need_not_move(came, at, rate_hz, made, side: int) -> None:
    """
    Nor further than to the bound: to the last bit.
    """
    where = {"at": side * at, "low": -0.5, "high": 0.5, "per_unit": rate_hz}
    assert [side * made] == walk_within([side * came], 0.0, 99.0, **where)


def test_a_change_that_is_bound_in_where_it_leads_may_turn_round_at_once() -> None:
    """
    As any other: between what it was and zero there is no step.
    """
    slow = attrs.evolve(MOVED, max_step=0.02)
    for side in (1, -1):
        came = vetted([side * each for each in (0.02, 0.04, -0.05, -0.05)], at=0.0, dim=slow)
        assert [side * each for each in (0.02, 0.04, -0.02, -0.04)] == pytest.approx(came)


@pytest.mark.parametrize(
    ("rate_hz", "at", "high"), [(1.0, -0.95, 0.38), (20.0, 0.01, 0.89), (30.0, -0.93, -0.34)]
)
@pytest.mark.parametrize("side", [1, -1])
def test_clamping_ends_at_the_bound_and_not_past_it(
    rate_hz: float, at: float, high: float, side: int
) -> None:
    """
    Where the sum of where it is and what is left is rounded to more than the bound.
    """
    left = (high - at) * rate_hz
    assert at + left / rate_hz > high
    low, top = (-2.0, high) if side > 0 else (-high, 2.0)
    first, second = walk_within(
        [side * 99.0] * 2, 0.0, 99.0, at=side * at, low=low, high=top, per_unit=rate_hz
    )

    assert side * left == pytest.approx(first, rel=1e-15)
    assert side * (side * at + first / rate_hz) <= high
    assert abs(second) <= 1e-14


def test_what_is_forgiven_is_not_forgiven_again() -> None:
    """
    Nothing creeps out by the slack of each step.
    """
    slack = float(Positions.of(space(MOVED)).slack[0])
    assert 4 * 2**-23 * 0.5 == slack
    assert [] == found([slack], at=0.5)
    assert [] == found([-slack], at=-0.5)
    assert [1] == [step for _, step, *_ in found([0.9 * slack, 0.9 * slack], at=0.5)]
    assert [0] == [step for _, step, *_ in found([1.1 * slack], at=0.5)]


@pytest.mark.parametrize(
    ("low", "high", "slack"),
    [
        (-1.0, 0.5, 4 * 2**-23),
        (0.0, 1e-5, 4 * 2**-23 * 0.05),  # the changes are larger than where they may lead ...
        (0.0, 1e-8, 1e-10),  # ... and here float32 is too coarse: a hundredth of the range
        (1e6, 1e6 + 1e-3, 1e-5),
        (1e6, 1e6 + 2.0**-21, 2.0**-21 / 100),  # and float64 nearly so
        (-1.5e308, 1.5e308, 4 * 2**-23 * 1.5e308),
    ],
)
def test_a_position_is_forgiven_what_float32_cannot_help(low, high, slack) -> None:
    """
    And no more than a hundredth of the range.
    """
    positions = Positions.of(space(attrs.evolve(MOVED, position_low=low, position_high=high)))
    assert slack == pytest.approx(positions.slack[0], rel=1e-6, abs=0)


def test_a_rate_is_forgiven_by_how_far_a_step_of_it_leads() -> None:
    """
    2 m/s at 20 Hz is 0.1 m, which is more than the range.
    """
    narrow = attrs.evolve(DRIVEN, position_low=0.0, position_high=0.05)
    assert 4 * 2**-23 * 0.1 == pytest.approx(Positions.of(space(narrow)).slack[0])


def test_changes_that_lead_to_the_bound_exactly_pass_as_float32_too() -> None:
    """
    Ten steps of 0.05 as a policy computes them are 0.5.
    """
    dim = attrs.evolve(MOVED, high=0.06)
    for dtype in (np.float32, np.float64):
        steps = np.full(10, 0.05, dtype).astype(np.float64).tolist()
        assert steps == vetted(steps, at=0.0, dim=dim, remedy=Remedy.BLOCK)


def test_the_roundings_of_4096_changes_do_not_add_up() -> None:
    """
    Each way out is rounded up and each way back is rounded off; all in all it ends where it should.
    """
    last_place = 2.0**-24  # of a float32 from 0.5 to 1
    there, back = 0.5 + 0.6 * last_place, 0.5 + 0.4 * last_place
    end = 2048 * 0.2 * last_place
    dim = attrs.evolve(MOVED, low=-1, high=1, max_step=2, position_low=-1, position_high=0.5 + end)
    values = np.tile([[there], [-back]], (2048, 1))
    came = SafetyGate(space=space(dim)).vet(
        chunk(values, "dx"), last_command=[0.0], position={"dx": 0.0}
    )
    assert 1e-4 == pytest.approx(values.astype(np.float32).sum(dtype=np.float64) - end, rel=0.1)

    sent = came.as_float32().astype(np.float64)

    assert end == pytest.approx(sent.sum(), abs=2.0**-23)
    assert abs(sent - values).max() <= 2.0**-23
    position = {"dx": 0.0}
    assert not audit(sent, space(dim), last_command=[0.0], position=position).kinds


def test_what_was_zero_is_zero_as_float32_whatever_is_owed() -> None:
    """
    Nothing creeps; and no change turns round.
    """
    third = 1 / 3
    values = np.array([[third], [0.0], [-1e-30], [third], [0.0]])
    rounded = round_sums(values, np.array([-1.0]), np.array([1.0]))
    assert [0.0, 0.0] == rounded[[1, 4], 0].tolist()
    assert -1e-30 == pytest.approx(rounded[2, 0], rel=1e-6, abs=0)
    exact = np.float32([[0.1], [0.0], [0.3], [-0.1]])
    same = round_sums(exact.astype(np.float64), np.array([-1.0]), np.array([1.0]))
    assert exact.tobytes() == same.tobytes()


def test_what_is_owed_is_made_good_by_a_last_place_a_step() -> None:
    """
    A third is rounded up by 86 of the last places of a small change: 86 of these are smaller.
    """
    small = 2.0**-10
    values = np.array([[1 / 3]] + [[small]] * 100)
    rounded = round_sums(values, np.array([-1.0]), np.array([1.0]))[:, 0]
    assert {small - 2.0**-34, small - 2.0**-33} >= set(rounded[1:80].tolist())
    assert values.sum() == pytest.approx(rounded.sum(dtype=np.float64), rel=0, abs=2.0**-34)


def test_where_it_was_vetted_from_is_carried_along() -> None:
    """
    By name, so that it can be vetted again; nobody can change it.
    """
    gate = SafetyGate(space=space(SLIDE, attrs.evolve(MOVED, name="dy")))
    came = gate.vet(
        chunk([[0.0, 0.01]], "dx", "dy"), last_command=[0, 0], position={"dy": np.float32(0.25)}
    )
    assert {"dy": 0.25} == came.position
    again = gate.vet(came.as_chunk(), last_command=came.last_command, position=came.position)
    assert came.values.tobytes() == again.values.tobytes()
    with pytest.raises(TypeError):
        came.position["dy"] = 0.0  # type: ignore[index]


@pytest.mark.parametrize(
    ("position", "message"),
    [
        ([0.0], "position: got list, expected numbers by name, or None"),
        (0.0, "position: got float, expected numbers by name, or None"),
        (
            {"dy": 0.0},
            "position: got names with missing ['dx'] and unknown ['dy'], expected the dimensions",
        ),
        ({}, "position: got names with missing ['dx'] and unknown []"),
        ({"dx": NAN}, "position['dx']: got nan, expected a finite number"),
        ({"dx": math.inf}, "position['dx']: got inf, expected a finite number"),
        ({"dx": True}, "position['dx']: got True, expected a finite number"),
        ({"dx": "0.1"}, "position['dx']: got '0.1', expected a finite number"),
        ({"dx": None}, "position['dx']: got None, expected a finite number"),
        ({"dx": [0.0]}, "position['dx']: got [0.0], expected a finite number"),
    ],
    ids=repr,
)
def test_a_position_is_finite_numbers_by_name(position: Any, message: str) -> None:
    """
    One error, which lists what is missing and what is too much.
    """
    gate = SafetyGate(space=space(MOVED))
    for look in (gate.vet, gate.check):
        with pytest.raises(ContractError) as error:
            look(chunk([[0.0]], "dx"), last_command=[0.0], position=position)
        assert str(error.value).startswith(message)
    with pytest.raises(ContractError, match=r"^position"):
        audit([[0.0]], space(MOVED), last_command=[0.0], position=position)


def test_wrong_names_of_a_position_are_told_the_right_ones() -> None:
    """
    All of them, and what makes them so.
    """
    two = SafetyGate(space=space(JOINT, MOVED, attrs.evolve(MOVED, name="dy")))
    with pytest.raises(ContractError) as error:
        two.check(chunk([[0.0] * 3], "x", "dx", "dy"), last_command=None, position={"x": 0.0})
    assert (
        "position: got names with missing ['dx', 'dy'] and unknown ['x'], expected the dimensions "
        "that declare position_low and position_high: dx, dy"
    ) == str(error.value)


def test_a_position_that_nothing_asks_for_is_refused() -> None:
    """
    It would be thought to be looked at.
    """
    gate = SafetyGate(space=space(JOINT))
    with pytest.raises(ContractError, match=r"unknown \['x'\].*: there are none$"):
        gate.vet(chunk([[0.0]]), last_command=[0.0], position={"x": 0.0})
    assert [[0.0]] == gate.vet(chunk([[0.0]]), last_command=[0], position={}).values.tolist()


@pytest.mark.parametrize("remedy", [Remedy.BLOCK, Remedy.CLAMP])
def test_nothing_overflows_into_silence(remedy: Remedy) -> None:
    """
    Neither do sums beyond float64, nor ranges.
    """
    huge = attrs.evolve(
        MOVED,
        low=-1e308,
        high=1e308,
        max_step=1.5e308,
        position_low=-1.5e308,
        position_high=1.5e308,
    )
    assert [2] == [step for _, step, *_ in found([1e308, 0.0, 1e308], at=0.4e308, dim=huge)]
    if remedy is Remedy.CLAMP:
        came = vetted([1e308, 1e308, -1e308], at=0.0, dim=huge)
        assert [1e308, 0.5e308, -1e308] == pytest.approx(came)


def test_findings_with_a_position_cross_a_process_boundary() -> None:
    """
    As all refusals do.
    """
    report = refused([0.05] * 16, at=0.0, remedy=Remedy.BLOCK)
    assert report.violations == pickle.loads(pickle.dumps(report)).violations
