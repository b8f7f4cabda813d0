"""What the golden bytes of GR00T say, as values: written by `make_groot.py`, read by the tests."""

from __future__ import annotations

from typing import Any

import numpy as np

TASK = "pick up the cup"
LANGUAGE = "annotation.human.task_description"


def frames(height: int, width: int, first: int) -> np.ndarray[Any, Any]:
    """Make two frames of one camera, a batch of one; all pixels differ from their neighbours."""
    count = 2 * height * width * 3
    return (np.arange(count).reshape(1, 2, height, width, 3) * 7 + first).astype(np.uint8)


def observation() -> dict[str, dict[str, Any]]:
    """Make what N1.6 and N1.7 are sent: two frames of two cameras."""
    state = (np.arange(6, dtype=np.float32) / 10 - 0.25).reshape(1, 1, 6)
    return {
        "video": {"front": frames(4, 5, 0), "wrist": frames(3, 4, 100)},
        "state": {"single_arm": state[..., :5], "gripper": state[..., 5:]},
        "language": {LANGUAGE: [[TASK]]},
    }


def flat_observation() -> dict[str, Any]:
    """Make the same for N1.5."""
    made = observation()
    flat = {f"{name}.{key}": made[name][key] for name in ("video", "state") for key in made[name]}
    return {**flat, LANGUAGE: [TASK]}


def actions() -> dict[str, Any]:
    """Make what a policy proposes: three steps of an arm and of a gripper."""
    arm = (np.arange(15, dtype=np.float32) / 8).reshape(1, 3, 5)
    return {"single_arm": arm, "gripper": np.float32([[[0.0], [0.5], [1.0]]])}


def config(modality_keys: list[str], delta_indices: list[int]) -> dict[str, Any]:
    """Make one modality config of N1.6 or N1.7, as its class says it."""
    is_action = len(delta_indices) == 3
    action = {"rep": "RELATIVE", "type": "NON_EEF", "format": "DEFAULT", "state_key": None}
    return {
        "delta_indices": delta_indices,
        "modality_keys": modality_keys,
        "sin_cos_embedding_keys": None,
        "mean_std_embedding_keys": None,
        "action_configs": [action] * len(modality_keys) if is_action else None,
    }


CONFIGS = {
    "video": config(["front", "wrist"], [-1, 0]),
    "state": config(["single_arm", "gripper"], [0]),
    "action": config(["single_arm", "gripper"], [0, 1, 2]),
    "language": config([LANGUAGE], [0]),
}
