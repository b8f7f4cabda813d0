"""Tests of `vlmcore.vision.track_documents`: tracks as JSON, both ways."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmcore.errors import ContractError, DocumentError, LimitExceededError
from vlmcore.limits import DocumentLimits
from vlmcore.vision.places import Box
from vlmcore.vision.track_documents import tracks_from_json, tracks_to_document, tracks_to_json
from vlmcore.vision.tracks import Track, TrackPoint, Tracks

HEIGHT, WIDTH, FRAMES = 60, 80, 12

BOXES = st.tuples(st.floats(0, 40), st.floats(0, 30), st.floats(0.1, 40), st.floats(0.1, 30)).map(
    lambda b: Box.of((b[0], b[1], b[0] + b[2], b[1] + b[3]))
)
POINTS = st.lists(
    st.tuples(st.integers(0, FRAMES - 1), BOXES, st.none() | st.floats(0, 1)),
    min_size=1,
    unique_by=lambda point: point[0],
).map(
    lambda points: [
        TrackPoint(frame=frame, box=box, score=score)
        for frame, box, score in sorted(points, key=lambda point: point[0])
    ]
)
TRACKS = st.builds(
    lambda items: Tracks(
        frame_count=FRAMES, rate_hz=2.5, height_px=HEIGHT, width_px=WIDTH, items=items
    ),
    st.lists(
        st.builds(
            Track,
            track_id=st.integers(1, 1 << 40),
            label=st.sampled_from(["", "cup", "чашка"]),
            points=POINTS,
        ),
        max_size=4,
        unique_by=lambda track: track.track_id,
    ),
)
ONE = {
    "frame_count": 2,
    "rate_hz": 4,
    "height": HEIGHT,
    "width": WIDTH,
    "tracks": [{"track_id": 1, "label": "cup", "points": [{"frame": 1, "xyxy": [1, 2, 3, 4]}]}],
}


@given(tracks=TRACKS)
def test_what_is_written_is_read_back_exactly(tracks: Tracks) -> None:
    """
    To the last bit of every box.
    """
    assert tracks == tracks_from_json(tracks_to_json(tracks))


def test_another_program_may_leave_out_what_it_does_not_know() -> None:
    """
    The schema and the scores.
    """
    (cup,) = tracks_from_json(json.dumps(ONE))
    assert (1, None) == (cup.first_frame, cup.points[0].score)


def test_a_document_names_its_schema() -> None:
    """
    So that a reader of later versions knows it.
    """
    document = tracks_to_document(tracks_from_json(json.dumps(ONE)))
    assert ("comfyui-vlm/video-tracks", 1) == (document["schema"], document["version"])


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("frame_count",), 0, r"\$\.frame_count"),
        (("rate_hz",), 0, r"\$\.rate_hz"),
        (("height",), None, r"\$\.height"),
        (("tracks",), {}, r"\$\.tracks"),
        (("tracks", 0, "track_id"), 0, r"\$\.tracks\[0\]\.track_id"),
        (("tracks", 0, "points"), [], r"\$\.tracks\[0\]\.points"),
        (("tracks", 0, "points", 0, "frame"), 2, r"tracks\[0\]: got frame 2, expected one of 2"),
        (("tracks", 0, "points", 0, "xyxy"), [3, 2, 1, 4], r"points\[0\].*: a box has an area"),
        (("tracks", 0, "points", 0, "xyxy"), [0, 0, 99, 9], r"tracks\[0\].*within 80 x 60 pixels"),
        (("tracks", 0, "points", 0, "score"), 2, r"points\[0\]\.score"),
    ],
)
def test_a_fault_is_told_with_its_place(path: tuple[Any, ...], value: Any, said: str) -> None:
    """
    And what was expected there.
    """
    document = json.loads(json.dumps(ONE))
    at: Any = document
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    with pytest.raises(DocumentError, match=said):
        tracks_from_json(json.dumps(document))


def test_what_is_no_json_or_too_much_of_it_is_refused() -> None:
    """
    Before it is looked at.
    """
    with pytest.raises(ContractError):
        tracks_from_json("a cup")
    with pytest.raises(LimitExceededError):
        tracks_from_json(json.dumps(ONE), limits=DocumentLimits(max_document_bytes=20))
