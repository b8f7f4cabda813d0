"""What is known of the data that a LeRobot policy was trained on."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from vlmcore._arrays import as_tuple, plain_float, require_names, require_positive
from vlmcore.errors import ContractError
from vlmcore.limits import ContractLimits
from vlmcore_robotics.adapters._lerobot_features import ACTION, STATE
from vlmcore_robotics.adapters._lerobot_folder import read_object

__all__ = ["TrainedOn", "trained_on"]

_LIMITS = ContractLimits()


@attrs.frozen(kw_only=True)
class TrainedOn:
    """
    What is known of the data that a policy was trained on; ``None`` where it is not.

    Attributes:
        action_names: What the numbers of its actions are, in their order.
        state_names: What the numbers of its state are, in their order.
        rate_hz: How many steps a second there are.

    Raises:
        ContractError: If a field is not as described.
    """

    action_names: tuple[str, ...] | None = attrs.field(default=None, converter=as_tuple)
    state_names: tuple[str, ...] | None = attrs.field(default=None, converter=as_tuple)
    rate_hz: float | None = attrs.field(default=None, converter=plain_float)

    def __attrs_post_init__(self) -> None:
        names_of = {"action_names": self.action_names, "state_names": self.state_names}
        for field, names in names_of.items():
            if names is not None:
                require_names(
                    field,
                    names,
                    max_count=_LIMITS.max_actions,
                    max_characters=_LIMITS.max_name_characters,
                )
        if self.rate_hz is not None:
            require_positive(rate_hz=self.rate_hz)


def trained_on(
    policy: str,
    *,
    dataset: str | os.PathLike[str] | None,
    action_names: Sequence[str] | None,
    state_names: Sequence[str] | None,
    rate_hz: float | None,
) -> TrainedOn:
    """
    Take what the caller says, or what the ``meta/info.json`` of a LeRobotDataset does.

    Raises:
        ContractError: If both say something, or it is not as described.
        PolicyError: If there is no such file, or it cannot be read.
    """
    if dataset is None:
        return TrainedOn(action_names=action_names, state_names=state_names, rate_hz=rate_hz)
    given = {"action_names": action_names, "state_names": state_names, "rate_hz": rate_hz}
    for field, value in given.items():
        if value is not None:
            raise ContractError(field, "got it beside dataset, expected one of the two")
    info = read_object(policy, Path(dataset) / "meta" / "info.json")
    return TrainedOn(
        action_names=_names(info, ACTION), state_names=_names(info, STATE), rate_hz=info.get("fps")
    )


def _names(info: Mapping[str, Any], key: str) -> tuple[str, ...] | None:
    """Find the names of a feature: a list, or lists under the kinds of parts."""
    features = info.get("features")
    feature = features.get(key) if isinstance(features, dict) else None
    names = feature.get("names") if isinstance(feature, dict) else None
    if isinstance(names, dict):
        names = [name for part in names.values() if isinstance(part, list) for name in part]
    if not isinstance(names, list) or not names or not all(isinstance(n, str) for n in names):
        return None
    return tuple(names)
