"""What is asked of a service that makes music, in words that fit every such service."""

from __future__ import annotations

import binascii
import os
import re
import stat
from base64 import b64decode, b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import attrs

from vlmcore._arguments import require_kind
from vlmcore._arrays import require_member
from vlmcore._net.public_urls import PublicUrl
from vlmcore._optional import optional_dependency
from vlmcore._whole_files import what_failed
from vlmcore.errors import ContractError, MediaError
from vlmcore.limits import MusicLimits, require_at_most
from vlmcore_audio.clips import MusicClip
from vlmcore_audio.containers import SAMPLE_RATES_HZ, Container

__all__ = [
    "AudioFormat",
    "MusicProgress",
    "MusicProvider",
    "MusicRequest",
    "OnProgress",
    "Reference",
]

_BITRATES_KBPS = (32, 64, 128, 256)

_REFERENCE_S = (6.0, 360.0)
_PADDING_S = 0.2  # encoders of MP3 add some silence
_UNTOLD_BITS = 63  # of a number of frames: so many has that of a FLAC that was streamed

_LIMITS = MusicLimits()
_DATA_URL = re.compile(r"data:[A-Za-z0-9.+/-]{0,100}(?:;[A-Za-z0-9.+=-]{1,100})*;base64,")
_BLANKS = str.maketrans("", "", " \t\r\n")


@attrs.frozen(kw_only=True)
class AudioFormat:
    """
    How the music is to be encoded.

    Attributes:
        container: MP3, WAV, or PCM of 16 bits.
        sample_rate_hz: 16000, 24000, 32000 or 44100 samples a second.
        bitrate_kbps: Of MP3, 32, 64, 128 or 256 thousand bits a second; ``None`` leaves it to the
            service. WAV and PCM have none.
        channels: 1 or 2.

    Raises:
        ContractError: If a field is not as described.
    """

    container: Container = Container.MP3
    sample_rate_hz: int = SAMPLE_RATES_HZ[-1]
    bitrate_kbps: int | None = None
    channels: int = 2

    def __attrs_post_init__(self) -> None:
        require_member(Container, container=self.container)
        _require_one_of("sample_rate_hz", self.sample_rate_hz, SAMPLE_RATES_HZ)
        _require_one_of("channels", self.channels, (1, 2))
        if self.bitrate_kbps is not None:
            _require_one_of("bitrate_kbps", self.bitrate_kbps, _BITRATES_KBPS)
            if self.container is not Container.MP3:
                raise ContractError(
                    "bitrate_kbps",
                    f"got {self.bitrate_kbps} for {self.container.value}, expected none: "
                    "it follows from the samples",
                )


def _path(value: Any) -> Any:
    return Path(value) if isinstance(value, str) and value else value


def _plain(value: Any) -> Any:
    """Drop what stands before the data of a ``data:`` URL, and line breaks."""
    if not isinstance(value, str):
        return value
    match = _DATA_URL.match(value)
    return (value[match.end() :] if match else value).translate(_BLANKS)


@attrs.frozen(kw_only=True, repr=False)
class Reference:
    """
    The recording that a cover is made of, of 6 s to 6 min: exactly one of four.

    Attributes:
        url: An address of the internet, ``https``; the service fetches it.
        file: A file on this machine, of 50,000,000 bytes at most. It is read when it is sent.
        base64: The same as text. What stands before the data of a ``data:`` URL is dropped, and so
            are line breaks.
        feature_id: What the service calls a recording that it has looked at.

    Raises:
        ContractError: If there is none, or more than one, or it is not as described.
        EndpointError: If *url* is no such address.
    """

    url: str | None = None
    file: Path | None = attrs.field(default=None, converter=_path)
    base64: str | None = attrs.field(default=None, converter=_plain)
    feature_id: str | None = None

    def __attrs_post_init__(self) -> None:
        given = [name for name in _REFERENCES if getattr(self, name) is not None]
        if len(given) != 1:
            said = " and ".join(given) or "none"
            raise ContractError(
                "reference", f"got {said}, expected one of {', '.join(_REFERENCES)}"
            )
        for name in ("url", "base64", "feature_id"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, str) or not value.strip()):
                raise ContractError(name, f"got {_shown(value)}, expected text")
        if self.file is not None and not isinstance(self.file, os.PathLike):
            raise ContractError("file", f"got {_shown(self.file)}, expected a path")
        if self.url is not None:
            PublicUrl.parse(self.url, most_characters=_LIMITS.max_url_characters)
        if self.base64 is not None:
            _require_base64(self.base64)

    def __repr__(self) -> str:
        if self.feature_id is not None:
            return f"Reference(feature_id={self.feature_id[:40]!r})"
        name = next(each for each in _REFERENCES if getattr(self, each) is not None)
        return f"Reference({name}=...)"

    def encoded(self) -> str:
        """
        Give the recording in Base64, which is *base64*, or what is in *file* now.

        Raises:
            ContractError: If the file is none, is too large, or cannot be read; or if the recording
                is known to be shorter than 6 s, or longer than 6 min.
            MissingDependencyError: If soundfile is not installed.
        """
        if self.base64 is not None:
            _require_duration("base64", b64decode(self.base64))
            return self.base64
        assert self.file is not None
        data = _bytes_of(self.file, _LIMITS.max_reference_bytes)
        _require_duration("file", data)
        return b64encode(data).decode()


_REFERENCES = tuple(field.name for field in attrs.fields(Reference))


@attrs.frozen(kw_only=True)
class MusicRequest:
    """
    What music is asked for: a piece of its own, or a cover of a recording.

    A piece has *lyrics*, or the service writes them (*lyrics_optimizer*), or it has none
    (*is_instrumental*): one of the three. How long the texts may be depends on the model.

    Attributes:
        prompt: What it should sound like.
        lyrics: What is sung; lines as ``[Verse]`` say what a part is.
        lyrics_optimizer: Whether the service writes the lyrics from the prompt.
        is_instrumental: Whether nothing is sung.
        reference: What to make a cover of; ``None`` for a piece of its own.
        model: Which model makes it; the default of the service if ``None``.
        audio: How it is to be encoded.
        seed: Of a cover, 0 to 1,000,000; the same seed makes much the same. ``None`` for any.

    Raises:
        ContractError: If a field is not as described, or two contradict each other.

    Example:
        >>> MusicRequest(prompt="slow jazz, piano and brushes", is_instrumental=True).is_cover
        False
    """

    prompt: str = ""
    lyrics: str = ""
    lyrics_optimizer: bool = False
    is_instrumental: bool = False
    reference: Reference | None = None
    model: str | None = None
    audio: AudioFormat = attrs.field(factory=AudioFormat)
    seed: int | None = None

    def __attrs_post_init__(self) -> None:
        for name in ("prompt", "lyrics"):
            text = getattr(self, name)
            _require_text(name, text)
            if text and not text.strip():
                raise ContractError(name, "got white space only, expected words, or nothing at all")
        if self.model is not None:
            _require_text("model", self.model)
        for name in ("lyrics_optimizer", "is_instrumental"):
            if not isinstance(getattr(self, name), bool):
                got = _shown(getattr(self, name))
                raise ContractError(name, f"got {got}, expected True or False")
        require_kind("audio", self.audio, AudioFormat)
        if self.reference is not None:
            require_kind("reference", self.reference, Reference)
        most = _LIMITS.max_seed
        if self.seed is not None and (type(self.seed) is not int or not 0 <= self.seed <= most):
            raise ContractError("seed", f"got {_shown(self.seed)}, expected 0 to {most:,}")
        (self._check_cover if self.is_cover else self._check_piece)()

    @property
    def is_cover(self) -> bool:
        """Whether it is a cover of a recording."""
        return self.reference is not None

    def _check_cover(self) -> None:
        for name in ("is_instrumental", "lyrics_optimizer"):
            if getattr(self, name):
                raise ContractError(name, "got True with a reference, expected False for a cover")
        assert self.reference is not None
        if self.reference.feature_id is not None and not self.lyrics:
            raise ContractError(
                "lyrics", "got none, expected some: the service has looked at the recording already"
            )

    def _check_piece(self) -> None:
        if self.seed is not None:
            raise ContractError("seed", "got one, expected None: only covers have one")
        told = {
            "lyrics": bool(self.lyrics),
            "lyrics_optimizer": self.lyrics_optimizer,
            "is_instrumental": self.is_instrumental,
        }
        given = [name for name, is_given in told.items() if is_given]
        if len(given) != 1:
            said = " and ".join(given) or "none"
            raise ContractError("lyrics", f"got {said}, expected one of {', '.join(told)}")
        if not self.prompt and not self.lyrics:
            raise ContractError("prompt", "got none, expected one where no lyrics are given")


@attrs.frozen(kw_only=True)
class MusicProgress:
    """
    How far a call has come.

    Attributes:
        phase: What is going on: ``"asking"``, ``"making"``, ``"waiting"`` before it is asked
            again, or ``"downloading"``.
        events: How many events of the service came.
        received_bytes: How much of the audio came.
        attempt: Which time it is asked, from 1.
    """

    phase: str
    events: int = 0
    received_bytes: int = 0
    attempt: int = 1


#: What is told how far a call has come.
OnProgress: TypeAlias = Callable[[MusicProgress], None]


class MusicProvider(Protocol):
    """A service that makes music."""

    def generate(
        self, request: MusicRequest, /, *, on_progress: OnProgress | None = None
    ) -> MusicClip:
        """
        Ask for music, and wait until it is there.

        Raises:
            MusicError: If there is none.
        """
        ...


def _require_one_of(field: str, value: object, allowed: tuple[int, ...]) -> None:
    if type(value) is not int or value not in allowed:
        expected = ", ".join(map(str, allowed))
        raise ContractError(field, f"got {_shown(value)}, expected one of {expected}")


def _require_text(field: str, value: object) -> None:
    if not isinstance(value, str):
        raise ContractError(field, f"got {_shown(value)}, expected text")
    if any("\ud800" <= each <= "\udfff" for each in value):
        raise ContractError(field, "got half a character (a surrogate), expected whole ones")


def _require_base64(text: str) -> None:
    require_at_most(
        "max_reference_bytes",
        len(text) * 3 // 4 - text[-2:].count("="),
        _LIMITS.max_reference_bytes,
    )
    try:
        b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ContractError(
            "base64", "got text that is no Base64, expected A-Z, a-z, 0-9, + and /, padded with ="
        ) from None


def _require_duration(field: str, data: bytes) -> None:
    """Check how long a recording is that says so; of others the service knows more."""
    with optional_dependency("audio", "soundfile"):
        from vlmcore_audio import _soundfile  # noqa: PLC0415 - the door
    try:
        header = _soundfile.probe(data, source=field, most_bytes=_LIMITS.max_decoded_bytes)
    except MediaError:
        return
    least_s, most_s = _REFERENCE_S
    duration_s = header.frames / header.sample_rate_hz
    is_told = 0 < header.frames.bit_length() < _UNTOLD_BITS
    if is_told and not least_s <= duration_s <= most_s + _PADDING_S:
        raise ContractError(field, f"got {duration_s:.3f} s, expected {least_s:g} to {most_s:g} s")


def _bytes_of(file: Path, most: int) -> bytes:
    """Read a file whose size is looked at before it is opened."""
    try:
        status = file.stat()
        if not stat.S_ISREG(status.st_mode):
            raise ContractError("file", f"got {str(file)!r}, expected a regular file")
        require_at_most("max_reference_bytes", status.st_size, most)
        with file.open("rb") as opened:
            data = opened.read(most + 1)
    except OSError as error:
        raise ContractError("file", f"{str(file)!r} {what_failed(error)}") from None
    require_at_most("max_reference_bytes", len(data), most)
    if not data:
        raise ContractError("file", f"{str(file)!r} is empty")
    return data


def _shown(value: object) -> str:
    if isinstance(value, (bool, int, float)):
        return f"{value!r:.40}"
    if isinstance(value, str) and not value.strip():
        return "no text"
    return type(value).__name__
