"""Named settings: how many frames and pixels a model is given, from quick to thorough."""

from __future__ import annotations

import attrs

from vlmcore.errors import ContractError
from vlmcore.media.budgets import PixelBudget

__all__ = ["PROFILES", "PerformanceProfile", "find_profile"]

_PATCH_PX = 14  # of most vision towers


@attrs.frozen(kw_only=True)
class PerformanceProfile:
    """
    What a model is given, and how it is run.

    Attributes:
        key: Its name for programs.
        label: Its name for people.
        max_frames: Frames of a video at most.
        budget: Pixels of a picture or a frame.
        batch_size: Pictures that go through a model at once.
        unload_after: Whether the model leaves the memory of the device after its answer.
    """

    key: str
    label: str
    max_frames: int
    budget: PixelBudget
    batch_size: int = 1
    unload_after: bool = False


def _budget(megapixels: float, longest_edge_px: int) -> PixelBudget:
    return PixelBudget.of_megapixels(
        megapixels, longest_edge_px=longest_edge_px, multiple_px=_PATCH_PX
    )


#: All of them, from the quickest; the numbers are ours, ``balanced`` is what is usual.
PROFILES: tuple[PerformanceProfile, ...] = (
    PerformanceProfile(
        key="live", label="Live / robotics", max_frames=4, budget=_budget(0.25, 560)
    ),
    PerformanceProfile(
        key="fast-video", label="Fast video", max_frames=8, budget=_budget(0.35, 728), batch_size=4
    ),
    PerformanceProfile(
        key="balanced", label="Balanced", max_frames=16, budget=_budget(1.0, 1344), batch_size=2
    ),
    PerformanceProfile(
        key="high-detail", label="High detail", max_frames=32, budget=_budget(4.0, 2688)
    ),
    PerformanceProfile(
        key="low-memory",
        label="Low VRAM handoff",
        max_frames=8,
        budget=_budget(0.5, 896),
        unload_after=True,
    ),
)


def find_profile(name: str) -> PerformanceProfile:
    """
    Find a profile by its key or its label.

    Raises:
        ContractError: If there is none of this name.

    Example:
        >>> find_profile("Balanced").budget.size_for(4000, 3000)
        (1148, 868)
    """
    for profile in PROFILES:
        if name in (profile.key, profile.label):
            return profile
    known = ", ".join(profile.key for profile in PROFILES)
    raise ContractError("profile", f"got {name!r}, expected one of {known}")
