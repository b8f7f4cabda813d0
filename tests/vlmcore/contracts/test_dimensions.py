"""Tests of `vlmcore.contracts.dimensions`: a dimension that is not possible cannot be made."""

from __future__ import annotations

import math
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given

from vlmcore.contracts.dimensions import ActionDim, Reference
from vlmcore.errors import ContractError
from vlmcore.testing.contract_strategies import action_dims

JOINT: dict[str, Any] = {"name": "j", "unit": "rad", "low": -1.0, "high": 2.0, "max_step": 0.1}


def test_which_references_stand_still_at_zero() -> None:
    """
    A target of zero moves the robot; a change, a rate or a torque of zero stops it; an offset of
    zero goes back to where the chunk began.
    """
    stopping = {Reference.DELTA, Reference.VELOCITY, Reference.TORQUE}
    assert stopping == {reference for reference in Reference if reference.is_change}
    assert {Reference.ABSOLUTE} == {reference for reference in Reference if reference.is_target}


def test_numbers_become_plain_floats() -> None:
    """
    Whole numbers and NumPy's are taken; what float32 holds is kept exactly, not rounded anew.
    """
    dim = ActionDim(**JOINT | {"low": np.int64(-1), "high": 2, "max_step": np.float32(0.1)})

    assert (-1.0, 2.0, float(np.float32(0.1))) == (dim.low, dim.high, dim.max_step)
    assert {float} == {type(dim.low), type(dim.high), type(dim.max_step)}


@pytest.mark.parametrize("field", ["low", "high", "max_step", "max_rate", "period"])
@pytest.mark.parametrize(
    "wrong",
    [True, np.True_, "1.5", math.nan, math.inf, 1j, 10**400, 10**5000, 2**60, [1.0], b"1"],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_finite_number_is_refused(field: str, wrong: object) -> None:
    """
    Bool, text, NaN and infinity are no bounds, and are not turned into any.
    """
    fields = {**JOINT, field: wrong}
    if field == "max_rate":
        del fields["max_step"]
    with pytest.raises(ContractError, match=f"^{field}: got "):
        ActionDim(**fields)


@pytest.mark.parametrize("field", ["low", "high"])
def test_none_is_no_bound(field: str) -> None:
    """
    A dimension without bounds cannot be vetted.
    """
    with pytest.raises(ContractError, match=f"^{field}: got None"):
        ActionDim(**JOINT | {field: None})


@pytest.mark.parametrize(("low", "high"), [(1.0, 1.0), (2.0, 1.0), (0.0, -0.0)])
def test_low_is_below_high(low: float, high: float) -> None:
    """
    An empty range leaves nothing to command.
    """
    with pytest.raises(ContractError, match=r"^low: got \[.*\] rad for 'j', expected low below"):
        ActionDim(**JOINT | {"low": low, "high": high})


@pytest.mark.parametrize(("low", "high"), [(-0.0, 1.0), (5e-324, 1.0), (-1e308, 1e308)])
def test_negative_zero_subnormals_and_the_largest_numbers_are_numbers(
    low: float, high: float
) -> None:
    """
    Only what is not finite is refused.
    """
    dim = ActionDim(**JOINT | {"low": low, "high": high})

    assert (low, high) == (dim.low, dim.high)


@pytest.mark.parametrize("reference", [Reference.DELTA, Reference.VELOCITY])
def test_standing_still_must_be_possible(reference: Reference) -> None:
    """
    A change that cannot be zero never lets the robot rest.
    """
    moving = {"name": "slide_x", "unit": "m", "low": 0.01, "high": 0.05, "max_step": 0.02}
    with pytest.raises(ContractError) as caught:
        ActionDim(reference=reference, **moving)  # type: ignore[arg-type]
    assert str(caught.value) == (
        "low: got [0.01, 0.05] m for 'slide_x', expected a range with 0 in it: "
        "standing still must be possible"
    )
    ActionDim(reference=reference, **moving | {"low": 0})  # type: ignore[arg-type]


@pytest.mark.parametrize("field", ["max_step", "max_rate"])
@pytest.mark.parametrize("wrong", [0, -0.1, -0.0])
def test_a_bound_of_steps_is_above_zero(field: str, wrong: float) -> None:
    """
    A dimension that may not move at all is not a dimension.
    """
    with pytest.raises(ContractError, match=f"^{field}: got .* above 0"):
        ActionDim(**{**JOINT, "max_step": None, field: wrong})


def test_steps_are_bounded_in_one_way() -> None:
    """
    Two bounds could differ, and none would be none.
    """
    with pytest.raises(ContractError, match=r"^max_rate: got both .* for 'j', expected one"):
        ActionDim(**JOINT, max_rate=1.0)
    with pytest.raises(ContractError, match=r"^max_step: got neither .* only a dimension with lev"):
        ActionDim(**JOINT | {"max_step": None})


def test_a_gripper_that_is_open_or_closed_may_do_without_a_bound_of_steps() -> None:
    """
    Bounded, it would take seven steps through half-open.
    """
    gripper = ActionDim(name="gripper", low=0, high=1, levels=(0, 1))

    assert gripper.is_discrete
    assert (0.0, 1.0) == gripper.levels
    assert None is gripper.max_step
    assert 0.5 == attrs.evolve(gripper, max_step=0.5).max_step


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        ((0.0,), "expected 2 to 256 numbers"),
        (tuple(range(300)), "expected 2 to 256 numbers"),
        (1.0, "expected 2 to 256 numbers"),
        ((1.0, 0.0), "each above the one before"),
        ((0.0, 0.0), "each above the one before"),
        ((0.0, 1.5), r"expected them in \[0, 1\]"),
        ((-0.5, 1.0), r"expected them in \[0, 1\]"),
        ((0.0, math.nan), "finite"),
        ((False, True), "finite"),
        (("0", "1"), "finite"),
    ],
)
def test_levels_are_ascending_numbers_in_the_range(levels: Any, message: str) -> None:
    """
    Anything else would be a level that cannot be reached, or no level.
    """
    with pytest.raises(ContractError, match=rf"^levels.*: got .*{message}"):
        ActionDim(name="gripper", low=0, high=1, levels=levels)


def test_levels_of_a_change_hold_zero() -> None:
    """
    Standing still must be possible here, too.
    """
    fields: dict[str, Any] = {"name": "x", "reference": Reference.DELTA, "low": -1, "high": 1}
    with pytest.raises(ContractError, match=r"^levels: .* 0 among them: standing still"):
        ActionDim(**fields, levels=(-1, 1))
    ActionDim(**fields, levels=(-1, 0, 1))


@pytest.mark.parametrize(
    ("low", "high", "period"),
    [(-math.pi, math.pi, 2 * math.pi), (0, 360, 360), (0.1, 0.1 + 0.7, 0.7)],
)
def test_a_rotation_without_end_stops_has_a_period(low: float, high: float, period: float) -> None:
    """
    The range is one turn, up to rounding.
    """
    assert period == ActionDim(**JOINT | {"low": low, "high": high}, period=period).period


def test_a_joint_with_end_stops_is_not_periodic() -> None:
    """
    The short way round may lead through the stop.
    """
    with pytest.raises(ContractError, match=r"^period: .* a joint with end stops is not periodic"):
        ActionDim(**JOINT, period=2 * math.pi)


@pytest.mark.parametrize(
    "more",
    [{"reference": Reference.DELTA}, {"reference": Reference.VELOCITY}, {"levels": (0.0, 1.0)}],
)
def test_only_a_target_that_takes_every_angle_comes_round_again(more: dict[str, Any]) -> None:
    """
    A change of 350 degrees is not one of -10.
    """
    turn = JOINT | {"low": -math.pi, "high": math.pi}
    with pytest.raises(ContractError, match=r"^period: got 6\.28319 with "):
        ActionDim(**turn, period=2 * math.pi, **more)


@pytest.mark.parametrize("reference", [Reference.DELTA, Reference.VELOCITY])
def test_changes_and_rates_may_say_where_they_may_lead(reference: Reference) -> None:
    """
    Where what they move may be; a turn is a plain number, and may be more than one.
    """
    moved = ActionDim(**JOINT, reference=reference, position_low=np.int64(-8), position_high=8)
    assert (-8.0, 8.0) == (moved.position_low, moved.position_high)
    assert {float} == {type(moved.position_low), type(moved.position_high)}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"position_low": None}, "position_low: got None for 'x', expected both or neither"),
        ({"position_high": None}, "position_high: got None for 'x', expected both or neither"),
        ({"position_low": 2.0}, "position_low: got [2, 2] for 'x', expected low below high"),
        ({"position_high": math.nan}, "position_high: got nan, expected a finite number"),
        ({"position_low": "0"}, "position_low: got '0', expected a finite number"),
        ({"position_low": False}, "position_low: got False, expected a finite number"),
        ({"position_high": -math.inf}, "position_high: got -inf, expected a finite number"),
        (
            {"reference": Reference.ABSOLUTE},
            "position_low: got 1 with Reference.ABSOLUTE for 'x', expected none: only changes",
        ),
        (
            {"levels": (-1, 0, 1)},
            "position_low: got 1 with levels for 'x', expected none: only changes, rates and",
        ),
    ],
    ids=repr,
)
def test_positions_are_bounded_on_both_sides_or_on_none(
    changes: dict[str, Any], message: str
) -> None:
    """
    And only where there is something to add up.
    """
    moved: dict[str, Any] = {"name": "x", "low": -1.0, "high": 1.0, "max_step": 0.1}
    moved |= {"reference": Reference.DELTA, "position_low": 1.0, "position_high": 2.0}
    with pytest.raises(ContractError) as caught:
        ActionDim(**moved | changes)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    "wrong", ["", " ", "a\nb", "\x1b[31m", "\u202eabc", "\ud800", "x" * 257, 3]
)
@pytest.mark.parametrize("field", ["name", "unit"])
def test_names_are_text_on_one_line(field: str, wrong: Any) -> None:
    """
    They are shown in terminals and reports; only a unit may be missing.
    """
    if (field, wrong) != ("unit", ""):
        with pytest.raises(ContractError, match=f"^{field}: got "):
            ActionDim(**JOINT | {field: wrong})


def test_a_reference_is_not_its_text() -> None:
    """
    Text is for documents.
    """
    with pytest.raises(ContractError, match=r"^reference: got 'delta', expected one of Reference"):
        ActionDim(**JOINT, reference="delta")


@given(action_dims())
def test_every_dimension_can_be_made_from_its_fields(dim: ActionDim) -> None:
    """
    What is canonical stays as it is.
    """
    assert dim == ActionDim(**attrs.asdict(dim))
    assert hash(dim) == hash(ActionDim(**attrs.asdict(dim)))


@pytest.mark.parametrize("reference", [each for each in Reference if not each.is_target])
def test_what_is_no_target_may_be_zero_and_does_not_come_round(reference: Reference) -> None:
    """
    Standing still must be possible, and only a target is an angle or one number of a rotation.
    """
    fields = {**JOINT, "reference": reference}
    with pytest.raises(ContractError, match=r"^low: .* expected a range with 0 in it"):
        ActionDim(**{**fields, "low": 0.5})
    with pytest.raises(ContractError, match=r"^levels: .* expected 0 among them"):
        ActionDim(**{**fields, "levels": (-1.0, 2.0)})
    with pytest.raises(ContractError, match=r"^period"):
        ActionDim(**{**fields, "low": -1.5, "high": 1.5, "period": 3.0})
    with pytest.raises(ContractError, match=r"^rotation"):
        ActionDim(**{**fields, "max_step": None, "rotation": "hand"})


@pytest.mark.parametrize("reference", Reference)
def test_what_leads_somewhere_may_be_bound_in_it(reference: Reference) -> None:
    """
    A target says itself where it leads, and a torque does not say it.
    """
    fields = {**JOINT, "reference": reference, "position_low": 0.0, "position_high": 1.0}
    leads = reference in {Reference.DELTA, Reference.VELOCITY, Reference.CHUNK_RELATIVE}
    assert leads is reference.leads_somewhere
    if leads:
        assert 1.0 == ActionDim(**fields).position_high
    else:
        with pytest.raises(ContractError, match=r"^position_low"):
            ActionDim(**fields)
