"""Tests of `vlmcore.media.sampling` and `vlmcore.media.selections`."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmcore.errors import ContractError, LimitExceededError
from vlmcore.media.sampling import sample_frames
from vlmcore.media.selections import FrameReason, FrameSampling, SamplingStrategy

HYBRID, UNIFORM, MOTION, SCENES, TRACKS = SamplingStrategy
EVERY = pytest.mark.parametrize("strategy", SamplingStrategy)


def still(count: int, value: int = 90) -> Any:
    """Build frames that are all the same."""
    return np.full((count, 48, 64, 3), value, np.uint8)


def moving(count: int, first: int, last: int) -> Any:
    """Build frames in which a square moves from frame *first* to frame *last*."""
    frames = still(count)
    for index, frame in enumerate(frames):
        left = 2 * min(max(index - first, 0), last - first) % 48
        frame[16:32, left : left + 16] = 250
    return frames


def scenes(*lengths: int) -> Any:
    """Build scenes of these lengths, each of a noise of its own that stands still."""
    random = np.random.default_rng(7)
    pictures = [random.integers(0, 256, (6, 8, 3), np.uint8) for _ in lengths]
    return np.concatenate(
        [
            np.repeat(np.kron(picture, np.ones((8, 8, 1), np.uint8))[np.newaxis], length, axis=0)
            for picture, length in zip(pictures, lengths, strict=True)
        ]
    )


def times(frames: Any, rate_hz: float = 10, **fields: Any) -> list[float]:
    """Sample, and return the times."""
    found = sample_frames(frames, rate_hz=rate_hz, sampling=FrameSampling(**fields))
    return [round(at_s, 6) for at_s in found.selection.timestamps_s]


@EVERY
def test_a_clip_in_which_nothing_changes_is_covered_evenly(strategy: SamplingStrategy) -> None:
    """
    Whatever is asked for; the first frame and the last are among them.
    """
    assert [0, 2, 4, 6, 8, 10] == times(still(101), strategy=strategy, max_frames=6)


def test_the_starts_of_scenes_are_found_and_taken() -> None:
    """
    Each at its first frame, with the reason; the rest is spread evenly.
    """
    found = sample_frames(
        scenes(23, 40, 37), rate_hz=10, sampling=FrameSampling(strategy=SCENES, max_frames=5)
    )
    assert (2.3, 6.3) == found.selection.cuts_s
    at = {frame.timestamp_s: frame.reason for frame in found.selection.frames}
    assert FrameReason.SCENE is at[2.3]
    assert FrameReason.SCENE is at[6.3]
    assert {0.0, 9.9} <= at.keys()
    assert 5 == len(at)


def test_the_plainest_cuts_are_taken_where_there_are_too_many() -> None:
    """
    Never more frames than the limit.
    """
    found = sample_frames(
        scenes(*[20] * 10), rate_hz=10, sampling=FrameSampling(strategy=SCENES, max_frames=4)
    )
    assert 9 == len(found.selection.cuts_s)
    assert {FrameReason.SCENE} == {frame.reason for frame in found.selection.frames}
    assert 4 == len(found.selection.frames)


def test_a_flash_is_no_cut() -> None:
    """
    What was there before is there again.
    """
    frames = still(60)
    frames[30] = 255
    assert () == sample_frames(frames, rate_hz=10).selection.cuts_s


def test_where_everything_moves_all_the_time_no_frame_is_a_cut() -> None:
    """
    A shaken camera makes each frame a new one.
    """
    frames = np.random.default_rng(1).integers(0, 256, (40, 6, 8, 3), np.uint8)
    frames = np.kron(frames, np.ones((1, 8, 8, 1), np.uint8))
    assert () == sample_frames(frames, rate_hz=10).selection.cuts_s


def test_more_frames_are_taken_where_something_moves() -> None:
    """
    Most of them within the second that has the motion, and the ends are covered all the same.
    """
    found = sample_frames(
        moving(101, 50, 60), rate_hz=10, sampling=FrameSampling(strategy=MOTION, max_frames=10)
    )
    inside = [f for f in found.selection.frames if 5.0 <= f.timestamp_s <= 6.0]
    assert len(inside) >= 5
    assert FrameReason.MOTION in {frame.reason for frame in inside}
    assert (0.0, 10.0) == (found.selection.timestamps_s[0], found.selection.timestamps_s[-1])


def test_a_hybrid_takes_cuts_tracks_and_motion() -> None:
    """
    Half of the frames at most are cuts, a quarter at most changes of tracks.
    """
    frames = np.concatenate([moving(60, 10, 40), scenes(40)])
    tracks = np.zeros(100)
    tracks[[25, 75]] = 1
    found = sample_frames(
        frames, rate_hz=10, sampling=FrameSampling(max_frames=8), track_changes=tracks.tolist()
    )
    at = {frame.index: frame.reason for frame in found.selection.frames}
    assert FrameReason.SCENE is at[60]
    assert FrameReason.TRACK is at[25]
    assert FrameReason.TRACK is at[75]
    assert FrameReason.MOTION in at.values()


def test_changes_of_tracks_come_first_where_that_is_asked_for() -> None:
    """
    The largest of them; without tracks the clip is covered evenly.
    """
    tracks = [0.0] * 101
    tracks[33], tracks[71], tracks[90] = 2.0, 3.0, 1.0
    found = sample_frames(
        still(101),
        rate_hz=10,
        sampling=FrameSampling(strategy=TRACKS, max_frames=2),
        track_changes=tracks,
    )
    assert [33, 71] == [frame.index for frame in found.selection.frames]


def test_frames_at_uneven_times_are_covered_evenly_in_time() -> None:
    """
    By their times, never by their number: ten frames in the first second, one in each after it.
    """
    at_s = [i / 10 for i in range(10)] + [float(i) for i in range(1, 11)]
    found = sample_frames(
        still(20),
        timestamps_s=at_s,
        sampling=FrameSampling(strategy=UNIFORM, max_frames=6),
    )
    assert (0.0, 2.0, 4.0, 6.0, 8.0, 10.0) == found.selection.timestamps_s
    assert 0.5 == found.rate_hz


@given(
    st.integers(1, 60),
    st.integers(1, 70),
    st.floats(0, 3),
    st.sampled_from(SamplingStrategy),
    st.integers(0, 2**32 - 1),
)
def test_whatever_comes_the_limit_and_the_gap_hold_and_the_answer_is_the_same_again(
    count: int, most: int, gap_s: float, strategy: SamplingStrategy, seed: int
) -> None:
    """
    At least one frame, ascending, each once.
    """
    random = np.random.default_rng(seed)
    frames = random.integers(0, 256, (count, 4, 6, 3), np.uint8)
    at_s = np.cumsum(random.uniform(0.01, 1.0, count))
    sampling = FrameSampling(max_frames=most, minimum_gap_s=gap_s, strategy=strategy)
    tracks = random.uniform(0, 1, count).tolist()

    def sampled() -> Any:
        return sample_frames(
            frames, timestamps_s=at_s.tolist(), sampling=sampling, track_changes=tracks
        )

    found = sampled()
    chosen = found.selection.timestamps_s
    assert 1 <= len(chosen) <= most
    assert np.all(np.diff(chosen) >= gap_s - 1e-6)
    assert sorted(set(chosen)) == list(chosen)
    indices = [frame.index for frame in found.selection.frames]
    assert np.array_equal(frames[indices], found.pixels)
    assert found.selection == sampled().selection


@EVERY
def test_as_many_frames_as_the_limit_are_taken_where_there_is_room(
    strategy: SamplingStrategy,
) -> None:
    """
    All frames of a short clip; the gap alone makes them fewer.
    """
    frames = moving(12, 3, 6)
    assert 12 == len(times(frames, strategy=strategy, max_frames=16, minimum_gap_s=0))
    assert 8 == len(times(frames, strategy=strategy, max_frames=8, minimum_gap_s=0))
    assert 6 >= len(times(frames, strategy=strategy, max_frames=16, minimum_gap_s=0.2))


@pytest.mark.parametrize("thumbnail", [16, 96, 256])
@pytest.mark.parametrize("gap_s", [0.0, 0.15, 60.0])
@pytest.mark.parametrize("most", [1, 16, 512])
def test_every_setting_that_the_node_of_the_sampler_offers_is_a_sampling(
    thumbnail: int, gap_s: float, most: int
) -> None:
    """
    From the least to the most of each, and the usual ones are ours.
    """
    FrameSampling(max_frames=most, minimum_gap_s=gap_s, thumbnail_px=thumbnail)
    usual = FrameSampling(max_frames=16, strategy=HYBRID, minimum_gap_s=0.15, thumbnail_px=96)
    assert usual == FrameSampling()


def test_a_selection_says_all_of_it_in_json() -> None:
    """
    The strategy, what was scanned, the cuts, and for each frame when and why.
    """
    found = sample_frames(
        scenes(20, 20), rate_hz=10, sampling=FrameSampling(strategy=SCENES, max_frames=2)
    )
    document = json.loads(json.dumps(found.selection.to_document()))
    assert ("scenes", 40, [2.0]) == (
        document["strategy"],
        document["scanned_frames"],
        document["cuts_s"],
    )
    assert {"timestamp_s", "index", "reason", "change"} == document["frames"][0].keys()
    assert "scene" in {frame["reason"] for frame in document["frames"]}


def test_what_is_sampled_cannot_be_written_to_and_shares_nothing() -> None:
    """
    Neither with the frames that were given.
    """
    frames = still(4)
    found = sample_frames(frames, rate_hz=1)
    assert not found.pixels.flags.writeable
    frames[:] = 0
    assert 90 == found.pixels[0, 0, 0, 0]


@pytest.mark.parametrize(
    ("field", "arguments"),
    [
        ("rate_hz", {}),
        ("rate_hz", {"rate_hz": 1.0, "timestamps_s": [0, 1, 2]}),
        ("rate_hz", {"rate_hz": 0.0}),
        ("timestamps_s", {"timestamps_s": [0.0, 1.0]}),
        ("timestamps_s", {"timestamps_s": [0.0, 1.0, 1.0]}),
        ("timestamps_s", {"timestamps_s": [-1.0, 1.0, 2.0]}),
        ("timestamps_s", {"timestamps_s": [0.0, 1.0, float("nan")]}),
        ("timestamps_s", {"timestamps_s": [0.0, 1.0, float("inf")]}),
        ("track_changes", {"rate_hz": 1.0, "track_changes": [1.0]}),
        ("track_changes", {"rate_hz": 1.0, "track_changes": [1.0, -1.0, 0.0]}),
        ("track_changes", {"rate_hz": 1.0, "track_changes": [1.0, float("nan"), 0.0]}),
    ],
)
def test_times_and_scores_that_are_none_are_refused(field: str, arguments: dict[str, Any]) -> None:
    """
    By the name of the argument.
    """
    with pytest.raises(ContractError) as caught:
        sample_frames(still(3), **arguments)
    assert field == caught.value.field


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_frames", 0),
        ("max_frames", 1.0),
        ("strategy", "hybrid"),
        ("minimum_gap_s", -0.1),
        ("minimum_gap_s", 61),
        ("minimum_gap_s", float("nan")),
        ("thumbnail_px", 15),
        ("thumbnail_px", 257),
    ],
)
def test_a_sampling_out_of_range_is_refused(field: str, value: Any) -> None:
    """
    By the name of the field.
    """
    with pytest.raises(ContractError) as caught:
        FrameSampling(**{field: value})
    assert field == caught.value.field


def test_more_frames_than_a_prompt_may_have_cannot_be_asked_for() -> None:
    """
    It is said before anything is scanned.
    """
    with pytest.raises(LimitExceededError, match="max_frames: got 1025, limit is 1024"):
        FrameSampling(max_frames=1025)


@pytest.mark.parametrize("size", [(1, 1), (1, 900), (900, 1), (7, 13)])
def test_frames_of_any_shape_are_scanned(size: tuple[int, int]) -> None:
    """
    One pixel, a line, and what no block divides.
    """
    frames = np.zeros((12, *size, 3), np.uint8)
    frames[6:] = 255
    assert (0.6,) == sample_frames(frames, rate_hz=10).selection.cuts_s
