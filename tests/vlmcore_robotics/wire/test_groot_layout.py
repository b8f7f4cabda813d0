"""Tests of `vlmcore_robotics.wire.groot_layout`: tables between robots and modality keys."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest

from groot_cases import ARM, LAYOUT, MODALITIES, NAMES, seen, with_deltas
from vlmcore.contracts.embodiment import (
    ActionDim,
    ActionSpace,
    CameraSpec,
    Embodiment,
    LimitsSource,
)
from vlmcore.errors import ContractError
from vlmcore_robotics.wire.groot_layout import ActionStream, GrootLayout, StateSlice, VideoKey
from vlmcore_robotics.wire.groot_modalities import PolicyModalities


def robot(**changes: Any) -> Embodiment:
    names = changes.pop("action_names", NAMES)
    dims = [ActionDim(name=name, unit="rad", low=-1, high=1, max_step=0.1) for name in names]
    return Embodiment(
        **{
            "name": "arm",
            "state_names": NAMES,
            "actions": ActionSpace(dims=dims, rate_hz=20),
            "cameras": [CameraSpec(name="cam_front"), CameraSpec(name="cam_wrist")],
            "limits_source": LimitsSource.DATASET,
            **changes,
        }
    )


def test_tables_that_fit_have_no_differences() -> None:
    """
    To the policy and to the robot.
    """
    assert () == LAYOUT.differences(MODALITIES, embodiment=robot())
    LAYOUT.require_fits(MODALITIES, embodiment=robot())


@pytest.mark.parametrize(
    ("layout", "modalities", "difference"),
    [
        ({"video": LAYOUT.video[:1]}, {}, "video: the policy has wrist, the tables have not"),
        (
            {"video": [*LAYOUT.video, VideoKey(key="side", camera="side")]},
            {},
            "video: the tables have side, the policy has not",
        ),
        (
            {"state": []},
            {},
            "state: the policy has single_arm, gripper, the tables have not",
        ),
        ({}, {"state": None}, "state: the tables have single_arm, gripper, the policy has not"),
        ({"action": LAYOUT.action[:1]}, {}, "action: the policy has gripper, the tables have not"),
        ({"language": None}, {}, "language: ours is none, the policy's is annotation."),
        ({}, {"language": None}, "language: ours is annotation.human.task_description, "),
    ],
)
def test_a_key_that_only_one_side_has_is_a_difference(
    layout: dict[str, Any], modalities: dict[str, Any], difference: str
) -> None:
    """
    Extra keys are ignored by a server, missing ones end in a text such as ``'side'``.
    """
    (found,) = attrs.evolve(LAYOUT, **layout).differences(attrs.evolve(MODALITIES, **modalities))
    assert found.startswith(difference)


@pytest.mark.parametrize(
    ("modalities", "difference"),
    [
        (with_deltas("video", -1, 1), "video: the policy asks for step 1, in the future"),
        (with_deltas("action", 0, 2, 4), "action: the policy's steps are (0, 2, 4), "),
        (with_deltas("action", 1, 2), "action: the policy's steps are (1, 2), expected 0, 1, 2"),
    ],
)
def test_steps_that_no_client_can_give_or_take_are_differences(
    modalities: PolicyModalities, difference: str
) -> None:
    """
    Rows of an answer are taken as one control step each.
    """
    (found,) = LAYOUT.differences(modalities)
    assert found.startswith(difference)


@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        ({"cameras": [CameraSpec(name="cam_front")]}, "video: 'wrist' is camera 'cam_wrist', "),
        ({"state_names": ARM}, "state: the robot has 5 numbers, the tables 6"),
        ({"action_names": ("jaw", *ARM)}, "action: the robot has jaw, j1, "),
        ({"action_names": ARM}, "action: the robot has j1, j2, j3, j4, j5, the tables j1"),
    ],
)
def test_a_robot_of_other_parts_is_a_difference(changes: dict[str, Any], difference: str) -> None:
    """
    Thumb first or thumb last: names and their order are compared before the first action.
    """
    (found,) = LAYOUT.differences(MODALITIES, embodiment=robot(**changes))
    assert found.startswith(difference)


def test_all_differences_are_in_one_error() -> None:
    """
    So that they are mended at once.
    """
    layout = attrs.evolve(LAYOUT, video=LAYOUT.video[:1], language=None)
    with pytest.raises(ContractError) as caught:
        layout.require_fits(MODALITIES, embodiment=robot(state_names=ARM))
    assert 3 == len(caught.value.problem.splitlines()) - 1


def test_a_state_is_split_by_slices_in_any_order() -> None:
    """
    Fixed keys could not feed any stock embodiment.
    """
    slices = [
        StateSlice(key="gripper", start=0, end=1),
        StateSlice(key="single_arm", start=1, end=6),
    ]
    layout = attrs.evolve(LAYOUT, state=slices[::-1])
    state = layout.request_from([seen()], MODALITIES)["state"]

    assert (np.float32, (1, 1, 5)) == (state["single_arm"].dtype, state["single_arm"].shape)
    assert seen().state[1:].tolist() == state["single_arm"][0, 0].tolist()
    assert seen().state[:1].tolist() == state["gripper"][0, 0].tolist()


def test_a_policy_without_state_or_instruction_is_sent_none() -> None:
    """
    There are such checkpoints.
    """
    layout = attrs.evolve(LAYOUT, state=(), language=None)
    modalities = attrs.evolve(MODALITIES, state=None, language=None)
    layout.require_fits(modalities)
    request = layout.request_from([seen()], modalities)
    assert ({}, {}) == (request["state"], request["language"])


def test_one_frame_is_sent_without_a_copy() -> None:
    """
    Pixels are copied into the message and nowhere else.
    """
    modalities = with_deltas("video", 0)
    observation = seen()
    video = LAYOUT.request_from([observation], modalities)["video"]
    assert np.shares_memory(video["front"], observation.images["cam_front"])


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"video": []}, "video"),
        ({"video": 7}, "video"),
        ({"action": []}, "action"),
        ({"state": [1]}, "state"),
        ({"video": [LAYOUT.video[0], LAYOUT.video[0]]}, "video keys"),
        ({"video": [VideoKey(key=key, camera="same") for key in "ab"]}, "cameras"),
        ({"action": [ActionStream(key=key, names=("same",)) for key in "ab"]}, "action names"),
        ({"state": [StateSlice(key="a", start=1, end=2)]}, "state"),
        (
            {"state": [StateSlice(key="a", start=0, end=2), StateSlice(key="b", start=1, end=3)]},
            "state",
        ),
        ({"language": ""}, "language"),
        ({"language": "a\nb"}, "language"),
    ],
)
def test_tables_with_gaps_or_with_something_twice_are_refused(
    changes: dict[str, Any], field: str
) -> None:
    """
    Each number, camera and key has one place.
    """
    with pytest.raises(ContractError) as caught:
        attrs.evolve(LAYOUT, **changes)
    assert field == caught.value.field


@pytest.mark.parametrize(
    "make",
    [
        lambda: StateSlice(key="a", start=-1, end=2),
        lambda: StateSlice(key="a", start=0, end=0),
        lambda: StateSlice(key="a", start=True, end=2),
        lambda: StateSlice(key="a", start=0, end=5000),
        lambda: StateSlice(key="", start=0, end=1),
        lambda: VideoKey(key="a", camera="\x1b"),
        lambda: VideoKey(key=7, camera="a"),
        lambda: ActionStream(key="a", names=()),
        lambda: ActionStream(key="a", names="jaw"),
        lambda: ActionStream(key="a", names=("j", "j")),
        lambda: GrootLayout(video=LAYOUT.video, state=(), action="ab", language=None),
    ],
)
def test_parts_that_are_none_are_refused(make: Any) -> None:
    """
    With one clear error each.
    """
    with pytest.raises(ContractError):
        make()
