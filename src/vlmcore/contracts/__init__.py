"""
What robots report and accept: embodiments, observations, action chunks, and their documents.

Contracts are facts. They are frozen, their arrays are their own and cannot be written to, and what
is not true cannot be made. Whether an action is safe is not asked here.
"""

from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.documents import (
    action_chunk_from_json,
    action_chunk_to_json,
    embodiment_from_json,
    embodiment_to_json,
)
from vlmcore.contracts.embodiment import (
    ActionDim,
    ActionSpace,
    CameraSpec,
    Embodiment,
    LimitsSource,
    Reference,
)
from vlmcore.contracts.observation import Observation, check_fits, state_from
from vlmcore.contracts.presets import PRESETS, find_embodiment
from vlmcore.contracts.responses import chunk_from_response
from vlmcore.contracts.robot_files import read_embodiment
from vlmcore.contracts.rotations import RotationForm, RotationGroup

__all__ = [
    "PRESETS",
    "ActionChunk",
    "ActionDim",
    "ActionSpace",
    "CameraSpec",
    "Embodiment",
    "LimitsSource",
    "Observation",
    "Reference",
    "RotationForm",
    "RotationGroup",
    "action_chunk_from_json",
    "action_chunk_to_json",
    "check_fits",
    "chunk_from_response",
    "embodiment_from_json",
    "embodiment_to_json",
    "find_embodiment",
    "read_embodiment",
    "state_from",
]
