"""The rotations of an action space, as a document of an embodiment says them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vlmcore.contracts.embodiment import ActionSpace
from vlmcore.contracts.faults import Faults
from vlmcore.contracts.rotations import RotationForm, RotationGroup

__all__ = ["read_rotations", "rotations_to_document"]


def rotations_to_document(space: ActionSpace) -> list[dict[str, Any]]:
    """Write the rotations of *space*, each with the names of its actions."""
    written = []
    for group in space.rotations:
        said: dict[str, Any] = {
            "name": group.name,
            "form": group.form.value,
            "actions": list(space.names[group.columns(space.dims)]),
        }
        bounds = {"max_step_rad": group.max_step_rad, "max_rate_rad_s": group.max_rate_rad_s}
        written.append(said | {key: bound for key, bound in bounds.items() if bound is not None})
    return written


def read_rotations(
    data: Mapping[str, Any], faults: Faults
) -> tuple[tuple[RotationGroup, ...], dict[str, str]]:
    """
    Read what a document says of rotations.

    Args:
        data: The keys of the document that are sound.
        faults: Is given what is wrong.

    Returns:
        The rotations, and for each action of one the name of it.
    """
    groups = []
    rotation_of: dict[str, str] = {}
    names: list[str] = data.get("action_names", [])
    for i, said in enumerate(data.get("action_rotations", ())):
        path, actions = f"$.action_rotations[{i}]", said["actions"]
        for j, name in enumerate(actions):
            if name not in names:
                faults.add(f"{path}.actions[{j}]", "is not one of action_names")
            elif name in rotation_of:
                faults.add(f"{path}.actions[{j}]", "is there twice, expected each action once")
            rotation_of[name] = said["name"]
        in_order = [name for name in names if name in actions]
        if set(in_order) == set(actions) and in_order != actions:
            faults.add(f"{path}.actions", "expected them in the order of action_names")
        fields = {key: f"{path}.{key}" for key in ("name", "max_step_rad", "max_rate_rad_s")}
        with faults.at(path, **fields):
            groups.append(
                RotationGroup(
                    name=said["name"],
                    form=RotationForm(said["form"]),
                    max_step_rad=said.get("max_step_rad"),
                    max_rate_rad_s=said.get("max_rate_rad_s"),
                )
            )
    return tuple(groups), rotation_of
