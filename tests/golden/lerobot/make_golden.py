"""
Writes the two data sets beside it with LeRobot itself: one with images, one with videos.

Run it where LeRobot 0.4.4 is: ``nox -s lerobot`` makes such an environment. The rows say
themselves what they are, so that tests know what to expect: see ``expected_frame`` and its
neighbours.
"""

from __future__ import annotations

import logging
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
KINDS = ("image", "video")
LENGTHS = (5, 3, 4)
TASKS = ("pick the cube", "put it down")
FPS = 10


def expected_frame(episode: int, row: int) -> Any:
    """Draw what the camera saw: grey that goes on with the rows, and a blue quarter."""
    frame = np.full((32, 48, 3), 40 * episode + 10 * row, np.uint8)
    frame[:16, :24] = (0, 0, 200)
    return frame


def expected_state(episode: int, row: int) -> list[float]:
    """Say what the robot reported."""
    return [float(episode), float(row), 11.5]


def expected_action(episode: int, row: int) -> list[float]:
    """Say what it was sent."""
    return [episode / 4, row / 8]


def expected_task(episode: int, row: int) -> str:
    """Say what the task was; in the last episode it changes."""
    return TASKS[1] if episode == 1 or (episode == 2 and row > 1) else TASKS[0]


def features(kind: str) -> dict[str, dict[str, Any]]:
    """Say what a row holds."""
    return {
        "observation.state": {"dtype": "float32", "shape": (3,), "names": ["x", "y", "battery"]},
        "action": {"dtype": "float32", "shape": (2,), "names": ["x", "y"]},
        "observation.images.front": {
            "dtype": kind,
            "shape": (32, 48, 3),
            "names": ["height", "width", "channels"],
        },
    }


def main() -> None:
    """Write them anew."""
    sys.path.insert(0, str(HERE.parents[1]))
    from lerobot_imports import import_datasets  # noqa: PLC0415 - where LeRobot is

    dataset_of = import_datasets()
    logging.disable(logging.INFO)
    for kind in KINDS:
        shutil.rmtree(HERE / kind, ignore_errors=True)
        data = dataset_of.create(
            "golden/two-joints",
            FPS,
            features(kind),
            root=HERE / kind,
            robot_type="two joints",
            use_videos=kind == "video",
        )
        for episode, length in enumerate(LENGTHS):
            for row in range(length):
                data.add_frame(
                    {
                        "observation.state": np.array(expected_state(episode, row), np.float32),
                        "action": np.array(expected_action(episode, row), np.float32),
                        "observation.images.front": expected_frame(episode, row),
                        "task": expected_task(episode, row),
                    }
                )
            data.save_episode()
        data.finalize()


if __name__ == "__main__":
    main()
