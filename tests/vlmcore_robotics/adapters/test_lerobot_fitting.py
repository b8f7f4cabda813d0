"""Tests of `vlmcore_robotics.adapters._lerobot_fitting`: whether a policy is one for a robot."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from vlmcore.contracts.embodiment import CameraSpec, Embodiment
from vlmcore.contracts.presets import find_embodiment
from vlmcore.errors import ContractError
from vlmcore_robotics.adapters._lerobot_features import PolicyFeatures
from vlmcore_robotics.adapters._lerobot_fitting import Fitting, FrameSize, fit
from vlmcore_robotics.adapters._lerobot_training import TrainedOn

PRESET = find_embodiment("lerobot_so100_so101_template")
NAMES = PRESET.actions.names
ROBOT = attrs.evolve(PRESET, cameras=[CameraSpec(name="front"), CameraSpec(name="wrist")])
FRONT, WRIST = "observation.images.front", "observation.images.wrist"
FEATURES = PolicyFeatures(
    kind="act",
    cameras={FRONT: (480, 640), WRIST: (240, 320)},
    state_count=6,
    action_count=6,
    n_obs_steps=1,
    document={},
)


def fitted(
    robot: Embodiment | None = ROBOT,
    *,
    features: Any = None,
    trained: TrainedOn | None = None,
    rename: Any = None,
    frame_size: FrameSize = FrameSize.EXACT,
) -> Fitting:
    return fit(
        attrs.evolve(FEATURES, **(features or {})),
        trained or TrainedOn(),
        embodiment=robot,
        rename=rename or {},
        frame_size=frame_size,
    )


def differences(*arguments: Any, **options: Any) -> list[str]:
    """Say what does not fit."""
    with pytest.raises(ContractError) as error:
        fitted(*arguments, **options)
    assert "embodiment" == error.value.field
    return error.value.problem.partition(": ")[2].split("; ")


def test_cameras_find_their_features_by_their_names() -> None:
    """
    With and without what all keys of pictures begin with.
    """
    assert {"front": FRONT, "wrist": WRIST} == fitted().cameras
    assert {FRONT: FRONT, WRIST: WRIST} == fitted(PRESET).cameras


def test_a_camera_of_another_name_is_renamed() -> None:
    """
    The others find theirs.
    """
    robot = attrs.evolve(ROBOT, cameras=[CameraSpec(name="top"), CameraSpec(name="wrist")])
    assert {"top": FRONT, "wrist": WRIST} == fitted(robot, rename={"top": FRONT}).cameras


def test_a_camera_that_the_policy_is_not_shown_is_named() -> None:
    """
    It may be in observations, and is not looked at.
    """
    robot = attrs.evolve(ROBOT, cameras=[*ROBOT.cameras, CameraSpec(name="side")])
    fitting = fitted(robot, rename={"side": None})
    assert (["front", "wrist"], {"side"}) == (list(fitting.cameras), fitting.unused)


def test_cameras_and_features_without_each_other_are_all_listed() -> None:
    """
    In both directions, in one error.
    """
    robot = attrs.evolve(ROBOT, cameras=[CameraSpec(name="front"), CameraSpec(name="side")])
    camera, feature = differences(robot)
    assert camera == (
        f"the camera 'side' has no feature ({FRONT}, {WRIST} are there): name it in rename, or "
        "give None for it there if the policy is not to see it"
    )
    assert feature == f"the feature {WRIST!r} is fed by 0 cameras, expected 1"


def test_two_cameras_cannot_feed_one_feature() -> None:
    """
    One of them would be lost.
    """
    assert [
        f"the feature {FRONT!r} is fed by 2 cameras, expected 1",
        f"the feature {WRIST!r} is fed by 0 cameras, expected 1",
    ] == differences(rename={"wrist": FRONT})


def test_a_name_that_is_no_camera_of_the_robot_is_a_difference() -> None:
    """
    As one that is misspelt.
    """
    assert ["rename has the camera 'wirst', which the robot has not"] == differences(
        rename={"wirst": None}
    )


def test_a_key_that_is_no_feature_is_a_difference() -> None:
    """
    Also without a robot.
    """
    trained = TrainedOn(action_names=NAMES)
    found = differences(None, trained=trained, rename={"top": "observation.images.top"})
    assert found[0].startswith("the camera 'top' has no feature")


def test_cameras_of_another_size_are_a_difference_unless_they_are_resized() -> None:
    """
    The way out is told.
    """
    robot = attrs.evolve(
        ROBOT, cameras=[CameraSpec(name="front", height_px=720, width_px=1280), ROBOT.cameras[1]]
    )
    (found,) = differences(robot)
    assert found.startswith(
        "the camera 'front' has 720 x 1280 pixels, the policy 480 x 640 (height x width): pass "
        "frame_size=FrameSize.PADDED"
    )
    for frame_size in (FrameSize.PADDED, FrameSize.ANY):
        specs = fitted(robot, frame_size=frame_size).camera_specs
        assert (CameraSpec(name="front"), CameraSpec(name="wrist")) == specs


def test_the_sizes_of_the_features_are_what_the_policy_expects() -> None:
    """
    So a client compares them before the first action.
    """
    assert (
        CameraSpec(name="front", height_px=480, width_px=640),
        CameraSpec(name="wrist", height_px=240, width_px=320),
    ) == fitted().camera_specs


def test_an_action_of_another_width_is_refused_and_never_padded_or_cut() -> None:
    """
    Five numbers are none for six joints, and seven are none either.
    """
    for width in (5, 7):
        (found,) = differences(features={"action_count": width})
        assert found.startswith(f"an action of the policy has {width} numbers, expected 6 (")


def test_actions_in_another_order_are_a_difference() -> None:
    """
    They are not put into another order behind the caller's back.
    """
    (found,) = differences(trained=TrainedOn(action_names=NAMES[::-1]))
    assert found.startswith("an action of the policy is gripper, ")


def test_nobody_makes_up_names_of_actions() -> None:
    """
    Without robot, data set and names, nothing is known of them.
    """
    (found,) = differences(None)
    assert found == (
        "nobody says what the 6 numbers of an action are: pass embodiment, dataset or action_names"
    )


def test_a_state_of_another_width_is_refused() -> None:
    """
    Nothing is filled up here either.
    """
    assert ["the state has 6 numbers, the policy is fed 7"] == differences(
        features={"state_count": 7}
    )


def test_a_state_is_put_into_the_order_of_the_training_by_its_names() -> None:
    """
    What observations hold is in the order of the robot.
    """
    fitting = fitted(trained=TrainedOn(state_names=NAMES[::-1]))
    assert (5, 4, 3, 2, 1, 0) == fitting.state_order
    assert ROBOT.state_names == fitting.state_names


def test_a_state_of_other_names_is_refused() -> None:
    """
    Both are listed.
    """
    (found,) = differences(trained=TrainedOn(state_names=[*NAMES[:5], "thumb"]))
    assert found.endswith("wrist_roll, thumb")


def test_names_that_are_not_as_many_as_the_policy_is_fed_are_refused() -> None:
    """
    They are those of another data set.
    """
    assert ["the policy is fed 6 numbers of state, expected 2 (x, y)"] == differences(
        trained=TrainedOn(state_names=["x", "y"])
    )


def test_another_rate_is_a_difference() -> None:
    """
    A chunk that is played faster is another movement.
    """
    assert ["the policy was trained at 50 steps a second, the robot makes 30"] == differences(
        trained=TrainedOn(rate_hz=50)
    )


def test_a_policy_that_looks_back_needs_a_rate() -> None:
    """
    The robot's, if there is one.
    """
    trained = TrainedOn(action_names=NAMES)
    (found,) = differences(None, trained=trained, features={"n_obs_steps": 2})
    assert found.startswith("the policy looks at 2 steps, and nobody says how many there are")
    assert 30.0 == fitted(features={"n_obs_steps": 2}).rate_hz


def test_without_a_robot_cameras_are_called_as_their_features() -> None:
    """
    Unless they are renamed.
    """
    trained = TrainedOn(action_names=NAMES, state_names=NAMES)
    fitting = fitted(None, trained=trained, rename={"top": FRONT})
    assert {"top": FRONT, WRIST: WRIST} == fitting.cameras
    assert (NAMES, NAMES, None) == (
        fitting.state_names,
        fitting.action_names,
        fitting.action_units,
    )


def test_what_is_no_robot_is_refused() -> None:
    """
    As its name.
    """
    robot: Any = "so101"
    with pytest.raises(ContractError, match="embodiment: got str, expected an Embodiment"):
        fitted(robot)
