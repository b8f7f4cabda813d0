"""Sizes that a model can take: images made smaller, never below one pixel."""

from __future__ import annotations

import math

from vlmcore._arrays import UInt8Array, readonly_image, require_count
from vlmcore._optional import optional_dependency

__all__ = ["fit_longest_edge", "fit_pixel_budget", "resize"]


def fit_longest_edge(image: UInt8Array, longest_edge_px: int) -> UInt8Array:
    """
    Make an image smaller until its longest edge fits, keeping its proportions.

    An image that fits is returned as it is, the same array. No edge becomes shorter than 1 pixel.

    Args:
        image: RGB, uint8, shape ``[H, W, 3]``.
        longest_edge_px: The longest edge of the result, in pixels.

    Raises:
        ContractError: If *image* is not such an array, or the edge is not at least 1.
        MissingDependencyError: If Pillow is needed and not installed.
    """
    require_count(longest_edge_px=longest_edge_px)
    readonly_image(image, field="image")
    height, width = image.shape[:2]
    longest = max(height, width)
    if longest <= longest_edge_px:
        return image
    # Exact integers, halves up: a float scale can miss the edge that was asked for by one.
    return resize(
        image,
        height_px=max(1, (2 * height * longest_edge_px + longest) // (2 * longest)),
        width_px=max(1, (2 * width * longest_edge_px + longest) // (2 * longest)),
    )


def fit_pixel_budget(image: UInt8Array, max_pixels: int) -> UInt8Array:
    """
    Make an image smaller until it has at most *max_pixels* pixels, keeping its proportions.

    An image that fits is returned as it is, the same array. No edge becomes shorter than 1 pixel.

    Args:
        image: RGB, uint8, shape ``[H, W, 3]``.
        max_pixels: Width times height of the result at most.

    Raises:
        ContractError: If *image* is not such an array, or the budget is not at least 1.
        MissingDependencyError: If Pillow is needed and not installed.
    """
    require_count(max_pixels=max_pixels)
    readonly_image(image, field="image")
    height, width = image.shape[:2]
    if height * width <= max_pixels:
        return image
    scale = math.sqrt(max_pixels / (height * width))
    height_px = min(max(1, int(height * scale)), max_pixels)
    width_px = min(max(1, int(width * scale)), max_pixels // height_px)
    return resize(image, height_px=min(height_px, max_pixels // width_px), width_px=width_px)


def resize(image: UInt8Array, *, height_px: int, width_px: int) -> UInt8Array:
    """
    Resize an image to exactly this size, with a bicubic filter that averages when it shrinks.

    Args:
        image: RGB, uint8, shape ``[H, W, 3]``.
        height_px: Height of the result.
        width_px: Width of the result.

    Returns:
        A new array, uint8, shape ``[height_px, width_px, 3]``.

    Raises:
        ContractError: If *image* is not such an array, or a size is not at least 1.
        MissingDependencyError: If Pillow is not installed.
    """
    require_count(height_px=height_px, width_px=width_px)
    readonly_image(image, field="image")
    with optional_dependency("images", "PIL"):
        from vlmcore.media import _pillow  # noqa: PLC0415 - the door
    return _pillow.resample(image, height_px=height_px, width_px=width_px)
