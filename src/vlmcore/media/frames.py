"""Animations as video: the pictures of a GIF, WebP or animated PNG, with their times."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from vlmcore._arrays import UInt8Array
from vlmcore._optional import optional_dependency
from vlmcore.errors import ContractError, MediaLimitError
from vlmcore.limits import ImageLimits
from vlmcore.media.arrays import WHITE, Background, require_background, rgb_from_array
from vlmcore.media.headers import Header, read_header, require_pixels
from vlmcore.media.sources import Encoded, is_encoded_source, read_source

__all__ = ["Frames", "load_frames"]

_LIMITS = ImageLimits()
_UNSAID_DURATION_S = 0.1  # what browsers show a picture for that declares no duration


@attrs.frozen(kw_only=True, eq=False)
class Frames:
    """
    The pictures of an animation.

    Attributes:
        pixels: RGB, uint8, shape ``[T, H, W, 3]``, T at least 1.
        timestamps_s: When each picture appears, from 0, shape ``[T]``.
        durations_s: How long each is shown, shape ``[T]``.
    """

    pixels: UInt8Array
    timestamps_s: npt.NDArray[np.float64]
    durations_s: npt.NDArray[np.float64]

    @property
    def rate_hz(self) -> float:
        """Pictures a second, on average."""
        return len(self.durations_s) / float(self.durations_s.sum())


def load_frames(
    source: Any, *, limits: ImageLimits = _LIMITS, background: Background = WHITE
) -> Frames:
    """
    Load all pictures of an animation as video.

    A still image is a video of one picture. The pages of a TIFF are not an animation: the first is
    read.

    Args:
        source: A path, bytes, an open file or a data URL.
        limits: Bounds; the number of pictures and the pixels of all of them are checked before the
            first is decoded.
        background: RGB, 0..255, that transparent pixels are composited on.

    Returns:
        The pictures as they are shown, each the full size of the animation. A picture that
        declares no duration is given 0.1 s, as browsers do.

    Raises:
        MediaLimitError: If it has more pictures or pixels than *limits* allow.
        MediaError: If it, or any picture of it, cannot be read.
        ContractError: If *source* is not of one of these kinds, or *background* no colour.
        MissingDependencyError: If Pillow is not installed.
    """
    require_background(background)
    if not is_encoded_source(source):
        raise ContractError(
            "source",
            f"got {type(source).__name__}, expected a path, bytes, an open file or a data URL",
        )
    encoded = read_source(source, limits=limits)
    header = read_header(encoded, limits=limits, animated=True)
    require_pixels(header, name=encoded.name, limits=limits)
    _require_frames(header, encoded, limits)
    return _decode(header, encoded, limits=limits, background=background)


def _require_frames(header: Header, encoded: Encoded, limits: ImageLimits) -> None:
    if header.frames > limits.max_frames:
        raise MediaLimitError(encoded.name, "max_frames", header.frames, limits.max_frames)
    pixels = header.frames * header.width_px * header.height_px
    if pixels > limits.max_animation_pixels:
        allowed = limits.max_animation_pixels
        raise MediaLimitError(encoded.name, "max_animation_pixels", pixels, allowed)


def _decode(
    header: Header, encoded: Encoded, *, limits: ImageLimits, background: Background
) -> Frames:
    with optional_dependency("images", "PIL"):
        from vlmcore.media import _pillow  # noqa: PLC0415 - the door
    frames: list[UInt8Array] = []
    durations_s: list[float] = []
    for array, duration_s in _pillow.decode_frames(header, name=encoded.name, limits=limits):
        frames.append(
            rgb_from_array(
                array, source=encoded.name, limits=limits, background=background, layout="HWC"
            )
        )
        durations_s.append(duration_s if duration_s > 0 else _UNSAID_DURATION_S)
    durations = np.array(durations_s)
    return Frames(
        pixels=_stack(frames, background),
        timestamps_s=np.concatenate([[0.0], np.cumsum(durations)[:-1]]),
        durations_s=durations,
    )


def _stack(frames: list[UInt8Array], background: Background) -> UInt8Array:
    """Put pictures into one array; those before the canvas of a GIF grew are smaller."""
    height = max(frame.shape[0] for frame in frames)
    width = max(frame.shape[1] for frame in frames)
    pixels = np.empty((len(frames), height, width, 3), dtype=np.uint8)
    pixels[:] = background
    for index, frame in enumerate(frames):
        pixels[index, : frame.shape[0], : frame.shape[1]] = frame
    return pixels
