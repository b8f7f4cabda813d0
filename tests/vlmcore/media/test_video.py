"""Tests of `vlmcore.media.video`."""

from __future__ import annotations

import base64
import io
import os
import re
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vlmcore.media
from video_cases import clip, number, picture, sound_alone
from vlmcore.errors import ContractError, MediaError, MediaLimitError, MissingDependencyError
from vlmcore.limits import VideoLimits
from vlmcore.media.budgets import PixelBudget
from vlmcore.media.selections import FrameReason, FrameSampling, SamplingStrategy
from vlmcore.media.video import is_video, open_video, sample_video

UNIFORM, SCENES = SamplingStrategy.UNIFORM, SamplingStrategy.SCENES
KINDS = [
    ("mp4", "h264"),
    ("mp4", "mpeg4"),
    ("mov", "h264"),
    ("matroska", "h264"),
    ("webm", "libvpx-vp9"),
    ("avi", "mpeg4"),
    ("mpegts", "h264"),
    ("asf", "wmv2"),
]
PLAIN = clip(40)


def numbers_at(source: Any, times_s: list[float], **options: Any) -> list[int]:
    """Read the numbers of the frames at these times."""
    with open_video(source, **options) as video:
        return [number(frame) for frame in video.frames_at(times_s).pixels]


@pytest.mark.parametrize(("kind", "codec"), KINDS)
def test_frames_are_found_by_their_times_in_every_kind_of_file(kind: str, codec: str) -> None:
    """
    Forwards, far ahead, at the end and, asked again, from the start.
    """
    made = clip(100, kind=kind, codec=codec)
    with open_video(made) as video:
        for _ in range(2):
            frames = video.frames_at([0, 0.25, 1.0, 1.19, 3.55, 3.6, 9.9, 12.0])
            assert [0, 2, 10, 11, 35, 36, 99, 99] == [number(each) for each in frames.pixels]
            assert np.allclose([0, 0.2, 1.0, 1.1, 3.5, 3.6, 9.9, 9.9], frames.timestamps_s)
            assert "" == frames.problem
        evenly = video.sample(FrameSampling(max_frames=4, strategy=UNIFORM))
        assert [0, 33, 66, 99] == [number(each) for each in evenly.pixels]


def test_what_a_file_says_of_itself_is_read() -> None:
    """
    Container, codec, size, rates, length, frames and whether there is sound.
    """
    with open_video(clip(40, sound=True)) as video:
        info = video.info
    assert ("mov", "h264", 64, 48, 0) == (
        info.container,
        info.codec,
        info.width_px,
        info.height_px,
        info.rotation_deg,
    )
    assert (4.0, 10.0, 10.0, 40, True) == (
        info.duration_s,
        info.rate_hz,
        info.nominal_rate_hz,
        info.frames,
        info.has_sound,
    )


def test_frames_at_uneven_times_are_found_by_their_times() -> None:
    """
    A frame is shown until the next one comes, however long that takes.
    """
    at_s = [0.0, 0.1, 0.2, 3.0, 3.1, 9.0, 9.05, 9.1]
    made = clip(8, times_s=at_s, gop=250)
    assert [0, 1, 2, 2, 3, 4, 4, 5, 6, 7] == numbers_at(
        made, [0.0, 0.15, 0.2, 2.99, 3.0, 3.1, 8.9, 9.0, 9.07, 9.1]
    )


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(1, 900), min_size=1, max_size=40),
    st.lists(st.floats(0, 20), min_size=1, max_size=12),
    st.sampled_from([1, 4, 12, 250]),
)
def test_whatever_the_times_the_frame_is_the_last_one_before(
    gaps_ms: list[int], wanted_s: list[float], gop: int
) -> None:
    """
    As a list of the times says; with frames skipped on the way or not.
    """
    at_s = np.cumsum([0, *gaps_ms]) / 1000
    made = clip(len(at_s), times_s=at_s.tolist(), gop=gop)
    asked = sorted(round(each, 3) for each in wanted_s)
    expected = [int(np.searchsorted(at_s, each + 1e-6, side="right")) - 1 for each in asked]
    assert expected == numbers_at(made, asked)


def test_no_more_is_decoded_than_is_needed() -> None:
    """
    A frame far ahead is reached from the key frame before it; others on the way are skipped.
    """
    made = clip(250, gop=50)
    limits = VideoLimits(max_decoded_frames=90)
    assert [0, 51, 151, 248] == numbers_at(made, [0, 5.1, 15.1, 24.8], limits=limits)
    with open_video(made, limits=limits) as video:
        for _ in range(5):  # what is counted is one call, not the life of an open video
            assert 51 == number(video.frames_at([5.1]).pixels[0])
            assert 200 == number(video.frames_at([20.0]).pixels[0])
    with pytest.raises(MediaLimitError, match="max_decoded_frames"):
        sample_video(made, FrameSampling(strategy=SCENES), limits=limits)


@pytest.mark.parametrize("rotation", [0, 90, 180, 270, -90])
def test_frames_are_turned_as_the_file_says(rotation: int) -> None:
    """
    A film that was taken upright is shown upright, with its size as shown.
    """
    made = clip([picture(5)] * 4, rotation=rotation)
    expected = np.rot90(picture(5), k=rotation // 90)
    with open_video(made) as video:
        pixels = video.frames_at([0.0]).pixels[0]
        assert expected.shape[:2] == (video.info.height_px, video.info.width_px)
        assert -rotation % 360 == video.info.rotation_deg
        small = video.frames_at([0.1], budget=PixelBudget(longest_edge_px=32)).pixels[0]
    assert expected.shape == pixels.shape
    assert np.abs(expected.astype(int) - pixels).mean() < 12
    assert tuple(edge // 2 for edge in expected.shape[:2]) == small.shape[:2]


@pytest.mark.parametrize("how", ["path", "text", "bytes", "file", "data URL"])
def test_a_video_is_read_from_wherever_it_is(how: str, tmp_path: Path) -> None:
    """
    An open file stays open, and is read from its start.
    """
    path = tmp_path / "clip.mp4"
    path.write_bytes(PLAIN)
    file = io.BytesIO(PLAIN)
    file.seek(100)
    source = {
        "path": path,
        "text": str(path),
        "bytes": PLAIN,
        "file": file,
        "data URL": "data:video/mp4;base64," + base64.b64encode(PLAIN).decode(),
    }[how]
    assert is_video(source)
    assert [7] == numbers_at(source, [0.7])
    assert not file.closed


def test_frames_are_made_to_fit_a_budget_while_they_are_read() -> None:
    """
    What is kept is counted after it, so a long sample of a large video fits.
    """
    budget = PixelBudget(longest_edge_px=32, multiple_px=8)
    limits = VideoLimits(max_kept_bytes=40 * 32 * 24 * 3)
    sampling = FrameSampling(max_frames=40, strategy=UNIFORM, minimum_gap_s=0)
    found = sample_video(PLAIN, sampling, budget=budget, limits=limits)
    assert (40, 24, 32, 3) == found.pixels.shape
    with pytest.raises(MediaLimitError, match="max_kept_bytes"):
        sample_video(PLAIN, sampling, limits=limits)


def test_cuts_of_a_file_are_found() -> None:
    """
    At the time at which the new scene starts, or a frame after it.
    """
    random = np.random.default_rng(3)
    pictures = [
        np.kron(random.integers(0, 256, (6, 8, 3), np.uint8), np.ones((8, 8, 1), np.uint8))
        for _ in range(3)
    ]
    frames = [pictures[0]] * 23 + [pictures[1]] * 40 + [pictures[2]] * 37
    found = sample_video(clip(frames), FrameSampling(max_frames=6, strategy=SCENES))
    assert np.allclose([2.3, 6.3], found.selection.cuts_s, atol=0.2001)
    reasons = {frame.timestamp_s: frame.reason for frame in found.selection.frames}
    assert all(FrameReason.SCENE is reasons[at_s] for at_s in found.selection.cuts_s)
    for index, frame in enumerate(found.selection.frames):
        scene = sum(frame.timestamp_s >= at_s - 0.2001 for at_s in (2.3, 6.3))
        if min(abs(frame.timestamp_s - at_s) for at_s in (2.3, 6.3)) > 0.25:
            difference = np.abs(found.pixels[index].astype(int) - pictures[scene])
            assert difference.mean() < 20


def test_a_file_in_which_nothing_moves_is_covered_evenly() -> None:
    """
    By each strategy nearly as by even steps of time.
    """
    still = clip([picture(99)] * 61)
    for strategy in SamplingStrategy:
        found = sample_video(still, FrameSampling(max_frames=4, strategy=strategy))
        assert np.allclose([0, 2, 4, 6], found.selection.timestamps_s, atol=0.3)


def test_where_something_moves_there_are_more_frames() -> None:
    """
    A square that moves within one second of ten draws half of the frames.
    """
    frames = [np.full((48, 64, 3), 90, np.uint8) for _ in range(100)]
    for index, frame in enumerate(frames):
        left = 4 * min(max(index - 50, 0), 10)
        frame[16:32, left : left + 16] = 250
    found = sample_video(
        clip(frames, bf="0"), FrameSampling(max_frames=10, strategy=SamplingStrategy.MOTION)
    )
    inside = [at_s for at_s in found.selection.timestamps_s if 4.9 <= at_s <= 6.1]
    assert len(inside) >= 5


def test_the_minimum_gap_holds_in_files_too() -> None:
    """
    Whichever strategy, and as many frames as there is room for.
    """
    for strategy in SamplingStrategy:
        sampling = FrameSampling(max_frames=30, strategy=strategy, minimum_gap_s=0.35)
        times = sample_video(PLAIN, sampling).selection.timestamps_s
        assert np.all(np.diff(times) >= 0.35 - 1e-6)
        assert len(times) >= 8


def test_a_sample_has_each_frame_once() -> None:
    """
    A clip of three frames is three frames, whatever was asked for.
    """
    sampling = FrameSampling(max_frames=16, strategy=UNIFORM, minimum_gap_s=0)
    found = sample_video(clip(3), sampling)
    assert [0, 1, 2] == [number(frame) for frame in found.pixels]
    assert 1 == len(sample_video(clip(1), sampling).pixels)


def test_sound_alone_is_refused() -> None:
    """
    In words, not as a missing frame.
    """
    with pytest.raises(MediaError, match="bytes: holds sound and no video"):
        numbers_at(sound_alone(), [0])


def large(frames: int = 60) -> bytes:
    """Build a clip of some size, its index at the front, as files for the web are."""
    random = np.random.default_rng(0)
    pictures = [
        np.kron(random.integers(0, 256, (24, 32, 3), np.uint8), np.ones((2, 2, 1), np.uint8))
        for _ in range(frames)
    ]
    return clip(pictures, index_in_front=True)


def test_of_a_file_that_is_cut_short_what_is_there_is_given_and_the_place_said() -> None:
    """
    Times after it give nothing, and a sample is spread over what is there.
    """
    whole = large()
    cut = whole[: len(whole) // 2]
    with open_video(cut) as video:
        frames = video.frames_at([0, 1, 5.5])
        assert 2 == len(frames.pixels)
        assert "it ends at " in frames.problem
        assert " of 6 s" in frames.problem
        sample = video.sample(FrameSampling(max_frames=4, strategy=UNIFORM))
        assert 2.0 < sample.selection.timestamps_s[-1] < 4.0
        assert sample.problem == frames.problem


def test_of_a_file_with_a_broken_part_the_rest_is_given_and_the_place_said() -> None:
    """
    Packets that cannot be decoded are left out.
    """
    whole = bytearray(large())
    middle = len(whole) // 2
    whole[middle : middle + 6000] = np.random.default_rng(1).bytes(6000)
    for strategy in SamplingStrategy:
        found = sample_video(bytes(whole), FrameSampling(max_frames=16, strategy=strategy))
        assert len(found.pixels) >= 8
        assert re.fullmatch(r"what is at [23]\.?\d* s cannot be decoded", found.problem)


@pytest.mark.parametrize("length", [5, 12, 100, 1000])
def test_a_file_that_lost_its_index_is_one_clear_error(length: int) -> None:
    """
    Nothing can be found in it.
    """
    with pytest.raises(MediaError, match="bytes: "):
        numbers_at(PLAIN[:length], [0])


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_whatever_is_broken_there_are_frames_or_our_error(data: st.DataObject) -> None:
    """
    Bytes changed, lost or added anywhere in any kind of file: times ascend from 0 on.
    """
    kind, codec = data.draw(st.sampled_from(KINDS))
    made = bytearray(clip(8, kind=kind, codec=codec))
    for _ in range(data.draw(st.integers(1, 20))):
        place = data.draw(st.integers(0, len(made) - 1))
        made[place : place + data.draw(st.sampled_from([0, 1, 1, 1, 30]))] = data.draw(
            st.binary(max_size=4)
        )
    strategy = data.draw(st.sampled_from(SamplingStrategy))
    try:
        found = sample_video(bytes(made), FrameSampling(max_frames=3, strategy=strategy))
    except MediaError:
        return
    times = found.selection.timestamps_s
    assert 1 <= len(times) == len(found.pixels) <= 3
    assert 0 <= times[0]
    assert np.all(np.diff(times) > 0)


PLAYLIST = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\n{}\n#EXT-X-ENDLIST\n"
SCRIPT = "ffconcat version 1.0\nfile '{}'\n"


@pytest.mark.parametrize("text", [PLAYLIST, SCRIPT, "<MPD><BaseURL>{}</BaseURL></MPD>", "v=0\n{}"])
def test_a_file_that_names_other_files_is_not_opened(text: str, tmp_path: Path) -> None:
    """
    A playlist, a list of files to be joined, a manifest, a session: whatever they are called.
    """
    other = tmp_path / "secret.mp4"
    other.write_bytes(PLAIN)
    path = tmp_path / "clip.mp4"
    path.write_text(text.format(other))
    assert not is_video(path)
    with pytest.raises(MediaError, match="is not a video of a known kind"):
        numbers_at(path, [0])


@pytest.mark.parametrize(
    "address",
    ["http://127.0.0.1:1/a.mp4", "concat:a.mp4|b.mp4", "subfile,,start,0,end,9,,:a.mp4", "pipe:0"],
)
def test_addresses_are_refused_or_are_paths(address: str) -> None:
    """
    Nothing but files of that very name is opened.
    """
    with pytest.raises(MediaError, match=r"is not fetched|does not exist"):
        numbers_at(address, [0])


@pytest.mark.parametrize(("container", "text"), [("hls", PLAYLIST), ("concat", SCRIPT)])
def test_even_what_is_read_as_a_list_of_files_opens_none_of_them(
    container: str, text: str, tmp_path: Path
) -> None:
    """
    Two locks: what is no container is not read, and what is read opens no other file.
    """
    from vlmcore.media._av import VideoFile  # noqa: PLC0415 - one test tries a door without one

    other = tmp_path / "secret.mp4"
    other.write_bytes(PLAIN)
    listed = io.BytesIO(text.format(other).encode())
    with pytest.raises(MediaError, match="list: "):
        VideoFile(listed, name="list", container=container, limits=VideoLimits())


@pytest.mark.parametrize("what", ["folder", "pipe", "nothing", "empty", "text"])
def test_what_is_no_file_of_video_is_one_clear_error(what: str, tmp_path: Path) -> None:
    """
    It says which it is, and nobody waits.
    """
    path = tmp_path / "clip.mp4"
    if what == "folder":
        path.mkdir()
    elif what == "pipe":
        os.mkfifo(path)
    elif what != "nothing":
        path.write_bytes(b"" if what == "empty" else b"this is a text" * 40)
    with pytest.raises(MediaError) as caught:
        numbers_at(path, [0])
    assert str(path) == caught.value.source


@pytest.mark.parametrize(
    ("limit", "allowed"),
    [
        ("max_file_bytes", 100),
        ("max_pixels", 64 * 48 - 1),
        ("max_duration_s", 3),
        ("max_frames", 1),
        ("max_kept_bytes", 2 * 64 * 48 * 3 - 1),
        ("max_packets", 10),
        ("max_decoded_frames", 2),
    ],
)
def test_each_limit_is_kept(limit: str, allowed: int) -> None:
    """
    With its name, what came and what is allowed.
    """
    with pytest.raises(MediaLimitError) as caught:
        numbers_at(PLAIN, [0, 2.9], limits=VideoLimits(**{limit: allowed}))
    assert (limit, allowed) == (caught.value.limit, caught.value.allowed)
    assert caught.value.actual > allowed


class Failing(io.BytesIO):
    """A file whose reader fails later."""

    reads = 0

    def read(self, size: int | None = -1, /) -> bytes:
        self.reads += 1
        if self.reads > 2:
            raise RuntimeError("the disk is on fire")
        return super().read(size)


def test_whatever_a_file_raises_is_our_error() -> None:
    """
    With its words.
    """
    with pytest.raises(MediaError, match="the disk is on fire"):
        numbers_at(Failing(large()), [0, 5])


def test_a_file_that_cannot_be_sought_in_is_refused() -> None:
    """
    The way out is said.
    """
    read, write = os.pipe()
    os.close(write)
    with os.fdopen(read, "rb", buffering=0) as file, pytest.raises(MediaError, match="its bytes"):
        numbers_at(file, [0])


@pytest.mark.parametrize("source", [None, 5, ["a.mp4"], np.zeros(3)])
def test_what_is_no_source_is_refused(source: Any) -> None:
    """
    Arrays too: `sample_frames` takes them.
    """
    with pytest.raises(ContractError, match="source"):
        numbers_at(source, [0])


@pytest.mark.parametrize("times", [[], [-1.0], [float("nan")], [float("inf")], [2.0, 1.0], [1e9]])
def test_times_that_are_none_are_refused(times: list[float]) -> None:
    """
    None, before the start, out of order, beyond any video.
    """
    with pytest.raises(ContractError, match="times_s"):
        numbers_at(PLAIN, times)


def test_without_pyav_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    By the extra; what is no video is told all the same.
    """
    for name in ("_av", "_seeking"):
        monkeypatch.delitem(sys.modules, f"vlmcore.media.{name}", raising=False)
        monkeypatch.delattr(vlmcore.media, name, raising=False)
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(MissingDependencyError, match=r'pip install "vlmcore\[video\]"'):
        numbers_at(PLAIN, [0])
    with pytest.raises(MediaError, match="known kind"):
        numbers_at(b"no video", [0])


def test_a_video_that_was_closed_leaves_no_thread_and_no_file_open(tmp_path: Path) -> None:
    """
    Also after an error in the block, which is passed on as it is.
    """
    path = tmp_path / "clip.mp4"
    path.write_bytes(PLAIN)
    open_before = len([*Path("/proc/self/fd").iterdir()])
    threads = threading.active_count()
    with pytest.raises(ZeroDivisionError), open_video(path) as video:
        video.frames_at([len(threading.enumerate()) // 0])
    assert open_before == len([*Path("/proc/self/fd").iterdir()])
    assert threads == threading.active_count()
