"""Frames that are shown to a model, chosen of a video that is in memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import attrs
import numpy as np

from vlmcore._arrays import (
    Float64Array,
    UInt8Array,
    readonly_float64,
    readonly_frames,
    require_count,
    require_positive,
)
from vlmcore.errors import ContractError
from vlmcore.limits import VideoLimits, require_at_most
from vlmcore.media._changes import ChangeMeter, grey_thumbnail
from vlmcore.media._choosing import select_by_changes, select_evenly
from vlmcore.media.selections import FrameSampling, FrameSelection, SamplingStrategy

__all__ = ["SampledVideo", "sample_frames", "select_frames"]


@attrs.frozen(kw_only=True, eq=False)
class SampledVideo:
    """
    Frames of a video, and why it is these.

    Attributes:
        pixels: RGB, uint8, shape ``[N, H, W, 3]``, N at least 1, read-only.
        selection: When each is shown, and why it was chosen.
        problem: What could not be read of the video; empty if nothing was missed.
    """

    pixels: UInt8Array
    selection: FrameSelection
    problem: str = ""

    @property
    def rate_hz(self) -> float:
        """Frames a second, on average; 1 for a single frame."""
        times = self.selection.timestamps_s
        return (len(times) - 1) / (times[-1] - times[0]) if len(times) > 1 else 1.0


_USUAL = FrameSampling()


def sample_frames(
    frames: UInt8Array,
    *,
    rate_hz: float | None = None,
    timestamps_s: Sequence[float] | None = None,
    sampling: FrameSampling = _USUAL,
    track_changes: Sequence[float] | None = None,
) -> SampledVideo:
    """
    Choose frames of a video that is in memory.

    Args:
        frames: RGB, uint8, shape ``[T, H, W, 3]``, oldest first.
        rate_hz: Frames a second, where they are at even steps.
        timestamps_s: The time of each frame, shape ``[T]``, from 0 on and ascending; instead of
            *rate_hz*.
        sampling: How they are chosen.
        track_changes: How much the tracks of things change at each frame, shape ``[T]``, 0 for
            nothing, for the strategies that look at them.

    Returns:
        Some of the frames, a copy.

    Raises:
        ContractError: If an argument is not as described.
        LimitExceededError: If there are more frames than `vlmcore.limits.VideoLimits` allows.

    Example:
        >>> frames = np.zeros((60, 4, 4, 3), np.uint8)
        >>> frames[20:] = 255
        >>> found = sample_frames(frames, rate_hz=10, sampling=FrameSampling(max_frames=4))
        >>> found.selection.timestamps_s, found.selection.cuts_s
        ((0.0, 2.0, 3.9, 5.9), (2.0,))
    """
    readonly_frames(frames, field="frames")
    selection = select_frames(
        frames,
        len(frames),
        rate_hz=rate_hz,
        timestamps_s=timestamps_s,
        sampling=sampling,
        track_changes=track_changes,
    )
    indices = [frame.index for frame in selection.frames if frame.index is not None]
    pixels: UInt8Array = np.asarray(frames)[indices]  # a copy
    pixels.flags.writeable = False
    return SampledVideo(pixels=pixels, selection=selection)


def select_frames(
    frames: Iterable[UInt8Array],
    count: int,
    *,
    rate_hz: float | None = None,
    timestamps_s: Sequence[float] | None = None,
    sampling: FrameSampling = _USUAL,
    track_changes: Sequence[float] | None = None,
) -> FrameSelection:
    """
    Choose frames of a video that is never whole in memory, as `sample_frames` does.

    Args:
        frames: RGB, uint8, shape ``[H, W, 3]`` each, oldest first. They are taken one by one, and
            none is kept; `SamplingStrategy.UNIFORM` takes none.
        count: How many there are.
        rate_hz: Frames a second, where they are at even steps.
        timestamps_s: The time of each frame, shape ``[count]``; instead of *rate_hz*.
        sampling: How they are chosen.
        track_changes: How much the tracks of things change at each frame, shape ``[count]``.

    Raises:
        ContractError: If an argument is not as described, or there are not *count* frames.
        LimitExceededError: If there are more frames than `vlmcore.limits.VideoLimits` allows.

    Example:
        >>> shown = np.zeros((4, 4, 3), np.uint8)
        >>> [each.index for each in select_frames((shown for _ in range(9)), 9, rate_hz=1).frames]
        [0, 1, 2, 3, 4, 5, 6, 7, 8]
    """
    require_count(count=count)
    require_at_most("max_decoded_frames", count, VideoLimits().max_decoded_frames)
    times = _times(count, rate_hz, timestamps_s)
    tracks = None if track_changes is None else _scores(track_changes, count)
    if sampling.strategy is SamplingStrategy.UNIFORM:
        return select_evenly(times, sampling)
    meter = ChangeMeter()
    taken = 0
    for taken, frame in enumerate(frames, start=1):
        if taken > count:
            break
        meter.add(grey_thumbnail(frame, sampling.thumbnail_px), float(times[taken - 1]))
    if taken != count:
        raise ContractError("frames", f"got {'more' if taken > count else taken}, expected {count}")
    return select_by_changes(meter.changes(), sampling, tracks=tracks)


def _times(count: int, rate_hz: float | None, timestamps_s: Any) -> Float64Array:
    if (rate_hz is None) == (timestamps_s is None):
        raise ContractError("rate_hz", "expected either it or timestamps_s")
    if rate_hz is not None:
        require_positive(rate_hz=rate_hz)
        return np.arange(count) / rate_hz
    times = readonly_float64(timestamps_s, field="timestamps_s", axes="[T]")
    if len(times) != count:
        raise ContractError("timestamps_s", f"got {len(times)}, expected one a frame, {count}")
    ascend = bool(np.all(np.diff(times) > 0))
    if not (np.all(np.isfinite(times)) and times[0] >= 0 and ascend):
        raise ContractError("timestamps_s", "expected finite times from 0 on, each after the last")
    return times


def _scores(track_changes: Any, count: int) -> Float64Array:
    scores = readonly_float64(track_changes, field="track_changes", axes="[T]")
    if len(scores) != count or not np.all(np.isfinite(scores)) or np.any(scores < 0):
        raise ContractError(
            "track_changes", f"expected a finite number of at least 0 for each frame, {count}"
        )
    return scores
