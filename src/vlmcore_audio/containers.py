"""What encoded audio is: by its first bytes, not by what somebody says about it."""

from __future__ import annotations

import enum
import struct

from vlmcore.errors import MediaError

__all__ = ["SAMPLE_RATES_HZ", "Container", "is_mpeg_frame", "wav_of_pcm"]

#: The rates that services make music at.
SAMPLE_RATES_HZ = (16_000, 24_000, 32_000, 44_100)

_UNKNOWN = (0, 0xFFFFFFFF)  # sizes that a writer leaves which does not know yet how much follows
_CHUNKS = 1000
_HEADER = struct.Struct("<4sI4s4sIHHIIHH4sI")


class Container(enum.Enum):
    """How audio is encoded; PCM is 16-bit samples, little-endian, with nothing around them."""

    MP3 = "mp3"
    WAV = "wav"
    PCM = "pcm"

    def begins(self, data: bytes | bytearray) -> bool:
        """
        Say whether *data* begins as such audio does. PCM begins as it likes, but not as another.

        Example:
            >>> Container.MP3.begins(b"ID3"), Container.WAV.begins(b"<html>")
            (True, False)
        """
        head = bytes(data[:12])
        is_wav = head[:4] == b"RIFF" and head[8:12] == b"WAVE"
        match self:
            case Container.WAV:
                return is_wav
            case Container.MP3:
                return head[:3] == b"ID3" or is_mpeg_frame(head)
            case Container.PCM:
                return not is_wav and head[:3] != b"ID3"

    def require(self, data: bytes, *, source: str, channels: int) -> None:
        """
        Check that *data* is such audio, as far as its beginning and its sizes tell.

        Raises:
            MediaError: If it is something else, or its header promises more than there is.
        """
        if not data:
            raise MediaError(source, f"got nothing, expected {self.value}")
        if not self.begins(data):
            raise MediaError(source, f"got bytes that do not begin as {self.value} does")
        if self is Container.PCM and len(data) % (2 * channels):
            raise MediaError(
                source, f"got {len(data)} bytes, expected samples of 2 bytes in {channels} channels"
            )
        if self is Container.WAV:
            _require_whole_wav(data, source)


def is_mpeg_frame(head: bytes | bytearray) -> bool:
    """Say whether *head* begins a frame of layer III, of whichever version of MPEG."""
    if len(head) < 2 or head[0] != 0xFF or head[1] & 0xE0 != 0xE0:
        return False
    version, layer = head[1] >> 3 & 3, head[1] >> 1 & 3
    return version != 1 and layer == 1


def _require_whole_wav(data: bytes, source: str) -> None:
    """Walk over the chunks up to the samples: there have to be as many as it says."""
    at = 12
    has_format = False
    for _ in range(_CHUNKS):
        if at + 8 > len(data):
            break
        name, size = struct.unpack_from("<4sI", data, at)
        at += 8
        if name == b"fmt ":
            has_format = True
        if name == b"data":
            if size not in _UNKNOWN and at + size > len(data):
                there = len(data) - at
                raise MediaError(
                    source, f"its header promises {size} bytes of samples, {there} are there"
                )
            if has_format:
                return
        at += size + size % 2
    raise MediaError(source, "got a WAV header without a format and samples")


def wav_of_pcm(data: bytes, *, sample_rate_hz: int, channels: int) -> bytes:
    """Put a WAV header before 16-bit samples."""
    block = 2 * channels
    return (
        _HEADER.pack(
            *(b"RIFF", 36 + len(data), b"WAVE"),
            *(b"fmt ", 16, 1, channels, sample_rate_hz, sample_rate_hz * block, block, 16),
            *(b"data", len(data)),
        )
        + data
    )
