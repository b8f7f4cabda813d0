"""Tests of answers that end too early, at each of their bytes, without sockets: there are many."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import attrs
import pytest

from music_cases import DONE, TERMS, document, encoded, event, http, stream_head, tone
from vlmcore._net.steps import Receive
from vlmcore.errors import MusicError, MusicIncompleteError, MusicTimeoutError
from vlmcore.limits import MusicLimits
from vlmcore_audio.clips import MusicClip
from vlmcore_audio.containers import Container
from vlmcore_audio.minimax._calls import music_call
from vlmcore_audio.music import AudioFormat

PCM = encoded("PCM", tone(0.0003))
HALF = len(PCM) // 2
FIRST = event(PCM[:HALF].hex(), status=1)
LAST = event(PCM[HALF:].hex())
TOLD = event(PCM[HALF:].hex(), extra_info={"music_size": len(PCM)})
JSON_HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 9999\r\n\r\n"
LOST = [None, ConnectionResetError]


def chunked(body: bytes) -> bytes:
    head = (
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    )
    return head + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)


def answered(text: bytes, lost: type[OSError] | None, limits: MusicLimits | None = None) -> bytes:
    """Ask, get *text*, and then an end, or the loss of the connection; give the audio."""
    terms = attrs.evolve(TERMS, limits=limits or TERMS.limits)
    steps: Generator[Any, Any, MusicClip]
    steps = music_call(terms, b"{}", AudioFormat(container=Container.PCM))
    parts = [text]
    try:
        step = next(steps)
        while True:
            if not isinstance(step, Receive):
                step = next(steps)
            elif parts:
                step = steps.send(parts.pop())
            else:
                step = steps.send(b"") if lost is None else steps.throw(lost())
    except StopIteration as end:
        clip: MusicClip = end.value
        return clip.encoded
    except Exception as error:  # noqa: BLE001 - all of them, as in the clients
        raise terms.translated(error, is_asked=True, is_cancelled=False) from None


@pytest.mark.parametrize("lost", LOST)
@pytest.mark.parametrize(
    "answer",
    [
        stream_head() + FIRST + LAST + DONE,
        stream_head() + FIRST + TOLD + DONE,
        stream_head() + FIRST + event(PCM.hex()),
        chunked(b": ping\n\n" + FIRST + TOLD + DONE),
        http(document(PCM.hex())),
        http(document(PCM.hex(), extra_info={"music_size": len(PCM)})),
    ],
)
def test_an_answer_that_is_cut_anywhere_gives_the_music_or_an_error(
    answer: bytes, lost: type[OSError] | None
) -> None:
    """
    Never a shorter song.
    """
    assert answered(answer, None) == PCM
    for at in range(len(answer)):
        try:
            audio = answered(answer[:at], lost)
        except MusicError:
            continue
        assert audio == PCM


@pytest.mark.parametrize("lost", LOST)
@pytest.mark.parametrize("last", [LAST, TOLD])
def test_a_stream_that_is_cut_within_an_event_tells_how_much_came_before(
    last: bytes, lost: type[OSError] | None
) -> None:
    """
    Half an event is no event that nobody can read.
    """
    begin = stream_head() + FIRST
    for at in range(last.rindex(b"}")):
        with pytest.raises(MusicIncompleteError) as error:
            answered(begin + last[:at], lost)
        assert error.value.received_bytes == HALF


@pytest.mark.parametrize("lost", LOST)
@pytest.mark.parametrize("begin", [stream_head() + b"data: ", JSON_HEAD])
def test_a_long_text_of_audio_that_is_cut_tells_how_much_of_it_came(
    begin: bytes, lost: type[OSError] | None
) -> None:
    """
    Within it, at its end, and behind it.
    """
    text = document(PCM.hex())
    start = text.index(PCM.hex().encode())
    end = start + 2 * len(PCM)
    limits = MusicLimits(max_url_characters=8)
    for at in (end - 2, end, end + 1, end + 2, len(text) - 1):
        with pytest.raises(MusicIncompleteError) as error:
            answered(begin + text[:at], lost, limits)
        assert error.value.received_bytes == (min(at, end) - start) // 2


def test_what_ends_at_the_deadline_is_late_and_not_cut() -> None:
    """
    Whatever came of it.
    """
    with pytest.raises(MusicTimeoutError):
        answered(stream_head() + FIRST, TimeoutError)
