"""How pictures are sent to a server: how many, how large, and in which format."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

import attrs

from vlmcore._arrays import UInt8Array, require_count
from vlmcore.errors import ContractError, LimitExceededError
from vlmcore.limits import ImageLimits, ModelServerLimits
from vlmcore.media.encoding import encode_jpeg, encode_png
from vlmcore.media.formats import ImageFormat
from vlmcore.media.resizing import fit_longest_edge, fit_pixel_budget
from vlmcore.vlm.prompt import Prompt

__all__ = ["Picture", "PictureRules", "pictures_of"]

_LIMITS = ImageLimits()
_FORMATS = (ImageFormat.JPEG, ImageFormat.PNG)


@attrs.frozen(kw_only=True)
class PictureRules:
    """
    What a server takes. Pictures that are too large are made smaller; too many are refused.

    Attributes:
        format: JPEG, or PNG, which loses nothing.
        quality: Of JPEG, 1 to 95; where a file is too large, lower ones down to 30 are tried.
        max_pictures: Pictures of one prompt, the frames of a video counted.
        longest_edge_px: Longer edges are made that short; ``None`` leaves them.
        many_pictures: With more pictures than that, *edge_of_many_px* holds, too; ``None`` for
            servers that take many as they take few.
        edge_of_many_px: The longest edge of each of many.
        max_pixels: Width times height; larger pictures are made that small.
        max_picture_bytes: Size of one file.

    Raises:
        ContractError: If a field is not as described.

    Example:
        >>> PictureRules(longest_edge_px=1024).format.name
        'JPEG'
    """

    format: ImageFormat = ImageFormat.JPEG
    quality: int = 90
    max_pictures: int = 1280
    longest_edge_px: int | None = None
    many_pictures: int | None = None
    edge_of_many_px: int | None = None
    max_pixels: int = _LIMITS.max_pixels
    max_picture_bytes: int = ModelServerLimits().max_picture_bytes

    def __attrs_post_init__(self) -> None:
        if self.format not in _FORMATS:
            raise ContractError("format", f"got {self.format!r:.80}, expected JPEG or PNG")
        for field in ("quality", "max_pictures", "max_pixels", "max_picture_bytes"):
            require_count(**{field: getattr(self, field)})
        if self.quality > 95:
            raise ContractError("quality", f"got {self.quality}, expected 1 to 95")
        for field in ("longest_edge_px", "many_pictures", "edge_of_many_px"):
            if getattr(self, field) is not None:
                require_count(**{field: getattr(self, field)})
        if (self.many_pictures is None) is not (self.edge_of_many_px is None):
            raise ContractError("edge_of_many_px", "expected it with many_pictures, or neither")

    def encode(self, pixels: UInt8Array, *, pictures: int = 1) -> bytes:
        """
        Make a file of a picture, without metadata.

        Args:
            pixels: RGB, uint8, shape ``[H, W, 3]``.
            pictures: How many there are in its prompt.

        Raises:
            MediaLimitError: If it is larger than *max_picture_bytes*, as far as quality goes.
            MissingDependencyError: If Pillow is not installed.
        """
        edges = [self.longest_edge_px]
        if self.many_pictures is not None and pictures > self.many_pictures:
            edges.append(self.edge_of_many_px)
        for edge in edges:
            if edge is not None:
                pixels = fit_longest_edge(pixels, edge)
        pixels = fit_pixel_budget(pixels, self.max_pixels)
        if self.format is ImageFormat.PNG:
            return encode_png(pixels, max_bytes=self.max_picture_bytes)
        return encode_jpeg(pixels, quality=self.quality, max_bytes=self.max_picture_bytes)


@attrs.frozen(repr=False)
class Picture:
    """
    One picture, as it is sent.

    Attributes:
        encoded: The file.
        media_type: What it is.
        caption: Words that stand before it: when a frame was taken. May be empty.
    """

    encoded: bytes
    media_type: str
    caption: str


def pictures_of(prompt: Prompt, rules: PictureRules) -> Iterator[Picture]:
    """
    Make files of the images of a prompt, and of the frames of its video, oldest first.

    Servers take no arrays of frames: a video is pictures, each with its time in words before it.

    Raises:
        LimitExceededError: If there are more than *rules* allow; before anything is encoded.
        MediaLimitError: If one is too large.
        MissingDependencyError: If Pillow is not installed.
    """
    frames: list[UInt8Array] = [] if prompt.video is None else list(prompt.video)
    count = len(prompt.images) + len(frames)
    if count > rules.max_pictures:
        raise LimitExceededError("max_pictures", count, rules.max_pictures)
    captions = [f"<{seconds:.1f} seconds>" for seconds in _times_s(prompt, len(frames))]
    sources = [*prompt.images, *frames]
    captions = [""] * len(prompt.images) + captions
    for pixels, caption in zip_longest(sources, captions, fillvalue=""):
        assert not isinstance(pixels, str)
        yield Picture(rules.encode(pixels, pictures=count), rules.format.value, caption)


def _times_s(prompt: Prompt, frames: int) -> list[float]:
    if prompt.video_timestamps_s is not None:
        return list(prompt.video_timestamps_s)
    places = prompt.video_indices or range(frames)
    return [place / prompt.video_rate_hz for place in places]
