"""Things that are followed through the frames of a video."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import attrs
import numpy as np

from vlmcore._arguments import shown
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
from vlmcore.vision.places import Box, Point
from vlmcore.vision.suppression import iou_matrix

__all__ = ["Track", "TrackPoint", "Tracks", "track_detections"]

_LIMITS = VisionLimits()


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, Iterable) else value


def _require_all(field: str, items: Any, kind: type) -> None:
    wrong = [items] if not isinstance(items, tuple) else [x for x in items if type(x) is not kind]
    if wrong:
        raise ContractError(field, f"got {shown(wrong[0])}, expected a list of {kind.__name__}")


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
        _require_all("points", self.points, TrackPoint)
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
        ContractError: If a field is not as described, or a point is in no frame or beyond it.
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
        _require_all("items", self.items, Track)
        require_at_most("max_tracks", len(self.items), _LIMITS.max_tracks)
        numbers = [track.track_id for track in self.items]
        if len(set(numbers)) != len(numbers):
            raise ContractError("items", "got a number twice, expected one for each track")
        for i, track in enumerate(self.items):
            self._check_reach(f"items[{i}]", track)

    def _check_reach(self, field: str, track: Track) -> None:
        if track.last_frame >= self.frame_count:
            raise ContractError(
                field, f"got frame {track.last_frame}, expected one of {self.frame_count}, from 0"
            )
        for point in track.points:
            box = point.box
            if (
                box.left < 0
                or box.top < 0
                or box.right > self.width_px
                or box.bottom > self.height_px
            ):
                raise ContractError(
                    field,
                    f"got {', '.join(f'{side:g}' for side in box.xyxy)} in frame {point.frame}, "
                    f"expected a box within {self.width_px} x {self.height_px} pixels",
                )

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
    height_px, width_px = _one_size(frames)
    require_finite_between(0.0, 1.0, min_iou=min_iou)
    if min_iou == 0:
        raise ContractError("min_iou", "got 0, expected more: all things overlap that much")
    if type(max_gap) is not int or max_gap < 0:
        raise ContractError("max_gap", f"got {shown(max_gap)}, expected a whole number from 0")
    begun: list[_Begun] = []
    live: list[_Begun] = []
    for index, found in enumerate(frames):
        live = [each for each in live if index - each.points[-1].frame <= max_gap + 1]
        items = [item for item in found if not isinstance(item.place, Point)]
        boxes = [Box.of(item.place.bounds) for item in items]
        matched = _matched(live, boxes, [item.label for item in items], min_iou)
        for position, (item, box) in enumerate(zip(items, boxes, strict=True)):
            if position not in matched:
                require_at_most("max_tracks", len(begun) + 1, _LIMITS.max_tracks)
                matched[position] = _Begun(item.label)
                begun.append(matched[position])
                live.append(matched[position])
            matched[position].points.append(TrackPoint(frame=index, box=box, score=item.score))
    return Tracks(
        frame_count=len(frames),
        rate_hz=rate_hz,
        height_px=height_px,
        width_px=width_px,
        items=[
            Track(track_id=number, label=each.label, points=each.points)
            for number, each in enumerate(begun, start=1)
        ],
    )


@attrs.define(eq=False)
class _Begun:
    """A track that may go on."""

    label: str
    points: list[TrackPoint] = attrs.field(factory=list)


def _one_size(frames: Sequence[Detections]) -> tuple[int, int]:
    if not frames:
        raise ContractError("frames", "got none, expected at least one")
    for i, found in enumerate(frames):
        if not isinstance(found, Detections):
            raise ContractError(f"frames[{i}]", f"got {shown(found)}, expected Detections")
    sizes = {(found.height_px, found.width_px) for found in frames}
    if len(sizes) > 1:
        raise ContractError("frames", f"got {len(sizes)} sizes, expected frames of one")
    return sizes.pop()


def _matched(
    live: list[_Begun], boxes: list[Box], labels: list[str], least: float
) -> dict[int, _Begun]:
    """Give for boxes, by their places, the track that each goes on."""
    if not live or not boxes:
        return {}
    overlaps = iou_matrix(
        np.array([each.points[-1].box.xyxy for each in live]), np.array([box.xyxy for box in boxes])
    )
    same = np.array([each.label for each in live])[:, None] == np.array(labels)[None, :]
    overlaps = np.where(same, overlaps, 0.0)
    matched: dict[int, _Begun] = {}
    taken: set[int] = set()
    flat = overlaps.ravel()
    pairs = np.flatnonzero(flat >= least)
    for pair in pairs[np.argsort(-flat[pairs], kind="stable")].tolist():
        old, new = divmod(pair, len(boxes))
        if old not in taken and new not in matched:
            taken.add(old)
            matched[new] = live[old]
    return matched


def _distance(one: Box, other: Box) -> float:
    (left, top, right, bottom), (left_2, top_2, right_2, bottom_2) = one.xyxy, other.xyxy
    across = (left_2 + right_2 - left - right) / 2
    down = (top_2 + bottom_2 - top - bottom) / 2
    return float(np.hypot(across, down))
