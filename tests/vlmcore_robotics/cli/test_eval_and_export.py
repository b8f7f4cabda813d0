"""``vlmcore policy eval`` and ``export``, on recorded episodes and on data sets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dataset_cases import GOLDEN, record
from episode_cases import ROBOT
from vlmcore.contracts.documents import embodiment_to_json
from vlmcore.rollout.open_loop_documents import open_loop_report_from_json
from vlmcore_robotics.datasets import LeRobotDatasetReader


@pytest.fixture
def joints(tmp_path: Path) -> Path:
    """The robot of the recorded episodes, in a file."""
    path = tmp_path / "joints.json"
    path.write_text(embodiment_to_json(ROBOT))
    return path


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """An episode: two actions after each of three observations."""
    record(tmp_path / "run.jsonl")
    return tmp_path / "run.jsonl"


def test_a_policy_is_compared_with_an_episode(policy: Any, run: Path) -> None:
    """
    The robot is that of the episode.
    """
    done = policy("eval", "constant:0.01,0", run, "--gate")
    assert 0 == done.code
    assert "constant: 1 episode, 3 observations, 0 failures" == done.out.splitlines()[0]
    assert "the gate would stop 0 of 3 chunks" in done.out
    assert "0.02" in done.out.splitlines()[-2]


def test_a_policy_is_compared_with_a_data_set(policy: Any, joints: Path) -> None:
    """
    In what it differs from the robot is noted.
    """
    done = policy(
        "eval", "constant:zero", GOLDEN / "video", "--embodiment", joints, "--every", 2,
        "--episodes", 2, "--json",
    )  # fmt: skip
    assert (0, 2, 5) == (done.code, done.document["episodes"], done.document["observations"])
    assert "rate_hz is 10.0, expected that of 'two joints', 20.0" in done.err
    open_loop_report_from_json(json.dumps(done.document))


def test_what_a_policy_cannot_answer_is_told_and_the_exit_code_says_so(
    policy: Any, run: Path, tmp_path: Path
) -> None:
    """
    An episode as a policy has no answer for pictures that it was never shown.
    """
    record(tmp_path / "other.jsonl", sent=(2, 2), episode=1)
    done = policy("eval", f"episode:{tmp_path / 'other.jsonl'}", run)
    assert 1 == done.code
    assert "failure" in done.out.splitlines()[0]
    assert "failed: " in done.out


def test_errors_and_an_episode_are_drawn(policy: Any, run: Path, tmp_path: Path) -> None:
    """
    As PNG.
    """
    plots = [tmp_path / "errors.png", tmp_path / "episode.png"]
    policy("eval", "constant:zero", run, "--plot", plots[0], "--plot-episode", plots[1])
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in plots)


def test_the_robot_of_a_foreign_data_set_must_be_said(policy: Any) -> None:
    """
    It does not say limits.
    """
    done = policy("eval", "constant:zero", GOLDEN / "image")
    assert 2 == done.code
    assert "--embodiment: is missing, expected the robot of" in done.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--every", "0"], "--every: got 0"),
        (["--steps", "0"], "--steps: got 0"),
        (["--episodes", "0"], "--episodes: got 0"),
    ],
)
def test_a_wrong_number_is_a_wrong_command_line(
    policy: Any, run: Path, words: list[str], said: str
) -> None:
    """
    With the name of the option.
    """
    done = policy("eval", "constant:zero", run, *words)
    assert 2 == done.code
    assert said in done.err


def test_an_episode_is_exported_and_evaluated_again(policy: Any, run: Path, tmp_path: Path) -> None:
    """
    The robot travels with the data set.
    """
    out = tmp_path / "out"
    done = policy("export", run, "--lerobot", out, "--rows", "actions", "--pictures", "videos")
    assert (0, f"{out}: 1 episodes, 6 rows at 20 Hz") == (done.code, done.out.partition(", 0 ")[0])
    assert 6 == LeRobotDatasetReader(out).info.total_frames
    again = policy("eval", "constant:zero", out, "--json")
    assert (0, 6) == (again.code, again.document["observations"])


def test_an_export_never_writes_over_anything(policy: Any, run: Path, tmp_path: Path) -> None:
    """
    The folder must be new.
    """
    done = policy("export", run, "--lerobot", tmp_path)
    assert 1 == done.code
    assert "exists already, expected a new name" in done.err


def test_where_to_is_one_place(policy: Any, run: Path, tmp_path: Path) -> None:
    """
    And a recording of Rerun holds one episode.
    """
    assert 2 == policy("export", run).code
    assert 2 == policy("export", run, run, "--rerun", tmp_path / "run.rrd").code
