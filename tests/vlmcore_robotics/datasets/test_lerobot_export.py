"""Tests of `vlmcore_robotics.datasets.lerobot_export`; LeRobot itself reads it in another file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pyarrow.parquet as pq
import pytest

from dataset_cases import EPISODES, ROWS, record, seen
from episode_cases import ROBOT
from vlmcore.contracts.documents import embodiment_from_json
from vlmcore.contracts.embodiment import CameraSpec
from vlmcore.errors import ContractError, EpisodeError
from vlmcore.rollout.episode_frames import FrameEncoding
from vlmcore.rollout.episodes import EpisodeHeader
from vlmcore_robotics.datasets import LeRobotDatasetReader, Pictures, RowsOf, export_lerobot
from vlmcore_robotics.datasets import _lerobot_writer as writing


def actions_of(folder: Path) -> list[list[float]]:
    """Take what the first joint was sent, by episode."""
    reader = LeRobotDatasetReader(folder)
    return [[round(float(row.action[0]), 3) for row in episode] for episode in reader]


def info_of(folder: Path) -> dict[str, Any]:
    """Read what a data set says about itself."""
    said: dict[str, Any] = json.loads((folder / "meta" / "info.json").read_text())
    return said


def test_a_row_is_an_observation_with_the_first_action_that_was_sent_after_it(
    tmp_path: Path,
) -> None:
    """
    Two actions for each observation: half the rate of the robot, and nothing that nobody saw.
    """
    made = export_lerobot([record(tmp_path / "a")], tmp_path / "out")
    assert (1, 3, 10.0, 0) == (made.episodes, made.rows, made.fps, made.left_out)
    assert [[0.01, 0.03, 0.05]] == actions_of(tmp_path / "out")
    for i, row in enumerate(LeRobotDatasetReader(tmp_path / "out")[0]):
        came, was = row.observe(), seen(i)
        assert was.state.tolist() == came.state.tolist()
        assert was.instruction == came.instruction
        assert np.array_equal(was.images["front"], came.images["front"])
        assert i / 10 == pytest.approx(row.timestamp_s)


def test_a_row_of_each_action_repeats_the_observation_before_it(tmp_path: Path) -> None:
    """
    At the rate of the robot, if that is asked for.
    """
    made = export_lerobot([record(tmp_path / "a")], tmp_path / "out", rows=RowsOf.ACTIONS)
    assert (6, 20.0) == (made.rows, made.fps)
    assert [[0.01, 0.02, 0.03, 0.04, 0.05, 0.06]] == actions_of(tmp_path / "out")
    states = [row.state[0] for row in LeRobotDatasetReader(tmp_path / "out")[0]]
    assert [0, 0, 1, 1, 2, 2] == states


def test_what_did_not_leave_the_gate_is_not_in_the_data_set(tmp_path: Path) -> None:
    """
    The third step of each chunk was proposed, vetted, and never sent.
    """
    export_lerobot([record(tmp_path / "a", sent=(1, 1, 1))], tmp_path / "out", rows=RowsOf.ACTIONS)
    assert [[0.01, 0.02, 0.03]] == actions_of(tmp_path / "out")


def test_an_episode_ends_where_nothing_was_sent(tmp_path: Path) -> None:
    """
    Rows stand evenly in time: nobody knows how long the robot stood.
    """
    made = export_lerobot([record(tmp_path / "a", sent=(2, 2, 0, 2, 2, 1))], tmp_path / "out")
    assert (2, 5, 1) == (made.episodes, made.rows, made.left_out)
    assert [[0.01, 0.03], [0.05, 0.07, 0.09]] == actions_of(tmp_path / "out")


def test_steps_that_show_the_same_observation_are_one_row(tmp_path: Path) -> None:
    """
    As those of a loop that looks again only when its policy is asked.
    """
    episode = record(tmp_path / "a", sent=(1,) * 6, observe=lambda i: seen(i // 3))
    made = export_lerobot([episode], tmp_path / "out")
    assert (2, pytest.approx(20 / 3)) == (made.rows, made.fps)
    assert [[0.01, 0.04]] == actions_of(tmp_path / "out")


def test_observations_that_come_unevenly_are_refused_with_what_to_do(tmp_path: Path) -> None:
    """
    A data set has one rate.
    """
    episode = record(tmp_path / "a", sent=(2, 3, 2))
    with pytest.raises(ContractError, match=r"2 to 3 actions were sent.*RowsOf.ACTIONS makes"):
        export_lerobot([episode], tmp_path / "out")
    assert 7 == export_lerobot([episode], tmp_path / "out", rows=RowsOf.ACTIONS).rows


def test_several_episodes_and_tasks_stand_one_after_the_other(tmp_path: Path) -> None:
    """
    Numbered over all of them.
    """
    episodes = [record(tmp_path / f"{i}", episode=i) for i in range(3)]
    export_lerobot(episodes, tmp_path / "out")
    reader = LeRobotDatasetReader(tmp_path / "out", robot=attrs.evolve(ROBOT))
    assert (3, ("wait", "go")) == (len(reader), reader.tasks)
    assert ["wait", "go", "wait"] == [next(iter(each)).instruction for each in reader]
    rows = pq.read_table(tmp_path / "out" / ROWS)
    assert list(range(9)) == rows.column("index").to_pylist()


def test_it_says_what_lerobot_says(tmp_path: Path) -> None:
    """
    Names as the robot has them; units and limits in a file of their own.
    """
    export_lerobot([record(tmp_path / "a")], tmp_path / "out", pictures=Pictures.VIDEOS)
    said = info_of(tmp_path / "out")
    features = said.pop("features")
    assert {
        "codebase_version": "v3.0",
        "robot_type": "two joints",
        "total_episodes": 1,
        "total_frames": 3,
        "total_tasks": 1,
        "chunks_size": 1000,
        "data_files_size_in_mb": 100,
        "video_files_size_in_mb": 200,
        "fps": 10,
        "splits": {"train": "0:1"},
        "data_path": "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",
        "video_path": "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4",
    } == said
    assert {"dtype": "float32", "shape": [2], "names": ["x", "y"]} == features["action"]
    assert "h264" == features["observation.images.front"]["info"]["video.codec"]
    robot = (tmp_path / "out" / "meta" / "embodiment.json").read_text()
    assert ROBOT == embodiment_from_json(robot)


def test_statistics_are_those_of_the_rows(tmp_path: Path) -> None:
    """
    Of all of them, and of each episode.
    """
    episodes = [record(tmp_path / f"{i}", sent=(2,) * (3 + i), episode=i) for i in range(2)]
    export_lerobot(episodes, tmp_path / "out")
    said = json.loads((tmp_path / "out" / "meta" / "stats.json").read_text())
    rows = np.array(pq.read_table(tmp_path / "out" / ROWS).column("action").to_pylist())
    for name, value in (
        ("min", rows.min(axis=0)),
        ("max", rows.max(axis=0)),
        ("mean", rows.mean(axis=0)),
        ("std", rows.std(axis=0)),
        ("q10", np.quantile(rows, 0.1, axis=0)),
    ):
        assert value.tolist() == pytest.approx(said["action"][name])
    assert [7] == said["action"]["count"]
    blue = said["observation.images.front"]["max"][2][0][0]
    assert 200 / 255 == pytest.approx(blue)
    table = pq.read_table(tmp_path / "out" / EPISODES)
    assert [[3], [4]] == table.column("stats/action/count").to_pylist()
    assert [[0.0, 0.0, 11.5], [0.0, 1.0, 11.5]] == table.column(
        "stats/observation.state/min"
    ).to_pylist()


@pytest.mark.parametrize("encoding", FrameEncoding)
def test_pictures_are_kept_as_they_were_recorded(tmp_path: Path, encoding: FrameEncoding) -> None:
    """
    Byte by byte: a JPEG is not made worse by being decoded and encoded again.
    """
    episode = record(tmp_path / "a", encoding=encoding)
    export_lerobot([episode], tmp_path / "out")
    kept = pq.read_table(tmp_path / "out" / ROWS).column("observation.images.front").to_pylist()
    was = [step.frames["front"][0].data for step in episode]
    assert was == [each["bytes"] for each in kept]


def test_videos_show_the_frames_at_their_times(tmp_path: Path) -> None:
    """
    In one file for all episodes.
    """
    episodes = [record(tmp_path / f"{i}", sent=(2,) * (3 + i), episode=i) for i in range(2)]
    export_lerobot(episodes, tmp_path / "out", pictures=Pictures.VIDEOS)
    for episode in LeRobotDatasetReader(tmp_path / "out"):
        for row in episode:
            grey = row.observe().images["front"][0, 20:, 28:].mean()
            assert 10 * row.index == pytest.approx(grey, abs=3)
    assert 1 == len(list((tmp_path / "out").rglob("*.mp4")))


def test_files_that_are_full_are_followed_by_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    An episode is never in two of them.
    """
    monkeypatch.setattr(writing, "_MIB", 1)
    monkeypatch.setattr("vlmcore_robotics.datasets._lerobot_files.FILES_OF_A_CHUNK", 2)
    episodes = [record(tmp_path / f"{i}", sent=(2,) * (3 + i), episode=i) for i in range(3)]
    export_lerobot(episodes, tmp_path / "out", pictures=Pictures.VIDEOS)
    out = tmp_path / "out"
    names = ["chunk-000/file-000", "chunk-000/file-001", "chunk-001/file-000"]
    assert names == sorted(
        str(path.relative_to(out / "data"))[:-8] for path in (out / "data").rglob("*.parquet")
    )
    assert 1 < len(list(out.rglob("*.mp4")))  # frames that wait in the encoder are not counted
    reader = LeRobotDatasetReader(out)
    assert [3, 4, 5] == [len([row.observe() for row in episode]) for episode in reader]


def test_without_pictures_none_have_to_be_recorded(tmp_path: Path) -> None:
    """
    And none are in the data set.
    """
    export_lerobot(
        [record(tmp_path / "a", encoding=None)], tmp_path / "out", pictures=Pictures.NONE
    )
    assert [[0.01, 0.03, 0.05]] == actions_of(tmp_path / "out")
    assert info_of(tmp_path / "out")["video_path"] is None


def test_pictures_that_were_not_recorded_are_not_made_up(tmp_path: Path) -> None:
    """
    The way out is said, and nothing is left of the attempt.
    """
    with pytest.raises(ContractError, match=r"frames\['front'\]: got none .*encode_frames"):
        export_lerobot([record(tmp_path / "a", encoding=None)], tmp_path / "out")
    assert ["a"] == sorted(path.name for path in tmp_path.iterdir())


def test_a_picture_of_another_size_is_refused(tmp_path: Path) -> None:
    """
    Also where its pixels are not looked at.
    """
    episode = record(tmp_path / "a", observe=lambda i: seen(i, sides=(32, 48 + 16 * (i > 1))))
    with pytest.raises(ContractError, match="got 32 x 64 pixels, expected 32 x 48"):
        export_lerobot([episode], tmp_path / "out")


def test_a_video_of_odd_sides_is_refused(tmp_path: Path) -> None:
    """
    Images take any size.
    """
    episode = record(tmp_path / "a", observe=lambda i: seen(i, sides=(31, 48)))
    with pytest.raises(ContractError, match=r"expected even sides.*Pictures.IMAGES keeps"):
        export_lerobot([episode], tmp_path / "out", pictures=Pictures.VIDEOS)
    assert 3 == export_lerobot([episode], tmp_path / "out").rows


def test_a_camera_whose_name_begins_as_a_feature_keeps_it(tmp_path: Path) -> None:
    """
    As those of robots that were declared for LeRobot.
    """
    name = "observation.images.front"
    robot = attrs.evolve(ROBOT, cameras=(CameraSpec(name=name),))

    def observe(i: int) -> Any:
        return attrs.evolve(seen(i), images={name: seen(i).images["front"]})

    header = EpisodeHeader(embodiment=attrs.evolve(robot, name=ROBOT.name))
    export_lerobot([record(tmp_path / "a", header=header, observe=observe)], tmp_path / "out")
    assert ("front",) == LeRobotDatasetReader(tmp_path / "out").camera_names


@pytest.mark.parametrize("name", ["../up", "a/b", "..", "a:b"])
def test_a_camera_called_like_a_path_is_refused(tmp_path: Path, name: str) -> None:
    """
    Its videos would be somewhere else.
    """

    def observe(i: int) -> Any:
        return attrs.evolve(seen(i), images={name: seen(i).images["front"]})

    robot = attrs.evolve(ROBOT, cameras=(CameraSpec(name=name),))
    episode = record(tmp_path / "a", header=EpisodeHeader(embodiment=robot), observe=observe)
    if name == "..":  # a name like any other, with observation.images before it
        assert 3 == export_lerobot([episode], tmp_path / "out").rows
        return
    with pytest.raises(ContractError, match="expected a name of letters"):
        export_lerobot([episode], tmp_path / "out")


def test_a_folder_that_exists_is_never_touched(tmp_path: Path) -> None:
    """
    Empty or not.
    """
    (tmp_path / "out").mkdir()
    with pytest.raises(EpisodeError, match="exists already, expected a new name"):
        export_lerobot([record(tmp_path / "a")], tmp_path / "out")
    assert [] == list((tmp_path / "out").iterdir())


def test_nothing_to_write_is_refused(tmp_path: Path) -> None:
    """
    No episode, none after which anything was sent, another robot, and what is no reader.
    """
    with pytest.raises(ContractError, match="got none, expected at least one"):
        export_lerobot([], tmp_path / "out")
    with pytest.raises(ContractError, match="got none after which anything was sent"):
        export_lerobot([record(tmp_path / "a", sent=(0, 0))], tmp_path / "out")
    other = EpisodeHeader(embodiment=attrs.evolve(ROBOT, notes="another"))
    mixed = [record(tmp_path / "b"), record(tmp_path / "c", header=other)]
    with pytest.raises(ContractError, match=r"episodes\[1\]: got one of 'two joints'"):
        export_lerobot(mixed, tmp_path / "out")
    with pytest.raises(ContractError, match="expected an EpisodeReader"):
        export_lerobot(["a"], tmp_path / "out")  # type: ignore[list-item]
    assert not (tmp_path / "out").exists()


def test_a_number_beyond_float32_is_refused(tmp_path: Path) -> None:
    """
    Infinity would be in its place.
    """
    episode = record(tmp_path / "a", observe=lambda i: attrs.evolve(seen(i), state=[1e39, 0, 0]))
    with pytest.raises(ContractError, match=r"observation.state\[0\]: got 1e\+39"):
        export_lerobot([episode], tmp_path / "out")
