"""`example_observation`: something to show where nothing was recorded."""

import numpy as np
import pytest
from hypothesis import given

from vlmcore.contracts.embodiment import CameraSpec
from vlmcore.contracts.observation import check_fits
from vlmcore.contracts.presets import find_embodiment
from vlmcore.errors import ContractError
from vlmcore.policy.interface import PolicyInfo
from vlmcore.safety.gate import SafetyGate
from vlmcore.testing.contract_strategies import embodiments
from vlmcore.testing.example_observations import example_observation

ROBOT = find_embodiment("generic_7dof_joint_gripper")


@given(embodiments())
def test_it_is_one_of_any_robot(robot) -> None:
    """
    With its state, its cameras and their sizes; and its state may be commanded.
    """
    seen = example_observation(robot)

    check_fits(seen, robot)
    state = dict(zip(robot.state_names, seen.state.tolist(), strict=True))
    for dim in robot.actions.dims:
        if dim.name in state and not dim.reference.is_change:
            assert dim.low <= state[dim.name] <= dim.high


def test_what_a_policy_says_of_itself_is_enough() -> None:
    """
    If it says both what state it expects and what cameras.
    """
    info = PolicyInfo(
        name="p", state_names=("a", "b"), cameras=(CameraSpec(name="c", height_px=4, width_px=6),)
    )

    seen = example_observation(info, instruction="go", frames=3, captured_at_s=2.5)

    assert ("go", [0.0, 0.0], 2.5) == (seen.instruction, seen.state.tolist(), seen.captured_at_s)
    assert (3, 4, 6, 3) == seen.images["c"].shape


def test_the_pixels_are_not_all_the_same() -> None:
    """
    A frame of one colour would hide that rows and columns, or frames, were mixed up.
    """
    frames = example_observation(ROBOT, frames=2).images["observation.images.front"]

    assert (2, 224, 224, 3) == frames.shape
    assert not np.array_equal(frames[0], frames[0].transpose(1, 0, 2))
    assert not np.array_equal(frames[0], frames[1])


def test_a_robot_that_stands_still_there_is_safe() -> None:
    """
    The state can be the last command.
    """
    gate = SafetyGate(embodiment=ROBOT)
    state = example_observation(ROBOT).state

    assert gate.actions.low[-1] < state[-1] < gate.actions.high[-1]


@pytest.mark.parametrize(
    ("expected", "options", "problem"),
    [
        ("reach", {}, "expected: got str, expected an Embodiment or a PolicyInfo"),
        (
            PolicyInfo(name="p"),
            {},
            "expected: got the info of 'p' without state_names and cameras, expected both",
        ),
        (
            PolicyInfo(name="p", state_names=("a",)),
            {},
            "expected: got the info of 'p' without cameras, expected both, or an Embodiment",
        ),
        (ROBOT, {"frames": 0}, "frames: got 0, expected a whole number of at least 1"),
        (ROBOT, {"frames": 257}, "max_frames: got 257, limit is 256"),
        (ROBOT, {"instruction": " "}, "instruction: got blank text, expected at least one"),
    ],
)
def test_what_cannot_be_made_is_refused(expected, options, problem) -> None:
    """
    With what is missing.
    """
    with pytest.raises(ContractError) as error:
        example_observation(expected, **options)
    assert str(error.value).startswith(problem)
