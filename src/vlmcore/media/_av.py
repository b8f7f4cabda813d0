"""
The door to FFmpeg by PyAV: a file of video that was opened, its packets and its frames.

A file is read as the container that its first bytes tell, and by a decoder on our list. It opens no
other file: nothing that it names is looked up, on a disk or in a network.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any, BinaryIO

import av
import av.video

from vlmcore._arrays import UInt8Array
from vlmcore.errors import MediaError, MediaLimitError, VlmcoreError
from vlmcore.limits import VideoLimits
from vlmcore.media._turns import UPRIGHT, Turn

__all__ = ["VideoFile"]

_DECODERS = (
    "h264,hevc,av1,libdav1d,libaom-av1,vp8,vp9,libvpx,libvpx-vp9,mpeg1video,mpeg2video,mpeg4,"
    "msmpeg4v3,h263,flv,wmv2,wmv3,vc1,theora,mjpeg,prores,dnxhd,ffv1"
)
_MOST_STREAMS = 64  # whose frames are bounded before it is known how many there are
_WORDS = 200  # of what FFmpeg says
_COVER = 0x400  # a picture that belongs to a song


class VideoFile:
    """
    A file whose first video is read.

    Args:
        file: Where it is read from.
        name: What it is called in errors.
        container: Its format, as FFmpeg names it.
        limits: Bounds.

    Attributes:
        stream: The video, as PyAV knows it.
        tick_s: The unit of its times.

    Raises:
        MediaLimitError: If its frames are larger than *limits*.
        MediaError: If it cannot be opened, or holds no video.
    """

    def __init__(self, file: BinaryIO, *, name: str, container: str, limits: VideoLimits) -> None:
        self._name = name
        bound = {"max_pixels": str(limits.max_pixels)}
        bounds: list[Any] = [bound] * _MOST_STREAMS
        with self.refusing("cannot be opened"):
            self._container: Any = av.open(
                file,
                format=container,
                options={"codec_whitelist": _DECODERS, "protocol_whitelist": "none"},
                stream_options=bounds,
                io_open=self._open_no_other,
                metadata_errors="replace",
            )
        try:
            self.stream: Any = self._first_video()
            self.tick_s: Fraction = self.stream.time_base
            self._prepare(bound, limits)
        except BaseException:
            self.close()
            raise

    def _open_no_other(self, *_: Any) -> Any:
        raise MediaError(self._name, "names another file, which is not opened")

    def _first_video(self) -> Any:
        for stream in self._container.streams.video:
            if not getattr(stream, "disposition", 0) & _COVER:  # older PyAV does not tell
                return stream
        what = "sound and no video" if self._container.streams.audio else "no video"
        raise MediaError(self._name, f"holds {what}")

    def _prepare(self, bound: dict[str, str], limits: VideoLimits) -> None:
        codec = self.stream.codec_context
        if codec is None:
            raise MediaError(self._name, "holds a video that no decoder here is for")
        pixels = codec.width * codec.height
        if pixels > limits.max_pixels:
            raise MediaLimitError(self._name, "max_pixels", pixels, limits.max_pixels)
        if not self.tick_s:
            raise MediaError(self._name, "holds a video without times")
        codec.options = {**bound, "codec_whitelist": _DECODERS}
        codec.thread_count = min(limits.max_threads, os.cpu_count() or 1)
        self.stream.thread_type = "AUTO"

    @property
    def codec(self) -> str:
        """What its frames are encoded as."""
        codec = self.stream.codec_context.codec
        return str(getattr(codec, "canonical_name", codec.name))  # older PyAV names the decoder

    @property
    def has_sound(self) -> bool:
        """Whether there is sound, too."""
        return bool(self._container.streams.audio)

    @property
    def duration_s(self) -> float | None:
        """How long it says that it is, with its sound."""
        if self.stream.duration:
            return float(self.stream.duration * self.tick_s)
        whole = self._container.duration
        return float(whole) / av.time_base if whole else None

    @property
    def declares_frames_s(self) -> float | None:
        """How long its frames are by what it says; sound may be longer."""
        return self.duration_s if self.stream.duration or not self.has_sound else None

    def close(self) -> None:
        """Give back what it holds; the file stays open."""
        self._container.close()

    @contextmanager
    def refusing(self, what: str) -> Iterator[None]:
        """Turn whatever FFmpeg, or the file that it reads, raises into an error that names it."""
        try:
            yield
        except VlmcoreError:
            raise
        except MemoryError as error:
            raise MediaError(self._name, f"{what}: not enough memory") from error
        except Exception as error:
            # A file that was passed in is foreign code: whatever it raises, this was not read.
            said = " ".join(str(getattr(error, "strerror", None) or error).split())[:_WORDS]
            raise MediaError(self._name, f"{what}: {said or type(error).__name__}") from error

    def seek(self, ticks: int) -> None:
        """
        Go to the last key frame at these ticks or before, as far as the file knows.

        Raises:
            MediaError: If the file cannot be read.
        """
        with self.refusing("cannot be read"):
            try:
                self._container.seek(ticks, stream=self.stream, backward=True)
            except av.FFmpegError:
                # Before the first key frame there is none: the start is as near as it gets.
                self._container.seek(min(0, ticks), stream=self.stream, backward=False)

    def packets(self) -> Iterator[Any]:
        """
        Read packets from where it stands to its end; the last is empty and holds what is left.

        Raises:
            MediaError: If the file cannot be read.
        """
        packets = self._container.demux(self.stream)
        while True:
            with self.refusing("cannot be read"):
                try:
                    packet = next(packets, None)
                except av.error.InvalidDataError:
                    return  # what comes after cannot be told apart
            if packet is None:
                return
            yield packet

    def decode(self, packet: Any, *, skips: bool) -> list[Any] | None:
        """
        Decode the frames that a packet completes; ``None`` if it is broken.

        Args:
            packet: The packet.
            skips: Whether nothing is to be made of it if no other frame needs it.

        Raises:
            MediaError: If there is not enough memory.
        """
        codec = self.stream.codec_context
        codec.skip_frame = "NONREF" if skips else "DEFAULT"
        try:
            frames = packet.decode()
        except av.error.EOFError:
            return []
        except av.FFmpegError as error:
            if isinstance(error, MemoryError):
                raise MediaError(self._name, "cannot be read: not enough memory") from error
            return None
        return [frame for frame in frames if frame.pts is not None and not frame.is_corrupt]

    def key_frame_before(self, ticks: int) -> int | None:
        """Say when, in the order of decoding, the last key frame at *ticks* or before is."""
        entries: Any = getattr(self.stream, "index_entries", ())  # older PyAV has none
        place = entries.search_timestamp(ticks, backward=True) if len(entries) else -1
        return None if place is None or place < 0 else int(entries[place].timestamp)

    def turn_of(self, frame: Any) -> Turn:
        """Read how a frame is to be turned."""
        matrix = frame.side_data.get("DISPLAYMATRIX")
        return UPRIGHT if matrix is None else Turn.of_matrix(bytes(matrix))

    def rgb(self, frame: Any, *, width_px: int, height_px: int, averages: bool) -> UInt8Array:
        """
        Convert a frame to RGB of this size, not turned yet.

        Args:
            frame: The frame.
            width_px: Width of the result.
            height_px: Height of the result.
            averages: Whether areas are averaged to make it smaller, or a bicubic filter is used.

        Returns:
            uint8, shape ``[height_px, width_px, 3]``.

        Raises:
            MediaError: If it cannot be converted.
        """
        return self._convert(frame, width_px, height_px, "rgb24", "AREA" if averages else "BICUBIC")

    def grey(self, frame: Any, *, width_px: int, height_px: int) -> UInt8Array:
        """Convert a frame to a small grey one, uint8, shape ``[height_px, width_px]``."""
        return self._convert(frame, width_px, height_px, "gray", "AREA")

    def _convert(self, frame: Any, width: int, height: int, form: str, how: str) -> UInt8Array:
        with self.refusing("holds a frame that cannot be converted"):
            made = frame.reformat(width, height, format=form, interpolation=how)
            pixels: UInt8Array = made.to_ndarray()
            return pixels
