"""Pixels that a model is given: a budget for each picture, and what it makes of a size."""

from __future__ import annotations

import math
from typing import Any

import attrs
import numpy as np

from vlmcore._arrays import (
    UInt8Array,
    readonly_frames,
    readonly_image,
    require_count,
    require_member,
    require_positive,
)
from vlmcore.errors import ContractError
from vlmcore.media._sizes import size_within
from vlmcore.media.resizing import Resampling, resize

__all__ = ["PixelBudget", "PixelReport"]

_PIXELS = 1e6  # in a megapixel


@attrs.frozen(kw_only=True)
class PixelReport:
    """
    What a budget makes of a picture.

    Attributes:
        before_px: Width and height of the picture.
        after_px: Width and height that it is given.
        tokens: Patches of it, which most models read as a token each or as a token for some of
            them; ``None`` where no patch was named.
    """

    before_px: tuple[int, int]
    after_px: tuple[int, int]
    tokens: int | None

    @property
    def share(self) -> float:
        """The pixels after, as a share of those before."""
        return math.prod(self.after_px) / math.prod(self.before_px)


@attrs.frozen(kw_only=True)
class PixelBudget:
    """
    How large a picture may be that is given to a model.

    A picture is made smaller until it keeps to both bounds, in the proportions that come nearest
    with edges of whole multiples. It is made larger only where *may_enlarge* says so, and then
    only to the next multiple; otherwise an edge that is shorter than one multiple is not made one.
    No edge becomes shorter than 1 pixel, and what a budget gave it leaves as it is.

    Attributes:
        max_pixels: Width times height at most; ``None`` for no bound.
        longest_edge_px: The longer of width and height at most; ``None`` for no bound.
        multiple_px: What width and height are multiples of: the patch of a model, or its patch
            times what it merges, as 14, 28 or 32.
        resampling: How pixels are computed.
        may_enlarge: Whether an edge may be made longer, to be a multiple.

    Raises:
        ContractError: If a bound is not a whole number of at least 1, or has no room for one
            multiple.

    Example:
        >>> budget = PixelBudget.of_megapixels(1.0, longest_edge_px=1344, multiple_px=14)
        >>> budget.size_for(4000, 3000)
        (1148, 868)
        >>> budget.report(4000, 3000, patch_px=14).tokens
        5084
    """

    max_pixels: int | None = None
    longest_edge_px: int | None = None
    multiple_px: int = 1
    resampling: Resampling = Resampling.AREA
    may_enlarge: bool = False

    def __attrs_post_init__(self) -> None:
        require_count(multiple_px=self.multiple_px)
        require_member(Resampling, resampling=self.resampling)
        if not isinstance(self.may_enlarge, bool):
            raise ContractError("may_enlarge", f"got {self.may_enlarge!r}, expected True or False")
        for field, bound, least in (
            ("max_pixels", self.max_pixels, self.multiple_px**2),
            ("longest_edge_px", self.longest_edge_px, self.multiple_px),
        ):
            if bound is None:
                continue
            require_count(**{field: bound})
            if bound < least:
                raise ContractError(
                    field, f"got {bound}, expected at least {least}: one multiple has to fit"
                )

    @classmethod
    def of_megapixels(cls, megapixels: float, **fields: Any) -> PixelBudget:
        """
        Make a budget of so many millions of pixels.

        Args:
            megapixels: Above 0; the pixels are rounded to a whole number.
            fields: The other fields.

        Raises:
            ContractError: As the class does.
        """
        require_positive(megapixels=megapixels)
        return cls(max_pixels=round(megapixels * _PIXELS), **fields)

    def size_for(self, width_px: int, height_px: int) -> tuple[int, int]:
        """
        Return the width and height that a picture of this size is given.

        Raises:
            ContractError: If a size is not a whole number of at least 1.
        """
        require_count(width_px=width_px, height_px=height_px)
        return size_within(
            width_px,
            height_px,
            max_pixels=self.max_pixels,
            longest_edge_px=self.longest_edge_px,
            multiple_px=self.multiple_px,
            may_enlarge=self.may_enlarge,
        )

    def report(self, width_px: int, height_px: int, *, patch_px: int | None = None) -> PixelReport:
        """
        Say what becomes of a picture of this size.

        Args:
            width_px: Its width.
            height_px: Its height.
            patch_px: The edge of a patch of the model; a part of a patch counts as one.

        Raises:
            ContractError: If a size is not a whole number of at least 1.
        """
        after = self.size_for(width_px, height_px)
        tokens = None
        if patch_px is not None:
            require_count(patch_px=patch_px)
            tokens = math.prod(-(-edge // patch_px) for edge in after)
        return PixelReport(before_px=(width_px, height_px), after_px=after, tokens=tokens)

    def apply(self, pixels: UInt8Array) -> UInt8Array:
        """
        Make a picture, or each frame of a video, as large as the budget allows.

        Args:
            pixels: RGB, uint8, shape ``[H, W, 3]`` or ``[T, H, W, 3]``.

        Returns:
            The same array if it keeps to the budget, otherwise a new one of the same rank.

        Raises:
            ContractError: If *pixels* is no such array.
            MissingDependencyError: If Pillow is needed and not installed.
        """
        is_video = getattr(pixels, "ndim", 0) == 4
        if is_video:
            readonly_frames(pixels, field="pixels")
        else:
            readonly_image(pixels, field="pixels")
        height, width = pixels.shape[-3:-1]
        after = self.size_for(width, height)
        if after == (width, height):
            return pixels
        frames = pixels if is_video else pixels[np.newaxis]
        made = np.empty((len(frames), after[1], after[0], 3), np.uint8)
        for index, frame in enumerate(frames):
            made[index] = resize(
                frame, height_px=after[1], width_px=after[0], resampling=self.resampling
            )
        return made if is_video else made[0]
