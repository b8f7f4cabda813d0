"""What a call does, step by step, for clients that block and clients for ``asyncio`` alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, TypeVar

from vlmcore._net.http_parts import BrokenHttpError
from vlmcore._net.public_urls import PublicUrl
from vlmcore._net.steps import Dial, Receive, Send, Steps, Wait
from vlmcore.errors import (
    ContractError,
    MediaError,
    MusicIncompleteError,
    MusicProtocolError,
    MusicRefusedError,
)
from vlmcore.limits import MusicLimits
from vlmcore_audio.clips import MusicClip
from vlmcore_audio.minimax._reading import AnswerReader, DownloadReader
from vlmcore_audio.minimax._service import SERVICE
from vlmcore_audio.minimax._terms import Terms
from vlmcore_audio.minimax.wire import MUSIC_PATH, PREPROCESS_PATH
from vlmcore_audio.music import AudioFormat, MusicProgress

if TYPE_CHECKING:
    from vlmcore._net.http_exchange import HttpExchange

__all__ = ["MusicSteps", "music_call", "preprocess_call"]

_HOPS = 3  # redirects that are followed to the audio
_RETRIED = (1001, 1002)

_Result = TypeVar("_Result")

MusicSteps: TypeAlias = Steps[MusicProgress, _Result]


def music_call(terms: Terms, body: bytes, audio: AudioFormat) -> MusicSteps[MusicClip]:
    """Ask for music until there is some, as often as that is free, and fetch it."""
    limits = terms.limits
    attempt = 0
    while True:
        attempt += 1
        reader = AnswerReader(audio.container, limits=limits, redacted=terms.redacted)
        try:
            yield from _asked(terms, MUSIC_PATH, body, reader, attempt)
            break
        except MusicRefusedError as error:
            is_free = error.code in _RETRIED or reader.is_failure_without_words
            if reader.received_bytes or not is_free or attempt > terms.retries.times:
                raise
        yield MusicProgress(phase="waiting", attempt=attempt)
        yield Wait(terms.retries.wait_s(attempt))
    url = reader.url
    if url is not None and not len(reader.assembly):
        if not terms.is_url:
            raise MusicProtocolError(SERVICE, "it sent an address, expected the audio")
        data = yield from _fetched(terms, url, limits)
    else:
        data = reader.assembly.whole()
    document = reader.document
    encoded = bytes(data)
    data.clear()
    try:
        return MusicClip(
            encoded=encoded,
            container=audio.container,
            pcm_sample_rate_hz=(document and document.sample_rate_hz) or audio.sample_rate_hz,
            pcm_channels=(document and document.channels) or audio.channels,
            trace_id=reader.assembly.trace_id,
            limits=limits,
        )
    except (MediaError, ContractError) as error:
        raise MusicProtocolError(SERVICE, f"it sent other audio than asked for: {error}") from None


def preprocess_call(terms: Terms, body: bytes) -> MusicSteps[dict[str, object]]:
    """Let the service look at a recording, and give what it says."""
    reader = AnswerReader(AudioFormat().container, limits=terms.limits, redacted=terms.redacted)
    yield from _asked(terms, PREPROCESS_PATH, body, reader, attempt=1)
    assert reader.document is not None
    return dict(reader.document.fields)


def _asked(
    terms: Terms, path: str, body: bytes, reader: AnswerReader, attempt: int
) -> MusicSteps[None]:
    """Ask the service once. The key goes here, and nowhere else."""
    exchange = terms.new_exchange()
    endpoint = terms.region.endpoint
    yield MusicProgress(phase="asking", attempt=attempt)
    yield Dial(endpoint=endpoint, only_public=False)
    yield Send(
        exchange.request(
            host=endpoint.host_header,
            method="POST",
            target=path,
            headers=[
                ("authorization", f"Bearer {terms.key.reveal()}"),
                ("content-type", "application/json"),
                ("accept", "text/event-stream, application/json"),
                ("connection", "close"),
            ],
            body=body,
        )
    )
    try:
        yield from _read(exchange, reader, "making", attempt)
    except BrokenHttpError as error:
        if reader.received_bytes:
            came = reader.received_bytes
            raise MusicIncompleteError(SERVICE, terms.redacted(str(error)), came) from None
        raise


def _fetched(terms: Terms, text: str, limits: MusicLimits) -> MusicSteps[bytearray]:
    """Fetch a file from wherever the service says it is, by the rules for such addresses."""
    most = limits.max_url_characters
    url = PublicUrl.parse(text, most_characters=most)
    for _ in range(_HOPS + 1):
        terms.require_host(url.endpoint.host)
        reader = DownloadReader(limits)
        exchange = terms.new_exchange()
        yield Dial(endpoint=url.endpoint, only_public=True)
        yield Send(
            exchange.request(
                host=url.endpoint.host_header,
                method="GET",
                target=url.target,
                headers=[("connection", "close")],
            )
        )
        yield from _read(exchange, reader, "downloading", 1)
        if reader.location is None:
            return reader.data
        url = url.redirected(reader.location, most_characters=most)
    raise MusicProtocolError(SERVICE, f"the audio is behind more than {_HOPS} redirects")


def _read(
    exchange: HttpExchange, reader: AnswerReader | DownloadReader, phase: str, attempt: int
) -> MusicSteps[None]:
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
