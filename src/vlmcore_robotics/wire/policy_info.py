"""What a policy says about itself, as the metadata of a server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np

from vlmcore._copying import thawed
from vlmcore.contracts._response_notes import described
from vlmcore.contracts.embodiment import CameraSpec
from vlmcore.errors import ContractError
from vlmcore.policy.interface import PolicyInfo

__all__ = ["info_from_metadata", "metadata_from_info"]

_KEY = "policy_info"
_NAMES = ("action_names", "action_units", "state_names")
_PLAIN = ("horizon", "rate_hz")
_SIDES = ("height_px", "width_px")
_WRITTEN_OUT = 256  # numbers of an array that are kept, as those of a pose


def metadata_from_info(info: PolicyInfo) -> dict[str, Any]:
    """
    Write what a server says: the metadata of the policy, and the rest of *info* under one key.

    Peers that read a key of the metadata, as ``reset_pose``, find it where they look; the key
    ``policy_info`` is passed over by those that do not know it.

    Example:
        >>> metadata_from_info(PolicyInfo(name="nod", action_names=("neck",), horizon=8))
        {'policy_info': {'name': 'nod', 'action_names': ['neck'], 'horizon': 8}}
    """
    said: dict[str, Any] = {"name": info.name}
    for field in _NAMES:
        names = getattr(info, field)
        if names is not None:
            said[field] = list(names)
    for field in _PLAIN:
        if getattr(info, field) is not None:
            said[field] = getattr(info, field)
    if info.cameras is not None:
        said["cameras"] = [
            {key: value for key, value in attrs.asdict(camera).items() if value is not None}
            for camera in info.cameras
        ]
    return {**thawed(info.metadata), _KEY: said}


def info_from_metadata(metadata: Mapping[str, Any], *, name: str) -> PolicyInfo:
    """
    Read what a server says. Most say nothing of what is read here, and are not asked to.

    Args:
        metadata: What was decoded. Arrays of up to 256 numbers are kept as lists; what JSON cannot
            hold is told in words.
        name: What the policy is called on this side; the server's own name for it is kept in the
            metadata.

    Raises:
        ContractError: If there is something under ``policy_info`` that is not as described.
    """
    said = metadata.get(_KEY)
    fields: dict[str, Any] = {}
    if said is not None:
        if not isinstance(said, Mapping):
            raise ContractError(_KEY, f"got {type(said).__name__}, expected a map")
        fields = {field: said[field] for field in (*_NAMES, *_PLAIN) if said.get(field) is not None}
        if said.get("cameras") is not None:
            fields["cameras"] = tuple(map(_camera, _listed(said["cameras"])))
    notes = described({key: _written_out(value) for key, value in metadata.items()})
    return PolicyInfo(name=name, metadata=notes, **fields)


def _listed(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ContractError("cameras", f"got {type(value).__name__}, expected a list")
    return value


def _camera(value: Any) -> CameraSpec:
    if not isinstance(value, Mapping):
        raise ContractError("cameras", f"got {type(value).__name__} in it, expected maps")
    fields: dict[str, Any] = {key: value.get(key) for key in ("name", *_SIDES)}
    return CameraSpec(**fields)


def _written_out(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) and value.size <= _WRITTEN_OUT else value
