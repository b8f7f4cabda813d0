"""Tests of `vlmcore.media.profiles`."""

from __future__ import annotations

import pytest

from vlmcore.errors import ContractError
from vlmcore.media.budgets import PixelBudget
from vlmcore.media.profiles import PROFILES, find_profile


def test_the_profiles_are_those_that_saved_workflows_name() -> None:
    """
    To the letter, and each is found by its label and by its key.
    """
    labels = ["Live / robotics", "Fast video", "Balanced", "High detail", "Low VRAM handoff"]
    assert labels == [profile.label for profile in PROFILES]
    for profile in PROFILES:
        assert profile is find_profile(profile.label) is find_profile(profile.key)


def test_balanced_is_what_a_pixel_budget_and_a_sampler_are_by_default() -> None:
    """
    1 megapixel, 1344 pixels, multiples of 14, 16 frames.
    """
    balanced = find_profile("balanced")
    usual = PixelBudget(max_pixels=1_000_000, longest_edge_px=1344, multiple_px=14)
    assert (16, usual) == (balanced.max_frames, balanced.budget)


def test_each_profile_can_be_set_in_the_nodes_of_frames_and_pixels() -> None:
    """
    Within their ranges; one profile alone gives the memory back.
    """
    for profile in PROFILES:
        assert 1 <= profile.max_frames <= 512
        assert 32 <= (profile.budget.longest_edge_px or 0) <= 16_384
        assert 10_000 <= (profile.budget.max_pixels or 0) <= 64_000_000
    assert ["low-memory"] == [profile.key for profile in PROFILES if profile.unload_after]


def test_an_unknown_profile_is_refused_with_those_there_are() -> None:
    """
    By their keys.
    """
    with pytest.raises(ContractError, match="expected one of live, fast-video, balanced"):
        find_profile("turbo")
