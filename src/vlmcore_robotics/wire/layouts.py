"""The layouts that policies of openpi were trained with: LIBERO, DROID and ALOHA."""

from __future__ import annotations

from vlmcore_robotics.wire.observation_layout import (
    CameraKey,
    ImageAxes,
    ObservationLayout,
    StateKey,
)

__all__ = ["aloha_layout", "droid_layout", "libero_layout"]


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
