"""Videos."""

from __future__ import annotations

import attrs

from vlmcore.limits._base import MIB, Bounds

__all__ = ["VideoLimits"]


@attrs.frozen(kw_only=True)
class VideoLimits(Bounds):
    """
    What is read of the file of a video. It is never held whole, but what is given as bytes is.

    Attributes:
        max_file_bytes: Size of the file.
        max_pixels: Width times height of one frame; one of 7680 x 4320 just fits.
        max_duration_s: Length, in seconds; a day.
        max_frames: Frames that are kept of a video.
        max_kept_bytes: Size of those frames; each has three bytes a pixel, after a budget of pixels
            if there is one.
        max_decoded_frames: Frames that are decoded to find those; over two hours at 30 a second.
        max_packets: Packets that are read, those of sound and of what is skipped among them.
        max_threads: Threads that decode.
    """

    max_file_bytes: int = 1 << 36
    max_pixels: int = 32 * MIB
    max_duration_s: int = 86_400
    max_frames: int = 1024
    max_kept_bytes: int = 1024 * MIB
    max_decoded_frames: int = 1 << 18
    max_packets: int = 1 << 22
    max_threads: int = 4
