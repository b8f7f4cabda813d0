"""
Runs `examples/mujoco_control.py` for real, and looks at what it leaves.

It runs where MuJoCo is installed, which ``nox -s mujoco`` sees to.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from architecture.tree import ROOT
from vlmcore.rollout import EpisodeReader, replay
from vlmcore.safety import Remedy, SafetyGate

if importlib.util.find_spec("mujoco") is None:
    pytest.skip("MuJoCo is not installed", allow_module_level=True)
av = pytest.importorskip("av")

STEPS = 130


@pytest.fixture(scope="module")
def drive(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Drive the arm once; give the folder, and what was printed."""
    folder = tmp_path_factory.mktemp("reached")
    program = [sys.executable, str(ROOT / "examples/mujoco_control.py")]
    options = ["--folder", str(folder), "--steps", str(STEPS)]
    done = subprocess.run(program + options, capture_output=True, text=True, check=False)
    assert 0 == done.returncode, done.stderr
    return folder, done.stdout


def frames_of(clip: Path) -> list[Any]:
    with av.open(str(clip)) as file:
        return [frame.to_ndarray(format="rgb24") for frame in file.decode(video=0)]


def test_the_clip_shows_an_arm_that_moves(drive: tuple[Path, str]) -> None:
    """
    A frame for each command, the last of which stands still; the camera sees something.
    """
    frames = frames_of(drive[0] / "clip.mp4")
    assert STEPS + 1 == len(frames)
    assert {(272, 256, 3)} == {frame.shape for frame in frames}
    pictures = [frame[:256].astype(np.int16) for frame in frames]
    assert min(picture.std() for picture in pictures) > 5
    moved = [np.abs(after - before).max() > 60 for before, after in pairwise(pictures)]
    assert sum(moved) > STEPS / 4


def test_the_bar_tells_where_the_arm_stood_still(drive: tuple[Path, str]) -> None:
    """
    Red before the first answer and at the end, green or yellow in between.
    """
    bars = [frame[264, 128].astype(int) for frame in frames_of(drive[0] / "clip.mp4")]
    is_red = [red > 150 and green < 120 for red, green, _ in bars]
    assert (True, True) == (is_red[0], is_red[-1])
    assert is_red.count(False) > STEPS / 2


def test_the_episode_plays_back_through_a_gate(drive: tuple[Path, str]) -> None:
    """
    Each step with what was seen, and each frame of the camera once.
    """
    episode = EpisodeReader(drive[0] / "episode.jsonl")
    steps = list(episode)
    assert STEPS + 1 == len(steps)
    assert not episode.truncated
    robot, start = episode.header.embodiment, steps[0].last_command
    gate = SafetyGate(embodiment=robot, remedy=Remedy.CLAMP)
    assert all(each.vetted is not None for each in replay(episode, gate, last_command=start))
    pictures = [step.frames["top"][0].pixels() for step in steps if step.frames]
    assert len(pictures) > 3
    assert (128, 128, 3) == pictures[0].shape
    assert not np.array_equal(pictures[0], pictures[-1])


def test_it_prints_what_the_gate_did_and_how_near_the_arm_came(drive: tuple[Path, str]) -> None:
    """
    The policy is badly wrong now and then, and the arm comes to its targets all the same.
    """
    said = drive[1]
    assert f"LoopCounts(ticks={STEPS}, " in said
    assert "PrefetchCounts(asked=" in said
    assert "the gate found: " in said
    misses = re.search(r"elsewhere: ([\d, ]+)", said)
    assert misses is not None
    assert min(map(int, misses[1].split(", "))) < 20
