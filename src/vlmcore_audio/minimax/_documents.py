"""The JSON that MiniMax answers with: its code first, then what it says about the audio."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from vlmcore.contracts.json_text import read_json
from vlmcore.errors import (
    ContractError,
    MusicBalanceError,
    MusicBlockedError,
    MusicBusyError,
    MusicKeyError,
    MusicParametersError,
    MusicProtocolError,
    MusicRateLimitError,
    MusicRefusedError,
)
from vlmcore.limits import DocumentLimits, MusicLimits
from vlmcore_audio.minimax._hex import HexAudio
from vlmcore_audio.minimax._service import SERVICE

__all__ = ["Document", "NoJsonError", "read_document", "refused"]

_KINDS: dict[int, type[MusicRefusedError]] = {
    1000: MusicBusyError,
    1001: MusicBusyError,
    1002: MusicRateLimitError,
    1004: MusicKeyError,
    1008: MusicBalanceError,
    1024: MusicBusyError,
    1026: MusicBlockedError,
    2013: MusicParametersError,
    2049: MusicKeyError,
}
_WORDS = 400  # characters of the service's that are shown
_TRACE = 80


class NoJsonError(Exception):
    """A text is no JSON that can be read; it may be the half of one."""


@attrs.frozen(kw_only=True, eq=False)
class Document:
    """
    One event, or one whole answer, whose code is 0 or not told.

    Attributes:
        fields: All of it.
        status: 1 while the music is being made, 2 with the last of it; ``None`` if not told.
        audio: What came in hex.
        url: Where the audio is.
        music_bytes: How large the whole audio is, as the service says.
        duration_s: How long the whole audio is, as the service says; it counts milliseconds.
        sample_rate_hz: As it says.
        channels: As it says.
        is_about_all: Whether it tells of the whole audio, which only the last one does.
        trace_id: What the service calls the request.
    """

    fields: Mapping[str, Any]
    status: int | None
    audio: HexAudio | None
    url: str | None
    music_bytes: int | None
    duration_s: float | None
    sample_rate_hz: int | None
    channels: int | None
    is_about_all: bool
    trace_id: str


def read_document(
    text: bytes,
    piece: HexAudio | None,
    *,
    http_status: int,
    limits: MusicLimits,
    redacted: Callable[..., str],
) -> Document:
    """
    Read a document.

    Args:
        text: The JSON.
        piece: The audio that was taken out of it.
        http_status: What came with it.
        limits: How large the audio may be.
        redacted: Makes words of the service fit to be shown.

    Raises:
        MusicRefusedError: If it tells of an error.
        MusicProtocolError: If it is not what the service sends.
        NoJsonError: If it is no JSON.
    """
    read = DocumentLimits(max_document_bytes=max(1, limits.max_event_bytes))
    try:
        fields = read_json(text, limits=read)
    except ContractError:  # whose words may end within the key
        raise NoJsonError from None
    if not isinstance(fields, dict):
        raise MusicProtocolError(SERVICE, f"it sent {type(fields).__name__}, expected an object")
    trace = fields.get("trace_id")
    trace_id = redacted(trace, max_characters=_TRACE) if isinstance(trace, str) else ""
    _require_success(_part(fields, "base_resp"), http_status, trace_id, redacted)
    data, extra = _part(fields, "data"), _part(fields, "extra_info")
    audio, url = _audio(data, piece, limits)
    return Document(
        fields=fields,
        status=_whole(data, "status", (1, 2)),
        audio=audio,
        url=url,
        music_bytes=_whole(extra, "music_size"),
        duration_s=_seconds(extra.get("music_duration")),
        sample_rate_hz=_whole(extra, "music_sample_rate"),
        channels=_whole(extra, "music_channel", (1, 2)),
        is_about_all=bool(extra),
        trace_id=trace_id,
    )


def refused(
    code: int | None, words: str, *, http_status: int, trace_id: str, redacted: Callable[..., str]
) -> MusicRefusedError:
    """Say in an error of ours what a code means."""
    kind = MusicRefusedError if code is None else _KINDS.get(code, MusicRefusedError)
    if code is None and http_status in (401, 403):
        kind = MusicKeyError
    problem = redacted(words, max_characters=_WORDS) or "it says nothing"
    return kind(SERVICE, problem, code, http_status, trace_id)


def _require_success(
    base: Mapping[str, Any], http_status: int, trace_id: str, redacted: Callable[..., str]
) -> None:
    code = _whole(base, "status_code", least=-math.inf)
    words = base.get("status_msg")
    if code or (code is None and http_status != 200) or http_status >= 300:
        raise refused(
            code or None,
            words if isinstance(words, str) else "",
            http_status=http_status,
            trace_id=trace_id,
            redacted=redacted,
        )


def _audio(
    data: Mapping[str, Any], piece: HexAudio | None, limits: MusicLimits
) -> tuple[HexAudio | None, str | None]:
    url = data.get("audio_url")
    text = data.get("audio")
    for name, value in (("audio", text), ("audio_url", url)):
        if value is not None and not isinstance(value, str):
            raise MusicProtocolError(
                SERVICE, f"data.{name}: got {type(value).__name__}, expected text"
            )
    if piece is not None:
        return piece, url or None
    if not text:
        return None, url or None
    if text.lower().startswith(("https:", "http:")):
        return None, text
    audio = HexAudio(limits.max_audio_bytes)
    try:
        audio.feed(text.encode("ascii"))
    except UnicodeEncodeError:
        raise MusicProtocolError(SERVICE, "it sent audio that is not in hex") from None
    return audio, url or None


def _part(fields: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = fields.get(name)
    if part is None:
        return {}
    if not isinstance(part, dict):
        raise MusicProtocolError(SERVICE, f"{name}: got {type(part).__name__}, expected an object")
    return part


def _seconds(milliseconds: Any) -> float | None:
    return milliseconds / 1000 if type(milliseconds) is int and milliseconds > 0 else None


def _whole(
    fields: Mapping[str, Any],
    name: str,
    allowed: tuple[int, ...] | None = None,
    *,
    least: float = 0,
) -> int | None:
    value = fields.get(name)
    if value is None:
        return None
    if type(value) is not int or value < least or (allowed is not None and value not in allowed):
        expected = "a whole number" if allowed is None else f"one of {allowed}"
        got = f"{value!r:.40}" if isinstance(value, (bool, int, float)) else type(value).__name__
        raise MusicProtocolError(SERVICE, f"{name}: got {got}, expected {expected}")
    return value
