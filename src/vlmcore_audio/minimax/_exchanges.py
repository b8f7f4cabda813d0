"""One request and its answer, step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

from vlmcore._net.http_parts import Head
from vlmcore._net.steps import Receive, Steps
from vlmcore_audio.music import MusicProgress

if TYPE_CHECKING:
    from vlmcore._net.http_exchange import HttpExchange

__all__ = ["MusicSteps", "Reader", "read_answer"]

_Result = TypeVar("_Result")

MusicSteps: TypeAlias = Steps[MusicProgress, _Result]


class Reader(Protocol):
    """What takes an answer, part by part."""

    is_over: bool
    events: int

    @property
    def received_bytes(self) -> int:
        """How much of the audio there is."""

    def take(self, part: Head | bytes) -> None:
        """Take a part."""

    def finish(self) -> None:
        """Take the end."""


def read_answer(
    exchange: HttpExchange, reader: Reader, phase: str, attempt: int
) -> MusicSteps[None]:
    """Let *reader* have what comes until it has enough, and tell how far that is."""
    told = None
    while not exchange.is_done and not reader.is_over:
        data = yield Receive()
        assert data is not None
        for part in exchange.feed(data):
            reader.take(part)
        progress = MusicProgress(
            phase=phase,
            events=reader.events,
            received_bytes=reader.received_bytes,
            attempt=attempt,
        )
        if progress != told:
            told = progress
            yield progress
    reader.finish()
