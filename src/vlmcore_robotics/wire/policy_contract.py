"""What a server of the first version says about its policy, compared with a robot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from vlmcore.contracts.embodiment import Embodiment

__all__ = ["contract_differences"]

_KEY = "policy_contract"


def contract_differences(metadata: Mapping[str, Any], robot: Embodiment) -> tuple[str, ...]:
    """
    List in what the key ``policy_contract`` says something else than *robot*, one sentence each.

    It holds the features of the checkpoint, as LeRobot writes them. What is compared is how many
    numbers a state and an action have. Cameras are not: such servers rename and resize them.

    Args:
        metadata: What the server says; anything may be in it.
        robot: The robot.

    Example:
        >>> from vlmcore.contracts.presets import find_embodiment
        >>> arm = find_embodiment("lerobot_so100_so101_template")
        >>> said = {"output_features": {"action": {"type": "ACTION", "shape": [7]}}}
        >>> contract_differences({"policy_contract": said}, arm)
        ("policy_contract: 'action' has 7 numbers, expected the 6 actions of the robot",)
    """
    said = metadata.get(_KEY)
    return tuple(_differences(said, robot)) if isinstance(said, Mapping) else ()


def _differences(said: Mapping[str, Any], robot: Embodiment) -> Iterator[str]:
    for side, kind, count, what in (
        ("input_features", "STATE", len(robot.state_names), "numbers of the state"),
        ("output_features", "ACTION", len(robot.actions.names), "actions"),
    ):
        features = said.get(side)
        for name, feature in features.items() if isinstance(features, Mapping) else ():
            if not isinstance(feature, Mapping) or feature.get("type") != kind:
                continue
            shape = feature.get("shape")
            if isinstance(shape, (list, tuple)) and len(shape) == 1 and shape[0] != count:
                yield (
                    f"{_KEY}: {name!r:.80} has {shape[0]!r:.20} numbers, "
                    f"expected the {count} {what} of the robot"
                )
