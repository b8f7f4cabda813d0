"""
Tracks as a JSON document, both ways.

Reading is strict: a document is taken as a whole or refused with all its faults, each with its
place. What is written is read back exactly.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vlmcore._json_values import JSON_INTEGERS
from vlmcore.contracts.faults import Faults
from vlmcore.contracts.json_text import read_json, write_json
from vlmcore.contracts.schemas import DocumentKind
from vlmcore.contracts.shapes import Field, ListOf, Number, Record, Text, Whole
from vlmcore.limits import DocumentLimits, VideoLimits, VisionLimits
from vlmcore.vision.places import Box
from vlmcore.vision.tracks import Track, TrackPoint, Tracks

__all__ = [
    "DOCUMENTS",
    "TRACKS",
    "tracks_from_document",
    "tracks_from_json",
    "tracks_to_document",
    "tracks_to_json",
]

_LIMITS = VisionLimits()
_FRAMES = VideoLimits().max_decoded_frames
_SIDE = Whole(smallest=1, largest=_LIMITS.max_side_px)

_POINT = Record(
    fields={
        "frame": Field(Whole(smallest=0, largest=_FRAMES), "The frame, from 0."),
        "xyxy": Field(
            ListOf(item=Number(), fewest=4, most=4),
            "Left, top, right and bottom of the box that it is in.",
        ),
        "score": Field(Number(largest=1.0), "How sure that is, from 0.", optional=True),
    }
)
_TRACK = Record(
    fields={
        "track_id": Field(
            Whole(smallest=1, largest=JSON_INTEGERS[-1]), "Its number; each is there once."
        ),
        "label": Field(
            Text(blank=True, longest=_LIMITS.max_label_characters),
            "What it is; empty if that was not said.",
        ),
        "points": Field(
            ListOf(item=_POINT, fewest=1, most=_FRAMES), "Where it was, frames ascending."
        ),
    }
)

TRACKS = DocumentKind(
    name="video-tracks",
    title="Things that were followed through the frames of a video, in pixels of a frame.",
    keys={
        "frame_count": Field(Whole(smallest=1, largest=_FRAMES), "How many frames there are."),
        "rate_hz": Field(Number(positive=True), "Frames a second."),
        "height": Field(_SIDE, "Of a frame, in pixels."),
        "width": Field(_SIDE, "Of a frame, in pixels."),
        "tracks": Field(
            ListOf(item=_TRACK, fewest=0, most=_LIMITS.max_tracks), "The things, in any order."
        ),
    },
)

#: The documents of this module by their names.
DOCUMENTS: Mapping[str, DocumentKind] = {TRACKS.name: TRACKS}


def tracks_from_json(text: str | bytes, *, limits: DocumentLimits | None = None) -> Tracks:
    """
    Read tracks.

    Raises:
        DocumentError: If the document has faults; all of them are listed.
        ContractError: If *text* is not JSON.
        LimitExceededError: If it is larger than *limits* allow.

    Example:
        >>> at = TrackPoint(frame=0, box=Box.of((1, 2, 3, 4)))
        >>> cup = Track(track_id=1, label="cup", points=[at])
        >>> tracks = Tracks(frame_count=1, rate_hz=5.0, height_px=9, width_px=9, items=[cup])
        >>> tracks_from_json(tracks_to_json(tracks)) == tracks
        True
    """
    return tracks_from_document(read_json(text, limits=limits))


def tracks_to_json(tracks: Tracks) -> str:
    """
    Write tracks.

    Raises:
        LimitExceededError: If they are more than `vlmcore.limits.DocumentLimits` lets in again.
    """
    return write_json(tracks_to_document(tracks))


def tracks_from_document(value: Any) -> Tracks:
    """
    Read tracks from plain values.

    Raises:
        DocumentError: If there are faults; all of them are listed.
    """
    faults = Faults(TRACKS.name)
    data = TRACKS.read(value, faults)
    items = []
    for i, entry in enumerate(data.get("tracks", ())):
        path = f"$.tracks[{i}]"
        points = []
        for k, point in enumerate(entry["points"]):
            with faults.at(f"{path}.points[{k}]"):
                box = Box.of(point["xyxy"])
                points.append(TrackPoint(frame=point["frame"], box=box, score=point.get("score")))
        if len(points) == len(entry["points"]):
            with faults.at(path):
                items.append(Track(track_id=entry["track_id"], label=entry["label"], points=points))
    return faults.finish(
        lambda: Tracks(
            frame_count=data["frame_count"],
            rate_hz=data["rate_hz"],
            height_px=data["height"],
            width_px=data["width"],
            items=items,
        ),
        items="$.tracks",
    )


def tracks_to_document(tracks: Tracks) -> dict[str, Any]:
    """Write tracks as plain values."""
    return {
        **TRACKS.header(),
        "frame_count": tracks.frame_count,
        "rate_hz": tracks.rate_hz,
        "height": tracks.height_px,
        "width": tracks.width_px,
        "tracks": [
            {
                "track_id": track.track_id,
                "label": track.label,
                "points": [_point(point) for point in track.points],
            }
            for track in tracks
        ],
    }


def _point(point: TrackPoint) -> dict[str, Any]:
    score = {} if point.score is None else {"score": point.score}
    return {"frame": point.frame, "xyxy": list(point.box.xyxy), **score}
