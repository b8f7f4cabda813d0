"""Tests of `vlmcore.safety.remedies`."""

from __future__ import annotations

import math

import attrs
import numpy as np
import pytest

from safety_cases import GRIPPER, JOINT, SLIDE, WHEEL, chunk, joint, refused, space, vetted
from vlmcore.contracts.embodiment import ActionDim, Reference
from vlmcore.safety import NonFinite, Remedy, SafetyGate
from vlmcore.safety._rules import Rules
from vlmcore.safety.remedies import can_return, can_stay, clamp, hold

NAN = math.nan
GEAR = ActionDim(name="g", low=0, high=4, levels=(0.0, 1.0, 2.0, 4.0), max_step=1.0)
PULSE = ActionDim(
    name="p", reference=Reference.DELTA, low=-2, high=2, levels=(-2.0, -1.0, 0.0, 2.0), max_step=1
)


def clamped(values: list[float], dim: ActionDim, start: float | None) -> list[float]:
    """Clamp one dimension."""
    column = np.array(values)[:, np.newaxis]
    reference = None if start is None else np.array([start])
    with np.errstate(all="ignore"):  # as the gate does
        out = clamp(column, Rules.of(space(dim)), reference, np.ones(1, bool))
    return out.ravel().tolist()


def held(dim: ActionDim, start: float) -> list[float]:
    """Hold one dimension for two steps."""
    return hold(Rules.of(space(dim)), np.array([start]), 2).ravel().tolist()


def test_each_step_follows_the_one_that_was_made() -> None:
    """
    A jump becomes a ramp.
    """
    assert [0.25, 0.5, 0.75, 0.6] == clamped([0.9, 0.9, 0.9, 0.6], joint(0.25), 0.0)


def test_a_target_at_the_very_end_of_its_step_stays_as_it_is() -> None:
    """
    To the sign of zero, from either side.
    """
    for start in (0.25, -0.25):
        (at_zero,) = clamped([-0.0], joint(0.25), start)
        assert -1.0 == math.copysign(1.0, at_zero)


def test_what_is_not_asked_for_is_not_touched() -> None:
    """
    Dimensions are independent.
    """
    rules = Rules.of(space(joint(name="x"), joint(name="y")))
    values = np.full((2, 2), 5.0)
    out = clamp(values, rules, np.zeros(2), np.array([False, True]))
    assert [[5.0, 0.1], [5.0, 0.2]] == out.tolist()
    assert 5.0 == values.min()


def test_nan_in_one_target_does_not_hold_the_others() -> None:
    """
    Only where it is.
    """
    rules = Rules.of(space(joint(name="x"), joint(name="y")))
    values = np.array([[NAN, 0.1], [0.1, math.inf], [0.2, 0.2]])
    out = clamp(values, rules, np.zeros(2), np.ones(2, bool))
    assert [[0.0, 0.1], [0.1, 0.1], [0.2, 0.2]] == out.tolist()


def test_a_change_that_is_lost_is_zero() -> None:
    """
    And what follows speeds up from zero.
    """
    assert [0.02, 0.0, 0.02, 0.04] == clamped([0.05, NAN, 0.05, 0.05], SLIDE, 0.0)
    assert [0.02] == clamped([0.05], SLIDE, None)


def test_a_change_may_turn_round_at_once_but_not_speed_up() -> None:
    """
    From 0.05 to -0.02 at the most.
    """
    assert [-0.02, -0.04, 0.0] == clamped([-0.05, -0.05, 0.0], SLIDE, 0.05)


@pytest.mark.parametrize(
    ("values", "start", "expected"),
    [
        ([2.75, -2.75], 2.5, [2.75, -2.75]),  # over the seam, within the step
        ([-2.0, -2.0], 2.75, [-2.75, -2.25]),  # the short way, over the seam
        ([0.0], 2.75, [2.25]),
        ([2.0, 2.0], -2.75, [2.75, 2.25]),
        ([3.0, -3.0], 2.75, [3.0, -3.0]),  # one angle, and each way to write it is in bounds
        ([3.25], 2.75, [-2.75]),  # the same angle, written in bounds
        ([2.75 + 60.0], 2.5, [2.75]),
        ([NAN, math.inf, 2.75], 2.5, [2.5, 2.5, 2.75]),
        ([-2.5], 3.25, [-2.5]),  # the last command may be written otherwise, too
    ],
)
def test_an_angle_goes_the_short_way_and_stays_in_bounds(values, start, expected) -> None:
    """
    One turn is 6, and a step is 0.5.
    """
    assert expected == clamped(values, WHEEL, start)


@pytest.mark.parametrize("turns", [1, -7, 10**6, 10**12, -(10**15)])
def test_an_angle_that_is_many_turns_off_is_read_at_its_angle(turns: int) -> None:
    """
    A last command of 1e13 was read at the wrong angle: the first step was longer than allowed.
    """
    for turn in (6.0, 2 * math.pi, 360.0):
        wheel = ActionDim(name="a", low=-turn / 2, high=turn / 2, period=turn, max_step=0.5)
        start = turns * turn + 0.125
        at = math.remainder(start, turn)  # exact
        (first,) = clamped([at + 2], wheel, start)
        assert 0.5 == pytest.approx(abs(math.remainder(first - at, turn)), rel=1e-12)
        held_at, _ = held(wheel, start)
        assert 0 == pytest.approx(math.remainder(held_at - at, turn), abs=1e-12)
        came = SafetyGate(space=space(wheel), remedy=Remedy.CLAMP).vet(
            chunk([[at + 2]], "a"), last_command=[start]
        )
        assert [first] == came.values.ravel().tolist()


def test_an_angle_may_have_any_range_of_one_turn() -> None:
    """
    It is written in that range, and not past its end where a turn is rounded.
    """
    aside = ActionDim(name="a", low=-1, high=5, period=6, max_step=1)
    assert [-0.5, 4.75] == clamped([5.5, -1.25], aside, -0.75)
    low, high = -2.6, 3.2
    assert low + (high - low) > high
    odd = ActionDim(name="a", low=low, high=high, period=high - low, max_step=0.5)
    assert [high] == clamped([math.nextafter(low, -9)], odd, 3.0)
    positive = ActionDim(name="a", low=0, high=6, period=6, max_step=0.5)
    (zero,) = clamped([-0.0], positive, 0.25)
    assert -1.0 == math.copysign(1.0, zero)  # in bounds it stays as it came


def test_an_angle_that_is_near_enough_stays_as_it_came() -> None:
    """
    To the last bit, which what is left of a step is too coarse to tell.
    """
    for value in (math.nextafter(0.6, 1), 0.6, 0.3, math.nextafter(0.3, 1)):
        assert [value] == clamped([value], WHEEL, 0.1)
        assert [-value] == clamped([-value], WHEEL, -0.1)


@pytest.mark.parametrize(
    ("values", "start", "expected"),
    [
        ([0.6, 0.61, 0.4, 0.39], 0, [0, 1, 1, 0]),  # left beyond 60 % of the way
        ([-9, 9, -9], 0, [0, 1, 0]),
        ([NAN, math.inf], 1, [1, 1]),
        ([0.5], 0.9, [1]),  # a measured start is the nearest level
    ],
)
def test_a_gripper_switches_with_hysteresis(values, start, expected) -> None:
    """
    Noise between two levels does not make it chatter.
    """
    assert expected == clamped(values, GRIPPER, start)


@pytest.mark.parametrize(
    ("values", "start", "expected"),
    [
        ([2, 2], 0, [1, 2]),  # over the level between
        ([4, 4], 1, [2, 2]),  # a gap that is too wide is not jumped
        ([0], 4, [4]),
        ([0.5, 1.65, 1.45, 1.35], 1, [1, 2, 2, 1]),
        ([0.3], 2, [1]),
    ],
)
def test_levels_with_a_step_bound_are_approached(values, start, expected) -> None:
    """
    As near as each step may go, and never between them.
    """
    assert expected == clamped(values, GEAR, start)


def test_a_discrete_change_stops_at_once_and_speeds_up_by_its_steps() -> None:
    """
    0 is always reached.
    """
    assert [0.0, -1.0, -2.0, 0.0, 0.0] == clamped([0, -2, -2, NAN, 2], PULSE, 2.0)
    assert [-1.0] == clamped([-2], PULSE, None)
    nudge = attrs.evolve(PULSE, levels=(-1.0, 0.0, 1.0), max_step=None)
    assert [0.0, -1.0, 0.0] == clamped([NAN, -1.0, NAN], nudge, 1.0)
    assert [-1.0] == clamped([-2], PULSE, 2.0)  # between what it was and zero there is no step


def test_holding_stays_or_stops() -> None:
    """
    A target stays, a change is zero, an angle is written in bounds, a level is the nearest.
    """
    assert [0.3, 0.3] == held(JOINT, 0.3)
    assert [0.0, 0.0] == held(SLIDE, 0.04)
    assert [-2.75, -2.75] == held(WHEEL, 3.25)
    assert [1.0, 1.0] == held(GRIPPER, 0.9)
    assert [0.0, 0.0] == held(PULSE, -2)
    assert [[0.0]] == hold(Rules.of(space(SLIDE)), None, 1).tolist()


@pytest.mark.parametrize(
    ("dim", "at", "returns", "stays"),
    [
        (JOINT, 1.0, True, True),
        (JOINT, -1.0, True, True),
        (JOINT, 1.1, True, False),
        (JOINT, -1.05, True, False),
        (JOINT, 1.2, False, False),
        (JOINT, -1.2, False, False),
        (joint(0.25), 1.25, True, False),  # exactly one step
        (joint(0.25), -1.25, True, False),
        (SLIDE, 9.0, True, True),
        (WHEEL, 9.0, True, True),
        (GRIPPER, 1.5, True, False),
    ],
)
def test_from_where_one_step_leads_into_bounds(
    dim: ActionDim, at: float, *, returns: bool, stays: bool
) -> None:
    """
    And where the robot may be held.
    """
    rules = Rules.of(space(dim))
    assert (returns, stays) == (can_return(np.array([at]), rules), can_stay(np.array([at]), rules))


def test_levels_below_zero_are_approached_as_those_above_it() -> None:
    """
    A target is no change: to 0 is as far as to anywhere.
    """
    gear = ActionDim(name="g", low=-4, high=2, levels=(-4.0, -2.0, 0.0, 2.0), max_step=2.0)
    assert [-2.0, 0.0, 2.0] == clamped([2, 2, 2], gear, -4.0)
    assert [0.0, -2.0, -4.0] == clamped([-4, -4, -4], gear, 2.0)


@pytest.mark.parametrize("side", [1, -1])
def test_a_level_is_reached_to_half_of_what_the_audit_forgives(side: int) -> None:
    """
    The audit rounds otherwise, and agrees at the very edge.
    """
    edge = side * (0.5 + 2.0**-22)
    past = math.nextafter(edge, side)
    for level, reached in ((edge, edge), (past, 0.0)):
        levels = sorted((0.0, level))
        dim = ActionDim(name="n", low=-1, high=1, levels=levels, max_step=0.5)
        assert [reached] == clamped([float(side)], dim, 0.0)


def test_a_level_that_is_exactly_one_step_away_is_reached() -> None:
    """
    0.7 + 0.1 is below 0.8 in floats, and the audit allows it: so does the remedy.
    """
    notches = ActionDim(name="n", low=0, high=1, levels=(0.6, 0.7, 0.8, 0.9), max_step=0.1)
    assert [0.8, 0.9] == clamped([0.9, 0.9], notches, 0.7)


@pytest.mark.parametrize(
    ("start", "values", "expected"),
    [
        (0.3, [1, 1], [0.5, 1.0]),  # 0.2 away, though its nearest level, 0.5, could not be left yet
        (0.2, [1, 1], [0.5, 1.0]),  # the nearest level is 0, and 0.5 is 0.3 away
        (0.8, [0, 0], [0.5, 0.0]),
        (0.3, [NAN, 1], [0.5, 1.0]),
        (-0.4, [1, 1], [0.0, 0.5]),
    ],
)
def test_a_gripper_measured_between_its_levels_reaches_what_is_a_step_away(
    start: float, values: list[float], expected: list[float]
) -> None:
    """
    It was refused: the reach was that of the nearest level, and not of where the gripper is.
    """
    dim = ActionDim(name="x", low=-1, high=1, levels=(0.0, 0.5, 1.0), max_step=0.5)
    rows = [[value] for value in values]
    fill = NonFinite.HOLD
    assert expected == vetted(rows, last_command=[start], dims=(dim,), non_finite=fill)


def test_a_gripper_that_is_a_step_from_no_level_is_refused() -> None:
    """
    There is nothing that could be sent.
    """
    dim = ActionDim(name="x", low=0, high=1, levels=(0.0, 0.5, 0.6), max_step=0.2)
    rows = [[1.0]]
    for remedy in (Remedy.CLAMP, Remedy.HOLD):
        assert (
            "remedy_failed" == refused(rows, last_command=[0.25], remedy=remedy, dims=(dim,)).reason
        )
    assert [0.5] == vetted(rows, last_command=[0.35], dims=(dim,))


PI32 = float(np.float32(math.pi))
AT_THE_STOP = (
    ActionDim(name="x", low=-1.0, high=math.pi, max_step=0.1),
    ActionDim(name="x", low=0.0, high=math.pi, levels=(0.0, math.pi)),
)


@pytest.mark.parametrize("dim", AT_THE_STOP)
@pytest.mark.parametrize("remedy", Remedy)
def test_a_robot_at_its_limit_may_say_so_in_float32(remedy: Remedy, dim: ActionDim) -> None:
    """
    Its state came as float32, which is above pi: BLOCK and HOLD refused, CLAMP went on.
    """
    assert math.pi < PI32
    last = np.array([PI32], np.float32)
    calm = SafetyGate(space=space(dim), remedy=remedy).vet(chunk([[math.pi]]), last_command=last)
    assert (0, 0) == (calm.report.total, sum(calm.report.counts.values()))
    assert [math.pi] == calm.values.ravel().tolist()
    if remedy in (Remedy.CLAMP, Remedy.HOLD):
        lost = [[NAN], [NAN]]
        known = {"last_command": last, "dims": (dim,), "non_finite": NonFinite.HOLD}
        assert [math.pi] * 2 == vetted(lost, remedy=remedy, **known)


def test_a_last_command_is_forgiven_what_a_step_is_and_no_more() -> None:
    """
    The slack that exists, at both bounds.
    """
    dim = joint(0.5)
    slack = 4 * 2.0**-23
    for bound in (-1.0, 1.0):
        beside = bound * (1 + slack)
        further = math.nextafter(beside, 9 * bound)
        gate = SafetyGate(space=space(dim), remedy=Remedy.HOLD)
        assert 0 == sum(gate.check(chunk([[bound]]), last_command=[beside]).counts.values())
        assert [bound] == vetted([[NAN]], last_command=[beside], remedy=Remedy.HOLD, dims=(dim,))
        for remedy in (Remedy.CLAMP, Remedy.HOLD):
            known = {"last_command": [further], "dims": (dim,), "non_finite": NonFinite.HOLD}
            error = refused([[NAN]], remedy=remedy, **known)
            assert "reference_out_of_bounds" == error.reason


def test_a_bound_of_minus_zero_gives_the_same_bits_each_time() -> None:
    """
    A rate with low=-0.0 and a last command out of bounds: vetting twice changed the sign of zero.
    """
    for low, high in ((-0.0, 1.0), (-1.0, -0.0)):
        rate = ActionDim(name="x", reference=Reference.VELOCITY, low=low, high=high, max_step=1.0)
        for values in ([[0.0], [NAN]], [[-0.0], [NAN], [5.0], [-5.0]]):
            gate = SafetyGate(space=space(rate), remedy=Remedy.CLAMP, non_finite=NonFinite.HOLD)
            last = [2 * (low + high)]
            once = gate.vet(chunk(values), last_command=last)
            twice = gate.vet(once.as_chunk(), last_command=last)
            assert once.values.tobytes() == twice.values.tobytes()
