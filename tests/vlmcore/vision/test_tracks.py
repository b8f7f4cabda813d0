"""Tests of `vlmcore.vision.tracks`: things that are followed through frames."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmcore.errors import ContractError, LimitExceededError
from vlmcore.limits import VisionLimits
from vlmcore.vision.detections import Detection, Detections
from vlmcore.vision.places import Box, Point, Polygon
from vlmcore.vision.tracks import Track, TrackPoint, Tracks, track_detections

HEIGHT, WIDTH = 60, 80
SIZE: dict[str, Any] = {"height_px": HEIGHT, "width_px": WIDTH}


def frame(*seen: tuple[str, float, float]) -> Detections:
    """Build what is seen in a frame: boxes of 10 by 10 pixels, by label, left and top."""
    return Detections(
        **SIZE,
        items=[
            Detection(place=Box.of((left, top, left + 10, top + 10)), label=label, score=0.5)
            for label, left, top in seen
        ],
    )


def ways(tracks: Tracks) -> list[tuple[str, list[tuple[int, float]]]]:
    """Give for each track its label, its frames and where its left side was."""
    return [(each.label, [(at.frame, at.box.left) for at in each.points]) for each in tracks]


FRAMES = st.lists(
    st.lists(
        st.tuples(st.sampled_from(["cup", "hand", ""]), st.floats(0, 70), st.floats(0, 50)),
        max_size=6,
    ).map(lambda seen: frame(*seen)),
    min_size=1,
    max_size=12,
)
RULES = st.fixed_dictionaries({"min_iou": st.floats(0.01, 1), "max_gap": st.integers(0, 4)})


def test_a_thing_that_moves_is_one_track() -> None:
    """
    Also where another of its kind stands beside it.
    """
    seen = [frame(("cup", 4.0 * i, 0), ("cup", 40, 40)) for i in range(4)]
    assert ways(track_detections(seen, rate_hz=2)) == [
        ("cup", [(0, 0), (1, 4), (2, 8), (3, 12)]),
        ("cup", [(0, 40), (1, 40), (2, 40), (3, 40)]),
    ]


def test_labels_keep_things_apart() -> None:
    """
    A hand that lies where a cup was is another thing.
    """
    tracks = track_detections([frame(("cup", 0, 0)), frame(("hand", 0, 0))], rate_hz=1)
    assert [("cup", [(0, 0)]), ("hand", [(1, 0)])] == ways(tracks)


@pytest.mark.parametrize(("max_gap", "count"), [(0, 2), (1, 2), (2, 1), (9, 1)])
def test_a_thing_may_be_out_of_sight_for_so_many_frames(max_gap: int, count: int) -> None:
    """
    Here for two; after more it is another thing.
    """
    seen = [frame(("cup", 0, 0)), frame(), frame(), frame(("cup", 1, 0))]
    assert count == len(track_detections(seen, rate_hz=1, max_gap=max_gap))


def test_the_pair_that_overlaps_most_is_taken_first() -> None:
    """
    Not the pair that was said first.
    """
    seen = [frame(("cup", 10, 0)), frame(("cup", 14, 0), ("cup", 11, 0))]
    assert ways(track_detections(seen, rate_hz=1)) == [
        ("cup", [(0, 10), (1, 11)]),
        ("cup", [(1, 14)]),
    ]


def test_polygons_are_followed_by_their_bounds_and_points_are_not() -> None:
    """
    A point has nothing that overlaps.
    """
    corner = Polygon(corners=[(0, 0), (10, 0), (0, 10)])
    seen = Detections(
        **SIZE, items=[Detection(place=Point(x=3, y=3)), Detection(place=corner, label="flag")]
    )
    assert [("flag", [(0, 0), (1, 0)])] == ways(track_detections([seen, seen], rate_hz=1))


@given(frames=FRAMES, rules=RULES)
def test_every_box_is_in_one_track_and_none_is_made_up(
    frames: list[Detections], rules: dict[str, Any]
) -> None:
    """
    Each is there once, at its frame, with its label, and within the gap after the one before.
    """
    tracks = track_detections(frames, rate_hz=5, **rules)

    followed = [(at.frame, each.label, at.box.xyxy) for each in tracks for at in each.points]
    assert sorted(followed) == sorted(
        (index, item.label, item.place.bounds)
        for index, found in enumerate(frames)
        for item in found
    )
    for each in tracks:
        steps = zip(each.points, each.points[1:], strict=False)
        assert all(0 < b.frame - a.frame <= rules["max_gap"] + 1 for a, b in steps)


@given(frames=FRAMES, rules=RULES)
def test_the_same_frames_give_the_same_tracks(
    frames: list[Detections], rules: dict[str, Any]
) -> None:
    """
    A graph that is run again gives what it gave.
    """
    assert track_detections(frames, rate_hz=5, **rules) == track_detections(
        frames, rate_hz=5, **rules
    )


@given(frames=FRAMES)
def test_what_is_seen_later_does_not_change_what_was_followed_before(
    frames: list[Detections],
) -> None:
    """
    Tracks of the first frames are the tracks of all of them, cut off there.
    """
    whole = track_detections(frames, rate_hz=5)
    first = track_detections(frames[:-1] or frames, rate_hz=5)
    cut = [
        (label, [at for at in points if at[0] < first.frame_count]) for label, points in ways(whole)
    ]
    assert [each for each in cut if each[1]] == ways(first)


def test_a_change_is_a_thing_that_comes_or_goes_or_moves() -> None:
    """
    Moves count in diagonals of the frame, here 100 pixels; the first frame has nothing before it.
    """
    seen = [
        frame(("cup", 0, 0)),
        frame(("cup", 5, 0), ("hand", 50, 50)),
        frame(("hand", 50, 50)),
    ]
    changes = track_detections(seen, rate_hz=1).changes()
    assert [0, 1.05, 1] == pytest.approx(changes.tolist())


@pytest.mark.parametrize(
    ("frames", "options", "said"),
    [
        ([], {}, "frames: got none"),
        ([frame(), Detections(height_px=1, width_px=1)], {}, "frames: got 2 sizes"),
        ([frame(), None], {}, r"frames\[1\]: got None"),
        ([frame()], {"min_iou": 0.0}, "min_iou: got 0"),
        ([frame()], {"min_iou": 1.5}, "min_iou"),
        ([frame()], {"max_gap": -1}, "max_gap: got -1"),
        ([frame()], {"max_gap": True}, "max_gap: got True"),
        ([frame()], {"rate_hz": 0.0}, "rate_hz"),
    ],
)
def test_what_cannot_be_followed_is_refused(
    frames: Any, options: dict[str, Any], said: str
) -> None:
    """
    Each with its name and what was expected.
    """
    with pytest.raises(ContractError, match=said):
        track_detections(frames, **{"rate_hz": 1.0, **options})


def test_more_tracks_than_the_limit_are_refused_while_they_are_followed() -> None:
    """
    A detector that flickers begins thousands; they are not gathered first.
    """
    flickering = [
        frame(*(("cup", 7.0 * (i % 10), 5.0 * (k % 9)) for k in range(9))) for i in (0, 5)
    ]
    endless = flickering * VisionLimits().max_tracks
    with pytest.raises(LimitExceededError) as caught:
        track_detections(endless, rate_hz=1, max_gap=0, min_iou=1.0)
    assert ("max_tracks", 4097) == (caught.value.limit, caught.value.actual)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"points": []}, "points: expected at least one"),
        ({"points": ["here"]}, "points: got 'here', expected a list of TrackPoint"),
        ({"points": 3}, "points: got 3"),
        ({"track_id": 0}, "track_id"),
        ({"label": "two\nlines"}, "label"),
        ({"label": 4}, "label"),
    ],
)
def test_a_track_is_a_number_a_label_and_where_it_was(fields: dict[str, Any], said: str) -> None:
    """
    Frames ascend, and each is there once.
    """
    point = TrackPoint(frame=0, box=Box.of((0, 0, 1, 1)))
    Track(track_id=1, points=[point])
    with pytest.raises(ContractError, match=said):
        Track(**{"track_id": 1, "points": [point], **fields})
    with pytest.raises(ContractError, match="each in a later frame"):
        Track(track_id=1, points=[point, point])


def test_tracks_stay_within_their_video() -> None:
    """
    Neither beyond its last frame, nor beyond its edges, nor two of one number.
    """

    def tracks(*items: Track) -> Tracks:
        return Tracks(frame_count=2, rate_hz=1, items=items, **SIZE)

    def track(number: int, at: int, right: float) -> Track:
        return Track(track_id=number, points=[TrackPoint(frame=at, box=Box.of((0, 0, right, 1)))])

    assert 2 == len(tracks(track(1, 1, WIDTH), track(2, 0, 1)))
    with pytest.raises(ContractError, match=r"items\[0\]: got frame 2, expected one of 2"):
        tracks(track(1, 2, 1))
    with pytest.raises(ContractError, match=r"items\[1\]: .* within 80 x 60 pixels"):
        tracks(track(1, 1, 1), track(2, 1, WIDTH + 1))
    with pytest.raises(ContractError, match="a number twice"):
        tracks(track(1, 1, 1), track(1, 0, 1))
