"""The node that asks a model on this machine what happens in a video."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vlmcore_comfy.declaring import (
    Node,
    Output,
    boolean,
    choice,
    integer,
    node,
    number,
    socket,
    text,
)
from vlmcore_comfy.hosting import ALONE, Host
from vlmcore_comfy.nodes.models import ATTENTION, MEMORY, MODELS
from vlmcore_comfy.nodes.videos import STRATEGIES, TASKS
from vlmcore_comfy.sockets import EVENTS, SCENE_STATE, TRACKS, VIDEO_SELECTION

if TYPE_CHECKING:
    from vlmcore.media.selections import FrameSelection
    from vlmcore.vision.events import VideoEvents
    from vlmcore.vision.scenes import SceneState
    from vlmcore.vision.tracks import Tracks

__all__ = ["NODES", "temporal_reasoner"]


@node(
    "VLMVideoTemporalReasoner",
    title="VLM Video Temporal Reasoner",
    category="Video Intelligence",
    description="Chooses frames of a video, asks a model on this machine what happens in them, and "
    "reads its answer as events.",
    inputs=(
        socket("frames", "IMAGE"),
        number("fps", 24.0, 0.01, 1000.0, 0.01),
        choice("task", TASKS, TASKS[0]),
        text("question", "What changes over time?", multiline=True),
        choice("model", MODELS, "SmolVLM2 2.2B Video"),
        text("custom_model_id"),
        choice("memory_mode", MEMORY, MEMORY[0]),
        integer("max_frames", 16, 1, 512),
        integer("max_events", 24, 1, 256),
        integer("max_new_tokens", 768, 32, 16384),
        socket("tracks", TRACKS, is_optional=True),
        socket("scene_state", SCENE_STATE, is_optional=True),
        choice("strategy", STRATEGIES, STRATEGIES[0], is_optional=True),
        number("minimum_gap_seconds", 0.15, 0.0, 60.0, 0.01, is_optional=True),
        integer("analysis_max_side", 448, 0, 4096, 64, is_optional=True, tooltip="0 leaves frames"),
        choice("attention_mode", ATTENTION, ATTENTION[0], is_optional=True),
        boolean("enable_thinking", default=False, is_optional=True),
        boolean(
            "strict_output",
            default=True,
            is_optional=True,
            tooltip="An answer without events in JSON is an error; if off, it has no events",
        ),
        boolean("unload_after", default=False, is_optional=True),
        boolean("stream_output", default=True, is_optional=True),
    ),
    outputs=(
        Output("STRING", "summary"),
        Output(EVENTS, "events"),
        Output(VIDEO_SELECTION, "selection"),
        Output("IMAGE", "sampled_frames"),
        Output("STRING", "raw_response"),
        Output("STRING", "diagnostics_json"),
        Output("STRING", "events_json"),
        Output("STRING", "selection_json"),
    ),
    extras=("local",),
    is_threaded=True,
    knows_itself=True,
)
def temporal_reasoner(
    frames: Any,
    fps: float,
    task: str,
    question: str,
    model: str,
    custom_model_id: str,
    memory_mode: str,
    max_frames: int,
    max_events: int,
    max_new_tokens: int,
    tracks: Tracks | None = None,
    scene_state: SceneState | None = None,
    strategy: str = STRATEGIES[0],
    minimum_gap_seconds: float = 0.15,
    analysis_max_side: int = 448,
    attention_mode: str = ATTENTION[0],
    enable_thinking: bool = False,
    strict_output: bool = True,
    unload_after: bool = False,
    stream_output: bool = True,
    *,
    comfyui: Host = ALONE,
) -> tuple[str, VideoEvents, FrameSelection, Any, str, str, str, str]:
    """Ask what happens."""
    from vlmcore.contracts.json_text import write_json
    from vlmcore_comfy.images import image_of
    from vlmcore_comfy.models import ModelChoice
    from vlmcore_comfy.reasoning import VideoQuestion, reason
    from vlmcore_comfy.video_frames import question_about, sampled, sampling_diagnostics

    video = sampled(
        frames,
        fps=fps,
        max_frames=max_frames,
        strategy=strategy,
        gap_s=minimum_gap_seconds,
        tracks=tracks,
        comfyui=comfyui,
    )
    selection = video.selection
    asked = VideoQuestion(
        text=question_about(selection, task, question, max_events=max_events, scene=scene_state),
        longest_edge_px=analysis_max_side or None,
        max_new_tokens=max_new_tokens,
        max_events=max_events,
        thinking=enable_thinking,
        is_strict=strict_output,
    )
    chosen = ModelChoice(model, custom_model_id, memory_mode, attention_mode)
    said, events, problem = reason(
        video, asked, chosen, unload=unload_after, is_shown=stream_output, comfyui=comfyui
    )
    diagnostics = {**sampling_diagnostics(frames, fps, selection), "problem": problem}
    return (
        events.summary or said.strip(),
        events,
        selection,
        image_of(list(video.pixels)),
        said,
        write_json(diagnostics),
        write_json(events.to_document()),
        write_json(selection.to_document()),
    )


NODES: tuple[Node[..., Any], ...] = (temporal_reasoner,)
