"""The node that puts together what a robot sees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vlmcore_comfy.declaring import Node, Output, node, number, socket, text
from vlmcore_comfy.sockets import EMBODIMENT, OBSERVATION

if TYPE_CHECKING:
    from vlmcore.contracts.embodiment import Embodiment
    from vlmcore_comfy.seeing import SeenBy

__all__ = ["NODES", "observation_builder"]

_VIEWS = ("wrist", "secondary", "goal")


@node(
    "VLAObservationBuilder",
    title="VLA Observation Builder",
    category="Robotics/Observations",
    description="Puts together what a policy is shown: the task, the state of the robot, and what "
    "its cameras see. A batch of images is a history, oldest first.",
    inputs=(
        text("task", "Pick up the object and place it in the container.", multiline=True),
        text("state_json", "[0, 0, 0, 0, 0, 0, 0, 0]", multiline=True),
        socket("primary_image", "IMAGE"),
        text("primary_camera", "observation.images.front"),
        number("history_fps", 10.0, 0.01, 1000.0, 0.1),
        number("timestamp", 0.0, 0.0, 1e12, 0.001, tooltip="Seconds; 0 is now"),
        socket("embodiment", EMBODIMENT, is_optional=True),
        *(
            each
            for view in _VIEWS
            for each in (
                socket(f"{view}_image", "IMAGE", is_optional=True),
                text(f"{view}_camera", f"observation.images.{view}", is_optional=True),
            )
        ),
    ),
    outputs=(
        Output(OBSERVATION, "observation"),
        Output("STRING", "observation_summary"),
        Output("INT", "history_frames"),
    ),
)
def observation_builder(
    task: str,
    state_json: str,
    primary_image: Any,
    primary_camera: str,
    history_fps: float,
    timestamp: float,
    embodiment: Embodiment | None = None,
    wrist_image: Any = None,
    wrist_camera: str = "observation.images.wrist",
    secondary_image: Any = None,
    secondary_camera: str = "observation.images.secondary",
    goal_image: Any = None,
    goal_camera: str = "observation.images.goal",
) -> tuple[SeenBy, str, int]:
    """Put an observation together."""
    import time

    from vlmcore.contracts.documents import observation_summary_to_json
    from vlmcore.contracts.observation import Observation
    from vlmcore_comfy.seeing import SeenBy, images_from, require_robot, state_from_text

    if embodiment is not None:
        require_robot("embodiment", embodiment)
    observation = Observation(
        instruction=task,
        state=state_from_text("state_json", state_json, embodiment),
        images=images_from(
            primary=(primary_camera, primary_image),
            wrist=(wrist_camera, wrist_image),
            secondary=(secondary_camera, secondary_image),
            goal=(goal_camera, goal_image),
        ),
        frame_rate_hz=history_fps,
        captured_at_s=timestamp or time.monotonic(),
    )
    summary = observation_summary_to_json(observation.summary())
    return SeenBy(observation, embodiment), summary, observation.history


NODES: tuple[Node[..., Any], ...] = (observation_builder,)
