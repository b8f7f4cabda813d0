"""Nodes that decide how much a model is given."""

from __future__ import annotations

from typing import Any

from vlmcore_comfy.declaring import Node, Output, choice, integer, node, number, socket
from vlmcore_comfy.hosting import ALONE, Host

__all__ = ["NODES", "performance_profile", "pixel_budget"]

_PROFILES = ("Live / robotics", "Fast video", "Balanced", "High detail", "Low VRAM handoff")
_BICUBIC = "Quality (bicubic)"


@node(
    "VLMPerformanceProfile",
    title="VLM Performance Profile",
    category="Performance",
    description="Settings that go together, from quick to thorough, for the other nodes.",
    inputs=(choice("profile", _PROFILES, "Balanced"),),
    outputs=(
        Output("INT", "max_frames"),
        Output("FLOAT", "max_megapixels"),
        Output("INT", "max_edge"),
        Output("INT", "batch_size"),
        Output("BOOLEAN", "unload_after"),
        Output("STRING", "profile_json"),
    ),
)
def performance_profile(profile: str) -> tuple[int, float, int, int, bool, str]:
    """Look a profile up."""
    from vlmcore.contracts.json_text import write_json
    from vlmcore.media.profiles import find_profile

    found = find_profile(profile)
    budget = found.budget
    assert budget.max_pixels is not None
    assert budget.longest_edge_px is not None
    said = {
        "profile": found.key,
        "max_frames": found.max_frames,
        "max_megapixels": budget.max_pixels / 1e6,
        "max_edge": budget.longest_edge_px,
        "multiple": budget.multiple_px,
        "batch_size": found.batch_size,
        "unload_after": found.unload_after,
    }
    return (
        found.max_frames,
        budget.max_pixels / 1e6,
        budget.longest_edge_px,
        found.batch_size,
        found.unload_after,
        write_json(said),
    )


@node(
    "VLMImagePixelBudget",
    title="VLM Image Pixel Budget",
    category="Performance",
    description="Makes images smaller until they keep to a budget of pixels, in the proportions "
    "that come nearest with edges of whole multiples. None is made larger.",
    inputs=(
        socket("images", "IMAGE"),
        number("max_megapixels", 1.0, 0.01, 64.0, 0.05),
        integer("max_edge", 1344, 32, 16384, 14),
        choice("multiple", ("1", "14", "28", "32"), "14", tooltip="The patch of the model"),
        choice("resize_quality", ("Fast (area)", _BICUBIC), "Fast (area)"),
    ),
    outputs=(
        Output("IMAGE", "optimized_images"),
        Output("INT", "width"),
        Output("INT", "height"),
        Output("STRING", "optimization_report"),
    ),
    is_threaded=True,
)
def pixel_budget(
    images: Any,
    max_megapixels: float,
    max_edge: int,
    multiple: str,
    resize_quality: str,
    *,
    comfyui: Host = ALONE,
) -> tuple[Any, int, int, str]:
    """Make images smaller."""
    from vlmcore.contracts.json_text import write_json
    from vlmcore.limits import ImageLimits, VideoLimits
    from vlmcore.media.budgets import PixelBudget
    from vlmcore.media.resizing import Resampling
    from vlmcore_comfy.images import batch_of, each_picture, image_of

    batch = batch_of("images", images)
    side = int(multiple)
    budget = PixelBudget.of_megapixels(
        max_megapixels,
        longest_edge_px=max_edge,
        multiple_px=side,
        resampling=Resampling.BICUBIC if resize_quality == _BICUBIC else Resampling.AREA,
    )
    height, width = batch.shape[1:3]
    report = budget.report(width, height, patch_px=side if side > 1 else None)
    # A picture of 8k is what is to be made smaller here: as large as the frame of a video.
    pictures = each_picture(
        "images",
        batch,
        limits=ImageLimits(max_pixels=VideoLimits().max_pixels),
        before_each=comfyui.raise_if_stopped,
    )
    after = image_of([budget.apply(picture) for picture in pictures])
    said = {
        "images": len(batch),
        "before": list(report.before_px),
        "after": list(report.after_px),
        "share_of_pixels": round(report.share, 6),
        "patches": report.tokens,
    }
    return after, report.after_px[0], report.after_px[1], write_json(said)


NODES: tuple[Node[..., Any], ...] = (performance_profile, pixel_budget)
