"""Clips that the tests of videos make."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np

RATE_HZ = 10
TICKS_HZ = 1000


def picture(value: int, *, height: int = 48, width: int = 64) -> Any:
    """
    Draw a frame whose number can be read again after compression: eight fields, black or white.

    The fields lie in two rows of four, the lowest bit first.
    """
    bits = np.array([255 * (value >> bit & 1) for bit in range(8)], np.uint8).reshape(2, 4)
    rows, columns = np.arange(height) * 2 // height, np.arange(width) * 4 // width
    return np.repeat(bits[rows][:, columns, np.newaxis], 3, axis=2)


def number(pixels: Any) -> int:
    """Read the number of a frame."""
    height, width = pixels.shape[:2]
    rows = [height * (2 * row + 1) // 4 for row in range(2)]
    columns = [width * (2 * column + 1) // 8 for column in range(4)]
    fields = pixels[rows][:, columns].mean(axis=-1).reshape(-1) > 127
    return sum(int(field) << bit for bit, field in enumerate(fields))


def clip(
    frames: Sequence[Any] | int = 40,
    *,
    times_s: Sequence[float] | None = None,
    kind: str = "mp4",
    codec: str = "h264",
    rotation: int = 0,
    sound: bool = False,
    gop: int = 12,
    start_s: float = 0.0,
    index_in_front: bool = False,
    **options: str,
) -> bytes:
    """
    Encode frames, numbered ones if only their count is given, at ten a second unless told when.
    """
    if index_in_front:
        return _with_index_in_front(clip(frames, times_s=times_s, gop=gop, **options))
    pictures = [picture(i) for i in range(frames)] if isinstance(frames, int) else list(frames)
    at_s = times_s or [i / RATE_HZ for i in range(len(pictures))]
    file = io.BytesIO()
    with av.open(file, "w", format=kind) as container:
        stream: Any = container.add_stream(codec, RATE_HZ, options={"g": str(gop), **options})
        stream.height, stream.width = pictures[0].shape[:2]
        stream.pix_fmt = "yuvj420p" if codec == "mjpeg" else "yuv420p"
        stream.codec_context.time_base = Fraction(1, TICKS_HZ)
        if rotation:
            stream.set_display_rotation(rotation)
        tone: Any = container.add_stream("aac", 16_000, layout="mono") if sound else None
        for pixels, time_s in zip(pictures, at_s, strict=True):
            frame = av.VideoFrame.from_ndarray(pixels, format="rgb24")
            frame.pts, frame.time_base = (
                round((time_s + start_s) * TICKS_HZ),
                stream.codec_context.time_base,
            )
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
        if sound:
            quiet = av.AudioFrame.from_ndarray(
                np.zeros((1, 16_000), np.float32), format="fltp", layout="mono"
            )
            quiet.sample_rate, quiet.pts = 16_000, 0
            container.mux(tone.encode(quiet))
            container.mux(tone.encode(None))
    return file.getvalue()


def sound_alone() -> bytes:
    """Encode a second of silence."""
    file = io.BytesIO()
    with av.open(file, "w", format="mp4") as container:
        stream: Any = container.add_stream("aac", 16_000, layout="mono")
        quiet = av.AudioFrame.from_ndarray(
            np.zeros((1, 16_000), np.float32), format="fltp", layout="mono"
        )
        quiet.sample_rate, quiet.pts = 16_000, 0
        container.mux(stream.encode(quiet))
        container.mux(stream.encode(None))
    return file.getvalue()


def _with_index_in_front(made: bytes) -> bytes:
    """Write an MP4 again as files for the web are, whose cut-off beginning can be played."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "clip.mp4"
        with (
            av.open(io.BytesIO(made)) as source,
            av.open(str(path), "w", options={"movflags": "faststart"}) as target,
        ):
            copy: Any = target.add_stream_from_template(source.streams.video[0])
            for packet in source.demux(video=0):
                if packet.dts is not None:
                    packet.stream = copy
                    target.mux(packet)
        return path.read_bytes()
