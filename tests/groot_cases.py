"""What the tests of GR00T share: a layout and modalities that fit the golden bytes, and codecs."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from golden.wire.groot_messages import LANGUAGE, TASK, frames
from vlmcore.contracts.observation import Observation
from vlmcore_robotics.wire.groot import GrootCodec
from vlmcore_robotics.wire.groot_dialects import GrootDialect
from vlmcore_robotics.wire.groot_layout import ActionStream, GrootLayout, StateSlice, VideoKey
from vlmcore_robotics.wire.groot_modalities import (
    ActionConfig,
    ActionFormat,
    ActionRepresentation,
    ActionType,
    ModalityConfig,
    PolicyModalities,
)

ARM = ("j1", "j2", "j3", "j4", "j5")
NAMES = (*ARM, "jaw")
KEYS = ("single_arm", "gripper")
LAYOUT = GrootLayout(
    video=[VideoKey(key="front", camera="cam_front"), VideoKey(key="wrist", camera="cam_wrist")],
    state=[StateSlice(key="single_arm", start=0, end=5), StateSlice(key="gripper", start=5, end=6)],
    action=[ActionStream(key="single_arm", names=ARM), ActionStream(key="gripper", names=("jaw",))],
    language=LANGUAGE,
)
RELATIVE = ActionConfig(
    rep=ActionRepresentation.RELATIVE, type=ActionType.NON_EEF, format=ActionFormat.DEFAULT
)
MODALITIES = PolicyModalities(
    video=ModalityConfig(modality_keys=("front", "wrist"), delta_indices=(-1, 0)),
    state=ModalityConfig(modality_keys=KEYS, delta_indices=(0,)),
    action=ModalityConfig(
        modality_keys=KEYS, delta_indices=(0, 1, 2), action_configs=(RELATIVE, RELATIVE)
    ),
    language=ModalityConfig(modality_keys=(LANGUAGE,), delta_indices=(0,)),
)
CODECS = {
    dialect: GrootCodec(policy="groot", layout=LAYOUT, modalities=MODALITIES, dialect=dialect)
    for dialect in GrootDialect
}
CODEC = CODECS[GrootDialect.N1_7]


def with_deltas(name: str, *deltas: int) -> PolicyModalities:
    """Make modalities with other steps of *name*."""
    config = attrs.evolve(getattr(MODALITIES, name), delta_indices=deltas)
    return attrs.evolve(MODALITIES, **{name: config})


def seen(**changes: Any) -> Observation:
    """Make the observation that the golden requests hold, with *changes*."""
    return Observation(
        **{
            "instruction": TASK,
            "state": np.arange(6, dtype=np.float32) / 10 - np.float32(0.25),
            "images": {"cam_front": frames(4, 5, 0)[0], "cam_wrist": frames(3, 4, 100)[0]},
            "frame_rate_hz": 20.0,
            "captured_at_s": 7.5,
            **changes,
        }
    )


def step(number: int) -> Observation:
    """Make the observation of step *number*, which its state and its pixels tell."""
    pixels = np.full((2, 3, 3), number, np.uint8)
    return seen(state=[float(number)] * 6, images={"cam_front": pixels, "cam_wrist": pixels})
