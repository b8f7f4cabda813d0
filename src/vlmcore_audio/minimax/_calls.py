"""What a call does, step by step, for clients that block and clients for ``asyncio`` alike."""

from __future__ import annotations

import contextlib
from functools import partial

from vlmcore._net.http_parts import BrokenHttpError
from vlmcore._net.steps import Dial, Send, Wait
from vlmcore.errors import (
    ContractError,
    MediaError,
    MissingDependencyError,
    MusicIncompleteError,
    MusicProtocolError,
    MusicRefusedError,
    MusicTimeoutError,
)
from vlmcore.limits import MusicLimits
from vlmcore_audio.clips import MusicClip
from vlmcore_audio.containers import Container
from vlmcore_audio.minimax._downloads import NoFileError, downloaded
from vlmcore_audio.minimax._exchanges import MusicSteps, read_answer
from vlmcore_audio.minimax._reading import AnswerReader
from vlmcore_audio.minimax._service import SERVICE
from vlmcore_audio.minimax._terms import Terms
from vlmcore_audio.minimax.covers import CoverFeature
from vlmcore_audio.minimax.wire import MUSIC_PATH, PREPROCESS_PATH
from vlmcore_audio.music import AudioFormat, MusicProgress

__all__ = ["music_call", "preprocess_call"]

_RETRIED = (1001, 1002)
_APART_S, _APART = 1.0, 0.05  # how far the length that is told may be off


def music_call(terms: Terms, body: bytes, audio: AudioFormat) -> MusicSteps[MusicClip]:
    """Ask for music until there is some, as often as that is free, and fetch it."""
    limits = terms.limits
    reader = yield from _answered(terms, MUSIC_PATH, body, audio.container)
    checked = partial(_clip, reader, audio, limits)
    if reader.url is None or len(reader.assembly):
        try:
            return checked(reader.assembly.whole())
        except NoFileError as error:
            raise MusicProtocolError(SERVICE, str(error)) from None
    if not terms.is_url:
        raise MusicProtocolError(SERVICE, "it sent an address, expected the audio")
    size = reader.assembly.music_bytes or None
    return (yield from downloaded(terms, reader.url, checked, size=size))


def _clip(
    reader: AnswerReader, audio: AudioFormat, limits: MusicLimits, data: bytearray
) -> MusicClip:
    """Make a clip of the audio, if it is what was asked for and as long as the service said."""
    said = reader.assembly.music_bytes
    if said is not None and len(data) != said:
        raise NoFileError(f"it has {len(data):,} bytes, and the service said that it has {said:,}")
    document = reader.document
    encoded = bytes(data)
    data.clear()
    try:
        clip = MusicClip(
            encoded=encoded,
            container=audio.container,
            pcm_sample_rate_hz=(document and document.sample_rate_hz) or audio.sample_rate_hz,
            pcm_channels=(document and document.channels) or audio.channels,
            trace_id=reader.assembly.trace_id,
            limits=limits,
        )
    except (MediaError, ContractError) as error:
        raise NoFileError(f"it sent other audio than asked for: {error}") from None
    told_s = reader.assembly.duration_s
    if reader.assembly.is_doubtful and told_s is not None:
        _require_about(told_s, clip)
    return clip


def _require_about(told_s: float, clip: MusicClip) -> None:
    """Require that a clip lasts about so long, where it can be decoded."""
    with contextlib.suppress(MissingDependencyError, MediaError):
        lasts_s = clip.duration_s
        if abs(lasts_s - told_s) > max(_APART_S, _APART * told_s):
            raise NoFileError(f"it lasts {lasts_s:.1f} s, and the service said {told_s:.1f} s")


def preprocess_call(terms: Terms, body: bytes) -> MusicSteps[CoverFeature]:
    """Let the service look at a recording, and give what it says."""
    reader = yield from _answered(terms, PREPROCESS_PATH, body, AudioFormat().container)
    return CoverFeature.of({} if reader.document is None else reader.document.fields)


def _answered(
    terms: Terms, path: str, body: bytes, container: Container
) -> MusicSteps[AnswerReader]:
    """Ask the service until it answers, as often as that is free."""
    attempt = 0
    while True:
        attempt += 1
        reader = AnswerReader(container, limits=terms.limits, redacted=terms.redacted)
        try:
            yield from _asked(terms, path, body, reader, attempt)
        except MusicRefusedError as error:
            is_free = error.code in _RETRIED or reader.is_failure_without_words
            if reader.received_bytes or not is_free or attempt > terms.retries.times:
                raise
            refusal = f"HTTP {error.status}" if error.code is None else f"code {error.code}"
        else:
            return reader
        yield MusicProgress(phase="waiting", attempt=attempt)
        try:
            yield Wait(terms.retries.wait_s(attempt))
        except TimeoutError:
            wait = f"other answer than {refusal}"
            raise MusicTimeoutError(SERVICE, wait, terms.timeout_s) from None


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
        yield from read_answer(exchange, reader, "making", attempt)
    except (OSError, BrokenHttpError) as error:
        if reader.is_whole_though_cut():  # it is paid for
            return
        came = reader.received_bytes
        if isinstance(error, TimeoutError) or not came:
            raise
        why = str(error) if isinstance(error, BrokenHttpError) else "the connection was lost"
        raise MusicIncompleteError(SERVICE, terms.redacted(why), came) from None
