"""What is known of a scene: the things in it, how each moved, and what happened."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from vlmcore.vision.events import VideoEvents
from vlmcore.vision.tracks import Track, Tracks

__all__ = ["SceneState", "SceneThing", "scene_state"]

_STILL = 0.02  # of the diagonal of a frame: what boxes of a still thing jitter by


@attrs.frozen(kw_only=True)
class SceneThing:
    """
    A thing of the scene.

    Attributes:
        track_id: The number of its track.
        label: What it is.
        first_s: When it was seen first, in seconds.
        last_s: When it was seen last.
        box: Where it was then: left, top, right, bottom, in pixels.
        moved_px: How far its centre went, along its way.
        is_there: Whether it is in the last frame.
        is_moving: Whether it went further than boxes of a still thing jitter.
    """

    track_id: int
    label: str
    first_s: float
    last_s: float
    box: tuple[float, float, float, float]
    moved_px: float
    is_there: bool
    is_moving: bool


@attrs.frozen(kw_only=True)
class SceneState:
    """
    What is known of a scene.

    Attributes:
        duration_s: From the first frame to the last.
        things: The things, by the numbers of their tracks.
        events: What happened.
    """

    duration_s: float
    things: tuple[SceneThing, ...]
    events: VideoEvents

    @property
    def summary(self) -> str:
        """All of it in a few lines, for a person or a model."""
        lines = [
            f"{thing.label or 'thing'} #{thing.track_id}: "
            f"{thing.first_s:.2f} to {thing.last_s:.2f} s, "
            f"{'moving' if thing.is_moving else 'still'}, "
            f"{'there at the end' if thing.is_there else 'gone at the end'}"
            for thing in self.things
        ]
        lines += [
            f"{event.start_s:.2f} to {event.end_s:.2f} s: {' '.join(event.description.split())}"
            for event in self.events
        ]
        return "\n".join(lines) or "Nothing was followed, and nothing happened."

    def to_document(self) -> dict[str, Any]:
        """Return all of it as what JSON can hold."""
        return {
            "duration_s": self.duration_s,
            "things": [{**attrs.asdict(thing), "box": list(thing.box)} for thing in self.things],
            **self.events.to_document(),
        }


def scene_state(tracks: Tracks, events: VideoEvents | None = None) -> SceneState:
    """Put together what is known of a scene from its tracks and its events."""
    diagonal = float(np.hypot(tracks.height_px, tracks.width_px))
    return SceneState(
        duration_s=tracks.time_s(tracks.frame_count - 1),
        things=tuple(_thing(track, tracks, diagonal) for track in tracks),
        events=VideoEvents() if events is None else events,
    )


def _thing(track: Track, tracks: Tracks, diagonal: float) -> SceneThing:
    boxes = np.array([point.box.xyxy for point in track.points])
    centres = (boxes[:, :2] + boxes[:, 2:]) / 2
    moved = float(np.hypot(*np.diff(centres, axis=0).T).sum()) if len(centres) > 1 else 0.0
    farthest = float(np.hypot(*(centres - centres[0]).T).max())
    return SceneThing(
        track_id=track.track_id,
        label=track.label,
        first_s=tracks.time_s(track.first_frame),
        last_s=tracks.time_s(track.last_frame),
        box=track.points[-1].box.xyxy,
        moved_px=moved,
        is_there=track.last_frame == tracks.frame_count - 1,
        is_moving=farthest > _STILL * diagonal,
    )
