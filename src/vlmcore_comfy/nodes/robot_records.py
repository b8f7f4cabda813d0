"""Nodes that record what a policy did and play it back, and what may be sent to a robot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vlmcore_comfy.declaring import (
    Blocked,
    Node,
    NodeResult,
    Output,
    boolean,
    choice,
    integer,
    node,
    socket,
    text,
)
from vlmcore_comfy.hosting import ALONE, Host
from vlmcore_comfy.sockets import ACTIONS, EMBODIMENT, OBSERVATION, VETTED_ACTIONS

if TYPE_CHECKING:
    from vlmcore.contracts.actions import ActionChunk
    from vlmcore.contracts.embodiment import Embodiment
    from vlmcore.safety.vetted import VettedChunk
    from vlmcore_comfy.seeing import SeenBy

__all__ = ["NODES", "episode_replay", "policy_recorder", "vetted_actions_document"]

_FRAMES = ("As JPEG", "As PNG, every pixel", "None")


def _always(**_: Any) -> float:
    # The file may have changed, which no widget tells; a number not equal to itself runs it again.
    return float("nan")


@node(
    "VLAPolicyRecorder",
    title="VLA Policy Recorder",
    category="Robotics/Records",
    description="Writes what a policy was shown, what it proposed and what the gate made of it "
    "into an episode, a file in the folder episodes of ComfyUI's output. Graphs that are queued "
    "one after the other go on with the same episode.",
    inputs=(
        socket("observation", OBSERVATION),
        socket("actions", ACTIONS, tooltip="What the policy proposed, as it went into the gate"),
        socket("embodiment", EMBODIMENT),
        text("episode_name", "policy", tooltip="What the file is called; a number is added"),
        choice("frames", _FRAMES, tooltip="How the newest picture of each camera is kept"),
        boolean("new_episode", default=False, tooltip="Begin another file each time"),
        text(
            "previous_action_json",
            multiline=True,
            is_optional=True,
            tooltip="What was sent last, where vetted_actions is not joined",
        ),
        socket(
            "vetted_actions",
            VETTED_ACTIONS,
            is_optional=True,
            tooltip="What the gate let through; where it lets nothing through, nothing is "
            "recorded. Not joined, each chunk is recorded with what the gate finds in it.",
        ),
    ),
    outputs=(
        Output("STRING", "episode"),
        Output("STRING", "safety_report"),
        Output("INT", "steps"),
    ),
    is_output=True,
    is_threaded=True,
)
def policy_recorder(
    observation: SeenBy,
    actions: ActionChunk,
    embodiment: Embodiment,
    episode_name: str,
    frames: str,
    new_episode: bool,
    previous_action_json: str = "",
    vetted_actions: VettedChunk | None = None,
    *,
    comfyui: Host = ALONE,
) -> NodeResult:
    """Record one chunk."""
    from vlmcore.safety.documents import safety_report_to_json
    from vlmcore_comfy.chunk_texts import require_chunk
    from vlmcore_comfy.recording import FRAMES, record
    from vlmcore_comfy.seeing import require_robot, require_seen
    from vlmcore_comfy.vetting import last_command_from_text, require_vetted

    vetted = None if vetted_actions is None else require_vetted("vetted_actions", vetted_actions)
    comfyui.raise_if_stopped()
    made = record(
        comfyui.output_folder,
        episode_name.strip(),
        require_robot("embodiment", embodiment),
        require_seen("observation", observation).observation,
        require_chunk("actions", actions),
        vetted=vetted,
        last_command=last_command_from_text("previous_action_json", previous_action_json),
        encoding=FRAMES[frames],
        is_new=new_episode,
    )
    told = f"{made.path}: step {made.steps - 1}"
    report = safety_report_to_json(made.step.report)
    return NodeResult((made.path, report, made.steps), {"text": [told]})


@node(
    "VLAEpisodeReplay",
    title="VLA Episode Replay",
    category="Robotics/Records",
    description="Gives what a policy proposed in a step of a recorded episode, as if it were asked "
    "now, with what it was shown then. What comes out is not vetted, whatever was recorded: put it "
    "to the gate.",
    inputs=(
        text("episode", "episodes/policy_00001.jsonl", tooltip="A file in ComfyUI's output"),
        integer("step", 0, 0, 99_999_999, 1, tooltip="Which step of the policy, from 0"),
    ),
    outputs=(
        Output(ACTIONS, "actions"),
        Output(EMBODIMENT, "embodiment"),
        Output("STRING", "previous_action_json", tooltip="What was sent before it; blank if none"),
        Output("STRING", "recorded_report", tooltip="What the gate found then"),
        Output(OBSERVATION, "observation", tooltip="If its pictures were kept"),
    ),
    is_threaded=True,
    changes=_always,
)
def episode_replay(
    episode: str, step: int, *, comfyui: Host = ALONE
) -> tuple[ActionChunk, Embodiment, str, str, SeenBy | Blocked]:
    """Replay one step."""
    import time

    import attrs

    from vlmcore.contracts.json_text import write_json
    from vlmcore.safety.documents import safety_report_to_json
    from vlmcore_comfy.recording import find_episode, recorded_step, seen_again

    reader = find_episode(comfyui.output_folder, episode)
    robot = reader.header.embodiment
    found = recorded_step(reader, step, comfyui)
    chunk = attrs.evolve(found.chunk, observed_at_s=time.monotonic())
    last = found.last_command
    return (
        chunk,
        robot,
        "" if last is None else write_json(last.tolist(), indent=None),
        safety_report_to_json(found.report),
        seen_again(found, robot),
    )


@node(
    "VLAVettedActions",
    title="VLA Vetted Actions",
    category="Robotics/Records",
    description="Writes what the gate let through as documents: what may be sent to a controller, "
    "and the report. It does not run where the gate let nothing through.",
    inputs=(socket("vetted_actions", VETTED_ACTIONS),),
    outputs=(
        Output("STRING", "vetted_json"),
        Output("STRING", "safety_report"),
        Output("INT", "horizon"),
        Output("INT", "action_dim"),
    ),
)
def vetted_actions_document(vetted_actions: VettedChunk) -> tuple[str, str, int, int]:
    """Write vetted actions down."""
    from vlmcore.contracts.documents import action_chunk_to_json
    from vlmcore.safety.documents import safety_report_to_json
    from vlmcore_comfy.vetting import require_vetted

    vetted = require_vetted("vetted_actions", vetted_actions)
    document = action_chunk_to_json(vetted.as_chunk())
    return document, safety_report_to_json(vetted.report), vetted.horizon, len(vetted.names)


NODES: tuple[Node[..., Any], ...] = (policy_recorder, episode_replay, vetted_actions_document)
