"""The door to the soundfile package: encoded audio in, samples out, and the other way."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager

import attrs
import numpy as np
import numpy.typing as npt
import soundfile

from vlmcore.errors import MediaError, MediaLimitError
from vlmcore_audio._mpeg import measured_mpeg

__all__ = ["Header", "decode", "probe", "transcode"]

_SUBTYPES = {"WAV": "PCM_16", "FLAC": "PCM_16", "MP3": "MPEG_LAYER_III", "OGG": "VORBIS"}
_VORBIS_HZ, _VORBIS_CHANNELS = 192_000, 255  # beyond, its encoder ends the process
_WIDTH = 4  # bytes of a sample
_AT_A_TIME = 1 << 16  # samples: Vorbis takes room on the stack for all that it is given
_SHOWN = 200  # characters of what it says


@attrs.frozen(kw_only=True)
class Header:
    """What is known of a file without keeping its samples."""

    sample_rate_hz: int
    channels: int
    frames: int


@contextmanager
def _opened(data: bytes, source: str) -> Iterator[soundfile.SoundFile]:
    try:
        with soundfile.SoundFile(io.BytesIO(measured_mpeg(data))) as file:
            yield file
    except soundfile.SoundFileError as error:
        raise MediaError(source, f"it cannot be decoded: {_why(error)}") from None


def _why(error: soundfile.SoundFileError) -> str:
    """Take what it says, without the object of Python that it names where there is no file."""
    return " ".join(str(getattr(error, "error_string", error)).split())[:_SHOWN]


def probe(data: bytes, *, source: str, most_bytes: int) -> Header:
    """
    Read what a file says about itself; the samples of MP3 are counted, since it may say anything.

    Raises:
        MediaError: If it is no file that can be read.
        MediaLimitError: If it is MP3, and larger than *most_bytes* once decoded.
    """
    with _opened(data, source) as file:
        frames = file.frames
        if file.format == "MP3":
            frames = _counted(file, source, most_bytes)
        return Header(sample_rate_hz=file.samplerate, channels=file.channels, frames=frames)


def decode(data: bytes, *, source: str, most_bytes: int) -> npt.NDArray[np.float32]:
    """
    Decode a file to float32 of shape ``[samples, channels]``.

    Raises:
        MediaError: If it cannot be decoded, or has samples that are no numbers.
        MediaLimitError: If it is larger than *most_bytes* once decoded; nothing of it is kept.
    """
    header = probe(data, source=source, most_bytes=most_bytes)
    with _opened(data, source) as file:
        frames = _at_most(header.frames, file, source, most_bytes)
        # The system gives memory where samples are written: a header that lies costs nothing.
        samples = np.empty((frames, file.channels), np.float32)
        done = 0
        for part in _parts(file, frames, source):
            samples[done : done + len(part)] = part
            done += len(part)
    return samples[:done]


def transcode(data: bytes, *, source: str, kind: str, most_bytes: int) -> bytes:
    """
    Encode a file anew, a part after the other; samples beyond -1 to 1 are clipped.

    Raises:
        MediaError: If it cannot be done, as MP3 of an unusual rate, or there are no samples.
        MediaLimitError: If it is larger than *most_bytes* once decoded; nothing is encoded.
    """
    header = probe(data, source=source, most_bytes=most_bytes)
    with _opened(data, source) as file:
        parts = _parts(file, _at_most(header.frames, file, source, most_bytes), source)
        return _encoded(parts, file.samplerate, file.channels, kind)


def _encoded(
    parts: Iterator[npt.NDArray[np.float32]], rate_hz: int, channels: int, kind: str
) -> bytes:
    source = f"{kind} file"
    if kind == "OGG" and (rate_hz > _VORBIS_HZ or channels > _VORBIS_CHANNELS):
        raise MediaError(
            source,
            f"got {channels} channels at {rate_hz} Hz, "
            f"expected at most {_VORBIS_CHANNELS} at {_VORBIS_HZ} Hz",
        )
    out, written = io.BytesIO(), 0
    try:
        with soundfile.SoundFile(out, "w", rate_hz, channels, _SUBTYPES[kind], format=kind) as file:
            for part in parts:
                file.write(np.clip(part, -1.0, 1.0))
                written += len(part)
    except soundfile.SoundFileError as error:
        raise MediaError(source, f"it cannot be encoded: {_why(error)}") from None
    if not written:
        raise MediaError(source, "got no samples, expected some to encode")
    return out.getvalue()


def _counted(file: soundfile.SoundFile, source: str, most_bytes: int) -> int:
    """Count frames by decoding them, as long as they are not too many."""
    frames = 0
    for part in _parts(file, file.frames, source):
        frames = _at_most(frames + len(part), file, source, most_bytes)
    return frames


def _at_most(frames: int, file: soundfile.SoundFile, source: str, most_bytes: int) -> int:
    """Give a number of frames, if they are not too many."""
    frames = max(0, frames)
    size = frames * file.channels * _WIDTH
    if size > most_bytes:
        raise MediaLimitError(source, "max_decoded_bytes", size, most_bytes)
    return frames


def _parts(
    file: soundfile.SoundFile, frames: int, source: str
) -> Iterator[npt.NDArray[np.float32]]:
    """Decode so many frames at the most, a part after the other."""
    at_a_time = max(1, _AT_A_TIME // file.channels)
    while frames > 0:
        part = file.read(min(at_a_time, frames), dtype="float32", always_2d=True)
        if not len(part):
            return
        if not np.isfinite(part).all():  # the encoder of MP3 ends the process for one
            raise MediaError(source, "got samples that are not finite, expected numbers")
        frames -= len(part)
        yield part
