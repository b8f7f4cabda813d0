"""Nodes over chunks of actions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vlmcore_comfy.declaring import Node, Output, integer, node, socket, text
from vlmcore_comfy.sockets import ACTIONS, EMBODIMENT

if TYPE_CHECKING:
    from vlmcore.contracts.actions import ActionChunk
    from vlmcore.contracts.embodiment import Embodiment

__all__ = ["NODES", "action_inspect", "actions_from_json", "chunk_replan", "trajectory_preview"]


@node(
    "VLAActionsFromJSON",
    title="VLA Actions From JSON",
    category="Robotics/Actions",
    description="Reads a chunk of actions: a document of actions, rows of numbers, or named "
    "streams. Nothing is vetted by that.",
    inputs=(text("actions_json", "[[0, 0, 0, 0, 0, 0, 0, 0]]", multiline=True),),
    outputs=(Output(ACTIONS, "actions"), Output("STRING", "actions_summary")),
)
def actions_from_json(actions_json: str) -> tuple[ActionChunk, str]:
    """Read a chunk."""
    import time

    from vlmcore.contracts.documents import action_chunk_to_json
    from vlmcore_comfy.chunk_texts import chunk_from_text

    chunk = chunk_from_text("actions_json", actions_json, now_s=time.monotonic())
    return chunk, action_chunk_to_json(chunk)


@node(
    "VLAActionChunkReplan",
    title="VLA Action Chunk Replan",
    category="Robotics/Actions",
    description="Fades from the rest of one chunk into a new one, so that replanning does not "
    "jerk. The result is not vetted, whatever its parts were.",
    inputs=(
        socket("previous_actions", ACTIONS),
        socket("new_actions", ACTIONS),
        integer("executed_steps", 1, 0, 4096, 1, tooltip="Steps of the previous that were sent"),
        integer("transition_steps", 2, 0, 128, 1, tooltip="Steps to blend"),
        integer("max_horizon", 16, 1, 4096, 1, tooltip="Steps that come out at most"),
    ),
    outputs=(Output(ACTIONS, "replanned_actions"), Output("STRING", "replan_report")),
)
def chunk_replan(
    previous_actions: ActionChunk,
    new_actions: ActionChunk,
    executed_steps: int,
    transition_steps: int,
    max_horizon: int,
) -> tuple[ActionChunk, str]:
    """Blend two chunks."""
    from vlmcore.rollout.blending import blend_chunks
    from vlmcore.rollout.documents import replan_report_to_json
    from vlmcore.rollout.replan import ReplanReport
    from vlmcore_comfy.chunk_texts import first_steps, named_as, require_chunk

    old = require_chunk("previous_actions", previous_actions)
    new = first_steps(require_chunk("new_actions", new_actions), max_horizon)
    old, new = named_as(old, new.names), named_as(new, old.names)
    executed = min(executed_steps, old.horizon)  # of a chunk that is all done, nothing is left
    blended = blend_chunks(old, new, executed=executed, overlap=transition_steps, space=None)
    report = ReplanReport.of(old, new, executed=executed, overlap=transition_steps)
    return blended, replan_report_to_json(report)


@node(
    "VLAActionInspect",
    title="VLA Action Inspect",
    category="Robotics/Actions",
    description="Writes a chunk of actions, and one of its steps, as documents.",
    inputs=(
        socket("actions", ACTIONS),
        integer("step_index", 0, 0, 4095, 1, tooltip="Which step, from 0"),
    ),
    outputs=(
        Output("STRING", "trajectory_json"),
        Output("STRING", "selected_step_json"),
        Output("INT", "horizon"),
        Output("INT", "action_dim"),
    ),
)
def action_inspect(actions: ActionChunk, step_index: int) -> tuple[str, str, int, int]:
    """Write a chunk down."""
    from vlmcore.contracts.documents import action_chunk_to_json, action_step_to_json
    from vlmcore.errors import ContractError
    from vlmcore_comfy.chunk_texts import require_chunk

    chunk = require_chunk("actions", actions)
    if not 0 <= step_index < chunk.horizon:
        raise ContractError(
            "step_index", f"got {step_index}, expected 0 to {chunk.horizon - 1}: a step of these"
        )
    step = action_step_to_json(chunk.step(step_index))
    return action_chunk_to_json(chunk), step, chunk.horizon, len(chunk.names)


@node(
    "VLATrajectoryPreview",
    title="VLA Trajectory Preview",
    category="Robotics/Actions",
    description="Draws a chunk of actions over its steps; with a robot, in its bounds, and what "
    "breaks a limit is marked.",
    inputs=(
        socket("actions", ACTIONS),
        integer("width", 960, 320, 2048, 16),
        integer("height", 480, 240, 1536, 16),
        socket("embodiment", EMBODIMENT, is_optional=True),
    ),
    outputs=(Output("IMAGE", "trajectory_plot"),),
)
def trajectory_preview(
    actions: ActionChunk, width: int, height: int, embodiment: Embodiment | None = None
) -> tuple[Any]:
    """Draw a chunk."""
    from vlmcore_comfy.chunk_texts import named_as, require_chunk
    from vlmcore_comfy.images import image_of
    from vlmcore_comfy.seeing import require_robot

    chunk = require_chunk("actions", actions)
    if embodiment is not None:
        require_robot("embodiment", embodiment)
        chunk = named_as(chunk, embodiment.actions.names)
        if chunk.names != embodiment.actions.names:
            embodiment = None  # of another robot: drawn as it is, without bounds
    picture = chunk.preview(space=embodiment, width_px=width, height_px=height)
    return (image_of([picture]),)


NODES: tuple[Node[..., Any], ...] = (
    actions_from_json,
    chunk_replan,
    action_inspect,
    trajectory_preview,
)
