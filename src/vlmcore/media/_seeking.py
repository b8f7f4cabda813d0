"""
Frames of a video by their times, with as little decoding as is needed.

A frame is reached from the key frame before it, or from where the reader stands if that is nearer.
On the way, frames that no other frame needs are skipped. Which frame is shown at a time is told by
the times in the file alone, never by a number times a rate.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from vlmcore.errors import MediaError, MediaLimitError
from vlmcore.limits import VideoLimits
from vlmcore.media._av import VideoFile

__all__ = ["FrameReader"]

_UNSEEN_GROUP_S = 10.0  # between key frames, until longer ones were seen
_LAST_PART_S = 1.0
_FRAMES_AHEAD = 3  # that are decoded whole before the one that is wanted


class FrameReader:
    """
    Reads the frames of one video, by their times in ticks.

    Args:
        file: The video.
        name: What it is called in errors.
        limits: Bounds on the frames that are decoded and on the packets that are read.

    Attributes:
        first: Its first frame.
        start: The time of that frame.
        broken: When the first packet was that could not be decoded; ``None`` if all could.

    Raises:
        MediaLimitError: If more has to be read than *limits* allow.
        MediaError: If no frame can be decoded.
    """

    def __init__(self, file: VideoFile, *, name: str, limits: VideoLimits) -> None:
        self._file, self._name, self._limits = file, name, limits
        self._decoded = self._read = 0
        self._group = round(_UNSEEN_GROUP_S / file.tick_s)
        self._ahead = round(_FRAMES_AHEAD / (file.stream.average_rate or 1) / file.tick_s)
        self.broken: int | None = None
        self._wanted = self._newest = self._dts = self._key = -math.inf
        self._whole = False
        self._frames: Iterator[Any]
        self._shown: Any
        self._next: Any
        self._restart(wanted=0, whole=True)
        self.first: Any = self._next
        if self.first is None:
            raise MediaError(name, "holds no frame that can be decoded: it is broken or cut short")
        self.start: int = self.first.pts

    def count_anew(self) -> None:
        """Begin to count anew what the limits bound."""
        self._decoded = self._read = 0

    def frame_at(self, ticks: int) -> Any:
        """
        Return the frame that is shown at *ticks*: the last one at that time or before.

        It is ``None`` where nothing can be decoded from the key frame before that time on.

        Raises:
            MediaLimitError: If more has to be read than the limits allow.
            MediaError: If the file cannot be read.
        """
        ticks = max(ticks, self.start)
        if self._is_seeking_nearer(ticks):
            self._go_before(ticks)
        self._wanted = ticks
        frame = self._advance(ticks)
        if frame is not None and frame.pts < self._newest and not self._whole:
            # Where frames are not evenly apart, the one that is wanted may be one that was skipped.
            self._go_before(ticks, whole=True)
            frame = self._advance(ticks)
        return frame

    def scan(self) -> Iterator[Any]:
        """
        Decode all frames from the first on, but those that no other needs.

        Raises:
            MediaLimitError: If more has to be read than the limits allow.
            MediaError: If the file cannot be read.
        """
        self._go_before(self.start)
        self._wanted = math.inf
        yield self.first
        while self._next is not None:
            self._shown, self._next = self._next, next(self._frames, None)
            if self._shown.pts > self.start:
                yield self._shown

    def find_end(self) -> tuple[int, int]:
        """
        Find the time of the last frame that is there, and when it ends; nothing is decoded.

        Raises:
            MediaLimitError: If more has to be read than the limits allow.
            MediaError: If the file cannot be read.
        """
        length_s = self._file.duration_s or 0.0
        near_s = max(0.0, length_s - _LAST_PART_S)  # the last packet is not always the last frame
        near = self.start + round(near_s / self._file.tick_s)
        for ticks in dict.fromkeys((near, self.start)):
            self._file.seek(ticks)
            shown = ends = self.start
            for packet in self._file.packets():
                self._read += 1
                self._require("max_packets", self._read)
                if packet.pts is not None and packet.size and not packet.is_corrupt:
                    shown = max(shown, packet.pts)
                    ends = max(ends, packet.pts + (packet.duration or 0))
            if shown > self.start:
                break
        self._shown = self._next = None  # it stands somewhere else now
        return shown, ends

    def _restart(self, *, wanted: float, whole: bool) -> None:
        """Decode from where the file stands, each frame if *whole*."""
        self._wanted, self._whole = wanted, whole
        self._newest = self._dts = self._key = -math.inf
        self._frames = self._decode()
        self._shown, self._next = None, next(self._frames, None)

    def _go_before(self, ticks: int, *, whole: bool = False) -> None:
        """Go to a key frame that is shown at *ticks* or before; to the first one at the least."""
        back = 0
        while True:
            self._file.seek(ticks - back)
            self._restart(wanted=ticks, whole=whole)
            if ticks - back < self.start or (self._next and self._next.pts <= ticks):
                return
            back = max(2 * back, self._group)  # what is a key frame to the file is not always one

    def _is_seeking_nearer(self, ticks: int) -> bool:
        stands_at = self._shown or self._next
        if stands_at is None or ticks < stands_at.pts:
            return True
        key = self._file.key_frame_before(ticks)
        return ticks - stands_at.pts > self._group if key is None else key > self._dts

    def _advance(self, ticks: int) -> Any:
        while self._shown is None or self._shown.pts < ticks:
            self._next = self._next or next(self._frames, None)
            if self._next is None or self._next.pts > ticks:
                break
            self._shown, self._next = self._next, None
        return self._shown or self._next

    def _decode(self) -> Iterator[Any]:
        latest = -math.inf
        for packet in self._file.packets():
            self._read += 1
            self._require("max_packets", self._read)
            self._note(packet)
            is_early = packet.pts is not None and packet.pts < self._wanted - self._ahead
            frames = self._file.decode(packet, skips=is_early and not self._whole)
            if frames is None and self.broken is None:
                self.broken = packet.pts
            for frame in frames or ():
                self._decoded += 1
                self._require("max_decoded_frames", self._decoded)
                if frame.pts > latest:  # in what is broken, time may go back
                    latest = frame.pts
                    yield frame

    def _note(self, packet: Any) -> None:
        """Remember how far the packets are, and how far apart the key frames."""
        if packet.dts is not None:
            self._dts = packet.dts
        if packet.pts is None:
            return
        if packet.pts <= self._wanted:
            self._newest = max(self._newest, packet.pts)
        if packet.is_keyframe:
            self._key = packet.pts
        elif self._key > -math.inf:
            self._group = max(self._group, round(packet.pts - self._key))

    def _require(self, limit: str, actual: int) -> None:
        allowed = getattr(self._limits, limit)
        if actual > allowed:
            raise MediaLimitError(self._name, limit, actual, allowed)
