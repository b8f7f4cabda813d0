"""LeRobot itself reads what we export, and we read what it writes; ``nox -s lerobot``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dataset_cases import golden, record, seen
from vlmcore_robotics.datasets import LeRobotDatasetReader, Pictures, RowsOf, export_lerobot

pytest.importorskip("lerobot.datasets", exc_type=ImportError)

from lerobot_imports import import_datasets

pytestmark = pytest.mark.filterwarnings("ignore")  # those of its many packages are not ours

SAID = golden()


@pytest.fixture(scope="module")
def dataset() -> Any:
    """Import its class once."""
    return import_datasets()


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize("pictures", Pictures)
@pytest.mark.parametrize("rows", RowsOf)
def test_lerobot_reads_what_we_export(
    tmp_path: Path, dataset: Any, pictures: Pictures, rows: RowsOf
) -> None:
    """
    Every number, text and pixel; of videos as far as their codec keeps them.
    """
    episodes = [record(tmp_path / f"{i}", sent=(2,) * (3 + i), episode=i) for i in range(3)]
    made = export_lerobot(episodes, tmp_path / "out", rows=rows, pictures=pictures)
    data = dataset("ours/two-joints", root=tmp_path / "out")
    each = 1 if rows is RowsOf.OBSERVATIONS else 2
    assert (3, 12 * each) == (data.num_episodes, data.num_frames) == (made.episodes, made.rows)
    assert made.fps == data.fps
    assert "two joints" == data.meta.robot_type
    for at in range(len(data)):
        row = data[at]
        episode, frame = int(row["episode_index"]), int(row["frame_index"])
        was = seen(frame // each, episode=episode)
        sent = 0.01 * (2 * frame + 1 if each == 1 else frame + 1)
        assert [sent, 0.0] == pytest.approx(row["action"].tolist())
        assert was.state.tolist() == pytest.approx(row["observation.state"].tolist())
        assert was.instruction == row["task"]
        if pictures is Pictures.NONE:
            continue
        pixels = 255 * row["observation.images.front"].numpy().transpose(1, 2, 0)
        wrong = np.abs(pixels - was.images["front"][0])
        assert wrong.max() < 0.01 if pictures is Pictures.IMAGES else wrong.mean() < 6
    assert 3 + 4 + 5 == data.meta.stats["action"]["count"][0] // each
    assert data.meta.stats["action"]["mean"].shape == (2,)


def test_lerobot_trains_with_chunks_of_what_we_export(tmp_path: Path, dataset: Any) -> None:
    """
    Through its own loading of several steps at once.
    """
    export_lerobot([record(tmp_path / "a")], tmp_path / "out")
    data = dataset(
        "ours/two-joints", root=tmp_path / "out", delta_timestamps={"action": [0.0, 0.1]}
    )
    assert (2, 2) == tuple(data[0]["action"].shape)
    assert [0.01, 0.03] == pytest.approx(data[0]["action"][:, 0].tolist())


@pytest.mark.parametrize("kind", SAID.KINDS)
def test_we_read_what_lerobot_writes(tmp_path: Path, dataset: Any, kind: str) -> None:
    """
    Now, and not only on the day of the golden ones.
    """
    data = dataset.create(
        "theirs/two-joints",
        SAID.FPS,
        SAID.features(kind),
        root=tmp_path / kind,
        use_videos=kind == "video",
    )
    for episode, length in enumerate(SAID.LENGTHS):
        for row in range(length):
            data.add_frame(
                {
                    "observation.state": np.array(SAID.expected_state(episode, row), np.float32),
                    "action": np.array(SAID.expected_action(episode, row), np.float32),
                    "observation.images.front": SAID.expected_frame(episode, row),
                    "task": SAID.expected_task(episode, row),
                }
            )
        data.save_episode()
    data.finalize()
    for episode in LeRobotDatasetReader(tmp_path / kind):
        for row in episode:
            at, came = (episode.index, row.index), row.observe()
            assert SAID.expected_state(*at) == came.state.tolist()
            assert SAID.expected_action(*at) == row.action.tolist()
            assert SAID.expected_task(*at) == came.instruction
            wrong = np.abs(came.images["front"][0] - SAID.expected_frame(*at).astype(float))
            assert wrong.max() == 0 if kind == "image" else wrong.mean() < 8
