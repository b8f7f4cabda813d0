"""Sizes that a model can take: images made smaller, never below one pixel."""

from __future__ import annotations

import enum

from vlmcore._arrays import UInt8Array, readonly_image, require_count, require_member
from vlmcore._optional import optional_dependency
from vlmcore.media._sizes import size_within

__all__ = ["Resampling", "fit_longest_edge", "fit_pixel_budget", "resize"]


class Resampling(enum.Enum):
    """How the pixels of another size are computed."""

    AREA = "area"
    """The average of the area that a pixel comes from: fast."""
    BICUBIC = "bicubic"
    """A bicubic filter that averages when it shrinks: sharper."""


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
    return _fit(image, size_within(width, height, longest_edge_px=longest_edge_px))


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
    return _fit(image, size_within(width, height, max_pixels=max_pixels))


def _fit(image: UInt8Array, size: tuple[int, int]) -> UInt8Array:
    width, height = size
    if (height, width) == image.shape[:2]:
        return image
    return resize(image, height_px=height, width_px=width)


def resize(
    image: UInt8Array,
    *,
    height_px: int,
    width_px: int,
    resampling: Resampling = Resampling.BICUBIC,
) -> UInt8Array:
    """
    Resize an image to exactly this size.

    Args:
        image: RGB, uint8, shape ``[H, W, 3]``.
        height_px: Height of the result.
        width_px: Width of the result.
        resampling: How its pixels are computed.

    Returns:
        A new array, uint8, shape ``[height_px, width_px, 3]``.

    Raises:
        ContractError: If *image* is not such an array, or a size is not at least 1.
        MissingDependencyError: If Pillow is not installed.
    """
    require_count(height_px=height_px, width_px=width_px)
    require_member(Resampling, resampling=resampling)
    readonly_image(image, field="image")
    with optional_dependency("images", "PIL"):
        from vlmcore.media import _pillow  # noqa: PLC0415 - the door
    return _pillow.resample(
        image,
        height_px=height_px,
        width_px=width_px,
        averages=resampling is Resampling.AREA,
    )
