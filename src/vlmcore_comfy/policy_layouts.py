"""Which key of an openpi request holds which part, as the widgets of a graph say it."""

from __future__ import annotations

from vlmcore_comfy.seeing import SeenBy
from vlmcore_robotics.wire.observation_layout import (
    CameraKey,
    ImageAxes,
    ObservationLayout,
    StateKey,
)

__all__ = ["openpi_layout"]


def openpi_layout(
    seen: SeenBy, *, is_nested: bool, state_key: str, prompt_key: str
) -> ObservationLayout:
    """
    Lay out what was seen.

    Args:
        seen: What was seen.
        is_nested: Whether frames lie in a map ``images``, channels first, as ALOHA has them.
        state_key: Where the state stands.
        prompt_key: Where the instruction stands.

    Raises:
        ContractError: If two parts would have the same key, or one is none.
    """
    cameras = tuple(seen.observation.images)
    if is_nested:
        keys: list[str | tuple[str, ...]] = [("images", _last(name)) for name in cameras]
    else:
        keys = [name if "/" in name else f"observation/{_last(name)}" for name in cameras]
    return ObservationLayout(
        cameras=[CameraKey(camera=name, key=key) for name, key in zip(cameras, keys, strict=True)],
        state=[StateKey(key=state_key.strip(), count=len(seen.observation.state))],
        prompt=prompt_key.strip(),
        axes=ImageAxes.CHW if is_nested else ImageAxes.HWC,
    )


def _last(name: str) -> str:
    """Take the last part of a name as LeRobot writes them: ``observation.images.front``."""
    return name.rpartition(".")[2] or name
