"""Tests of `vlmcore_robotics.wire.layouts`: requests as policies know them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from golden.wire.messages import ALOHA, DROID, LIBERO
from vlmcore.contracts.observation import Observation
from vlmcore.contracts.presets import find_embodiment
from vlmcore.errors import ContractError
from vlmcore_robotics.wire.layouts import aloha_layout, droid_layout, libero_layout
from vlmcore_robotics.wire.observation_layout import ObservationLayout


def observed(state: Any, **images: Any) -> Observation:
    return Observation(
        instruction="pick up the cup",
        state=state,
        images={name.replace("__", "."): image for name, image in images.items()},
        frame_rate_hz=1.0,
        captured_at_s=2.5,
    )


CASES = [
    (
        libero_layout(),
        LIBERO,
        observed(
            LIBERO["observation/state"],
            observation__image=LIBERO["observation/image"],
            observation__wrist_image=LIBERO["observation/wrist_image"],
        ),
    ),
    (
        droid_layout(),
        DROID,
        observed(
            [*DROID["observation/joint_position"], *DROID["observation/gripper_position"]],
            exterior_image_1_left=DROID["observation/exterior_image_1_left"],
            wrist_image_left=DROID["observation/wrist_image_left"],
        ),
    ),
    (
        aloha_layout(),
        ALOHA,
        observed(
            ALOHA["state"],
            cam_high=ALOHA["images"]["cam_high"].transpose(1, 2, 0),
            cam_left_wrist=ALOHA["images"]["cam_left_wrist"].transpose(1, 2, 0),
        ),
    ),
]
NAMED = pytest.mark.parametrize(
    ("layout", "request_map", "observation"), CASES, ids=["LIBERO", "DROID", "ALOHA"]
)


@NAMED
def test_an_observation_is_laid_out_as_the_policy_was_trained(
    layout: ObservationLayout, request_map: dict[str, Any], observation: Observation
) -> None:
    """
    The same keys, shapes, types and values.
    """
    assert flat(request_map) == flat(layout.request_from(observation))


@NAMED
def test_a_request_is_read_as_the_observation_that_it_was(
    layout: ObservationLayout, request_map: dict[str, Any], observation: Observation
) -> None:
    """
    At the other end.
    """
    assert observation == layout.observation_from(request_map, captured_at_s=2.5)


def flat(value: Any) -> Any:
    """Make a map comparable, with the types and shapes of its arrays."""
    if isinstance(value, dict):
        return {key: flat(each) for key, each in value.items()}
    if isinstance(value, np.ndarray):
        return (value.dtype.str, value.shape, value.tolist())
    return value


def test_the_cameras_of_the_libero_template_fit_the_layout() -> None:
    """
    An embodiment and its layout are used together.
    """
    names = [camera.name for camera in find_embodiment("libero_panda_template").cameras]
    assert names == [camera.camera for camera in libero_layout().cameras]


@pytest.mark.parametrize("gripper", [0.5, np.float32(0.5), np.array(0.5), np.array([0.5]), [0.5]])
def test_the_gripper_of_droid_may_come_without_its_axis(gripper: Any) -> None:
    """
    The real server takes a plain number, too.
    """
    request = {**DROID, "observation/gripper_position": gripper}
    state = droid_layout().observation_from(request, captured_at_s=0.0).state
    assert (8, 0.5) == (len(state), state[-1])


def test_aloha_needs_its_high_camera_only_and_knows_four() -> None:
    """
    The real server fails on a camera of another name; here the observation is refused.
    """
    layout = aloha_layout()
    image = np.zeros((2, 2, 3), np.uint8)
    assert ["cam_high"] == list(
        layout.request_from(observed(np.zeros(14), cam_high=image))["images"]
    )
    with pytest.raises(ContractError, match=r"^images: got cameras with missing \['cam_high'\]"):
        layout.request_from(observed(np.zeros(14), cam_low=image))
    with pytest.raises(ContractError, match=r"not known \['front'\], expected cam_high, cam_low"):
        layout.request_from(observed(np.zeros(14), cam_high=image, front=image))


def test_cameras_are_called_as_the_robot_calls_them() -> None:
    """
    The keys of the policy stay what they are.
    """
    layout = libero_layout(image="front", wrist="hand")
    image = np.zeros((2, 2, 3), np.uint8)
    request = layout.request_from(observed(np.zeros(8), front=image, hand=image))
    assert list(LIBERO) == list(request)
    other = droid_layout(exterior="front", wrist="hand")
    assert list(DROID) == list(other.request_from(observed(np.zeros(8), front=image, hand=image)))
