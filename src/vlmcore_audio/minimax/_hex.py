"""Audio in hex, turned into bytes as it comes, and taken out of the JSON around it meanwhile."""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterator

from vlmcore.errors import MusicProtocolError
from vlmcore_audio.minimax._service import SERVICE

__all__ = ["AudioSieve", "HexAudio"]

_OPENING = re.compile(rb'"audio"\s{0,16}:\s{0,16}"')
_MAY_OPEN = re.compile(rb'"(?:a(?:u(?:d(?:i(?:o(?:"\s{0,16}(?::\s{0,16})?)?)?)?)?)?)?\Z')
_LONGEST_OPENING = 48  # bytes


class HexAudio:
    """
    Bytes that came as hex digits; a digit without its other half waits for it.

    Args:
        max_bytes: How many there may be.
    """

    def __init__(self, max_bytes: int) -> None:
        self.data = bytearray()
        self._half = b""
        self._max_bytes = max_bytes

    def __len__(self) -> int:
        return len(self.data)

    @property
    def digits(self) -> int:
        """How many digits came."""
        return 2 * len(self.data) + len(self._half)

    @property
    def is_whole(self) -> bool:
        """Whether no digit waits for its other half."""
        return not self._half

    def begins_with(self, other: HexAudio) -> bool:
        """Say whether its first digits are those of *other*."""
        size = len(other.data)
        rest = binascii.hexlify(self.data[size : size + 1]) + self._half.lower()
        return self.data.startswith(other.data) and rest.startswith(other._half.lower())

    def feed(self, digits: bytes) -> None:
        """
        Append digits.

        Raises:
            MusicProtocolError: If they are none, or too many.
        """
        if self._half:
            digits = self._half + digits
        whole = len(digits) & ~1
        self._require(len(self.data) + whole // 2)
        try:
            self.data += binascii.unhexlify(memoryview(digits)[:whole])
        except binascii.Error:
            raise MusicProtocolError(SERVICE, "it sent audio that is not in hex") from None
        self._half = digits[whole:]
        if self._half and self._half not in b"0123456789abcdefABCDEF":
            raise MusicProtocolError(SERVICE, "it sent audio that is not in hex")

    def append(self, other: HexAudio) -> None:
        """
        Append the digits of *other*, which may begin with the half of a byte.

        Raises:
            MusicProtocolError: If they are too many together.
        """
        if self._half:
            self.feed(binascii.hexlify(other.data) + other._half)
            return
        self._require(len(self.data) + len(other.data))
        if self.data:
            self.data += other.data
        else:
            self.data = other.data
        self._half = other._half

    def _require(self, size: int) -> None:
        if size > self._max_bytes:
            raise MusicProtocolError(
                SERVICE, f"it sent more audio than max_audio_bytes, {self._max_bytes:,}, allows"
            )


class AudioSieve:
    """
    Takes long texts called ``"audio"`` out of JSON as it comes, and leaves empty ones there.

    So what is parsed stays small, and the audio is never there as text. A text inside which
    ``"audio"`` seems to stand is not split: a quote in it is escaped.

    Args:
        shortest: From how many characters on a text is taken out.
        max_bytes: How many bytes it may be.
    """

    def __init__(self, *, shortest: int, max_bytes: int) -> None:
        self._shortest = shortest
        self._max_bytes = max_bytes
        self._rest = b""  # of what came before, whose meaning is not clear yet
        self._is_inside = False  # of a text called audio
        self._audio: HexAudio | None = None  # of a long one

    @property
    def begun_bytes(self) -> int:
        """How much there is of the text that is being taken out."""
        return 0 if self._audio is None else len(self._audio)

    def feed(self, data: bytes) -> Iterator[bytes | HexAudio]:
        """
        Give the JSON without its audio, and each audio before what follows it.

        Raises:
            MusicProtocolError: If an audio is not in hex, or too long.
        """
        data = self._rest + data if self._rest else data
        self._rest = b""
        at = 0
        while at < len(data):
            if self._is_inside:
                end = data.find(b'"', at)
                taken = self._taken(data, at, len(data) if end < 0 else end, is_closed=end >= 0)
                if taken is None:
                    return
                yield taken
                at = end
                self._is_inside = False
                yield data[at : at + 1]
                at += 1
                continue
            opening = _OPENING.search(data, at)
            if opening is None:
                may = _MAY_OPEN.search(data, max(at, len(data) - _LONGEST_OPENING))
                end = may.start() if may else len(data)
                yield data[at:end]
                self._rest = data[end:]
                return
            yield data[at : opening.end()]
            at = opening.end()
            self._is_inside = True

    def finish(self) -> bytes:
        """Give what is left when nothing more comes."""
        rest, self._rest = self._rest, b""
        return rest

    def _taken(self, data: bytes, at: int, end: int, *, is_closed: bool) -> bytes | HexAudio | None:
        """Take the part of a text that is there; give the text once it is closed."""
        if self._audio is None and end - at < self._shortest:
            if not is_closed:
                self._rest = data[at:]
                return None
            return data[at:end]
        if self._audio is None:
            self._audio = HexAudio(self._max_bytes)
        self._audio.feed(data[at:end])
        if not is_closed:
            return None
        audio, self._audio = self._audio, None
        return audio
