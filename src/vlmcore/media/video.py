"""
Video from files: what they declare, frames by their times, and a sample of them for a model.

Files are read as containers that are known by their first bytes: MP4, MOV, Matroska, WebM, AVI,
MPEG-TS and ASF. Nothing is fetched, and no file opens another. PyAV is imported when the
first of them is opened.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO

import attrs
import numpy as np

from vlmcore._arrays import Float64Array, UInt8Array, readonly_float64
from vlmcore._optional import optional_dependency
from vlmcore.errors import ContractError, MediaError, MediaLimitError
from vlmcore.limits import VideoLimits
from vlmcore.media._changes import ChangeMeter, Changes
from vlmcore.media._choosing import select_by_changes, select_evenly
from vlmcore.media._containers import HEAD_BYTES, container_of
from vlmcore.media.budgets import PixelBudget
from vlmcore.media.resizing import Resampling
from vlmcore.media.sampling import SampledVideo
from vlmcore.media.selections import FrameSampling, FrameSelection, SamplingStrategy
from vlmcore.media.sources import open_video_source
from vlmcore.media.video_contents import VideoFrames, VideoInfo

__all__ = ["Video", "is_video", "open_video", "sample_video"]

_LIMITS = VideoLimits()
_USUAL = FrameSampling()
_NO_BUDGET = PixelBudget()
_KINDS = "MP4, MOV, Matroska, WebM, AVI, MPEG-TS or ASF"
_ROUNDING = 1e-6
_SLACK_S, _SLACK_FRAMES = 0.5, 3  # by which what a file says of its length may be wrong


class Video:
    """
    A file of video that is open, made by `open_video`; to be used by one thread at a time.

    Attributes:
        info: What it says of itself.
    """

    def __init__(self, file: BinaryIO, *, name: str, limits: VideoLimits) -> None:
        container = container_of(file.read(HEAD_BYTES))
        if container is None:
            raise MediaError(name, f"is not a video of a known kind, expected {_KINDS}")
        file.seek(0)
        with optional_dependency("video", "av"):
            from vlmcore.media import _av, _seeking  # noqa: PLC0415 - the door
        self._name, self._limits = name, limits
        self._file = _av.VideoFile(file, name=name, container=container, limits=limits)
        try:
            self._reader = _seeking.FrameReader(self._file, name=name, limits=limits)
            self._turn = self._file.turn_of(self._reader.first)
            self.info = self._look(container)
            self._last_s, self._ends_s = map(self._seconds, self._reader.find_end())
            longest_s = max(self.info.duration_s or 0.0, self._ends_s)
            self._require("max_duration_s", math.ceil(longest_s))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Give back what decodes; what it was read from stays open."""
        self._file.close()

    def _look(self, container: str) -> VideoInfo:
        stream, first = self._file.stream, self._reader.first
        width, height = first.width, first.height
        if self._turn.exchanges_axes:
            width, height = height, width
        return VideoInfo(
            container=container,
            codec=self._file.codec,
            width_px=width,
            height_px=height,
            rotation_deg=self._turn.rotation_deg,
            duration_s=self._file.duration_s,
            rate_hz=float(stream.average_rate) if stream.average_rate else None,
            nominal_rate_hz=float(stream.base_rate) if stream.base_rate else None,
            frames=stream.frames or None,
            has_sound=self._file.has_sound,
        )

    @property
    def problem(self) -> str:
        """What could not be read so far; empty if nothing was missed."""
        problems = []
        if self._reader.broken is not None:
            broken_s = self._seconds(self._reader.broken)
            problems.append(f"what is at {broken_s:.3g} s cannot be decoded")
        if self._is_cut:
            declared_s = self._file.declares_frames_s
            problems.append(f"it ends at {self._ends_s:.3g} s of {declared_s:.3g} s")
        return "; ".join(problems)

    @property
    def _is_cut(self) -> bool:
        declared_s = self._file.declares_frames_s
        slack_s = max(_SLACK_S, _SLACK_FRAMES / (self.info.rate_hz or math.inf))
        return declared_s is not None and declared_s - self._ends_s > slack_s

    def frames_at(
        self, times_s: Sequence[float], *, budget: PixelBudget = _NO_BUDGET
    ) -> VideoFrames:
        """
        Read the frames that are shown at these times.

        A frame is as long shown as no other comes. At times after the last frame it is that frame.

        Args:
            times_s: Seconds from the first frame on, none before the one before it, shape ``[T]``.
            budget: How large the frames may be; without one they are as they are stored.

        Returns:
            A frame for each time. Of a file that is broken or cut short, those that are there, and
            the problem.

        Raises:
            MediaLimitError: If there are too many frames, or reading them takes too much.
            MediaError: If none can be read.
            ContractError: If the times are not as described.
        """
        times = self._times(times_s)
        width, height = budget.size_for(self.info.width_px, self.info.height_px)
        self._require("max_frames", len(times))
        self._require("max_kept_bytes", len(times) * width * height * 3)
        self._reader.count_anew()
        pixels = np.empty((len(times), height, width, 3), np.uint8)
        shown_at: list[float] = []
        for at_s in times.tolist():
            frame = self._reader.frame_at(self._reader.start + round(at_s / self._file.tick_s))
            if frame is not None and not (self._is_cut and at_s > self._ends_s):
                pixels[len(shown_at)] = self._pixels(frame, width, height, budget)
                shown_at.append(self._seconds(frame.pts))
        if not shown_at:
            raise MediaError(self._name, f"has no frame there: {self.problem or 'it is broken'}")
        pixels = pixels[: len(shown_at)]
        pixels.flags.writeable = False
        return VideoFrames(
            pixels=pixels,
            timestamps_s=tuple(shown_at),
            problem=self.problem,
        )

    def _pixels(self, frame: Any, width: int, height: int, budget: PixelBudget) -> UInt8Array:
        stored = (height, width) if self._turn.exchanges_axes else (width, height)
        averages = budget.resampling is Resampling.AREA
        pixels = self._file.rgb(frame, width_px=stored[0], height_px=stored[1], averages=averages)
        return self._turn.apply(pixels)

    def sample(
        self, sampling: FrameSampling = _USUAL, *, budget: PixelBudget = _NO_BUDGET
    ) -> SampledVideo:
        """
        Choose frames, and read them.

        Even steps of time need no more than those frames. All other strategies scan the video once,
        small and grey, frames that no other frame needs left out.

        Args:
            sampling: How they are chosen.
            budget: How large they may be.

        Raises:
            MediaLimitError: If reading the frames takes too much.
            MediaError: If none can be read.
        """
        if sampling.strategy is SamplingStrategy.UNIFORM:
            selection = self._evenly(sampling)
        else:
            selection = select_by_changes(self._scan(sampling.thumbnail_px), sampling)
        found = self.frames_at(selection.timestamps_s, budget=budget)
        return _sampled(found, selection, sampling)

    def _scan(self, thumbnail_px: int) -> Changes:
        first = self._reader.first
        width, height = PixelBudget(longest_edge_px=thumbnail_px).size_for(
            first.width, first.height
        )
        self._reader.count_anew()
        meter = ChangeMeter()
        for frame in self._reader.scan():
            at_s = self._seconds(frame.pts)
            self._require("max_duration_s", math.ceil(at_s))
            meter.add(self._file.grey(frame, width_px=width, height_px=height), at_s)
        return meter.changes()

    def _evenly(self, sampling: FrameSampling) -> FrameSelection:
        """Choose times; the frames that are shown at them are found later."""
        count, gap_s = sampling.max_frames, sampling.minimum_gap_s
        if self.info.rate_hz:  # in whole frames: so far apart are those that are shown then
            gap_s = math.ceil(gap_s * self.info.rate_hz - _ROUNDING) / self.info.rate_hz
        if gap_s * (count - 1) > self._last_s:
            count = int(self._last_s / gap_s + _ROUNDING) + 1
        times = np.linspace(0, self._last_s, count) if count > 1 else np.array([self._last_s / 2])
        return select_evenly(np.unique(times), attrs.evolve(sampling, minimum_gap_s=0.0))

    def _times(self, times_s: Sequence[float]) -> Float64Array:
        times = readonly_float64(times_s, field="times_s", axes="[T]")
        if not len(times) or not np.all(np.isfinite(times)) or times[0] < 0:
            raise ContractError("times_s", "expected at least one, each finite and from 0 on")
        if np.any(np.diff(times) < 0):
            raise ContractError("times_s", "got one that is before the one before it")
        if times[-1] > self._limits.max_duration_s:
            raise ContractError(
                "times_s", f"got {times[-1]:g}, expected at most {self._limits.max_duration_s}"
            )
        return times

    def _seconds(self, ticks: int) -> float:
        return float((ticks - self._reader.start) * self._file.tick_s)

    def _require(self, limit: str, actual: int) -> None:
        allowed = getattr(self._limits, limit)
        if actual > allowed:
            raise MediaLimitError(self._name, limit, actual, allowed)


def _sampled(
    found: VideoFrames, selection: FrameSelection, sampling: FrameSampling
) -> SampledVideo:
    """Say of the frames that were found why they were chosen; leave out those that are too near."""
    wanted = np.array(selection.timestamps_s)
    kept: list[int] = []
    for place, shown_at in enumerate(found.timestamps_s):
        apart = shown_at - found.timestamps_s[kept[-1]] if kept else math.inf
        if apart > 0 and apart >= sampling.minimum_gap_s - _ROUNDING:
            kept.append(place)
    frames = []
    for place in kept:
        shown_at = found.timestamps_s[place]
        nearest = selection.frames[int(np.argmin(np.abs(wanted - shown_at)))]
        frames.append(attrs.evolve(nearest, timestamp_s=shown_at, index=None))
    pixels = found.pixels if len(kept) == len(found.pixels) else found.pixels[kept]
    pixels.flags.writeable = False
    return SampledVideo(
        pixels=pixels,
        selection=attrs.evolve(selection, frames=tuple(frames)),
        problem=found.problem,
    )


@contextmanager
def open_video(source: Any, *, limits: VideoLimits = _LIMITS) -> Iterator[Video]:
    """
    Open a video, for as long as the block lasts.

    Args:
        source: A path, bytes, a ``data:`` URL, or a file open in binary mode that can be sought in,
            which is read from its start and stays open.
        limits: Bounds on what is read.

    Raises:
        MediaLimitError: If it is larger or longer than *limits*.
        MediaError: If it cannot be read, holds no video, or is none.
        MissingDependencyError: If PyAV is not installed.
    """
    with open_video_source(source, limits=limits) as (name, file):
        video = Video(file, name=name, limits=limits)
        try:
            yield video
        finally:
            video.close()


def sample_video(
    source: Any,
    sampling: FrameSampling = _USUAL,
    *,
    budget: PixelBudget = _NO_BUDGET,
    limits: VideoLimits = _LIMITS,
) -> SampledVideo:
    """
    Choose frames of a video from a file, and read them.

    Args:
        source: As for `open_video`.
        sampling: How they are chosen.
        budget: How large they may be.
        limits: Bounds on what is read.

    Raises:
        MediaLimitError: If it is larger or longer than *limits*.
        MediaError: If it cannot be read, holds no video, or is none.
        MissingDependencyError: If PyAV is not installed.
    """
    with open_video(source, limits=limits) as video:
        return video.sample(sampling, budget=budget)


def is_video(source: Any) -> bool:
    """
    Tell by its first bytes whether a source is a video that `open_video` may open.

    Raises:
        MediaError: If it cannot be read.
    """
    with open_video_source(source, limits=_LIMITS) as (_, file):
        head = file.read(HEAD_BYTES)
        file.seek(0)
        return container_of(head) is not None
