"""What a target was given for a case: prompt, pixels, and how they were sent."""

from __future__ import annotations

import hashlib
from typing import Any

import attrs
import numpy as np

from vlmcore._arrays import (
    as_tuple,
    readonly_frames,
    readonly_image,
    require_count,
    require_name,
)
from vlmcore.errors import ContractError
from vlmcore.lab._field_checks import require_all, require_lines, require_sha256
from vlmcore.limits import ArtifactLimits

__all__ = ["Input", "Media", "pixels_sha256"]

_LIMITS = ArtifactLimits()


@attrs.frozen(kw_only=True)
class Media:
    """
    One image or video, as the model was given it.

    Attributes:
        stored_height_px: Height as it is seen, turned as its EXIF says.
        stored_width_px: Width, the same.
        height_px: Height that was given to the target.
        width_px: Width, the same.
        frames: How many frames; 1 for an image.
        pixels_sha256: What `vlmcore.lab.inputs.pixels_sha256` makes of the pixels given.
        encoder: What encoded them for sending, as ``"JPEG, quality 90, Pillow 12.0"``; empty if
            they were not encoded.
        sent_sha256: The SHA-256 of the file that was sent; ``None`` if none was.

    Raises:
        ContractError: If a field is not as described.
    """

    stored_height_px: int
    stored_width_px: int
    height_px: int
    width_px: int
    frames: int = 1
    pixels_sha256: str
    encoder: str = ""
    sent_sha256: str | None = None

    def __attrs_post_init__(self) -> None:
        for field in ("stored_height_px", "stored_width_px", "height_px", "width_px", "frames"):
            require_count(**{field: getattr(self, field)})
        require_sha256(pixels_sha256=self.pixels_sha256)
        require_name(
            "encoder",
            self.encoder,
            max_characters=_LIMITS.max_name_characters,
            may_be_empty=True,
        )
        if self.sent_sha256 is not None:
            require_sha256(sent_sha256=self.sent_sha256)
        if bool(self.encoder) is not (self.sent_sha256 is not None):
            raise ContractError("sent_sha256", "got it, or the encoder, alone, expected both")


@attrs.frozen(kw_only=True)
class Input:
    """
    What one target was given for one case.

    Attributes:
        target: The name of the target.
        case: The name of the case.
        prompt_sha256: The SHA-256 of the prompt as UTF-8.
        media: Its images and videos, in order.

    Raises:
        ContractError: If a field is not as described.
    """

    target: str
    case: str
    prompt_sha256: str
    media: tuple[Media, ...] = attrs.field(default=(), converter=as_tuple)

    def __attrs_post_init__(self) -> None:
        require_lines(target=self.target, case=self.case)
        require_sha256(prompt_sha256=self.prompt_sha256)
        require_all("media", self.media, Media)


def pixels_sha256(pixels: Any) -> str:
    """
    Return the SHA-256 of pixels as they are shown to a model: decoded, turned and composited.

    Two files with the same pixels have the same digest, whatever encoded them. The shape is
    digested first, in decimals: the same values in another shape are other pixels.

    Args:
        pixels: uint8 RGB, ``[H, W, 3]`` of an image or ``[T, H, W, 3]`` of a video.

    Raises:
        ContractError: If they are not such pixels.

    Example:
        >>> wide, high = np.zeros((1, 4, 3), np.uint8), np.zeros((4, 1, 3), np.uint8)
        >>> pixels_sha256(wide) == pixels_sha256(high), pixels_sha256(wide)[:12]
        (False, '4105d0504e48')
    """
    is_video = isinstance(pixels, np.ndarray) and pixels.ndim == 4
    checked = (readonly_frames if is_video else readonly_image)(pixels, field="pixels")
    shape = "x".join(map(str, checked.shape))
    digest = hashlib.sha256(f"uint8 {shape}\n".encode())
    digest.update(np.ascontiguousarray(checked).data)
    return digest.hexdigest()
