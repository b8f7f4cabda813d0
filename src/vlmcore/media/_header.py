"""What the header of an encoded image declares."""

from __future__ import annotations

import attrs

from vlmcore.media.formats import ImageFormat

__all__ = ["Header"]

_TURNED = (5, 6, 7, 8)  # orientations that exchange width and height


@attrs.frozen(kw_only=True)
class Header:
    """
    The declared properties of an image, and the file that a decoder is given.

    Attributes:
        image_format: Its format.
        width_px: Width as stored, before the orientation is applied.
        height_px: Height as stored.
        data: The file without the metadata that a decoder would unpack for nothing.
        orientation: How it has to be turned, 1 to 8 as in EXIF; 1 is upright.
        frames: Pictures of the animation; 1 for a still image. Counted to one more than the limit.
        levels: The largest value of a 16-bit sample, where fewer bits are used.
        is_inverted: Whether 0 is white, where the decoder does not see to that.
        first_frame: The picture that the animation starts with: 1 where the file has a picture for
            viewers that do not show animations.
    """

    image_format: ImageFormat
    width_px: int
    height_px: int
    data: bytes = attrs.field(repr=False)
    orientation: int = 1
    frames: int = 1
    levels: int = 65535
    is_inverted: bool = False
    first_frame: int = 0

    @property
    def shown_height_px(self) -> int:
        """Height once the orientation is applied."""
        return self.width_px if self.orientation in _TURNED else self.height_px

    @property
    def shown_width_px(self) -> int:
        """Width once the orientation is applied."""
        return self.height_px if self.orientation in _TURNED else self.width_px
