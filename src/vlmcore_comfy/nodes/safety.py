"""The gate between what a policy proposes and what a controller executes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vlmcore_comfy.declaring import Blocked, Node, Output, choice, integer, node, socket, text
from vlmcore_comfy.sockets import ACTIONS, EMBODIMENT, VETTED_ACTIONS

if TYPE_CHECKING:
    from vlmcore.contracts.actions import ActionChunk
    from vlmcore.contracts.embodiment import Embodiment
    from vlmcore.safety.vetted import VettedChunk

__all__ = ["NODES", "action_safety"]

# What the widgets said when a gate with them vetted nothing, the last time. ComfyUI keeps what a
# node gave, and tells of no node that it does not run for that: so the gate is asked again.
_closed: dict[tuple[object, ...], None] = {}
_MOST_CLOSED = 64

_MODES = ("Block unsafe", "Clamp safely", "Hold position on unsafe", "Report only")


def _asked_again(
    mode: Any, execution_horizon: Any, previous_action_json: Any, **_: Any
) -> float | None:
    asked = (mode, execution_horizon, previous_action_json)
    is_closed = _closed if None in asked else asked in _closed  # one that is linked may be any
    return float("nan") if is_closed else None


@node(
    "VLAActionSafety",
    title="VLA Action Safety Gate",
    category="Robotics/Safety",
    description="Holds a chunk of actions to the bounds of a robot. Only what it lets through "
    "comes out of vetted_actions; no other node gives that out.",
    inputs=(
        socket("actions", ACTIONS),
        socket("embodiment", EMBODIMENT),
        choice("mode", _MODES, "Block unsafe"),
        integer("execution_horizon", 8, 1, 4096, 1, tooltip="Steps that will be executed"),
        text(
            "previous_action_json",
            multiline=True,
            tooltip="What was sent last: [0.1, 0.2], numbers by name, or the document of a step. "
            "Blank if nobody knows: then nothing is vetted.",
        ),
    ),
    outputs=(
        Output(ACTIONS, "safe_actions"),
        Output("STRING", "safety_report"),
        Output("BOOLEAN", "safe_for_handoff"),
        Output(VETTED_ACTIONS, "vetted_actions"),
    ),
    changes=_asked_again,
)
def action_safety(
    actions: ActionChunk,
    embodiment: Embodiment,
    mode: str,
    execution_horizon: int,
    previous_action_json: str,
) -> tuple[ActionChunk, str, bool, VettedChunk | Blocked]:
    """Put a chunk to the gate."""
    from vlmcore_comfy.chunk_texts import require_chunk
    from vlmcore_comfy.seeing import require_robot
    from vlmcore_comfy.vetting import REMEDIES, last_command_from_text, vet

    vetting = vet(
        require_chunk("actions", actions),
        require_robot("embodiment", embodiment),
        REMEDIES[mode],
        horizon=execution_horizon,
        last_command=last_command_from_text("previous_action_json", previous_action_json),
    )
    asked = (mode, execution_horizon, previous_action_json)
    _closed.pop(asked, None)
    vetted: VettedChunk | Blocked | None = vetting.vetted
    if vetted is None:
        vetted = Blocked(vetting.reason)
        _closed[asked] = None
        if len(_closed) > _MOST_CLOSED:
            del _closed[next(iter(_closed))]
    return vetting.actions, vetting.report, vetting.is_safe, vetted


NODES: tuple[Node[..., Any], ...] = (action_safety,)
