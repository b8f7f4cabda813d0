"""Tests of what reads the answers of MiniMax: hex, events, documents, and what is joined."""

from __future__ import annotations

import contextlib
import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from music_cases import DONE, WAV, document, event
from vlmcore._net.events import EventReader
from vlmcore._net.http_parts import Head
from vlmcore.errors import (
    MusicBalanceError,
    MusicBlockedError,
    MusicBusyError,
    MusicError,
    MusicIncompleteError,
    MusicKeyError,
    MusicParametersError,
    MusicProtocolError,
    MusicRateLimitError,
    MusicRefusedError,
)
from vlmcore.limits import MusicLimits
from vlmcore.secrets import redact
from vlmcore_audio.containers import Container
from vlmcore_audio.minimax._reading import AnswerReader

STREAM = Head(status=200, headers={"content-type": "text/event-stream; charset=utf-8"})
JSON = Head(status=200, headers={"content-type": "application/json"})
LIMITS = MusicLimits()


def read(
    *parts: bytes,
    head: Head = STREAM,
    container: Container = Container.MP3,
    limits: MusicLimits = LIMITS,
) -> AnswerReader:
    reader = AnswerReader(container, limits=limits, redacted=redact)
    reader.take(head)
    for part in parts:
        reader.take(part)
    reader.finish()
    return reader


def joined(*parts: bytes, **kwargs: Any) -> str:
    return read(*parts, **kwargs).assembly.whole().hex()


def begun(*fragments: str) -> list[bytes]:
    return [event(fragment, status=1) for fragment in fragments]


@pytest.mark.parametrize(
    ("fragments", "whole"),
    [
        (["0000", "0000", "0000"], "000000000000"),
        (["fffb", "ff"], "fffbff"),
        (["00", "0011"], "000011"),
    ],
)
def test_fragments_are_joined_whatever_is_in_them(fragments: list[str], whole: str) -> None:
    """
    Silence repeats itself, and a fragment may begin as another did: nothing is dropped.
    """
    assert whole == joined(*begun(*fragments), DONE)


def test_the_last_event_is_the_whole_file_where_it_begins_as_the_fragments() -> None:
    """
    It repeats them, and is not appended.
    """
    assert "fffb0102" == joined(*begun("fffb", "01"), event("fffb0102"))


def test_the_last_event_is_the_whole_file_with_another_header() -> None:
    """
    With ID3 before it, where the fragments began with a frame: not double length.
    """
    assert "49443304fffb01" == joined(*begun("fffb", "01"), event("49443304fffb01"))


def test_the_last_event_is_the_whole_file_where_it_has_the_size_that_is_told() -> None:
    """
    Whatever it begins with.
    """
    told = event("0a0b0c0d", extra_info={"music_size": 4})
    assert "0a0b0c0d" == joined(*begun("0102", "03"), told, container=Container.PCM)


@pytest.mark.parametrize("more", [{}, {"extra_info": {"music_size": 5}}])
def test_the_last_event_is_the_last_fragment_otherwise(more: dict[str, Any]) -> None:
    """
    And is appended.
    """
    assert "fffb010203" == joined(*begun("fffb", "01"), event("0203", **more))


def test_a_last_event_that_begins_with_a_frame_is_the_end_of_a_longer_song() -> None:
    """
    A song is cut between its frames, too: the end of it is not all of it.
    """
    assert "fffb010203fffb04" == joined(*begun("fffb01", "0203"), event("fffb04"))


@pytest.mark.parametrize(
    ("container", "last"),
    [(Container.MP3, "49443304"), (Container.WAV, WAV[:44].hex())],
)
def test_a_last_event_that_is_a_shorter_file_is_not_the_song(
    container: Container, last: str
) -> None:
    """
    With a head of its own it is no end either.
    """
    first = (b"ID3" + bytes(9) if container is Container.MP3 else WAV[:90]).hex()
    with pytest.raises(MusicProtocolError, match="expected at least the"):
        joined(*begun(first), event(last), container=container)


@pytest.mark.parametrize(("size", "kind"), [(9, MusicIncompleteError), (3, MusicProtocolError)])
def test_a_size_that_is_not_that_of_the_audio_is_an_error(size: int, kind: type) -> None:
    """
    Too little and too much: neither is the music that was paid for.
    """
    with pytest.raises(kind):
        joined(*begun("fffb", "0102"), event(None, extra_info={"music_size": size}))


def test_half_a_byte_waits_for_the_next_fragment() -> None:
    """
    Hex is cut anywhere.
    """
    assert "fffb0102" == joined(*begun("fff", "b0", "102"), DONE)
    with pytest.raises(MusicIncompleteError, match="within a byte"):
        joined(*begun("fff"), DONE)


@pytest.mark.parametrize("end", [DONE, event(None, extra_info={"music_channel": 2})])
def test_a_last_event_without_data_ends_audio_that_is_whole(end: bytes) -> None:
    """
    ``data: null`` with code 0: [DONE] or extra_info says that it is.
    """
    assert "fffb" == joined(*begun("fffb"), event(None), end)


def test_a_stream_that_ends_without_a_word_is_incomplete() -> None:
    """
    How much came is told.
    """
    with pytest.raises(MusicIncompleteError) as error:
        joined(*begun("fffb", "01"), event(None))
    assert error.value.received_bytes == 3


def test_a_stream_without_audio_is_incomplete() -> None:
    """
    An end is not enough.
    """
    with pytest.raises(MusicIncompleteError, match="no audio"):
        joined(DONE)


def test_audio_after_the_last_is_an_error() -> None:
    """
    Nobody knows where it belongs.
    """
    with pytest.raises(MusicProtocolError, match="after the last"):
        joined(*begun("fffb"), event("fffb01"), event("02"))


def test_comments_names_and_data_in_two_lines_are_events_as_the_standard_has_them() -> None:
    """
    ``: ping``, ``id:``, ``retry:`` or two lines of data are no "invalid JSON".
    """
    text = document("fffb", status=1)
    cut = text.index(b", ") + 1
    parts = [
        b": ping\n\nid: 7\nretry: 10\nevent: audio\ndata: ",
        text[:cut],
        b"\ndata:",
        text[cut:],
    ]
    assert "fffb" == joined(*parts, b"\n\n: ping\r\n\r\n", DONE)


@given(data=st.data())
def test_a_stream_is_read_alike_however_it_is_cut(data: st.DataObject) -> None:
    """
    Bytes come in any portions; lines end with either sign, or both; texts are long or short.
    """
    limits = MusicLimits(max_url_characters=data.draw(st.integers(1, 20)))
    text = b"\xef\xbb\xbf" + b"".join([*begun("fffb0", "1aB", "02030405060708090a"), b": x\n\n"])
    text += event("fffb01ab02030405060708090a", extra_info={"music_size": 13}) + DONE
    text = text.replace(b"\n", data.draw(st.sampled_from([b"\n", b"\r\n", b"\r"])))
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=20)))
    parts = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert "fffb01ab02030405060708090a" == joined(*parts, limits=limits)


@given(text=st.binary(max_size=300))
def test_any_bytes_give_audio_or_an_error_of_ours(text: bytes) -> None:
    """
    Whatever a service sends.
    """
    for head in (STREAM, JSON):
        for given_text in (text, b"data: " + text, b'{"data": {"audio": "' + text):
            with contextlib.suppress(MusicError):
                read(given_text, head=head, limits=MusicLimits(max_url_characters=8))


def test_time_grows_with_what_comes_and_not_with_its_square() -> None:
    """
    Eight times as many fragments take about eight times as long, and not sixty-four times.
    """

    def seconds(count: int) -> float:
        parts = begun(*["00" * 64] * count)
        began_s = time.process_time()
        joined(*parts, DONE)
        return time.process_time() - began_s

    seconds(500)
    assert seconds(8000) < 24 * max(seconds(1000), 0.01)


def test_more_audio_than_the_limit_is_refused_as_it_comes() -> None:
    """
    In hex and in a stream too, and not only in a download; before it is all there.
    """
    limits = MusicLimits(max_audio_bytes=100)
    for parts in (begun("00" * 60, "00" * 60), begun("00" * 9000)):
        with pytest.raises(MusicProtocolError, match="max_audio_bytes, 100"):
            read(*parts, limits=limits)
    with pytest.raises(MusicProtocolError, match="max_audio_bytes, 100"):
        read(document("00" * 9000)[:9000], head=JSON, limits=limits)


def test_an_answer_that_never_ends_is_refused() -> None:
    """
    Of pings, of one line, of one document.
    """
    limits = MusicLimits(max_answer_bytes=2000, max_event_bytes=1000)
    with pytest.raises(MusicProtocolError, match="max_answer_bytes"):
        read(*[b": ping\n\n"] * 300, limits=limits)
    for head in (STREAM, JSON):
        with pytest.raises(MusicProtocolError, match="max_event_bytes"):
            read(*[b'"data: ' + b"x" * 100] * 15, head=head, limits=limits)


@pytest.mark.parametrize("audio", ["zz", "00 00", "0x", "é"])
def test_audio_that_is_not_hex_is_an_error(audio: str) -> None:
    """
    Blanks too, which Python's own reader takes.
    """
    for text in (audio, "00" * 9000 + audio):
        with pytest.raises(MusicProtocolError, match="not in hex"):
            read(json.dumps({"data": {"audio": text}}, ensure_ascii=False).encode(), head=JSON)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (1000, MusicBusyError),
        (1001, MusicBusyError),
        (1024, MusicBusyError),
        (1002, MusicRateLimitError),
        (1004, MusicKeyError),
        (2049, MusicKeyError),
        (1008, MusicBalanceError),
        (1026, MusicBlockedError),
        (2013, MusicParametersError),
        (9999, MusicRefusedError),
    ],
)
@pytest.mark.parametrize("status", [200, 400, 500])
def test_a_code_is_an_error_of_its_own(code: int, kind: type, status: int) -> None:
    """
    Read before the status of HTTP, which would hide it; with what support asks for.
    """
    head = Head(status=status, headers={})
    with pytest.raises(MusicRefusedError) as error:
        read(document(None, code=code, words="no"), head=head)
    assert (kind, code, status, "t-1") == (
        type(error.value),
        error.value.code,
        error.value.status,
        error.value.trace_id,
    )
    assert "trace t-1" in str(error.value)


def test_an_error_in_the_middle_of_a_stream_is_an_error() -> None:
    """
    What came before is not the music.
    """
    with pytest.raises(MusicBlockedError):
        joined(*begun("fffb"), event(None, code=1026), DONE)


@pytest.mark.parametrize("body", [b"", b"<h1>Bad gateway</h1>", b"{}"])
def test_a_status_without_a_code_is_an_error_with_its_words(body: bytes) -> None:
    """
    Whoever stands before the service may have answered.
    """
    with pytest.raises(MusicRefusedError) as error:
        read(body, head=Head(status=502, headers={"trace-id": "t-9"}))
    assert (None, 502) == (error.value.code, error.value.status)
    assert ("Bad gateway" in str(error.value)) == (b"Bad" in body)


@pytest.mark.parametrize(
    "fields",
    [
        {"base_resp": {"status_code": True}},
        {"base_resp": {"status_code": "0"}},
        {"base_resp": {"status_code": 0.0}},
        {"base_resp": []},
        {"extra_info": {"music_channel": 1.9}},
        {"extra_info": {"music_channel": 3}},
        {"extra_info": {"music_size": -1}},
        {"extra_info": {"music_sample_rate": "44100"}},
        {"data": {"status": 3}},
        {"data": {"status": True}},
        {"data": {"audio": 7}},
        {"data": "fffb"},
    ],
)
def test_what_is_no_whole_number_is_not_made_one(fields: dict[str, Any]) -> None:
    """
    True is not 1, and 1.9 channels are not 1.
    """
    with pytest.raises(MusicProtocolError):
        read(json.dumps(fields).encode(), head=JSON)


@pytest.mark.parametrize(
    "text", [b"[]", b"7", b"{", b'{"a": NaN}', b'{"a": 1, "a": 2}', b"[" * 5000, b"\xff"]
)
def test_what_is_no_json_object_is_an_error(text: bytes) -> None:
    """
    Nor what only looks like one.
    """
    for head, sent in ((JSON, text), (STREAM, b"data: " + text + b"\n\n")):
        with pytest.raises(MusicProtocolError):
            read(sent, head=head)


@pytest.mark.parametrize("data", [{"audio": "https://a/b"}, {"audio_url": "https://a/b"}])
def test_an_address_may_stand_in_either_place(data: dict[str, str]) -> None:
    """
    The vendor has both.
    """
    assert "https://a/b" == read(json.dumps({"data": data}).encode(), head=JSON).url


def test_a_quote_in_a_text_does_not_make_it_audio() -> None:
    """
    It is escaped there, so what follows is no hex.
    """
    words = 'say "audio": "' + "x" * 20_000
    document_read = read(json.dumps({"note": words}).encode(), head=JSON).document
    assert document_read is not None
    assert words == document_read.fields["note"]


def test_an_event_that_the_end_cuts_is_read_if_it_is_whole() -> None:
    """
    Not every service writes the last empty line.
    """
    assert [b"a\nb"] == [*EventReader(max_bytes=99).feed(b"data: a\ndata: b\n\ndata: c")]
    assert "fffb" == joined(event("fffb").rstrip())


@pytest.mark.parametrize("status", [200, 401, 429])
@pytest.mark.parametrize("at", [1, 20, 1000])
def test_an_error_in_json_that_is_called_a_stream_keeps_its_code(status: int, at: int) -> None:
    """
    A stream was asked for, and so its head says, before anybody knows that there is none.
    """
    head = Head(status=status, headers=STREAM.headers)
    text = b" \n" + document(None, code=1004, words="no such key")
    with pytest.raises(MusicKeyError, match=r"no such key \(code 1004"):
        read(text[:at], text[at:], head=head)


def test_a_failure_that_is_called_a_stream_is_a_failure() -> None:
    """
    Without an event, and without a word.
    """
    with pytest.raises(MusicRefusedError, match="HTTP 503"):
        read(head=Head(status=503, headers=STREAM.headers))


@pytest.mark.parametrize("kind", ["", "text/plain", "application/json", "application/octet-stream"])
@pytest.mark.parametrize("before", [b"", b": ping\n\n", b"\n\nid: 1\n", b"\xef\xbb\xbfevent: x\n"])
@pytest.mark.parametrize("at", [1, 4, 1000])
def test_a_stream_that_is_called_something_else_is_read_all_the_same(
    kind: str, before: bytes, at: int
) -> None:
    """
    It is paid for, and how it begins tells what it is.
    """
    head = Head(status=200, headers={"content-type": kind})
    text = before + b"".join([*begun("fffb", "01"), event("fffb0102"), DONE])
    assert "fffb0102" == joined(text[:at], text[at:], head=head)


@pytest.mark.parametrize("head", [STREAM, JSON, Head(status=400, headers={})])
def test_a_code_below_zero_keeps_the_words_of_the_service(head: Head) -> None:
    """
    The vendor does not list it, and says what is wrong all the same.
    """
    with pytest.raises(MusicRefusedError, match=r"out of order \(code -1"):
        read(document(None, code=-1, words="out of order"), head=head)


def test_a_whole_answer_need_not_say_that_it_is_the_last() -> None:
    """
    There is no other; one that says that the music is still being made is not whole.
    """
    assert "fffb" == joined(document("fffb", status=None), head=JSON)
    with pytest.raises(MusicIncompleteError):
        joined(document("fffb", status=1), head=JSON)


def test_fragments_that_differ_within_a_byte_are_not_how_the_last_event_begins() -> None:
    """
    Half a byte is compared too.
    """
    assert "ffab0c" == joined(*begun("ffa"), event("b0c"))
    assert "ffab0c" == joined(*begun("ffa"), event("FFAB0C"))
    with pytest.raises(MusicIncompleteError, match="within a byte"):
        joined(*begun("ffa"), event("ffb0"), container=Container.PCM)
