"""What the golden bytes say, as values: written by `make_golden.py`, read by the tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent


def golden(name: str) -> bytes:
    """Read the golden bytes *name*."""
    return (HERE / f"{name}.bin").read_bytes()


def frame(height: int, width: int, first: int) -> np.ndarray[Any, Any]:
    """Make pixels that are each a little different from their neighbours."""
    return (np.arange(height * width * 3).reshape(height, width, 3) * 7 + first).astype(np.uint8)


def state(count: int) -> np.ndarray[Any, Any]:
    """Make a state that float32 cannot hold exactly."""
    return np.arange(count, dtype=np.float64) / 10 - 0.25


ARRAYS = {
    "uint8": frame(2, 3, 5),
    "float32": np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3),
    "float16": np.float16([0.5, -2]),
    "int64": np.array([[-1], [2**40]]),
    "bool": np.array([True, False]),
    "empty": np.zeros((0, 4), np.float32),
    "rank 0": np.array(1.5),
    "every second": np.arange(6, dtype=np.int16)[::2],
    "number": np.float32(1.25),
    "whole number": np.int32(808464432),
    "truth": np.False_,
    "plain": [1.5, np.float64(2.5), None],
}
LIBERO = {
    "observation/image": frame(4, 5, 0),
    "observation/wrist_image": frame(3, 4, 100),
    "observation/state": state(8),
    "prompt": "pick up the cup",
}
DROID = {
    "observation/exterior_image_1_left": frame(4, 5, 0),
    "observation/wrist_image_left": frame(3, 4, 100),
    "observation/joint_position": state(7),
    "observation/gripper_position": state(8)[7:],
    "prompt": "pick up the cup",
}
ALOHA = {
    "images": {
        "cam_high": frame(4, 5, 0).transpose(2, 0, 1),
        "cam_left_wrist": frame(3, 4, 100).transpose(2, 0, 1),
    },
    "state": state(14),
    "prompt": "pick up the cup",
}
ANSWER = {
    "actions": np.arange(14, dtype=np.float64).reshape(2, 7) / 8,
    "policy_timing": {"infer_ms": 41.5},
    "server_timing": {"infer_ms": 43.25, "prev_total_ms": 50.0},
}
METADATA = {"reset_pose": [0.0, -1.5], "action_horizon": 2, "mean": np.float32([0.5])}
SIZES = {"wide": (6, 10), "tall": (11, 7), "same": (8, 8)}  # of frames that become 8 x 8
