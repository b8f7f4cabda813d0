"""Tests of `vlmcore_robotics.datasets.lerobot_reader` on data sets that LeRobot itself wrote."""

from __future__ import annotations

import math
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import av
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataset_cases import (
    EPISODES,
    GOLDEN,
    ROWS,
    TASKS,
    VIDEO,
    copy,
    golden,
    with_column,
    with_feature,
    with_info,
    with_table,
)
from episode_cases import ROBOT
from vlmcore.errors import ContractError, EpisodeError, LimitExceededError, VlmcoreError
from vlmcore.limits import DatasetLimits
from vlmcore.rollout.recorded_moments import RecordedEpisode
from vlmcore_robotics.datasets import LeRobotDatasetReader

SAID = golden()
KINDS = ("image", "video")


def read_all(folder: Path, **options: Any) -> list[Any]:
    """Read each observation of a data set."""
    reader = LeRobotDatasetReader(folder, **options)
    return [row.observe() for episode in reader for row in episode]


def is_of_row(frame: Any, episode: int, row: int) -> bool:
    """Say whether a frame is nearest to that of a row: greys of two rows are 10 apart."""
    grey, blue = frame[20:, 28:].mean(), frame[:12, :20].mean(axis=(0, 1))
    return bool(abs(grey - 40 * episode - 10 * row) < 4 and np.abs(blue - (0, 0, 200)).max() < 12)


@pytest.mark.parametrize("kind", KINDS)
def test_every_row_that_lerobot_wrote_is_read_as_it_was(kind: str) -> None:
    """
    Numbers and texts exactly, images exactly, videos as far as their codec keeps them.
    """
    reader = LeRobotDatasetReader(GOLDEN / kind)
    assert (3, 12) == (len(reader), reader.info.total_frames)
    for episode, length in zip(reader, SAID.LENGTHS, strict=True):
        rows = list(episode)
        assert length == len(rows) == len(episode)
        for i, row in enumerate(rows):
            at, seen = (episode.index, i), row.observe()
            assert SAID.expected_state(*at) == row.state.tolist() == seen.state.tolist()
            assert SAID.expected_action(*at) == row.action.tolist()
            assert SAID.expected_task(*at) == row.instruction == seen.instruction
            assert i / 10 == pytest.approx(row.timestamp_s) == pytest.approx(seen.captured_at_s)
            frame = seen.images["front"][0]
            assert is_of_row(frame, *at)
            assert kind == "video" or np.array_equal(SAID.expected_frame(*at), frame)


def test_names_rate_and_tasks_are_those_of_the_data_set() -> None:
    """
    Cameras without what all of them begin with.
    """
    reader = LeRobotDatasetReader(GOLDEN / "image")
    assert ("x", "y", "battery") == reader.state_names
    assert ("x", "y") == reader.action_names
    assert ("front",) == reader.camera_names
    assert SAID.TASKS == reader.tasks
    assert (10.0, "two joints") == (reader.info.fps, reader.info.robot_type)
    assert "3 episodes, 12 rows at 10 Hz" in repr(reader)


def test_frames_of_a_video_may_be_asked_for_in_any_order_and_after_the_loop() -> None:
    """
    Backwards too; the file is closed whatever happens.
    """
    rows = list(LeRobotDatasetReader(GOLDEN / "video")[2])
    for i in (3, 0, 2, 2, 1):
        assert is_of_row(rows[i].observe().images["front"][0], 2, i)


def test_a_loop_that_is_left_early_leaves_no_file_open() -> None:
    """
    A warning about it would fail this test.
    """
    loop = iter(LeRobotDatasetReader(GOLDEN / "video")[0])
    next(loop).observe()
    loop.close()


def test_a_robot_gives_its_names_and_the_differences_are_listed() -> None:
    """
    One sentence each; the order is that of the data set.
    """
    other = attrs.evolve(ROBOT, state_names=("a", "b", "c"))
    reader = LeRobotDatasetReader(GOLDEN / "image", robot=other)
    assert ("a", "b", "c") == reader.state_names
    assert (
        "state_names is x, y, battery, expected that of 'two joints', a, b, c",
        "rate_hz is 10.0, expected that of 'two joints', 20.0",
    ) == reader.differences
    assert ROBOT.actions is reader[0].space


def test_a_robot_with_other_numbers_is_refused() -> None:
    """
    Numbers are never dropped nor made up.
    """
    narrow = attrs.evolve(ROBOT, state_names=("x", "y"))
    with pytest.raises(ContractError, match=r"got 3 numbers, x, y, battery, expected the 2"):
        LeRobotDatasetReader(GOLDEN / "image", robot=narrow)


def test_cameras_and_instruction_can_be_said() -> None:
    """
    For a policy that calls them otherwise.
    """
    seen = read_all(
        GOLDEN / "image", cameras={"wrist": "observation.images.front"}, instruction="wave"
    )[0]
    assert ("wave", ["wrist"]) == (seen.instruction, list(seen.images))


def test_an_episode_is_one_that_policies_are_compared_with() -> None:
    """
    Each moment knows what was sent before it; before the first, nobody does.
    """
    episode = LeRobotDatasetReader(GOLDEN / "image")[0]
    assert isinstance(episode, RecordedEpisode)
    moments = list(episode.moments())
    assert [None, [0.0, 0.0]] == [
        None if each.last_command is None else each.last_command.tolist() for each in moments[:2]
    ]
    assert [[0.0, 0.125]] == moments[1].sent.tolist()


@pytest.mark.parametrize("index", [-1, 3, True, "0", None])
def test_an_episode_that_is_not_there_is_refused(index: Any) -> None:
    """
    Counting from the end too: it hides mistakes.
    """
    with pytest.raises(ContractError, match=r"index: got .*, expected 0 to 2"):
        LeRobotDatasetReader(GOLDEN / "image")[index]


def test_nan_in_an_action_is_given_and_in_a_state_refused(tmp_path: Path) -> None:
    """
    A policy cannot be shown it; what was sent may be unknown.
    """
    folder = copy("image", tmp_path)
    with_column(folder, ROWS, "action", lambda old: [[math.nan, 0.0], *old[1:]])
    first, second = list(LeRobotDatasetReader(folder)[0].moments())[:2]
    assert math.isnan(first.sent[0, 0])
    assert second.last_command is None
    with_column(folder, ROWS, "observation.state", lambda old: [[0, math.inf, 0], *old[1:]])
    with pytest.raises(ContractError, match=r"state\[1\]: got inf"):
        read_all(folder)


@pytest.mark.parametrize("version", ["v2.1", "v2.0", "v1.6", "2.1"])
def test_an_older_version_is_refused_by_name_with_what_to_do(tmp_path: Path, version: str) -> None:
    """
    LeRobot has a program for it.
    """
    folder = with_info(copy("image", tmp_path), codebase_version=version)
    with pytest.raises(EpisodeError, match=rf"got .{version}.*convert_dataset_v21_to_v30"):
        LeRobotDatasetReader(folder)


ESCAPES = [
    "../{chunk_index}.parquet",
    "/etc/{chunk_index}",
    "data/../../{file_index}",
    "data\\{file_index}",
    "C:/{file_index}",
    "{chunk_index.__class__}",
    "{chunk_index:99999999d}",
    "{0}",
    "{}",
    "data/{other}",
    "",
    "x" * 300,
    "data/\n{file_index}",
    7,
    None,
]


@pytest.mark.parametrize("template", ESCAPES)
def test_a_path_that_leads_out_of_the_folder_is_refused(tmp_path: Path, template: Any) -> None:
    """
    A template is filled in with three names and nothing else.
    """
    folder = with_info(copy("image", tmp_path), data_path=template)
    with pytest.raises(EpisodeError, match="data_path: got"):
        LeRobotDatasetReader(folder)


@pytest.mark.parametrize("name", ["../up", "a/b", "", "..", "x" * 300, "a\nb", "a:b"])
def test_a_feature_cannot_be_called_like_a_path(tmp_path: Path, name: str) -> None:
    """
    Its name is that of a folder.
    """
    video = {"dtype": "video", "shape": [32, 48, 3], "names": None}
    folder = with_info(copy("image", tmp_path), features={name: video}, video_path="v/{video_key}")
    with pytest.raises(EpisodeError, match="got such a name"):
        LeRobotDatasetReader(folder)


INFOS: list[tuple[dict[str, Any], str]] = [
    ({"codebase_version": "v3.1"}, "codebase_version: got 'v3.1', expected 'v3.0'"),
    ({"codebase_version": ...}, "codebase_version: got None"),
    ({"fps": 0}, "fps: got 0"),
    ({"fps": True}, "fps: got True"),
    ({"fps": "10"}, "fps: got '10'"),
    ({"fps": 1e9}, "fps: got 1000000000.0"),
    ({"features": {}}, "features: got {}"),
    ({"features": []}, "features: got"),
    ({"features": {"action": {"dtype": "float32"}}}, "shape: got None"),
    ({"features": {"action": {"dtype": 3, "shape": [2]}}}, "expected an object with a dtype"),
    ({"features": {"a": {"dtype": "float32", "shape": [0]}}}, "sides of at least 1"),
    ({"features": {"a": {"dtype": "float32", "shape": [2.5]}}}, "shape: got 2.5"),
    ({"features": {"a": {"dtype": "image", "shape": [4, 4]}}}, "expected"),
    ({"total_episodes": -1}, "total_episodes: got -1"),
    ({"total_episodes": 1 << 40}, "total_episodes: got"),
    ({"total_frames": None}, "total_frames: got None"),
    ({"total_episodes": 4}, "lists 3 episodes, expected the 4 of info.json"),
    ({"total_frames": 13}, "lists 12 rows, expected the 13 of info.json"),
]


@pytest.mark.parametrize(("changes", "said"), INFOS)
def test_a_data_set_that_says_what_cannot_be_is_refused(
    tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    """
    In one sentence, with the file.
    """
    folder = with_info(copy("image", tmp_path), **changes)
    with pytest.raises(EpisodeError) as error:
        LeRobotDatasetReader(folder)
    assert said in str(error.value)


def numbers(name: str, at: int, value: Any) -> Callable[[Path], Path]:
    """Put another number into the table of episodes."""

    def change(folder: Path) -> Path:
        return with_column(folder, EPISODES, name, lambda old: [*old[:at], value, *old[at + 1 :]])

    return change


def rows(name: str, at: int, value: Any) -> Callable[[Path], Path]:
    """Put another value into the table of rows."""

    def change(folder: Path) -> Path:
        return with_column(folder, ROWS, name, lambda old: [*old[:at], value, *old[at + 1 :]])

    return change


LIES: list[tuple[Callable[[Path], Path], str]] = [
    (numbers("length", 1, 4), "says that episode 1 has 4 rows, from 5 to 8"),
    (numbers("length", 0, 0), "says that episode 0 has 0 rows"),
    (numbers("dataset_from_index", 1, 6), "says that episode 1 has 3 rows, from 6"),
    (numbers("dataset_to_index", 2, 1 << 60), "says that episode 2"),
    (numbers("episode_index", 2, 7), "numbers its episodes otherwise"),
    (numbers("data/file_index", 0, -1), "expected the numbers of a chunk and of a file"),
    (numbers("data/file_index", 1, 9), "file-009.parquet: does not exist"),
    (rows("episode_index", 6, 2), "has episode_index 2 in row 6, expected 1"),
    (rows("frame_index", 6, 5), "has frame_index 5 in row 6, expected 1"),
    (rows("index", 6, 0), "has index 0 in row 6, expected 6"),
    (rows("task_index", 6, 2), "has the task 2, expected one of 2"),
    (rows("task_index", 6, -1), "has the task -1"),
    (rows("timestamp", 6, 0.5), "has the time 0.5 s in row 1 of episode 1, expected 0.1 s"),
    (rows("timestamp", 6, math.nan), "has the time nan s"),
    (rows("timestamp", 6, None), "has gaps in the column 'timestamp'"),
    (rows("observation.images.front", 6, {"bytes": b"", "path": ""}), "no picture"),
    (rows("observation.images.front", 6, {"bytes": b"not one", "path": ""}), "row 1 of episode 1"),
    (rows("observation.images.front", 6, None), "has gaps in the column"),
    (lambda f: with_table(f, ROWS, lambda t: t.slice(0, 10)), "has 10 rows, expected 12"),
    (lambda f: with_table(f, ROWS, lambda t: t.drop_columns(["action"])), "has no column 'action'"),
    (lambda f: with_table(f, TASKS, lambda t: t.slice(1)), "numbers its tasks otherwise"),
    (lambda f: with_column(f, ROWS, "action", pa.array(["a"] * 12)), "has 'string' in the column"),
    (
        lambda f: with_column(f, ROWS, "action", pa.array([[1, 2]] * 12)),
        "int64>' in the column 'action'",
    ),
    (
        lambda f: with_column(f, ROWS, "action", pa.array([[1.5]] * 12)),
        "has other rows in the column 'action', expected 2 numbers each",
    ),
    (
        lambda f: with_column(f, ROWS, "action", pa.array([[1.5, None]] * 12)),
        "has gaps in the column 'action'",
    ),
    (lambda f: with_column(f, ROWS, "index", pa.array([0.0] * 12)), "expected whole numbers"),
    (lambda f: with_feature(f, "observation.images.front", shape=[16, 48, 3]), "expected [16, 48"),
    (lambda f: with_feature(f, "action", dtype="int64"), "expected a list of float32"),
]


@pytest.mark.parametrize(("change", "said"), LIES)
def test_a_data_set_that_contradicts_itself_is_refused(
    tmp_path: Path, change: Callable[[Path], Path], said: str
) -> None:
    """
    Counts, numbers, times, types and pictures are held against each other.
    """
    folder = change(copy("image", tmp_path))
    with pytest.raises((EpisodeError, ContractError)) as error:
        read_all(folder)
    assert said in str(error.value)


@pytest.mark.parametrize("file", ["meta/info.json", TASKS, EPISODES, ROWS, VIDEO])
def test_a_missing_file_is_named(tmp_path: Path, file: str) -> None:
    """
    So that it can be looked for.
    """
    folder = copy("video", tmp_path)
    (folder / file).unlink()
    with pytest.raises(EpisodeError, match=r"does not exist|holds no tables"):
        read_all(folder)


@pytest.mark.parametrize("file", ["meta/info.json", TASKS, EPISODES, ROWS, VIDEO])
@pytest.mark.parametrize("data", [b"", b"PAR1", b"\0" * 500, b"#EXTM3U\nfile:///etc/passwd\n"])
def test_a_file_of_something_else_is_refused(tmp_path: Path, file: str, data: bytes) -> None:
    """
    A playlist in place of a video would open other files.
    """
    folder = copy("video", tmp_path)
    (folder / file).write_bytes(data)
    with pytest.raises(EpisodeError):
        read_all(folder)


def test_a_folder_in_place_of_a_file_and_none_at_all_are_refused(tmp_path: Path) -> None:
    """
    Neither is a data set.
    """
    with pytest.raises(EpisodeError, match="is no folder, expected a data set"):
        LeRobotDatasetReader(tmp_path / "nowhere")
    folder = copy("image", tmp_path)
    (folder / ROWS).unlink()
    (folder / ROWS).mkdir()
    with pytest.raises(EpisodeError, match="is a folder, expected a file"):
        read_all(folder)


def test_a_video_that_is_too_short_or_of_another_size_is_refused(tmp_path: Path) -> None:
    """
    Instead of a frame of another row.
    """
    folder = copy("video", tmp_path)
    with_column(folder, EPISODES, "videos/observation.images.front/from_timestamp", [0.0, 0.5, 1.0])
    with pytest.raises(EpisodeError, match=r"ends before 1\.2 s, expected a frame"):
        read_all(folder)
    folder = with_feature(
        copy("video", tmp_path / "b"), "observation.images.front", shape=[9, 9, 3]
    )
    with pytest.raises(EpisodeError, match="has frames of 32 x 48 pixels, expected 9 x 9"):
        read_all(folder)


READ_ALONE = """
import re, sys
from pathlib import Path
from vlmcore.limits import DatasetLimits
from vlmcore_robotics.datasets._video import VideoReader

def most():
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

options = {"height_px": 8, "width_px": 8, "tolerance_s": 0.1, "limits": DatasetLimits()}
before = most()
try:
    VideoReader(Path(sys.argv[1]), **options).frame(0.0)
except Exception as error:
    print(most() - before, error)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="says how much was held")
def test_a_video_of_giant_frames_is_refused_before_one_is_decoded(tmp_path: Path) -> None:
    """
    To look at what it is took FFmpeg a hundred megabytes, and more for larger ones.
    """
    path = tmp_path / "giant.mp4"
    with av.open(str(path), "w", format="mp4") as file:
        stream: Any = file.add_stream("h264", 30, options={"preset": "ultrafast"})
        stream.height, stream.width, stream.pix_fmt = 6000, 8000, "yuv420p"
        file.mux([*stream.encode(av.VideoFrame(8000, 6000, "yuv420p")), *stream.encode(None)])
    command = [sys.executable, "-c", READ_ALONE, str(path)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    kibibytes, _, words = said.partition(" ")
    assert "max_frame_pixels: got 48000000, limit is 16777216\n" == words
    assert int(kibibytes) < 64 * 1024


def test_a_frame_between_two_of_a_video_is_refused_beyond_the_tolerance(tmp_path: Path) -> None:
    """
    The nearest frame is another moment.
    """
    folder = copy("video", tmp_path)
    name = "videos/observation.images.front/from_timestamp"
    with_column(folder, EPISODES, name, [0.03, 0.5, 0.8])
    with pytest.raises(EpisodeError, match=r"has no frame at 0.03 s, the next is at 0.1 s"):
        read_all(folder)
    assert 12 == len(read_all(folder, tolerance_s=0.04))


@pytest.mark.parametrize(
    "limits",
    [
        {"max_info_bytes": 100},
        {"max_file_bytes": 1000},
        {"max_episodes": 2},
        {"max_tasks": 1},
        {"max_features": 3},
        {"max_frame_bytes": 10},
        {"max_frame_pixels": 100},
        {"max_rows": 11},
    ],
)
def test_more_than_the_limits_allow_is_refused(limits: dict[str, int]) -> None:
    """
    Before memory is spent on it.
    """
    with pytest.raises((EpisodeError, LimitExceededError)):
        read_all(GOLDEN / "image", limits=DatasetLimits(**limits))


@given(
    kind=st.sampled_from(KINDS),
    which=st.integers(0, 5),
    at=st.floats(0, 1),
    data=st.binary(min_size=1, max_size=8),
)
def test_any_bytes_give_a_data_set_or_our_error(
    tmp_path_factory: pytest.TempPathFactory, kind: str, which: int, at: float, data: bytes
) -> None:
    """
    Wherever they are changed.
    """
    folder = copy(kind, tmp_path_factory.mktemp("broken"))
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    path = files[which % len(files)]
    old = path.read_bytes()
    first = int(at * (len(old) - 1))
    path.write_bytes(old[:first] + data + old[first + len(data) :])
    try:
        read_all(folder)
    except VlmcoreError:
        pass
    finally:
        shutil.rmtree(folder)
