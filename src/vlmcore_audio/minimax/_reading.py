"""What is made of the parts of an answer of the service as they come."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from vlmcore._net.events import EventReader
from vlmcore._net.http_parts import Head
from vlmcore.errors import (
    LimitExceededError,
    MusicError,
    MusicIncompleteError,
    MusicProtocolError,
)
from vlmcore.limits import MusicLimits
from vlmcore_audio.containers import Container
from vlmcore_audio.minimax._assembly import Assembly
from vlmcore_audio.minimax._documents import Document, NoJsonError, read_document, refused
from vlmcore_audio.minimax._hex import AudioSieve, HexAudio
from vlmcore_audio.minimax._service import SERVICE

__all__ = ["AnswerReader"]

_TRACE_HEADER = "trace-id"
_BOM = b"\xef\xbb\xbf"
_FIELDS = (b"data:", b"event:", b"id:", b"retry:", b":")  # of events; JSON begins otherwise
_LONGEST_FIELD = 6


class AnswerReader:
    """
    Reads an answer of the service, in one piece or as a stream of events.

    Args:
        container: How the audio is encoded.
        limits: How much is read.
        redacted: Makes words of the service fit to be shown.
    """

    def __init__(
        self, container: Container, *, limits: MusicLimits, redacted: Callable[..., str]
    ) -> None:
        self.assembly = Assembly(container, limits)
        self.document: Document | None = None
        self.url: str | None = None
        self.events = 0
        self.is_over = False
        self._limits = limits
        self._redacted = redacted
        self._head = Head(status=200, headers={})
        self._is_stream = False
        self._begin: bytes | None = b""  # until it is long enough to tell what it is
        self._sieve = AudioSieve(
            shortest=limits.max_url_characters, max_bytes=limits.max_audio_bytes
        )
        self._reader = EventReader(max_bytes=limits.max_event_bytes)
        self._text = bytearray()
        self._piece: HexAudio | None = None
        self._came = 0
        self._is_ended = False

    @property
    def received_bytes(self) -> int:
        """How much of the audio there is."""
        taken_out = 0 if self._piece is None else len(self._piece)
        return len(self.assembly) + self._sieve.begun_bytes + taken_out

    @property
    def is_failure_without_words(self) -> bool:
        """Whether the service failed and said nothing at all."""
        return self._head.status >= 500 and self._came == 0

    def take(self, part: Head | bytes) -> None:
        """
        Take a part.

        Raises:
            MusicError: If it tells of an error, or is not what the service sends.
        """
        if isinstance(part, Head):
            self._head = part
            kind = part.headers.get("content-type", "").strip().lower()
            self._is_stream = kind.startswith("text/event-stream")
            return
        self._came += len(part)
        most = self._limits.max_answer_bytes
        if self._came > most:
            raise MusicProtocolError(SERVICE, f"it sent more than max_answer_bytes, {most:,}")
        if self._begin is None:
            self._take_bytes(part)
            return
        self._begin = (self._begin + part).removeprefix(_BOM).lstrip()
        if len(self._begin) >= _LONGEST_FIELD:
            self._begun()

    def _begun(self) -> None:
        """See by how it begins whether it is a stream: what its head says may be wrong."""
        begin, self._begin = self._begin or b"", None
        looks_so = begin.startswith(_FIELDS)
        self._is_stream = looks_so or (self._is_stream and not begin.startswith(b"{"))
        self._take_bytes(begin)

    def _take_bytes(self, data: bytes) -> None:
        for piece in self._sieve.feed(data):
            if isinstance(piece, HexAudio):
                if self._piece is not None:
                    raise MusicProtocolError(SERVICE, "it sent two audios in one event")
                self._piece = piece
            else:
                self._take_text(piece)

    def finish(self) -> None:
        """
        Take the end of the answer.

        Raises:
            MusicError: If it tells of an error, is not what the service sends, or is cut.
        """
        self._is_ended = True
        if self._begin is not None:
            self._begun()
        self._take_text(self._sieve.finish())
        if self._is_stream:
            self._take_events(self._reader.finish())
            if self.events or self._head.status < 300:
                return
        text = bytes(self._text)
        if self._head.status >= 300 and not text.lstrip().startswith(b"{"):
            words = text[: self._limits.max_url_characters].decode("utf-8", "replace")
            raise refused(
                None,
                words,
                http_status=self._head.status,
                trace_id=self._trace,
                redacted=self._redacted,
            )
        self._take_document(text)
        assert self.document is not None
        if self.document.status is None:  # it came whole, and there was no error
            self.assembly.end()

    def is_whole_though_cut(self) -> bool:
        """Take what came as all of the answer, and say whether the audio has the size it tells."""
        with contextlib.suppress(MusicError):
            self.finish()
        return self.assembly.is_as_told

    def _take_text(self, text: bytes) -> None:
        if self._is_stream:
            self._take_events(self._reader.feed(text))
            return
        self._text += text
        most = self._limits.max_event_bytes
        if len(self._text) > most:
            raise MusicProtocolError(
                SERVICE, f"its answer is longer than max_event_bytes, {most:,}"
            )

    def _take_events(self, events: Iterator[bytes]) -> None:
        try:
            for event in events:
                self._take_event(event)
        except LimitExceededError as error:
            raise MusicProtocolError(
                SERVICE, f"it sent an event longer than max_event_bytes, {error.allowed:,}"
            ) from None

    def _take_event(self, event: bytes) -> None:
        self.events += 1
        if event.strip() == b"[DONE]":
            self.assembly.end()
            self.is_over = True
        elif not self.is_over:
            self._take_document(event)
            self.is_over = self.assembly.is_as_told  # nothing that follows makes it better

    def _take_document(self, text: bytes) -> None:
        try:
            self.document = document = read_document(
                text,
                self._piece,
                http_status=self._head.status,
                limits=self._limits,
                redacted=self._redacted,
            )
        except NoJsonError:
            came = self.received_bytes
            if self._is_ended and came:
                raise MusicIncompleteError(
                    SERVICE, "the answer ended before the audio did", came
                ) from None
            raise MusicProtocolError(SERVICE, "it sent no JSON that can be read") from None
        self._piece = None
        self.assembly.take(document)
        self.assembly.trace_id = self.assembly.trace_id or self._trace
        self.url = document.url or self.url

    @property
    def _trace(self) -> str:
        return self._redacted(self._head.headers.get(_TRACE_HEADER, ""), max_characters=80)
