"""Layouts that policies were trained with, LIBERO, DROID and ALOHA; and plain ones for a robot."""

from __future__ import annotations

from vlmcore.contracts.embodiment import Embodiment
from vlmcore_robotics.wire.groot_layout import ActionStream, GrootLayout, StateSlice, VideoKey
from vlmcore_robotics.wire.observation_layout import (
    CameraKey,
    ImageAxes,
    ObservationLayout,
    StateKey,
)

__all__ = [
    "aloha_layout",
    "droid_layout",
    "libero_layout",
    "plain_groot_layout",
    "plain_layout",
]


def libero_layout(
    *, image: str = "observation.image", wrist: str = "observation.wrist_image"
) -> ObservationLayout:
    """
    Lay out what policies that were trained on LIBERO expect: two cameras, and 8 numbers of state.

    Args:
        image: The name of the camera beside the robot, in observations.
        wrist: The name of the camera on its wrist.
    """
    return ObservationLayout(
        cameras=(
            CameraKey(camera=image, key="observation/image"),
            CameraKey(camera=wrist, key="observation/wrist_image"),
        ),
        state=(StateKey(key="observation/state", count=8),),
    )


def droid_layout(
    *, exterior: str = "exterior_image_1_left", wrist: str = "wrist_image_left"
) -> ObservationLayout:
    """
    Lay out what policies that were trained on DROID expect: the state is 7 joints and a gripper.

    Args:
        exterior: The name of the camera beside the robot, in observations.
        wrist: The name of the camera on its wrist.
    """
    return ObservationLayout(
        cameras=(
            CameraKey(camera=exterior, key="observation/exterior_image_1_left"),
            CameraKey(camera=wrist, key="observation/wrist_image_left"),
        ),
        state=(
            StateKey(key="observation/joint_position", count=7),
            StateKey(key="observation/gripper_position", count=1),
        ),
    )


def aloha_layout() -> ObservationLayout:
    """Lay out what policies for ALOHA expect: up to four cameras, channels first, and 14 joints."""
    names = ("cam_high", "cam_low", "cam_left_wrist", "cam_right_wrist")
    return ObservationLayout(
        cameras=[
            CameraKey(camera=name, key=("images", name), required=name == "cam_high")
            for name in names
        ],
        state=[StateKey(key="state", count=14)],
        axes=ImageAxes.CHW,
    )


def plain_layout(robot: Embodiment) -> ObservationLayout:
    """
    Lay out all that a robot sees and says for a policy of openpi that was trained on it.

    A camera is ``observation/`` and its name, of which the last part is enough where that tells
    them apart; the state is ``observation/state``.

    Example:
        >>> from vlmcore.contracts.presets import find_embodiment
        >>> layout = plain_layout(find_embodiment("lerobot_so100_so101_template"))
        >>> layout.cameras[0].key, layout.state_count
        (('observation/front',), 6)
    """
    return ObservationLayout(
        cameras=[CameraKey(camera=name, key=f"observation/{key}") for name, key in _short(robot)],
        state=[StateKey(key="observation/state", count=len(robot.state_names))],
    )


def plain_groot_layout(robot: Embodiment) -> GrootLayout:
    """
    Lay out all that a robot sees and says for a policy of GR00T that was trained on it.

    The modality keys are the names of the cameras, as in `plain_layout`, ``state`` and ``action``;
    the instruction is ``annotation.human.task_description``.
    """
    return GrootLayout(
        video=[VideoKey(key=key, camera=name) for name, key in _short(robot)],
        state=[StateSlice(key="state", start=0, end=len(robot.state_names))],
        action=[ActionStream(key="action", names=robot.actions.names)],
        language="annotation.human.task_description",
    )


def _short(robot: Embodiment) -> list[tuple[str, str]]:
    names = robot.camera_names
    short = [name.rpartition(".")[2] or name for name in names]
    return list(zip(names, short if len(set(short)) == len(short) else names, strict=True))
