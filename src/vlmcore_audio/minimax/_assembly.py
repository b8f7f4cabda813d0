"""The whole audio out of what came of it, in order, in memory that grows with it and no faster."""

from __future__ import annotations

from vlmcore.errors import MusicIncompleteError, MusicProtocolError
from vlmcore.limits import MusicLimits
from vlmcore_audio.containers import Container, is_mpeg_frame
from vlmcore_audio.minimax._documents import Document
from vlmcore_audio.minimax._hex import HexAudio
from vlmcore_audio.minimax._service import SERVICE

__all__ = ["Assembly"]


class Assembly:
    """
    Fragments are joined, whatever is in them. What comes last may be the last fragment, or all.

    Args:
        container: How the audio is encoded.
        limits: How large it may be.
    """

    def __init__(self, container: Container, limits: MusicLimits) -> None:
        self._container = container
        self._joined = HexAudio(limits.max_audio_bytes)
        self.music_bytes: int | None = None  # of the whole audio, as the service says
        self.duration_s: float | None = None  # the same
        self.is_doubtful = False  # what came last might have been something else
        self._is_final = False
        self._is_ended = False
        self.trace_id = ""

    def __len__(self) -> int:
        return len(self._joined)

    def end(self) -> None:
        """Note that the service said that nothing more comes."""
        self._is_ended = True

    def take(self, document: Document) -> None:
        """
        Take the next event.

        Raises:
            MusicProtocolError: If audio comes after the last, or the last is neither all of it nor
                the end of it.
        """
        self.trace_id = document.trace_id or self.trace_id
        if document.music_bytes is not None:
            self.music_bytes = document.music_bytes
        if document.duration_s is not None:
            self.duration_s = document.duration_s
        if document.is_about_all:
            self._is_ended = True
        is_last = document.status == 2
        if document.audio is not None:
            if self._is_final:
                raise MusicProtocolError(SERVICE, "it sent audio after the last of it")
            if is_last and self._is_all(document.audio):
                self._joined = document.audio
            else:
                self._joined.append(document.audio)
        self._is_final = self._is_final or is_last

    def _is_all(self, audio: HexAudio) -> bool:
        """Say whether the last audio is the whole, and not the last fragment."""
        if not audio.is_whole:
            return False
        joined = self._joined
        if self.music_bytes is not None:
            if len(audio) == self.music_bytes:
                return True
            if joined.digits + audio.digits == 2 * self.music_bytes:
                return False
        return audio.begins_with(joined) or self._is_another_file(audio)

    def _is_another_file(self, audio: HexAudio) -> bool:
        """Say whether the last audio is a file, as what came before is the beginning of one."""
        joined = self._joined
        magic = self._container is not Container.PCM
        begins = self._container.begins
        if not (magic and begins(audio.data) and begins(joined.data)):
            return False
        if len(audio) >= len(joined):
            return True
        if not is_mpeg_frame(audio.data):
            raise MusicProtocolError(
                SERVICE,
                f"its last event is a file of {len(audio):,} bytes, expected at least the "
                f"{len(joined):,} that came before",
            )
        self.is_doubtful = self.music_bytes is None
        return False  # the end of a song begins with a frame as well

    @property
    def is_as_told(self) -> bool:
        """Whether the last of it came, and it has the size that the service told."""
        joined = self._joined
        return self._is_final and joined.is_whole and 0 < len(joined) == self.music_bytes

    def whole(self) -> bytearray:
        """
        Give the audio.

        Raises:
            MusicIncompleteError: If there is none, or not all.
            MusicProtocolError: If there is more than the service said.
        """
        came = len(self._joined)
        if not (self._is_final or self._is_ended):
            raise MusicIncompleteError(SERVICE, "the answer ended before the audio did", came)
        if not came:
            raise MusicIncompleteError(SERVICE, "it sent no audio", 0)
        if not self._joined.is_whole:
            raise MusicIncompleteError(SERVICE, "the audio ends within a byte", came)
        said = self.music_bytes
        if said is not None and came < said:
            raise MusicIncompleteError(SERVICE, f"it said that there are {said:,} bytes", came)
        if said is not None and came > said:
            raise MusicProtocolError(
                SERVICE, f"it sent {came:,} bytes of audio and said that there are {said:,}"
            )
        return self._joined.data
