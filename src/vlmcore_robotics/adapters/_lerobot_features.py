"""What a LeRobot policy is fed and what it gives, as its ``config.json`` says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from vlmcore.errors import PolicyError

__all__ = ["ACTION", "IMAGES", "STATE", "PolicyFeatures", "features_from"]

STATE = "observation.state"
IMAGES = "observation.images"
ACTION = "action"
_COUNTS = ("n_obs_steps", "chunk_size", "n_action_steps")


@attrs.frozen(kw_only=True)
class PolicyFeatures:
    """
    The features of a policy.

    Attributes:
        kind: The type of the policy, as ``"act"``.
        cameras: The key of each picture that it is fed, with height and width.
        state_count: How many numbers its state has; ``None`` if it is fed none.
        action_count: How many numbers its action has.
        n_obs_steps: How many steps of observations it looks at.
        document: All of it for others, as the ``policy_contract`` of the HTTP protocol.
    """

    kind: str
    cameras: Mapping[str, tuple[int, int]]
    state_count: int | None
    action_count: int
    n_obs_steps: int
    document: Mapping[str, Any]


def features_from(policy: str, config: Mapping[str, Any]) -> PolicyFeatures:
    """
    Read the features of *policy* from its ``config.json``.

    Raises:
        PolicyError: If they are not there, or the policy is fed what no observation holds.
    """
    inputs = _features(policy, config, "input_features")
    outputs = _features(policy, config, "output_features")
    cameras: dict[str, tuple[int, int]] = {}
    state_count: int | None = None
    empty = _never_fed(config)
    for key, (kind, shape) in inputs.items():
        if key in empty:
            continue
        if kind == "VISUAL" and len(shape) == 3 and shape[0] == 3:
            cameras[key] = (shape[1], shape[2])
        elif kind == "STATE" and key == STATE and len(shape) == 1:
            state_count = shape[0]
        else:
            raise PolicyError(
                policy,
                f"is fed {key!r}, {kind} of shape {list(shape)}, expected a state {STATE!r} and "
                "pictures of shape [3, height, width]: observations hold nothing else",
            )
    kind, shape = outputs.get(ACTION, ("", ()))
    if kind != "ACTION" or len(shape) != 1:
        raise PolicyError(policy, f"gives {list(outputs)}, expected a vector {ACTION!r}")
    counts = {name: config.get(name) for name in _COUNTS}
    n_obs_steps = counts["n_obs_steps"]
    if type(n_obs_steps) is not int or n_obs_steps < 1:
        raise PolicyError(policy, f"n_obs_steps is {n_obs_steps!r:.80}, expected at least 1")
    document = {
        "input_features": _written(inputs),
        "output_features": _written(outputs),
        **{name: count for name, count in counts.items() if type(count) is int},
    }
    return PolicyFeatures(
        kind=str(config.get("type")),
        cameras=cameras,
        state_count=state_count,
        action_count=shape[0],
        n_obs_steps=n_obs_steps,
        document=document,
    )


def _features(
    policy: str, config: Mapping[str, Any], field: str
) -> dict[str, tuple[str, tuple[int, ...]]]:
    said = config.get(field)
    if not isinstance(said, Mapping) or not said:
        raise PolicyError(policy, f"{field} is {said!r:.80}, expected features by their keys")
    features: dict[str, tuple[str, tuple[int, ...]]] = {}
    for key, feature in said.items():
        kind = feature.get("type") if isinstance(feature, Mapping) else None
        shape = feature.get("shape") if isinstance(feature, Mapping) else None
        is_shape = isinstance(shape, list) and all(type(n) is int and n >= 1 for n in shape)
        if not isinstance(kind, str) or not is_shape or not shape:
            raise PolicyError(policy, f"{field} has {key!r} as {feature!r:.80}, expected its shape")
        features[key] = (kind, tuple(shape))
    return features


def _never_fed(config: Mapping[str, Any]) -> set[str]:
    """Name the pictures that a policy makes up itself where a robot has fewer cameras."""
    count = config.get("empty_cameras")
    return {f"{IMAGES}.empty_camera_{i}" for i in range(count if type(count) is int else 0)}


def _written(features: Mapping[str, tuple[str, tuple[int, ...]]]) -> dict[str, Any]:
    return {key: {"type": kind, "shape": list(shape)} for key, (kind, shape) in features.items()}
