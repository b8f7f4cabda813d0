"""
Which frames of a video a model is shown, and why: evenly spread, or where something changes.

Whatever the strategy, places are spread over the video first, evenly in time or in what moves.
Events, the starts of scenes or changes of tracks, take the places nearest to them. Each place that
is left takes the frame nearest to it that keeps the minimum gap. The same frames give the same
selection.
"""

from __future__ import annotations

import enum
from typing import Any

import attrs

from vlmcore._arrays import require_count, require_finite_between, require_member
from vlmcore.limits import VideoLimits, require_at_most

__all__ = [
    "FrameReason",
    "FrameSampling",
    "FrameSelection",
    "SampledFrame",
    "SamplingStrategy",
]

_LONGEST_GAP_S = 60.0
_THUMBNAIL_PX = (16, 256)


class SamplingStrategy(enum.Enum):
    """What decides which frames are shown."""

    HYBRID = "hybrid"
    """Starts of scenes, changes of tracks, and the rest where things move."""
    UNIFORM = "uniform"
    """Even steps of time; nothing is scanned."""
    MOTION = "motion"
    """Even steps of what moves: more frames where more happens."""
    SCENES = "scenes"
    """Starts of scenes, and the rest evenly."""
    TRACKS = "tracks"
    """Changes of tracks that the caller found, and the rest evenly."""


class FrameReason(enum.Enum):
    """Why a frame was chosen."""

    COVERAGE = "coverage"
    MOTION = "motion"
    SCENE = "scene"
    TRACK = "track"


@attrs.frozen(kw_only=True)
class FrameSampling:
    """
    How frames are chosen.

    Attributes:
        max_frames: Frames at most.
        strategy: What decides.
        minimum_gap_s: Seconds between two frames at least, 0 to 60.
        thumbnail_px: The longest edge of the grey frames that are compared, 16 to 256.

    Raises:
        ContractError: If a field is not as described.
        LimitExceededError: If *max_frames* is more than `vlmcore.limits.VideoLimits` allows.
    """

    max_frames: int = 16
    strategy: SamplingStrategy = SamplingStrategy.HYBRID
    minimum_gap_s: float = 0.15
    thumbnail_px: int = 96

    def __attrs_post_init__(self) -> None:
        require_count(max_frames=self.max_frames, thumbnail_px=self.thumbnail_px)
        require_at_most("max_frames", self.max_frames, VideoLimits().max_frames)
        require_member(SamplingStrategy, strategy=self.strategy)
        require_finite_between(0, _LONGEST_GAP_S, minimum_gap_s=self.minimum_gap_s)
        require_finite_between(*_THUMBNAIL_PX, thumbnail_px=self.thumbnail_px)


@attrs.frozen(kw_only=True)
class SampledFrame:
    """
    A frame that was chosen.

    Attributes:
        timestamp_s: Its time in the video.
        index: Its place in the frames that were given; ``None`` for one from a file.
        reason: Why it was chosen.
        change: Its mean difference from the frame that was scanned before it, 0 to 1; ``None``
            where nothing was scanned.
    """

    timestamp_s: float
    index: int | None
    reason: FrameReason
    change: float | None


@attrs.frozen(kw_only=True)
class FrameSelection:
    """
    Which frames were chosen, and why.

    Attributes:
        frames: The frames, oldest first.
        strategy: What decided.
        scanned_frames: Frames that were compared.
        duration_s: Time from the first frame to the last, as far as it is known.
        cuts_s: Times at which scenes were found to start, the first scene left out.
    """

    frames: tuple[SampledFrame, ...]
    strategy: SamplingStrategy
    scanned_frames: int
    duration_s: float
    cuts_s: tuple[float, ...] = ()

    @property
    def timestamps_s(self) -> tuple[float, ...]:
        """The times of the frames."""
        return tuple(frame.timestamp_s for frame in self.frames)

    def to_document(self) -> dict[str, Any]:
        """Return all of it as what JSON can hold."""
        return {
            "strategy": self.strategy.value,
            "scanned_frames": self.scanned_frames,
            "duration_s": self.duration_s,
            "cuts_s": list(self.cuts_s),
            "frames": [
                {**attrs.asdict(frame), "reason": frame.reason.value} for frame in self.frames
            ],
        }
