"""Things that are followed through the frames of a video."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import attrs
import numpy as np

from vlmcore._arrays import (
    Float64Array,
    plain_float,
    require_count,
    require_finite_between,
    require_name,
    require_positive,
)
from vlmcore.errors import ContractError
from vlmcore.limits import VisionLimits, require_at_most
from vlmcore.vision.detections import Detections
from vlmcore.vision.places import Box
from vlmcore.vision.suppression import iou_matrix

__all__ = ["Track", "TrackPoint", "Tracks", "track_detections"]

_LIMITS = VisionLimits()


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, Iterable) else value


@attrs.frozen(kw_only=True)
class TrackPoint:
    """
    Where a thing is in one frame.

    Attributes:
        frame: The frame, from 0.
        box: Where, in pixels of the frame.
        score: How sure that is, 0 to 1; ``None`` if that was not said.
    """

    frame: int
    box: Box
    score: float | None = attrs.field(default=None, converter=plain_float)

    def __attrs_post_init__(self) -> None:
        if type(self.frame) is not int or self.frame < 0:
            raise ContractError("frame", f"got {self.frame!r:.40}, expected a whole number from 0")
        if not isinstance(self.box, Box):
            raise ContractError("box", f"got {type(self.box).__name__}, expected a Box")
        if self.score is not None:
            require_finite_between(0.0, 1.0, score=self.score)


@attrs.frozen(kw_only=True)
class Track:
    """
    One thing through the frames in which it was seen.

    Attributes:
        track_id: Its number, from 1.
        label: What it is; empty if that was not said.
        points: Where it was, frames ascending, at least one.
    """

    track_id: int
    label: str = ""
    points: tuple[TrackPoint, ...] = attrs.field(converter=_tuple)

    def __attrs_post_init__(self) -> None:
        require_count(track_id=self.track_id)
        if self.label != "":
            require_name("label", self.label, max_characters=_LIMITS.max_label_characters)
        frames = [point.frame for point in self.points]
        if not frames or frames != sorted(set(frames)):
            raise ContractError("points", "expected at least one, each in a later frame")

    @property
    def first_frame(self) -> int:
        """The first frame in which it was seen."""
        return self.points[0].frame

    @property
    def last_frame(self) -> int:
        """The last frame in which it was seen."""
        return self.points[-1].frame


@attrs.frozen(kw_only=True)
class Tracks:
    """
    The things that were followed through a video.

    Attributes:
        frame_count: How many frames there are.
        rate_hz: Frames a second.
        height_px: Height of a frame.
        width_px: Width of a frame.
        items: The things, by their numbers.

    Raises:
        ContractError: If a field is not as described, or a point is in no frame.
        LimitExceededError: If there are more than `vlmcore.limits.VisionLimits` allows.
    """

    frame_count: int
    rate_hz: float = attrs.field(converter=plain_float)
    height_px: int
    width_px: int
    items: tuple[Track, ...] = attrs.field(default=(), converter=_tuple)

    def __attrs_post_init__(self) -> None:
        require_count(
            frame_count=self.frame_count, height_px=self.height_px, width_px=self.width_px
        )
        require_positive(rate_hz=self.rate_hz)
        require_at_most("max_detections", len(self.items), _LIMITS.max_detections)
        numbers = [track.track_id for track in self.items]
        if len(set(numbers)) != len(numbers):
            raise ContractError("items", "got a number twice, expected one for each track")
        if any(track.last_frame >= self.frame_count for track in self.items):
            raise ContractError("items", f"got a point beyond the {self.frame_count} frames")

    def __iter__(self) -> Iterator[Track]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def time_s(self, frame: int) -> float:
        """Say when a frame is, from the first on, in seconds."""
        return frame / self.rate_hz

    def changes(self) -> Float64Array:
        """
        Say how much changes at each frame, shape ``[frame_count]``.

        1 for each thing that appears or was seen last in the frame before, and how far each moved,
        in diagonals of the frame.
        """
        changes = np.zeros(self.frame_count)
        diagonal = float(np.hypot(self.height_px, self.width_px))
        for track in self.items:
            if track.first_frame > 0:
                changes[track.first_frame] += 1
            if track.last_frame + 1 < self.frame_count:
                changes[track.last_frame + 1] += 1
            for before, after in zip(track.points, track.points[1:], strict=False):
                changes[after.frame] += _distance(before.box, after.box) / diagonal
        return changes

    def to_document(self) -> dict[str, Any]:
        """Return all of it as what JSON can hold."""
        return {
            "frame_count": self.frame_count,
            "rate_hz": self.rate_hz,
            "height_px": self.height_px,
            "width_px": self.width_px,
            "tracks": [
                {
                    "track_id": track.track_id,
                    "label": track.label,
                    "points": [
                        {
                            "frame": point.frame,
                            "time_s": self.time_s(point.frame),
                            "box": list(point.box.xyxy),
                            "score": point.score,
                        }
                        for point in track.points
                    ],
                }
                for track in self.items
            ],
        }


def track_detections(
    frames: Sequence[Detections], *, rate_hz: float, min_iou: float = 0.3, max_gap: int = 5
) -> Tracks:
    """
    Follow what was found in each frame through all of them.

    In each frame the pair of a track and a box of the same label that overlaps most is taken first;
    equal ones in their order. What is left begins a track of its own. Points are not followed.

    Args:
        frames: What was found, one for each frame, all of one size.
        rate_hz: Frames a second.
        min_iou: How much a box has to overlap with the last of its track, above 0 and up to 1:
            the area of both, as a share of that of either.
        max_gap: For how many frames a thing may be out of sight.

    Raises:
        ContractError: If an argument is not as described.
        LimitExceededError: If there are more tracks than `vlmcore.limits.VisionLimits` allows.

    Example:
        >>> from vlmcore.vision.detections import Detection
        >>> def seen(x):
        ...     dog = Detection(place=Box.of((x, 0, x + 8, 8)), label="dog")
        ...     return Detections(height_px=20, width_px=40, items=[dog])
        >>> tracks = track_detections([seen(0), seen(2), seen(4)], rate_hz=10)
        >>> [(track.label, len(track.points)) for track in tracks]
        [('dog', 3)]
    """
    if not frames:
        raise ContractError("frames", "got none, expected at least one")
    sizes = {(found.height_px, found.width_px) for found in frames}
    if len(sizes) > 1:
        raise ContractError("frames", f"got {len(sizes)} sizes, expected frames of one")
    require_finite_between(0.0, 1.0, min_iou=min_iou)
    height_px, width_px = sizes.pop()
    points: list[list[TrackPoint]] = []
    labels: list[str] = []
    for index, found in enumerate(frames):
        boxes = [item for item in found if item.place.bounds[2:] != item.place.bounds[:2]]
        live = [k for k, each in enumerate(points) if index - each[-1].frame <= max_gap + 1]
        matched = _matched(
            [points[k][-1].box for k in live],
            [labels[k] for k in live],
            [Box.of(item.place.bounds) for item in boxes],
            [item.label for item in boxes],
            min_iou,
        )
        for position, item in enumerate(boxes):
            box = Box.of(item.place.bounds)
            point = TrackPoint(frame=index, box=box, score=item.score)
            if position in matched:
                points[live[matched[position]]].append(point)
            else:
                points.append([point])
                labels.append(item.label)
    return Tracks(
        frame_count=len(frames),
        rate_hz=rate_hz,
        height_px=height_px,
        width_px=width_px,
        items=[
            Track(track_id=number, label=label, points=each)
            for number, (label, each) in enumerate(zip(labels, points, strict=True), start=1)
        ],
    )


def _matched(
    before: list[Box], before_labels: list[str], now: list[Box], labels: list[str], least: float
) -> dict[int, int]:
    """Give for boxes of now the position of the one before that each goes on from."""
    if not before or not now:
        return {}
    overlaps = iou_matrix(
        np.array([box.xyxy for box in before]), np.array([box.xyxy for box in now])
    )
    same = np.array(before_labels)[:, None] == np.array(labels)[None, :]
    overlaps = np.where(same, overlaps, 0.0)
    matched: dict[int, int] = {}
    taken: set[int] = set()
    for flat in np.argsort(-overlaps, axis=None, kind="stable").tolist():
        old, new = divmod(flat, len(now))
        if overlaps[old, new] <= 0 or overlaps[old, new] < least:
            break
        if old not in taken and new not in matched:
            taken.add(old)
            matched[new] = old
    return matched


def _distance(one: Box, other: Box) -> float:
    (left, top, right, bottom), (left_2, top_2, right_2, bottom_2) = one.xyxy, other.xyxy
    across = (left_2 + right_2 - left - right) / 2
    down = (top_2 + bottom_2 - top - bottom) / 2
    return float(np.hypot(across, down))
