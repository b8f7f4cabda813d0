"""Nodes over chunks of actions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vlmcore_comfy.declaring import Node, Output, node, text
from vlmcore_comfy.sockets import ACTIONS

if TYPE_CHECKING:
    from vlmcore.contracts.actions import ActionChunk

__all__ = ["NODES", "actions_from_json"]


@node(
    "VLAActionsFromJSON",
    title="VLA Actions From JSON",
    category="Robotics/Actions",
    description="Reads a chunk of actions: a document of actions, or rows of numbers.",
    inputs=(text("actions_json", "[[0, 0, 0, 0, 0, 0, 0, 0]]", multiline=True),),
    outputs=(Output(ACTIONS, "actions"), Output("STRING", "actions_summary")),
)
def actions_from_json(actions_json: str) -> tuple[ActionChunk, str]:
    """Read a chunk."""
    from vlmcore.contracts.documents import action_chunk_from_json, action_chunk_to_json

    chunk = action_chunk_from_json(actions_json)
    return chunk, action_chunk_to_json(chunk)


NODES: tuple[Node[..., Any], ...] = (actions_from_json,)
