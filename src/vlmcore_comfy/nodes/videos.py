"""Nodes over the frames of a video, what is followed through them, and what happens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vlmcore_comfy.declaring import Node, Output, choice, integer, node, number, socket, text
from vlmcore_comfy.hosting import ALONE, Host
from vlmcore_comfy.sockets import DETECTIONS, EVENTS, SCENE_STATE, TRACKS, VIDEO_SELECTION

if TYPE_CHECKING:
    from vlmcore.media.selections import FrameSelection
    from vlmcore.vision.events import VideoEvents
    from vlmcore.vision.scenes import SceneState
    from vlmcore.vision.tracks import Tracks

__all__ = [
    "NODES",
    "STRATEGIES",
    "TASKS",
    "events_from_json",
    "frame_sampler",
    "reasoning_prompt",
    "scene_state",
    "track_crops",
    "track_detections",
    "tracks_from_json",
]

STRATEGIES = (
    "Hybrid: scene + motion + tracks",
    "Uniform coverage",
    "Motion priority",
    "Scene-change priority",
    "Track-change priority",
)
TASKS = (
    "Action timeline",
    "Robotics scene understanding",
    "Safety and anomaly monitor",
    "Detailed temporal summary",
    "Answer a question",
)


@node(
    "VLMAdaptiveFrameSampler",
    title="VLM Adaptive Frame Sampler",
    category="Video Intelligence",
    description="Chooses the frames of a video that a model is shown: evenly, or where something "
    "changes. The same frames give the same choice.",
    inputs=(
        socket("frames", "IMAGE"),
        number("fps", 24.0, 0.01, 1000.0, 0.01),
        integer("max_frames", 16, 1, 512),
        choice("strategy", STRATEGIES, STRATEGIES[0]),
        number("minimum_gap_seconds", 0.15, 0.0, 60.0, 0.01),
        integer("thumbnail_size", 96, 16, 256, 16, tooltip="Frames are compared at this size"),
        socket("tracks", TRACKS, is_optional=True),
    ),
    outputs=(
        Output("IMAGE", "sampled_frames"),
        Output(VIDEO_SELECTION, "selection"),
        Output("STRING", "selection_json"),
        Output("STRING", "diagnostics_json"),
    ),
    is_threaded=True,
)
def frame_sampler(
    frames: Any,
    fps: float,
    max_frames: int,
    strategy: str,
    minimum_gap_seconds: float,
    thumbnail_size: int,
    tracks: Tracks | None = None,
    *,
    comfyui: Host = ALONE,
) -> tuple[Any, FrameSelection, str, str]:
    """Choose frames."""
    from vlmcore.contracts.json_text import write_json
    from vlmcore_comfy.images import image_of
    from vlmcore_comfy.video_frames import sampled, sampling_diagnostics

    video = sampled(
        frames,
        fps=fps,
        max_frames=max_frames,
        strategy=strategy,
        gap_s=minimum_gap_seconds,
        thumbnail_px=thumbnail_size,
        tracks=tracks,
        comfyui=comfyui,
    )
    selection = video.selection
    said = write_json(selection.to_document())
    diagnostics = write_json(sampling_diagnostics(frames, fps, selection))
    return image_of(list(video.pixels)), selection, said, diagnostics


@node(
    "VLMTrackDetections",
    title="VLM Track Detections",
    category="Video Intelligence",
    description="Follows what was detected through the frames: boxes of one label that overlap "
    "from frame to frame are one thing.",
    inputs=(
        socket("detections", DETECTIONS),
        number("minimum_overlap", 0.3, 0.05, 1.0, 0.05, tooltip="Intersection over union"),
        integer(
            "maximum_gap", 5, 0, 1000, 1, tooltip="Frames for which a thing may be out of sight"
        ),
    ),
    outputs=(
        Output(TRACKS, "tracks"),
        Output("STRING", "tracks_json"),
        Output("INT", "track_count"),
    ),
)
def track_detections(
    detections: Any, minimum_overlap: float, maximum_gap: int
) -> tuple[Tracks, str, int]:
    """Follow detections."""
    from vlmcore.vision import tracks as following
    from vlmcore.vision.track_documents import tracks_to_json
    from vlmcore_comfy.video_frames import require_detected

    found = require_detected("detections", detections)
    tracks = following.track_detections(
        found.frames, rate_hz=found.rate_hz, min_iou=minimum_overlap, max_gap=maximum_gap
    )
    return tracks, tracks_to_json(tracks), len(tracks)


@node(
    "VLMTracksFromJSON",
    title="VLM Tracks From JSON",
    category="Video Intelligence",
    description="Reads tracks that another program followed, in the document that VLM Track "
    "Detections writes.",
    inputs=(text("text", multiline=True),),
    outputs=(Output(TRACKS, "tracks"), Output("INT", "track_count")),
)
def tracks_from_json(text: str) -> tuple[Tracks, int]:
    """Read tracks."""
    from vlmcore.vision import track_documents

    tracks = track_documents.tracks_from_json(text)
    return tracks, len(tracks)


@node(
    "VLMTrackAwareCrops",
    title="VLM Track-Aware Semantic Crops",
    category="Video Intelligence",
    description="Cuts each followed thing out of some of its frames, spread over the time that it "
    "was seen.",
    inputs=(
        socket("frames", "IMAGE"),
        socket("tracks", TRACKS),
        integer("crops_per_track", 3, 1, 16),
        integer("max_crops", 32, 1, 256),
        integer("output_size", 448, 64, 2048, 32),
        number("context_scale", 1.35, 1.0, 4.0, 0.05, tooltip="How much larger than the thing"),
    ),
    outputs=(Output("IMAGE", "crops"), Output("STRING", "crop_manifest_json")),
    is_threaded=True,
)
def track_crops(
    frames: Any,
    tracks: Tracks,
    crops_per_track: int,
    max_crops: int,
    output_size: int,
    context_scale: float,
    *,
    comfyui: Host = ALONE,
) -> tuple[Any, str]:
    """Cut things out of frames."""
    from vlmcore.contracts.json_text import write_json
    from vlmcore_comfy.images import image_of
    from vlmcore_comfy.video_frames import crops_of

    crops, manifest = crops_of(
        frames,
        tracks,
        each=crops_per_track,
        most=max_crops,
        size_px=output_size,
        scale=context_scale,
        comfyui=comfyui,
    )
    return image_of(crops), write_json(manifest)


@node(
    "VLMBuildSceneState",
    title="VLM Persistent Scene State",
    category="Video Intelligence",
    description="Puts together what is known of a scene: the things in it, how each moved, and "
    "what happened.",
    inputs=(socket("tracks", TRACKS), socket("events", EVENTS, is_optional=True)),
    outputs=(
        Output(SCENE_STATE, "scene_state"),
        Output("STRING", "scene_state_json"),
        Output("STRING", "summary"),
    ),
)
def scene_state(tracks: Tracks, events: VideoEvents | None = None) -> tuple[SceneState, str, str]:
    """Put a scene together."""
    from vlmcore.contracts.json_text import write_json
    from vlmcore.vision import scenes
    from vlmcore_comfy.video_frames import require_events, require_tracks

    state = scenes.scene_state(
        require_tracks("tracks", tracks),
        None if events is None else require_events("events", events),
    )
    return state, write_json(state.to_document()), state.summary


@node(
    "VLMVideoReasoningPrompt",
    title="VLM Video Reasoning Prompt",
    category="Video Intelligence",
    description="Writes the question that a model answers with the events of a video, in JSON.",
    inputs=(
        socket("selection", VIDEO_SELECTION),
        choice("task", TASKS, TASKS[0]),
        text("question", "What changes over time?", multiline=True),
        integer("max_events", 24, 1, 256),
        socket("scene_state", SCENE_STATE, is_optional=True),
    ),
    outputs=(Output("STRING", "prompt"), Output("STRING", "json_schema")),
)
def reasoning_prompt(
    selection: FrameSelection,
    task: str,
    question: str,
    max_events: int,
    scene_state: SceneState | None = None,
) -> tuple[str, str]:
    """Write a question about a video."""
    from vlmcore.contracts.json_text import write_json
    from vlmcore.vision.events import EVENTS_SCHEMA
    from vlmcore_comfy.video_frames import question_about

    asked = question_about(selection, task, question, max_events=max_events, scene=scene_state)
    return asked, write_json(dict(EVENTS_SCHEMA))


@node(
    "VLMEventsFromVideoJSON",
    title="VLM Temporal Events From JSON",
    category="Video Intelligence",
    description="Reads the events that a model wrote about a video; times outside of it are moved "
    "to its ends.",
    inputs=(
        text("text", None, multiline=True),
        socket("selection", VIDEO_SELECTION),
        integer("max_events", 256, 1, 4096),
    ),
    outputs=(
        Output(EVENTS, "events"),
        Output("STRING", "summary"),
        Output("STRING", "normalized_json"),
    ),
)
def events_from_json(
    text: str, selection: FrameSelection, max_events: int
) -> tuple[VideoEvents, str, str]:
    """Read events."""
    from vlmcore.contracts.json_text import write_json
    from vlmcore.vision.events import events_from_text
    from vlmcore_comfy.video_frames import require_selection

    chosen = require_selection("selection", selection)
    events = events_from_text(text, duration_s=chosen.duration_s, max_events=max_events)
    return events, events.summary, write_json(events.to_document())


NODES: tuple[Node[..., Any], ...] = (
    frame_sampler,
    track_detections,
    tracks_from_json,
    track_crops,
    scene_state,
    reasoning_prompt,
    events_from_json,
)
