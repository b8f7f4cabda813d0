"""Tests of `vlmcore.contracts.presets`: workflow files hold these labels."""

from __future__ import annotations

import math
from typing import Any

import pytest

from vlmcore.contracts.embodiment import LimitsSource, Reference
from vlmcore.contracts.presets import PRESETS, find_embodiment
from vlmcore.errors import ContractError

PI = math.pi
FRONT, WRIST = "observation.images.front", "observation.images.wrist"
JOINTS = [f"joint_{i}" for i in range(7)]
SO100 = ["shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll", "gripper"]
STATES = [f"state_{i}" for i in range(8)]

# label, name, states, actions, low, high, steps, Hz, mode, cameras
TABLE: list[tuple[Any, ...]] = [
    (
        "Generic 7-DoF joint + gripper",
        "generic_7dof_joint_gripper",
        [*JOINTS, "gripper"],
        [*JOINTS, "gripper"],
        [-PI] * 7 + [0.0],
        [PI] * 7 + [1.0],
        [0.12] * 7 + [0.15],
        20,
        "absolute joint position",
        [FRONT],
    ),
    (
        "Generic EEF delta + gripper",
        "generic_eef_delta_gripper",
        ["x", "y", "z", "rx", "ry", "rz", "gripper"],
        ["dx", "dy", "dz", "drx", "dry", "drz", "gripper"],
        [-0.05] * 3 + [-0.25] * 3 + [-1.0],
        [0.05] * 3 + [0.25] * 3 + [1.0],
        [0.025] * 3 + [0.12] * 3 + [0.5],
        20,
        "delta end-effector pose",
        [FRONT, WRIST],
    ),
    (
        "LeRobot SO-100 / SO-101 template",
        "lerobot_so100_so101_template",
        SO100,
        SO100,
        [-1.0] * 6,
        [1.0] * 6,
        [0.10] * 5 + [0.15],
        30,
        "dataset-normalized template",
        [FRONT, WRIST],
    ),
    (
        "LIBERO Panda simulation template",
        "libero_panda_template",
        STATES,
        ["dx", "dy", "dz", "dax", "day", "daz", "gripper"],
        [-1.0] * 7,
        [1.0] * 7,
        [0.25] * 6 + [1.0],
        20,
        "LIBERO normalized delta template",
        ["observation.image", "observation.wrist_image"],
    ),
    (
        "ALOHA bimanual template",
        "aloha_bimanual_template",
        [f"joint_{i}" for i in range(14)],
        [f"joint_{i}" for i in range(14)],
        [-PI] * 14,
        [PI] * 14,
        [0.12] * 14,
        50,
        "absolute bimanual joint position",
        ["cam_high", "cam_left_wrist", "cam_right_wrist"],
    ),
]


def test_the_labels_are_those_of_saved_workflows() -> None:
    """
    To the letter, and in their order.
    """
    assert [row[0] for row in TABLE] == list(PRESETS)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row[1])
def test_a_template_has_the_numbers_of_the_table(row: tuple[Any, ...]) -> None:
    """
    Files and servers rely on them.
    """
    found = PRESETS[row[0]]

    assert row == (
        row[0],
        found.name,
        list(found.state_names),
        list(found.actions.names),
        found.actions.low.tolist(),
        found.actions.high.tolist(),
        found.actions.max_step.tolist(),
        found.actions.rate_hz,
        found.action_mode,
        list(found.camera_names),
    )


@pytest.mark.parametrize("label", PRESETS)
def test_a_template_says_that_its_limits_are_certified_by_nobody(label: str) -> None:
    """
    And what to put in their place.
    """
    found = PRESETS[label]

    assert LimitsSource.TEMPLATE is found.limits_source
    for words in ("Template limits", "replace", "checkpoint's dataset", "controller's own limits"):
        assert words in found.notes


@pytest.mark.parametrize("label", PRESETS)
def test_numbers_of_a_delta_mode_are_changes_and_a_gripper_is_a_target(label: str) -> None:
    """
    Held, a delta robot is sent zeros and its gripper keeps what it holds.
    """
    delta = "delta" in PRESETS[label].action_mode
    for dim in PRESETS[label].actions.dims:
        changes = delta and dim.name != "gripper"
        assert (Reference.DELTA if changes else Reference.ABSOLUTE) is dim.reference


@pytest.mark.parametrize("label", PRESETS)
def test_a_template_is_found_by_its_label_and_by_its_name(label: str) -> None:
    """
    Labels are for workflows, names for programs.
    """
    assert PRESETS[label] is find_embodiment(label)
    assert PRESETS[label] is find_embodiment(PRESETS[label].name)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("aloha_bimanual_templat", "did you mean 'aloha_bimanual_template'"),
        ("ALOHA", "'ALOHA bimanual template'"),
        ("generic eef delta + gripper", "did you mean 'Generic EEF delta [+] gripper'"),
        ("so100", "did you mean 'lerobot_so100_so101_template'"),
        ("", "expected one of 'Generic 7-DoF"),
        ("xyz", "expected one of 'Generic 7-DoF"),
        (None, "expected one of 'Generic 7-DoF"),
    ],
)
def test_a_name_that_is_nearly_right_is_told(name: Any, hint: str) -> None:
    """
    And never taken for the right one.
    """
    with pytest.raises(ContractError, match=f"^name: got .*{hint}"):
        find_embodiment(name)


def test_the_templates_cannot_be_changed() -> None:
    """
    One place would change them for everybody.
    """
    with pytest.raises(TypeError):
        PRESETS["mine"] = PRESETS["ALOHA bimanual template"]  # type: ignore[index]
