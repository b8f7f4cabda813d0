"""What a file of video says of itself, and frames that were read from it."""

from __future__ import annotations

import attrs

from vlmcore._arrays import UInt8Array

__all__ = ["VideoFrames", "VideoInfo"]


@attrs.frozen(kw_only=True)
class VideoInfo:
    """
    What a file of video says of itself.

    Attributes:
        container: Its format, as FFmpeg names it.
        codec: How its frames are encoded, as FFmpeg names it.
        width_px: Width of its frames as shown, after they are turned.
        height_px: Height as shown.
        rotation_deg: How far they are turned clockwise: 0, 90, 180 or 270.
        duration_s: Its length; ``None`` where it does not say.
        rate_hz: Frames a second on average; ``None`` where it does not say.
        nominal_rate_hz: The rate that its times are whole steps of; other than *rate_hz* where the
            rate varies. ``None`` where it does not say.
        frames: How many frames it has; ``None`` where it does not say.
        has_sound: Whether there is sound, too.
    """

    container: str
    codec: str
    width_px: int
    height_px: int
    rotation_deg: int
    duration_s: float | None
    rate_hz: float | None
    nominal_rate_hz: float | None
    frames: int | None
    has_sound: bool


@attrs.frozen(kw_only=True, eq=False)
class VideoFrames:
    """
    Frames of a video.

    Attributes:
        pixels: RGB, uint8, shape ``[T, H, W, 3]``, T at least 1, read-only.
        timestamps_s: When each of them is first shown, from the first frame of the video on.
        problem: What could not be read; empty if nothing was missed.
    """

    pixels: UInt8Array
    timestamps_s: tuple[float, ...]
    problem: str = ""
