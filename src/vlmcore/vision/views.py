"""How an image was shown to a model, so that what it answers can be found in the image."""

from __future__ import annotations

import math

import attrs

from vlmcore._arrays import plain_float, require_count, require_finite, require_positive
from vlmcore.errors import ContractError
from vlmcore.limits import VisionLimits, require_at_most

__all__ = ["ImageView"]

_LIMITS = VisionLimits()
_MOST_ELONGATED = 200  # the ratio of sides that Qwen-VL's processors refuse


@attrs.frozen(kw_only=True)
class ImageView:
    """
    An image, and the picture that a model was shown of it.

    The image fills a part of what was shown, or all of it: the rest is padding.

    Attributes:
        height_px: Height of the image.
        width_px: Width of the image.
        seen_height_px: Height of what was shown, padding counted; that of the image if 0.
        seen_width_px: Width of what was shown.
        left_px: Where the image begins in what was shown, from the left.
        top_px: The same from above.
        filled_width_px: How wide the image is there; all that was shown if 0.
        filled_height_px: How high.

    Raises:
        ContractError: If a size is not above 0, or the image does not lie in what was shown.

    Example:
        >>> view = ImageView.letterboxed(height_px=100, width_px=200, side_px=400)
        >>> view.to_image(200.0, 200.0)
        (100.0, 50.0)
    """

    height_px: int
    width_px: int
    seen_height_px: int = 0
    seen_width_px: int = 0
    left_px: float = attrs.field(default=0.0, converter=plain_float)
    top_px: float = attrs.field(default=0.0, converter=plain_float)
    filled_width_px: float = attrs.field(default=0.0, converter=plain_float)
    filled_height_px: float = attrs.field(default=0.0, converter=plain_float)

    def __attrs_post_init__(self) -> None:
        require_count(height_px=self.height_px, width_px=self.width_px)
        self._default("seen_height_px", self.height_px)
        self._default("seen_width_px", self.width_px)
        require_count(seen_height_px=self.seen_height_px, seen_width_px=self.seen_width_px)
        self._default("filled_height_px", float(self.seen_height_px))
        self._default("filled_width_px", float(self.seen_width_px))
        for side in (self.height_px, self.width_px, self.seen_height_px, self.seen_width_px):
            require_at_most("max_side_px", side, _LIMITS.max_side_px)
        require_finite(left_px=self.left_px, top_px=self.top_px)
        require_positive(
            filled_width_px=self.filled_width_px, filled_height_px=self.filled_height_px
        )
        self._check_within("left_px", self.left_px, self.filled_width_px, self.seen_width_px)
        self._check_within("top_px", self.top_px, self.filled_height_px, self.seen_height_px)

    def _default(self, field: str, value: float) -> None:
        if getattr(self, field) == 0:
            object.__setattr__(self, field, value)

    @staticmethod
    def _check_within(field: str, start: float, length: float, seen: int) -> None:
        if start < 0 or start + length > seen:
            problem = f"got {start:g} to {start + length:g}, expected the image in {seen} pixels"
            raise ContractError(field, problem)

    @classmethod
    def letterboxed(
        cls, *, height_px: int, width_px: int, side_px: int, centred: bool = True
    ) -> ImageView:
        """
        Show an image in a square, its ratio kept, the rest padded.

        Args:
            height_px: Height of the image.
            width_px: Width of the image.
            side_px: Side of the square.
            centred: Whether the padding is on both sides; or else at the right and below.
        """
        require_count(height_px=height_px, width_px=width_px, side_px=side_px)
        scale = side_px / max(height_px, width_px)
        filled_height = max(1, round(height_px * scale))
        filled_width = max(1, round(width_px * scale))
        return cls(
            height_px=height_px,
            width_px=width_px,
            seen_height_px=side_px,
            seen_width_px=side_px,
            left_px=(side_px - filled_width) // 2 if centred else 0,
            top_px=(side_px - filled_height) // 2 if centred else 0,
            filled_width_px=filled_width,
            filled_height_px=filled_height,
        )

    @classmethod
    def qwen(
        cls, *, height_px: int, width_px: int, multiple_px: int, min_pixels: int, max_pixels: int
    ) -> ImageView:
        """
        Show an image as the processors of Qwen-VL do: sides of whole patches, pixels in bounds.

        Args:
            height_px: Height of the image.
            width_px: Width of the image.
            multiple_px: Of what the sides are multiples: 28 for Qwen2-VL and Qwen2.5-VL, 32 for
                Qwen3-VL.
            min_pixels: The fewest pixels, as the processor is set.
            max_pixels: The most.

        Raises:
            ContractError: If one side is more than 200 times the other, which the model refuses.

        Source:
            The rule that the model cards of Qwen2-VL and Qwen2.5-VL state; the tests compare with
            the processor of transformers.
        """
        require_count(height_px=height_px, width_px=width_px, multiple_px=multiple_px)
        require_count(min_pixels=min_pixels, max_pixels=max_pixels)
        if max(height_px, width_px) > _MOST_ELONGATED * min(height_px, width_px):
            problem = f"got {height_px} x {width_px}, expected no side 200 times the other"
            raise ContractError("height_px", problem)
        sides = [round(side / multiple_px) * multiple_px for side in (height_px, width_px)]
        if sides[0] * sides[1] > max_pixels:
            times = math.sqrt(height_px * width_px / max_pixels)
            wholes = [math.floor(side / times / multiple_px) for side in (height_px, width_px)]
            sides = [max(1, whole) * multiple_px for whole in wholes]
        elif sides[0] * sides[1] < min_pixels:  # rounded step by step, as the processor does
            times = math.sqrt(min_pixels / (height_px * width_px))
            wholes = [math.ceil(side * times / multiple_px) for side in (height_px, width_px)]
            sides = [whole * multiple_px for whole in wholes]
        return cls(
            height_px=height_px,
            width_px=width_px,
            seen_height_px=sides[0],
            seen_width_px=sides[1],
        )

    def to_image(self, x: float, y: float) -> tuple[float, float]:
        """
        Find a place of what was shown in the image.

        Args:
            x: From the left of what was shown, in its pixels.
            y: From above.

        Returns:
            x and y in pixels of the image; outside it for what lies in the padding.
        """
        across = (x - self.left_px) * self.width_px / self.filled_width_px
        down = (y - self.top_px) * self.height_px / self.filled_height_px
        return across, down

    def to_seen(self, x: float, y: float) -> tuple[float, float]:
        """Find a place of the image in what was shown; the other way round."""
        across = x * self.filled_width_px / self.width_px + self.left_px
        down = y * self.filled_height_px / self.height_px + self.top_px
        return across, down
