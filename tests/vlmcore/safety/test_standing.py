"""Tests of `vlmcore.safety.standing`."""

from __future__ import annotations

import math

import pytest

from safety_cases import GRIPPER, JOINT, SLIDE, WHEEL, space
from vlmcore.errors import ContractError
from vlmcore.safety.standing import stand_still


def test_targets_stay_and_changes_are_zero() -> None:
    """
    In the order of the space, also from numbers by name.
    """
    every = space(JOINT, SLIDE, WHEEL, GRIPPER)
    assert [0.5, 0.0, 2.5, 1.0] == stand_still(every, last_command=[0.5, 0.04, 2.5, 1.0]).tolist()
    by_name = {"gripper": 0.7, "turn": 8.0, "dx": 0.0, "x": 0.5}
    assert [0.5, 0.0, 2.0, 1.0] == stand_still(every, last_command=by_name).tolist()


def test_what_is_out_of_its_bounds_cannot_stay() -> None:
    """
    The gate refuses what is given then.
    """
    assert math.isnan(stand_still(space(JOINT), last_command=[1.5])[0])


def test_without_a_last_command_all_is_zero() -> None:
    """
    Which stops changes, and which no gate lets pass for targets.
    """
    assert [0.0, 0.0] == stand_still(space(JOINT, SLIDE), last_command=None).tolist()


def test_an_argument_that_is_wrong_is_named() -> None:
    """
    As the gate would.
    """
    with pytest.raises(ContractError, match=r"^space: got ActionDim, expected an ActionSpace"):
        stand_still(JOINT, last_command=[0.0])  # type: ignore[arg-type]
    with pytest.raises(ContractError, match=r"^last_command"):
        stand_still(space(JOINT), last_command=[0.0, 0.0])
