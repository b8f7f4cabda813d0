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

__all__ = ["Header", "decode", "encode", "probe"]

_SUBTYPES = {"WAV": "PCM_16", "FLAC": "PCM_16", "MP3": "MPEG_LAYER_III", "OGG": "VORBIS"}
_VORBIS_HZ, _VORBIS_CHANNELS = 192_000, 255  # beyond, its encoder ends the process
_WIDTH = 4  # bytes of a sample
_AT_A_TIME = 1 << 16  # samples: Vorbis takes room on the stack for all that it is given
_SHOWN = 200  # characters of what it says


@attrs.frozen(kw_only=True)
class Header:
    """What a file says about itself."""

    sample_rate_hz: int
    channels: int
    frames: int


@contextmanager
def _opened(data: bytes, source: str) -> Iterator[soundfile.SoundFile]:
    try:
        with soundfile.SoundFile(io.BytesIO(data)) as file:
            yield file
    except soundfile.SoundFileError as error:
        problem = " ".join(str(error).split())
        raise MediaError(source, f"it cannot be decoded: {problem[:_SHOWN]}") from None


def probe(data: bytes, *, source: str) -> Header:
    """
    Read what a file says about itself.

    Raises:
        MediaError: If it is no file that can be read.
    """
    with _opened(data, source) as file:
        return Header(sample_rate_hz=file.samplerate, channels=file.channels, frames=file.frames)


def decode(data: bytes, *, source: str, most_bytes: int) -> npt.NDArray[np.float32]:
    """
    Decode a file to float32 of shape ``[samples, channels]``.

    Raises:
        MediaError: If it cannot be decoded, or has samples that are no numbers.
        MediaLimitError: If it is larger than *most_bytes* once decoded; nothing was decoded.
    """
    with _opened(data, source) as file:
        size = max(0, file.frames) * file.channels * _WIDTH
        if size > most_bytes:
            raise MediaLimitError(source, "max_decoded_bytes", size, most_bytes)
        # The system gives memory where samples are written: a header that lies costs nothing.
        samples = np.empty((max(0, file.frames), file.channels), np.float32)
        done = 0
        at_a_time = _frames_at_a_time(file.channels)
        while done < len(samples):
            part = file.read(out=samples[done : done + at_a_time], dtype="float32")
            if not len(part):
                break
            if not np.isfinite(part).all():  # the encoder of MP3 ends the process for one
                raise MediaError(source, "got samples that are not finite, expected numbers")
            done += len(part)
    return samples[:done]


def encode(samples: npt.NDArray[np.float32], sample_rate_hz: int, *, kind: str) -> bytes:
    """
    Encode samples; those beyond -1 to 1 are clipped.

    Raises:
        MediaError: If it cannot be done, as MP3 of an unusual rate, or there are none.
    """
    source, channels = f"{kind} file", samples.shape[1]
    if not len(samples):
        raise MediaError(source, "got no samples, expected some to encode")
    if kind == "OGG" and (sample_rate_hz > _VORBIS_HZ or channels > _VORBIS_CHANNELS):
        raise MediaError(
            source,
            f"got {channels} channels at {sample_rate_hz} Hz, "
            f"expected at most {_VORBIS_CHANNELS} at {_VORBIS_HZ} Hz",
        )
    out = io.BytesIO()
    try:
        with soundfile.SoundFile(
            out, "w", sample_rate_hz, channels, _SUBTYPES[kind], format=kind
        ) as file:
            at_a_time = _frames_at_a_time(channels)
            for at in range(0, len(samples), at_a_time):
                file.write(np.clip(samples[at : at + at_a_time], -1.0, 1.0))
    except soundfile.SoundFileError as error:
        problem = " ".join(str(error).split())
        raise MediaError(source, f"it cannot be encoded: {problem[:_SHOWN]}") from None
    return out.getvalue()


def _frames_at_a_time(channels: int) -> int:
    return max(1, _AT_A_TIME // channels)
