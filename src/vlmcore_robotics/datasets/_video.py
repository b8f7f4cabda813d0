"""The door to FFmpeg by PyAV: frames of MP4 by their times, and files of them."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, BinaryIO

import av
import av.video

from vlmcore._arrays import UInt8Array
from vlmcore.errors import EpisodeError, VlmcoreError
from vlmcore.limits import DatasetLimits, require_at_most
from vlmcore.rollout._episode_paths import open_file, shown

__all__ = ["VideoReader", "VideoWriter"]

_OPTIONS = {"g": "2", "crf": "23"}  # a key frame in two: any frame is reached at once
_FINEST_RATE = 1001
_MOST_STREAMS = 64  # whose frames are bounded before their file is open; data sets have one
# What PyAV raises on files that are none; texts that are no UTF-8 are a ValueError.
_FAILURES = (av.FFmpegError, OSError, ValueError, OverflowError, LookupError)


class VideoReader:
    """
    Gives frames by their times; fast where times go on, right where they do not.

    The file is read as MP4 and as nothing else, and opens no other file.

    Args:
        path: The file.
        height_px: Of its frames.
        width_px: Of its frames.
        tolerance_s: How far from its time a frame may be.
        limits: How large the file and its frames may be.
    """

    def __init__(
        self,
        path: Path,
        *,
        height_px: int,
        width_px: int,
        tolerance_s: float,
        limits: DatasetLimits,
    ) -> None:
        self._path = path
        self._name = shown(path)
        self._size = (height_px, width_px)
        self._tolerance_s = tolerance_s
        self._limits = limits
        self._file: BinaryIO | None = None
        self._container: Any = None
        self._frames: Iterator[Any] = iter(())
        self._present: Any = None
        self._stays_open = True

    def frame(self, at_s: float) -> UInt8Array:
        """
        Decode the frame at a time.

        Returns:
            RGB, uint8, shape ``[H, W, 3]``.

        Raises:
            EpisodeError: If there is none, or the file cannot be read.
        """
        try:
            if self._container is None:
                self._open()
            if self._present is None or self._present.time > at_s + self._tolerance_s:
                self._seek(at_s)
            while self._present is None or self._present.time < at_s - self._tolerance_s:
                self._present = next(self._frames, None)
                if self._present is None:
                    raise EpisodeError(
                        self._name, None, f"ends before {at_s:g} s, expected a frame there"
                    )
            if self._present.time > at_s + self._tolerance_s:
                problem = f"has no frame at {at_s:g} s, the next is at {self._present.time:g} s"
                raise EpisodeError(self._name, None, problem)
            return self._pixels(self._present)
        except VlmcoreError:
            raise
        except _FAILURES as error:
            said = " ".join(str(getattr(error, "strerror", None) or error).split())[:200]
            problem = f"cannot be read as MP4: {said}"
            raise EpisodeError(self._name, None, problem) from error
        finally:
            if not self._stays_open:
                self._close()

    def release(self) -> None:
        """Close the file, and after each further frame close it again."""
        self._stays_open = False
        self._close()

    def _close(self) -> None:
        self._frames, self._present = iter(()), None
        if self._container is not None:
            self._container.close()
            self._container = None
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self) -> None:
        self._file = open_file(self._path, limits=self._limits.of_files)
        # FFmpeg decodes the first frames of each stream before it says how large they are.
        bound = {"max_pixels": str(self._limits.max_frame_pixels)}
        bounds: list[Any] = [bound] * _MOST_STREAMS
        self._container = av.open(self._file, format="mp4", stream_options=bounds)
        streams = self._container.streams.video
        if not streams:
            raise EpisodeError(self._name, None, "holds no video, expected one")
        self._require_size(streams[0].codec_context)
        streams[0].thread_type = "NONE"
        streams[0].codec_context.options = bound

    def _require_size(self, frame: Any) -> None:
        require_at_most(
            "max_frame_pixels", frame.height * frame.width, self._limits.max_frame_pixels
        )
        if (frame.height, frame.width) != self._size:
            came, wanted = f"{frame.height} x {frame.width}", "{} x {}".format(*self._size)
            problem = f"has frames of {came} pixels, expected {wanted}, as the data set says"
            raise EpisodeError(self._name, None, problem)

    def _seek(self, at_s: float) -> None:
        stream = self._container.streams.video[0]
        start = max(0.0, at_s - self._tolerance_s)
        self._container.seek(int(start / stream.time_base), stream=stream, backward=True)
        self._frames = (frame for frame in self._container.decode(stream) if frame.time is not None)
        self._present = None

    def _pixels(self, frame: Any) -> UInt8Array:
        self._require_size(frame)  # a stream may change it on its way
        pixels: UInt8Array = frame.to_ndarray(format="rgb24")
        return pixels


class VideoWriter:
    """
    Writes frames as H.264 in MP4.

    Args:
        path: The file; its folder is made.
        rate_hz: Frames a second.
        height_px: Of its frames, even.
        width_px: Of its frames, even.

    Attributes:
        frames: How many were written.
        size: How many bytes they take.
    """

    def __init__(self, path: Path, *, rate_hz: float, height_px: int, width_px: int) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._name = shown(path)
        self.frames = self.size = 0
        rate = Fraction(rate_hz).limit_denominator(_FINEST_RATE)
        self._container = av.open(str(path), "w", format="mp4")
        self._stream: Any = self._container.add_stream("h264", rate, options=dict(_OPTIONS))
        self._stream.height, self._stream.width = height_px, width_px
        self._stream.pix_fmt = "yuv420p"
        self._stream.thread_type = "NONE"
        self._rate = rate

    def write(self, pixels: UInt8Array) -> None:
        """Write a frame, RGB, uint8, shape ``[H, W, 3]``."""
        frame = av.VideoFrame.from_ndarray(pixels, format="rgb24")
        frame.pts, frame.time_base = self.frames, 1 / self._rate
        self._encode(frame)
        self.frames += 1

    def close(self) -> None:
        """Write what is left, and the end of the file."""
        self._encode(None)
        self._container.close()

    def _encode(self, frame: Any) -> None:
        try:
            for packet in self._stream.encode(frame):
                self.size += packet.size
                self._container.mux(packet)
        except av.FFmpegError as error:
            problem = f"cannot be written: {error.strerror}"
            raise EpisodeError(self._name, None, problem) from error
