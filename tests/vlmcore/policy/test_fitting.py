"""Tests of `vlmcore.policy.fitting`: what a policy says of itself is held against a robot."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest

from episode_cases import ROBOT
from vlmcore.contracts.embodiment import ActionSpace, CameraSpec
from vlmcore.contracts.observation import Observation
from vlmcore.errors import ContractError
from vlmcore.policy import PolicyInfo, differences_between, require_expected

INFO = PolicyInfo(
    name="fits",
    action_names=ROBOT.actions.names,
    action_units=[dim.unit for dim in ROBOT.actions.dims],
    state_names=ROBOT.state_names,
    cameras=ROBOT.cameras,
    rate_hz=ROBOT.actions.rate_hz,
)


def with_units(unit: str) -> ActionSpace:
    """Give both joints a unit."""
    dims = tuple(attrs.evolve(dim, unit=unit) for dim in ROBOT.actions.dims)
    return attrs.evolve(ROBOT.actions, dims=dims)


@pytest.mark.parametrize("info", [INFO, PolicyInfo(name="silent")])
@pytest.mark.parametrize("robot", [ROBOT, ROBOT.actions])
def test_a_policy_that_says_the_same_or_nothing_fits(info: PolicyInfo, robot: Any) -> None:
    """
    Nobody is refused for what is not said.
    """
    assert () == differences_between(info, robot)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"action_names": ("y", "x")},
            "action_names is y, x, expected that of 'two joints', x, y",
        ),
        (
            {"state_names": ("x", "y")},
            "state_names is x, y, expected that of 'two joints', x, y, battery",
        ),
        ({"rate_hz": 10}, "rate_hz is 10.0, expected that of 'two joints', 20.0"),
        ({"cameras": (CameraSpec(name="wrist"),)}, "cameras has 'wrist', expected one of front"),
    ],
)
def test_each_difference_is_said_in_one_sentence(change: dict[str, Any], said: str) -> None:
    """
    With what the policy says, and what the robot does.
    """
    assert (said,) == differences_between(attrs.evolve(INFO, **change), ROBOT)


def test_all_differences_are_listed_at_once() -> None:
    """
    Not one after the other, at each start.
    """
    other = attrs.evolve(INFO, action_names=("a", "b"), rate_hz=10, state_names=("q",))
    assert 3 == len(differences_between(other, ROBOT))
    assert 2 == len(differences_between(other, ROBOT.actions))


def test_degrees_are_not_radians_in_whatever_order() -> None:
    """
    Units belong to names; the empty unit says nothing.
    """
    info = attrs.evolve(INFO, action_names=("y", "x"), action_units=("", "deg"))
    found = differences_between(info, with_units("rad"), reorder=True)
    assert ("action_units has 'deg' for 'x', expected 'rad'",) == found
    assert () == differences_between(info, with_units(""), reorder=True)


def test_the_sizes_of_a_camera_are_compared_where_both_say_them() -> None:
    """
    A camera of any size fits.
    """
    small, large = (CameraSpec(name="front", height_px=n, width_px=n) for n in (8, 16))
    robot = attrs.evolve(ROBOT, cameras=(large,))
    said = differences_between(attrs.evolve(INFO, cameras=(small,)), robot)
    assert ("cameras has 'front' with 8 x 8 pixels, expected 16 x 16",) == said
    assert () == differences_between(INFO, robot)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (({"name": "p"}, ROBOT), "info: got dict, expected a PolicyInfo"),
        ((ROBOT, INFO), "info: got Embodiment, expected a PolicyInfo"),
        ((INFO, "aloha"), "robot: got str, expected an Embodiment or an ActionSpace"),
    ],
)
def test_what_is_no_info_or_no_robot_is_named(arguments: Any, problem: str) -> None:
    """
    Also when the two are swapped.
    """
    with pytest.raises(ContractError) as error:
        differences_between(*arguments)
    assert problem == str(error.value)


def test_an_observation_that_a_policy_does_not_expect_is_refused() -> None:
    """
    By its state, and by the cameras and their sizes, as far as the policy says them.
    """
    frame = np.zeros((4, 6, 3), np.uint8)
    seen = Observation(
        instruction="wait",
        state=[0.0],
        images={"front": frame},
        frame_rate_hz=1.0,
        captured_at_s=0.0,
    )
    require_expected(seen, PolicyInfo(name="any"))
    sized = CameraSpec(name="front", height_px=4, width_px=6)
    require_expected(seen, PolicyInfo(name="fits", state_names=("x",), cameras=(sized,)))
    for info, said in (
        (PolicyInfo(name="two", state_names=("x", "y")), "state: got 1 numbers, expected 2: x, y"),
        (PolicyInfo(name="side", cameras=(CameraSpec(name="side"),)), "images: got front"),
        (
            PolicyInfo(name="big", cameras=(attrs.evolve(sized, width_px=8),)),
            r"images\['front'\]: got 4 x 6 pixels, expected 4 x 8",
        ),
    ):
        with pytest.raises(ContractError, match=said):
            require_expected(seen, info)
    with pytest.raises(ContractError, match="observation: got str"):
        require_expected("look", PolicyInfo(name="any"))  # type: ignore[arg-type]
