"""Tests of `vlmcore_robotics.adapters._lerobot_features`: what a ``config.json`` says."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given

from vlmcore.errors import PolicyError
from vlmcore.testing._json_strategies import json_objects
from vlmcore_robotics.adapters._lerobot_features import PolicyFeatures, features_from

STATE = {"type": "STATE", "shape": [6]}
PICTURE = {"type": "VISUAL", "shape": [3, 480, 640]}
CONFIG: dict[str, Any] = {
    "type": "act",
    "n_obs_steps": 1,
    "chunk_size": 100,
    "n_action_steps": 50,
    "input_features": {"observation.state": STATE, "observation.images.front": PICTURE},
    "output_features": {"action": {"type": "ACTION", "shape": [6]}},
}


def read(**changes: Any) -> PolicyFeatures:
    return features_from("so101", {**CONFIG, **changes})


def test_cameras_states_and_actions_are_read() -> None:
    """
    With the height and width of each picture.
    """
    features = read()
    assert {"observation.images.front": (480, 640)} == features.cameras
    assert (6, 6, 1) == (features.state_count, features.action_count, features.n_obs_steps)


def test_the_contract_is_that_of_the_http_protocol() -> None:
    """
    Features with type and shape, and the three counts.
    """
    assert {
        "input_features": CONFIG["input_features"],
        "output_features": CONFIG["output_features"],
        "n_obs_steps": 1,
        "chunk_size": 100,
        "n_action_steps": 50,
    } == read().document


def test_a_count_that_a_policy_has_not_is_left_out() -> None:
    """
    Diffusion Policy has no chunk_size.
    """
    assert "chunk_size" not in read(chunk_size=None).document


def test_a_policy_may_be_fed_no_state() -> None:
    """
    Pictures only.
    """
    assert read(input_features={"observation.images.front": PICTURE}).state_count is None


def test_pictures_that_a_policy_makes_up_itself_need_no_camera() -> None:
    """
    SmolVLA declares as many as it was pretrained with.
    """
    inputs = {**CONFIG["input_features"], "observation.images.empty_camera_0": PICTURE}
    assert ["observation.images.front"] == list(
        read(input_features=inputs, empty_cameras=1).cameras
    )


@pytest.mark.parametrize(
    "feature",
    [
        {"observation.environment_state": {"type": "ENV", "shape": [4]}},
        {"observation.velocity": STATE},
        {"observation.state": {"type": "STATE", "shape": [2, 3]}},
        {"observation.images.depth": {"type": "VISUAL", "shape": [1, 480, 640]}},
        {"observation.images.front": {"type": "VISUAL", "shape": [480, 640]}},
    ],
)
def test_a_policy_that_is_fed_what_no_observation_holds_is_refused(feature: Any) -> None:
    """
    It is not fed zeros instead.
    """
    with pytest.raises(PolicyError, match="observations hold nothing else"):
        read(input_features=feature)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("input_features", None),
        ("input_features", {}),
        ("input_features", {"observation.state": [6]}),
        ("input_features", {"observation.state": {"type": "STATE", "shape": [True]}}),
        ("input_features", {"observation.state": {"type": "STATE", "shape": [6.0]}}),
        ("input_features", {"observation.state": {"type": "STATE", "shape": []}}),
        ("input_features", {"observation.state": {"type": "STATE", "shape": [-6]}}),
        ("output_features", {"pose": {"type": "ACTION", "shape": [6]}}),
        ("output_features", {"action": {"type": "ACTION", "shape": [2, 6]}}),
        ("output_features", {"action": STATE}),
        ("n_obs_steps", 0),
        ("n_obs_steps", "2"),
        ("n_obs_steps", True),
    ],
)
def test_a_configuration_that_says_nothing_is_refused(field: str, value: Any) -> None:
    """
    With the name of the policy.
    """
    with pytest.raises(PolicyError, match=r"^so101: "):
        read(**{field: value})


@given(json_objects())
def test_any_json_is_read_or_refused(config: Any) -> None:
    """
    And nothing else is raised.
    """
    for changes in (config, {**CONFIG, "input_features": config}):
        with suppress(PolicyError):
            features_from("any", changes)
