"""A clip of music: as it came, decoded when somebody looks at it, and saved whole."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
import numpy.typing as npt

from vlmcore._arrays import require_count, require_member
from vlmcore._optional import optional_dependency
from vlmcore._whole_files import write_whole
from vlmcore.errors import ContractError, MediaLimitError
from vlmcore.limits import MusicLimits
from vlmcore_audio.containers import SAMPLE_RATES_HZ, Container, wav_of_pcm

if TYPE_CHECKING:
    from vlmcore.charts.chart import Chart
    from vlmcore_audio import _soundfile

__all__ = ["MusicClip"]

_SOURCE = "music"
_KINDS = {".mp3": "MP3", ".wav": "WAV", ".flac": "FLAC", ".ogg": "OGG"}
_MOST_HZ = 16 * SAMPLE_RATES_HZ[-1]  # of PCM: no recorder takes more, and a WAV header has room
_LIMITS = MusicLimits()


@attrs.frozen(kw_only=True, eq=False, repr=False)
class MusicClip:
    """
    A clip of music. What came is kept as it is, and decoded when it is first looked at.

    Attributes:
        encoded: The audio as it came.
        container: How it is encoded.
        pcm_sample_rate_hz: Of PCM, which does not say it itself, the samples a second; 705,600
            at most.
        pcm_channels: Of PCM, 1 or 2 channels.
        trace_id: What the service called the request; may be empty.
        limits: How large it may be once decoded.

    Raises:
        ContractError: If a field is not as described.
        MediaError: If *encoded* does not begin as such audio does, or is shorter than its header
            says.

    Example:
        >>> clip = MusicClip(encoded=bytes(88_200), container=Container.PCM, pcm_channels=1)
        >>> clip.duration_s, clip.samples.shape, clip.peak
        (1.0, (44100, 1), 0.0)
    """

    encoded: bytes
    container: Container
    pcm_sample_rate_hz: int = SAMPLE_RATES_HZ[-1]
    pcm_channels: int = 2
    trace_id: str = ""
    limits: MusicLimits = _LIMITS

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.encoded, bytes):
            raise ContractError("encoded", f"got {type(self.encoded).__name__}, expected bytes")
        require_member(Container, container=self.container)
        require_count(pcm_sample_rate_hz=self.pcm_sample_rate_hz, pcm_channels=self.pcm_channels)
        if self.pcm_sample_rate_hz > _MOST_HZ:
            raise ContractError(
                "pcm_sample_rate_hz", f"got {self.pcm_sample_rate_hz}, expected at most {_MOST_HZ}"
            )
        if self.pcm_channels > 2:
            raise ContractError("pcm_channels", f"got {self.pcm_channels}, expected 1 or 2")
        self.container.require(self.encoded, source=_SOURCE, channels=self.pcm_channels)

    def __repr__(self) -> str:
        return f"MusicClip({len(self.encoded):,} bytes of {self.container.value})"

    @property
    def sample_rate_hz(self) -> int:
        """Samples a second, of each channel."""
        return self._header.sample_rate_hz

    @property
    def channels(self) -> int:
        """How many channels it has."""
        return self._header.channels

    @property
    def duration_s(self) -> float:
        """
        How long it is, in seconds. A header is believed, but MP3 is decoded to see.

        Raises:
            MediaError: If it cannot be decoded.
            MediaLimitError: If it is MP3 that is too large once decoded.
            MissingDependencyError: If soundfile is needed, and is not installed.
        """
        return self._header.frames / self._header.sample_rate_hz

    @cached_property
    def samples(self) -> npt.NDArray[np.float32]:
        """
        The samples, float32 of shape ``[samples, channels]``, about -1 to 1, read-only.

        Raises:
            MediaError: If it cannot be decoded.
            MediaLimitError: If it is too large once decoded.
            MissingDependencyError: If soundfile is needed, and is not installed.
        """
        most = self.limits.max_decoded_bytes
        if self.container is Container.PCM:
            if 2 * len(self.encoded) > most:
                raise MediaLimitError(_SOURCE, "max_decoded_bytes", 2 * len(self.encoded), most)
            samples = np.frombuffer(self.encoded, "<i2").astype(np.float32)
            samples = samples.reshape(-1, self.pcm_channels)
            samples /= 0x8000
        else:
            samples = _door().decode(self.encoded, source=_SOURCE, most_bytes=most)
        samples.flags.writeable = False
        decoded: npt.NDArray[np.float32] = samples
        return decoded

    @property
    def waveform(self) -> npt.NDArray[np.float32]:
        """The samples as ComfyUI and torchaudio have them, shape ``[1, channels, samples]``."""
        waveform: npt.NDArray[np.float32] = self.samples.T[np.newaxis]
        return waveform

    @cached_property
    def peak(self) -> float:
        """The largest distance of a sample from zero; zero of an empty clip."""
        if not len(self.samples):
            return 0.0
        return float(max(abs(self.samples.min()), abs(self.samples.max())))

    @property
    def playable(self) -> tuple[str, bytes]:
        """The media type and the bytes of a file that browsers and players take."""
        match self.container:
            case Container.MP3:
                return "audio/mpeg", self.encoded
            case Container.WAV:
                return "audio/wav", self.encoded
            case Container.PCM:
                rate_hz, channels = self.pcm_sample_rate_hz, self.pcm_channels
                return "audio/wav", wav_of_pcm(
                    self.encoded, sample_rate_hz=rate_hz, channels=channels
                )

    def save(self, path: str | os.PathLike[str]) -> Path:
        """
        Write it to a file: whole, or not at all.

        What came is written as it is where the suffix fits, and encoded anew otherwise.

        Args:
            path: A path that ends in ``.mp3``, ``.wav``, ``.flac`` or ``.ogg``.

        Returns:
            The path.

        Raises:
            ContractError: If the suffix is another, or the file cannot be written.
            MediaError: If it cannot be decoded, or encoded anew.
            MissingDependencyError: If soundfile is needed, and is not installed.
        """
        name = os.fspath(path)
        kind = _KINDS.get(Path(name).suffix.lower())
        if kind is None:
            raise ContractError(name, f"expected a name that ends in {', '.join(_KINDS)}")
        _, data = self.playable
        if kind != ("MP3" if self.container is Container.MP3 else "WAV"):
            most = self.limits.max_decoded_bytes
            data = _door().transcode(data, source=_SOURCE, kind=kind, most_bytes=most)
        write_whole(name, data)
        return Path(name)

    def chart(self) -> Chart:
        """Draw its waveform, for `vlmcore.charts.drawing`; it has to have samples."""
        from vlmcore_audio import _html  # noqa: PLC0415 - drawing is for who looks

        return _html.waveform_chart(self)

    def _repr_html_(self) -> str:
        from vlmcore_audio import _html  # noqa: PLC0415 - drawing is for who looks

        return _html.clip_html(self)

    @cached_property
    def _header(self) -> _soundfile.Header | _PcmHeader:
        if self.container is Container.PCM:
            frames = len(self.encoded) // (2 * self.pcm_channels)
            return _PcmHeader(self.pcm_sample_rate_hz, self.pcm_channels, frames)
        most = self.limits.max_decoded_bytes
        header: _soundfile.Header = _door().probe(self.encoded, source=_SOURCE, most_bytes=most)
        return header


@attrs.frozen
class _PcmHeader:
    sample_rate_hz: int
    channels: int
    frames: int


def _door() -> Any:
    with optional_dependency("audio", "soundfile"):
        from vlmcore_audio import _soundfile  # noqa: PLC0415 - the door
    return _soundfile
