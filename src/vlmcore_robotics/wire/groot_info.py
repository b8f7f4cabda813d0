"""What a policy says about itself, as GR00T says it, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from vlmcore.contracts.embodiment import CameraSpec
from vlmcore.errors import ContractError
from vlmcore.policy.interface import PolicyInfo
from vlmcore_robotics.wire.groot_layout import GrootLayout
from vlmcore_robotics.wire.groot_modalities import ModalityConfig, PolicyModalities
from vlmcore_robotics.wire.policy_info import info_from_metadata

__all__ = ["info_from_modalities", "modalities_from_info"]

_NOW = (0,)


def modalities_from_info(info: PolicyInfo, layout: GrootLayout) -> PolicyModalities:
    """
    Write what a policy takes and gives: what is seen now, for as many steps as it proposes.

    Raises:
        ContractError: If the policy does not say its horizon, or other actions than the layout.

    Example:
        >>> from vlmcore_robotics.wire.groot_layout import ActionStream, StateSlice, VideoKey
        >>> layout = GrootLayout(
        ...     video=[VideoKey(key="front", camera="front")],
        ...     state=[StateSlice(key="neck", start=0, end=1)],
        ...     action=[ActionStream(key="neck", names=("neck",))],
        ...     language="task",
        ... )
        >>> info = PolicyInfo(name="nod", action_names=("neck",), horizon=3)
        >>> modalities_from_info(info, layout).action.delta_indices
        (0, 1, 2)
    """
    if info.horizon is None:
        raise ContractError(
            "info", f"got {info.name!r} without horizon, expected it: clients are told beforehand"
        )
    if info.action_names != layout.action_names:
        raise ContractError(
            "layout",
            f"got the actions {layout.action_names!r:.200}, expected those of {info.name!r}: "
            f"{info.action_names!r:.200}",
        )
    seen = ModalityConfig(modality_keys=[video.key for video in layout.video], delta_indices=_NOW)
    states = [part.key for part in layout.state]
    told = None if layout.language is None else (layout.language,)
    return PolicyModalities(
        video=seen,
        state=ModalityConfig(modality_keys=states, delta_indices=_NOW) if states else None,
        action=ModalityConfig(
            modality_keys=list(layout.streams), delta_indices=range(info.horizon)
        ),
        language=None if told is None else ModalityConfig(modality_keys=told, delta_indices=_NOW),
    )


def info_from_modalities(
    modalities: PolicyModalities, layout: GrootLayout, said: Mapping[str, Any], *, name: str
) -> PolicyInfo:
    """
    Read what a server says: its modalities, and what it said beside them when it was pinged.

    Args:
        modalities: What the policy takes and gives, which *layout* fits.
        layout: Which modality key holds what.
        said: The answer to a ping; servers of GR00T say nothing in it, and ours do.
        name: What the policy is called on this side.

    Raises:
        ContractError: If what was said beside them is not as described, or says something else.
    """
    info = info_from_metadata(said, name=name)
    horizon = len(modalities.action.delta_indices)
    names = layout.action_names
    for field, mine in (("action_names", names), ("horizon", horizon)):
        theirs = getattr(info, field)
        if theirs not in (None, mine):
            raise ContractError(
                f"policy_info[{field!r}]", f"got {theirs!r:.200}, expected {mine!r:.200}"
            )
    cameras = info.cameras or [CameraSpec(name=video.camera) for video in layout.video]
    return attrs.evolve(info, action_names=names, horizon=horizon, cameras=cameras, metadata={})
