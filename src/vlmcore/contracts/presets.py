"""Template embodiments: starting points for robots that many people have, certified by nobody."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from types import MappingProxyType

from vlmcore._arguments import shown
from vlmcore.contracts.embodiment import (
    ActionDim,
    ActionSpace,
    CameraSpec,
    Embodiment,
    LimitsSource,
    Reference,
)
from vlmcore.errors import ContractError

__all__ = ["PRESETS", "find_embodiment"]

_NOTES = (
    "Template limits, certified by nobody: replace them with the statistics of the checkpoint's "
    "dataset and with the controller's own limits before a robot moves."
)
_FRONT = "observation.images.front"
_WRIST = "observation.images.wrist"


def _targets(names: tuple[str, ...], bound: float, max_step: float) -> tuple[ActionDim, ...]:
    return tuple(ActionDim(name=name, low=-bound, high=bound, max_step=max_step) for name in names)


def _changes(names: tuple[str, ...], bound: float, max_step: float) -> tuple[ActionDim, ...]:
    return tuple(
        ActionDim(name=name, reference=Reference.DELTA, low=-bound, high=bound, max_step=max_step)
        for name in names
    )


def _gripper(low: float, max_step: float) -> tuple[ActionDim]:
    return (ActionDim(name="gripper", low=low, high=1.0, max_step=max_step),)


def _template(
    name: str,
    dims: tuple[ActionDim, ...],
    *,
    rate_hz: float,
    action_mode: str,
    cameras: tuple[str, ...],
    state_names: tuple[str, ...] | None = None,
) -> Embodiment:
    return Embodiment(
        name=name,
        state_names=tuple(dim.name for dim in dims) if state_names is None else state_names,
        actions=ActionSpace(dims=dims, rate_hz=rate_hz),
        cameras=tuple(CameraSpec(name=camera) for camera in cameras),
        limits_source=LimitsSource.TEMPLATE,
        action_mode=action_mode,
        notes=_NOTES,
    )


def _numbered(stem: str, count: int) -> tuple[str, ...]:
    return tuple(f"{stem}_{i}" for i in range(count))


_SO100_JOINTS = ("shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll")

#: The templates by their labels, which saved workflows hold; kept to the letter.
PRESETS: Mapping[str, Embodiment] = MappingProxyType(
    {
        "Generic 7-DoF joint + gripper": _template(
            "generic_7dof_joint_gripper",
            _targets(_numbered("joint", 7), math.pi, 0.12) + _gripper(0.0, 0.15),
            rate_hz=20.0,
            action_mode="absolute joint position",
            cameras=(_FRONT,),
        ),
        "Generic EEF delta + gripper": _template(
            "generic_eef_delta_gripper",
            _changes(("dx", "dy", "dz"), 0.05, 0.025)
            + _changes(("drx", "dry", "drz"), 0.25, 0.12)
            + _gripper(-1.0, 0.5),
            rate_hz=20.0,
            action_mode="delta end-effector pose",
            cameras=(_FRONT, _WRIST),
            state_names=("x", "y", "z", "rx", "ry", "rz", "gripper"),
        ),
        "LeRobot SO-100 / SO-101 template": _template(
            "lerobot_so100_so101_template",
            _targets(_SO100_JOINTS, 1.0, 0.10) + _gripper(-1.0, 0.15),
            rate_hz=30.0,
            action_mode="dataset-normalized template",
            cameras=(_FRONT, _WRIST),
        ),
        "LIBERO Panda simulation template": _template(
            "libero_panda_template",
            _changes(("dx", "dy", "dz", "dax", "day", "daz"), 1.0, 0.25) + _gripper(-1.0, 1.0),
            rate_hz=20.0,
            action_mode="LIBERO normalized delta template",
            cameras=("observation.image", "observation.wrist_image"),
            state_names=_numbered("state", 8),
        ),
        "ALOHA bimanual template": _template(
            "aloha_bimanual_template",
            _targets(_numbered("joint", 14), math.pi, 0.12),
            rate_hz=50.0,
            action_mode="absolute bimanual joint position",
            cameras=("cam_high", "cam_left_wrist", "cam_right_wrist"),
        ),
    }
)


def find_embodiment(name: str) -> Embodiment:
    """
    Find a template by its label, or by the name of its embodiment.

    Raises:
        ContractError: If there is none of this name; the nearest ones are named.

    Example:
        >>> find_embodiment("aloha_bimanual_template").actions.rate_hz
        50.0
    """
    if isinstance(name, str):
        if name in PRESETS:
            return PRESETS[name]
        for preset in PRESETS.values():
            if preset.name == name:
                return preset
    raise ContractError("name", f"got {shown(name)}, {_hint(name)}")


def _hint(name: object) -> str:
    """Say which names were probably meant, in any case of letters; or all of them."""
    known = {text.casefold(): text for label in PRESETS for text in (label, PRESETS[label].name)}
    wanted = name.casefold() if isinstance(name, str) else ""
    near = [known[text] for text in difflib.get_close_matches(wanted, known, n=2, cutoff=0.6)]
    near += [text for low, text in known.items() if wanted and wanted in low and text not in near]
    if near:
        return f"did you mean {' or '.join(repr(text) for text in near[:3])}?"
    return f"expected one of {', '.join(repr(label) for label in PRESETS)}"
