"""Frames of a video between nodes: what was chosen of them, detected in them and followed."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from vlmcore._arguments import shown
from vlmcore._arrays import UInt8Array
from vlmcore.errors import ContractError
from vlmcore.media.sampling import SampledVideo, select_frames
from vlmcore.media.selections import FrameSampling, FrameSelection, SamplingStrategy
from vlmcore.vision.crops import crop_detections
from vlmcore.vision.detections import Detection, Detections
from vlmcore.vision.events import VideoEvents
from vlmcore.vision.questions import VideoTask, reasoning_prompt
from vlmcore.vision.scenes import SceneState
from vlmcore.vision.tracks import Track, TrackPoint, Tracks
from vlmcore_comfy.hosting import ALONE, Host
from vlmcore_comfy.images import batch_of, each_picture

__all__ = [
    "Detected",
    "crops_of",
    "question_about",
    "require_detected",
    "require_events",
    "require_selection",
    "require_tracks",
    "sampled",
    "sampling_diagnostics",
]

_STRATEGIES = {
    "Hybrid: scene + motion + tracks": SamplingStrategy.HYBRID,
    "Uniform coverage": SamplingStrategy.UNIFORM,
    "Motion priority": SamplingStrategy.MOTION,
    "Scene-change priority": SamplingStrategy.SCENES,
    "Track-change priority": SamplingStrategy.TRACKS,
}
_TASKS = {
    "Action timeline": VideoTask.TIMELINE,
    "Robotics scene understanding": VideoTask.ROBOTICS,
    "Safety and anomaly monitor": VideoTask.MONITOR,
    "Detailed temporal summary": VideoTask.SUMMARY,
    "Answer a question": VideoTask.QUESTION,
}


@attrs.frozen
class Detected:
    """
    What was found in the frames of a video, or in the images of a batch.

    Attributes:
        frames: What was found in each.
        rate_hz: Frames a second.
    """

    frames: tuple[Detections, ...]
    rate_hz: float


def _require(name: str, value: Any, kind: type, words: str) -> Any:
    if not isinstance(value, kind):
        raise ContractError(name, f"got {shown(value)}, expected {words}")
    return value


def require_detected(name: str, value: Any) -> Detected:
    """
    Take what came through a detections socket.

    Raises:
        ContractError: If it is something else.
    """
    found: Detected = _require(name, value, Detected, "detections")
    return found


def require_tracks(name: str, value: Any) -> Tracks:
    """
    Take what came through a tracks socket.

    Raises:
        ContractError: If it is something else.
    """
    tracks: Tracks = _require(name, value, Tracks, "tracks")
    return tracks


def require_events(name: str, value: Any) -> VideoEvents:
    """
    Take what came through an events socket.

    Raises:
        ContractError: If it is something else.
    """
    events: VideoEvents = _require(name, value, VideoEvents, "events")
    return events


def require_selection(name: str, value: Any) -> FrameSelection:
    """
    Take what came through a selection socket.

    Raises:
        ContractError: If it is something else.
    """
    selection: FrameSelection = _require(name, value, FrameSelection, "a selection of frames")
    return selection


def sampled(
    frames: Any,
    *,
    fps: float,
    max_frames: int,
    strategy: str,
    gap_s: float,
    thumbnail_px: int = 96,
    tracks: Any = None,
    comfyui: Host = ALONE,
) -> SampledVideo:
    """
    Choose frames of an IMAGE; the strategy is a label.

    Raises:
        NodeStoppedError: If the person stopped the graph.
        ContractError: If an input is not of its kind, or tracks are of another video.
    """
    batch = batch_of("frames", frames)
    chosen = _STRATEGIES[strategy]
    changes = None
    if tracks is not None:
        followed = require_tracks("tracks", tracks)
        _require_frames(followed, len(batch))
        changes = followed.changes()
    elif chosen is SamplingStrategy.TRACKS:
        raise ContractError("tracks", "are not there, expected them for 'Track-change priority'")
    is_used = chosen in (SamplingStrategy.TRACKS, SamplingStrategy.HYBRID)
    selection = select_frames(
        each_picture("frames", batch, before_each=comfyui.raise_if_stopped),
        len(batch),
        rate_hz=fps,
        sampling=FrameSampling(
            max_frames=max_frames,
            strategy=chosen,
            minimum_gap_s=gap_s,
            thumbnail_px=thumbnail_px,
        ),
        track_changes=changes.tolist() if is_used and changes is not None else None,
    )
    indices = [frame.index for frame in selection.frames if frame.index is not None]
    pixels = np.stack(list(each_picture("frames", batch, indices=indices)))
    return SampledVideo(pixels=pixels, selection=selection)


def _require_frames(tracks: Tracks, count: int) -> None:
    if tracks.frame_count != count:
        raise ContractError(
            "tracks", f"are of {tracks.frame_count} frames, expected the {count} here"
        )


def sampling_diagnostics(frames: Any, fps: float, selection: FrameSelection) -> dict[str, Any]:
    """Say how a selection came about."""
    reasons = [frame.reason.value for frame in selection.frames]
    return {
        "input_frames": len(batch_of("frames", frames)),
        "fps": fps,
        "selected_frames": len(selection.frames),
        "scanned_frames": selection.scanned_frames,
        "duration_s": selection.duration_s,
        "cuts_s": list(selection.cuts_s),
        "reasons": {reason: reasons.count(reason) for reason in sorted(set(reasons))},
    }


def question_about(
    selection: Any, task: str, question: str, *, max_events: int, scene: Any = None
) -> str:
    """
    Write the question about a video; the task is a label.

    Raises:
        ContractError: If an input is not of its kind.
    """
    if scene is not None:
        _require("scene_state", scene, SceneState, "the state of a scene")
    chosen = require_selection("selection", selection)
    if task == "Answer a question" and not question.strip():
        raise ContractError("question", "is blank, expected what is asked about the video")
    return reasoning_prompt(chosen, _TASKS[task], question, max_events=max_events, scene=scene)


def crops_of(
    frames: Any,
    tracks: Any,
    *,
    each: int,
    most: int,
    size_px: int,
    scale: float,
    comfyui: Host = ALONE,
) -> tuple[list[UInt8Array], list[dict[str, Any]]]:
    """
    Cut each followed thing out of *each* of its frames, *most* times in all.

    Where that is too often, fewer are cut of each, so that as many things as fit are shown.

    Raises:
        ContractError: If an input is not of its kind, tracks are of another video, or there are
            none.
        NodeStoppedError: If the person stopped the graph.
    """
    batch = batch_of("frames", frames)
    followed = _followed_in(batch, tracks)
    whole, more = divmod(most, len(followed))
    wanted = [
        (track, point)
        for place, track in enumerate(followed)
        for point in _spread(track, min(each, max(1, whole + (place < more))))
    ][:most]
    crops: list[UInt8Array] = []
    manifest: list[dict[str, Any]] = []
    pictures = each_picture(
        "frames",
        batch,
        indices=[point.frame for _, point in wanted],
        before_each=comfyui.raise_if_stopped,
    )
    for (track, point), picture in zip(wanted, pictures, strict=True):
        found = Detections(
            height_px=picture.shape[0],
            width_px=picture.shape[1],
            items=[Detection(place=point.box, label=track.label)],
        )
        (crop,) = crop_detections(picture, found, scale=scale, square=True, size_px=size_px)
        manifest.append(
            {
                "crop": len(crops),
                "track_id": track.track_id,
                "label": track.label,
                "frame": point.frame,
                "time_s": followed.time_s(point.frame),
                "box": list(point.box.xyxy),
                "window": list(crop.window_px),
            }
        )
        crops.append(crop.pixels)
    return crops, manifest


def _followed_in(batch: Any, tracks: Any) -> Tracks:
    """Require tracks of these frames, and of something."""
    followed = require_tracks("tracks", tracks)
    _require_frames(followed, len(batch))
    height, width = batch.shape[1:3]
    if (followed.height_px, followed.width_px) != (height, width):
        raise ContractError(
            "tracks",
            f"are of frames of {followed.width_px} x {followed.height_px} pixels, expected the "
            f"{width} x {height} here",
        )
    if not len(followed):
        raise ContractError("tracks", "hold nothing that was followed, expected at least one thing")
    return followed


def _spread(track: Track, most: int) -> list[TrackPoint]:
    """Take points evenly from the first to the last."""
    places = np.linspace(0, len(track.points) - 1, min(most, len(track.points)))
    return [track.points[index] for index in places.round().astype(int).tolist()]
