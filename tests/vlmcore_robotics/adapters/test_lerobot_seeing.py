"""Tests of `vlmcore_robotics.adapters._lerobot_seeing`: what of an observation is fed."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest

from vlmcore.contracts.observation import Observation
from vlmcore.errors import ContractError
from vlmcore_robotics.adapters._lerobot_fitting import Fitting, FrameSize
from vlmcore_robotics.adapters._lerobot_seeing import seen_from
from vlmcore_robotics.wire.resizing import resize_with_pad

FRAME = np.arange(2 * 4 * 3, dtype=np.uint8).reshape(2, 4, 3)
FITTING = Fitting(
    cameras={"front": "observation.images.front"},
    unused=frozenset({"side"}),
    sizes={"front": (2, 4)},
    state_names=("x", "y", "z"),
    state_order=(2, 0, 1),
    action_names=("x",),
    action_units=None,
    rate_hz=10.0,
    frame_size=FrameSize.EXACT,
)


def observed(**changes: Any) -> Observation:
    return Observation(
        **{
            "instruction": "go",
            "state": [1.0, 2.0, 3.0],
            "images": {"front": FRAME},
            "frame_rate_hz": 10.0,
            "captured_at_s": 1.0,
            **changes,
        }
    )


def test_frames_stand_under_the_keys_of_the_policy() -> None:
    """
    And the instruction beside them.
    """
    seen = seen_from(observed(), FITTING)
    assert np.array_equal(FRAME, seen.frames["observation.images.front"])
    assert "go" == seen.task


def test_the_newest_of_several_frames_is_taken() -> None:
    """
    The last one.
    """
    frames = np.stack([np.zeros_like(FRAME), FRAME])
    seen = seen_from(observed(images={"front": frames}), FITTING)
    assert np.array_equal(FRAME, seen.frames["observation.images.front"])


def test_the_state_stands_in_the_order_of_the_policy() -> None:
    """
    As the fitting says.
    """
    state = seen_from(observed(), FITTING).state
    assert state is not None
    assert [3.0, 1.0, 2.0] == state.tolist()


def test_a_policy_that_is_fed_no_state_is_given_none() -> None:
    """
    What the robot reports is checked all the same, where its names are known.
    """
    fitting = attrs.evolve(FITTING, state_order=())
    assert seen_from(observed(), fitting).state is None
    with pytest.raises(ContractError, match="state: got 2 numbers, expected 3: x, y, z"):
        seen_from(observed(state=[1.0, 2.0]), fitting)


@pytest.mark.parametrize("state", [[1.0, 2.0], [1.0, 2.0, 3.0, 4.0]])
def test_a_state_of_another_width_is_refused(state: Any) -> None:
    """
    With the names that were expected; without names too.
    """
    with pytest.raises(ContractError, match="expected 3: x, y, z"):
        seen_from(observed(state=state), FITTING)
    with pytest.raises(ContractError, match=r"expected 3$"):
        seen_from(observed(state=state), attrs.evolve(FITTING, state_names=None))


@pytest.mark.parametrize("names", [["wrist"], ["front", "wrist"], ["side"]])
def test_other_cameras_are_refused(names: list[str]) -> None:
    """
    One that is missing, and one that nobody knows.
    """
    with pytest.raises(ContractError, match=r"images: got .* expected front"):
        seen_from(observed(images=dict.fromkeys(names, FRAME)), FITTING)


def test_a_camera_that_the_policy_is_not_shown_may_be_there() -> None:
    """
    It was said so when the policy was loaded.
    """
    seen = seen_from(observed(images={"front": FRAME, "side": FRAME}), FITTING)
    assert ["observation.images.front"] == list(seen.frames)


def test_a_frame_of_another_size_is_refused_with_the_way_out() -> None:
    """
    Nothing is resized behind the caller's back.
    """
    larger = np.zeros((4, 4, 3), np.uint8)
    with pytest.raises(ContractError, match=r"got 4 x 4 pixels, expected 2 x 4 .*PADDED"):
        seen_from(observed(images={"front": larger}), FITTING)


def test_a_frame_is_resized_or_passed_on_if_that_is_asked_for() -> None:
    """
    On black, as openpi-client does; or as it is.
    """
    larger = np.full((4, 4, 3), 200, np.uint8)
    for frame_size, expected in (
        (FrameSize.PADDED, resize_with_pad(larger, height_px=2, width_px=4)),
        (FrameSize.ANY, larger),
    ):
        fitting = attrs.evolve(FITTING, frame_size=frame_size)
        seen = seen_from(observed(images={"front": larger}), fitting)
        assert np.array_equal(expected, seen.frames["observation.images.front"])


def test_what_is_no_observation_is_refused() -> None:
    """
    As a dictionary.
    """
    mapping: Any = {}
    with pytest.raises(ContractError, match="observation: got dict"):
        seen_from(mapping, FITTING)
