"""Tests of how music is fetched that is paid for and lies at an address."""

from __future__ import annotations

import pickle
import socket
import threading
from collections.abc import Iterable
from typing import Any

import attrs
import pytest

from music_cases import (
    AT_ONCE,
    CDN,
    MP3,
    PLACE,
    WAV,
    Asked,
    Generate,
    Script,
    ScriptedMiniMax,
    blocking,
    both,
    document,
    encoded,
    event,
    http,
    request,
    says,
    stream_head,
    tone,
)
from vlmcore.errors import (
    MusicCancelledError,
    MusicDownloadError,
    MusicProtocolError,
)
from vlmcore_audio.containers import Container
from vlmcore_audio.minimax.client import MiniMaxMusic
from vlmcore_audio.minimax.wire import Delivery

SIGNED = f"https://{CDN}/song.wav?Expires=1796090400&Signature=s%2Bx"
FAILURES: dict[str, Any] = {
    "nothing": lambda _: [],
    "half a head": lambda _: [b"HTTP/1.1 2"],
    "a short body": lambda _: [http(WAV)[:-100]],
    "half a file": says(WAV[:-100]),
    "no file": says(b""),
    "a page": says(b"<html>busy</html>", kind="text/html"),
    "another protocol": lambda _: [b"SSH-2.0-OpenSSH\r\n\r\n"],
    **{f"HTTP {status}": says(b"", status=status) for status in (403, 503)},
}


@both
@pytest.mark.parametrize("failure", FAILURES)
def test_music_that_did_not_come_is_fetched_again_and_not_made_again(
    failure: str, generate: Generate, minimax: ScriptedMiniMax
) -> None:
    """
    It is paid for: to fetch it costs nothing, and to make it would cost again.
    """
    minimax.scripts = [says(document(PLACE)), *[FAILURES[failure]] * 3, says(WAV)]
    assert WAV == generate(delivery=Delivery.URL).encoded
    assert ["POST", "GET", "GET", "GET", "GET"] == [asked.method for asked in minimax.asked]
    assert all("authorization" not in asked.headers for asked in minimax.asked[1:])


@both
@pytest.mark.parametrize("failure", FAILURES)
def test_music_that_does_not_come_can_be_fetched_later(
    failure: str, generate: Generate, minimax: ScriptedMiniMax
) -> None:
    """
    The error has its address, which no text shows, and until when it is good.
    """
    minimax.scripts = [says(document(SIGNED)), FAILURES[failure]]
    with pytest.raises(MusicDownloadError, match="good until 2026-12-01 02:00 UTC") as caught:
        generate(delivery=Delivery.URL, retries=attrs.evolve(AT_ONCE, times=2))
    error = caught.value
    assert (SIGNED, 1_796_090_400) == (error.url, error.expires_at_s)
    assert "s%2Bx" not in f"{error} {error!r} {error.args}"
    assert error.__cause__ is error.__context__ is None
    assert SIGNED == pickle.loads(pickle.dumps(error)).url
    assert 1 + 3 == len(minimax.asked)


@both
def test_music_whose_size_is_not_the_one_that_was_told_is_not_taken(
    generate: Generate, minimax: ScriptedMiniMax
) -> None:
    """
    An MP3 that was cut without a word of its length is a shorter song to every player.
    """
    place = f"https://{CDN}/song.mp3"
    told = document(place, extra_info={"music_size": len(MP3)})
    cut = b"HTTP/1.1 200 OK\r\n\r\n" + MP3[:-1000]
    minimax.scripts = [says(told), lambda _: [cut], says(MP3)]
    assert MP3 == generate(request(Container.MP3), delivery=Delivery.URL).encoded
    minimax.scripts = [says(told), lambda _: [cut]]
    with pytest.raises(MusicDownloadError, match=f"{len(MP3) - 1000:,} bytes.*{len(MP3):,}"):
        generate(request(Container.MP3), delivery=Delivery.URL)


@both
def test_a_host_that_nothing_listens_on_is_dialled_again(
    generate: Generate, minimax: ScriptedMiniMax, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    As one is that is not known to the resolver for a while.
    """
    look_up, failures = socket.getaddrinfo, [1, 1]

    def found(host: Any, *args: Any, **kwargs: Any) -> Any:
        if host == CDN and failures:
            failures.pop()
            raise socket.gaierror(socket.EAI_AGAIN, "try again")
        return look_up(host, *args, **kwargs)

    monkeypatch.setattr("socket.getaddrinfo", found)
    minimax.scripts = [says(document(PLACE)), says(WAV)]
    assert WAV == generate(delivery=Delivery.URL).encoded
    failures += [1] * 9
    minimax.scripts = [says(document(PLACE))]
    with pytest.raises(MusicDownloadError, match="its name is not known to the resolver"):
        generate(delivery=Delivery.URL)


@both
def test_each_time_the_address_is_checked_anew(
    generate: Generate, minimax: ScriptedMiniMax
) -> None:
    """
    A redirect into a network in here is no reason to try again, nor to give the address away.
    """
    inside = says(b"", status=302, more="location: https://10.0.0.5/a\r\n")
    minimax.scripts = [says(document(PLACE)), says(b"", status=503), inside, says(WAV)]
    with pytest.raises(MusicProtocolError, match="private network"):
        generate(delivery=Delivery.URL)
    assert 3 == len(minimax.asked)


@both
def test_a_file_that_drips_ends_at_the_deadline_and_can_be_fetched_later(
    generate: Generate, minimax: ScriptedMiniMax
) -> None:
    """
    One deadline for the whole call, whatever is tried again within it.
    """
    end = threading.Event()

    def drip(_: Asked) -> Iterable[bytes]:
        yield http(WAV)[:-1000]
        end.wait(20)

    minimax.scripts = [says(document(SIGNED)), says(b"", status=503), drip]
    with pytest.raises(MusicDownloadError, match="no answer within 1 s") as caught:
        generate(delivery=Delivery.URL, timeout_s=1.0)
    end.set()
    assert SIGNED == caught.value.url
    assert 3 == len(minimax.asked)


def test_a_wait_before_it_is_fetched_again_can_be_cancelled(minimax: ScriptedMiniMax) -> None:
    """
    Who ends a call is told that it ended, and nothing else is dialled.
    """
    minimax.scripts = [says(document(PLACE)), says(b"", status=503)]
    with MiniMaxMusic(delivery=Delivery.URL) as music, pytest.raises(MusicCancelledError):
        music.generate(
            request(), on_progress=lambda each: music.cancel() if each.phase == "waiting" else None
        )
    assert 2 == len(minimax.asked)


@pytest.mark.parametrize(
    ("query", "expires_at_s"),
    [
        ("", None),
        ("?expires=1796090400", 1_796_090_400),
        ("?a=b&EXPIRES=1796090400&c=d", 1_796_090_400),
        ("?Expires=1796090400x", None),
        ("?Expires=86400", None),
        ("?Expires=-1796090400", None),
        ("?notexpires=1796090400", None),
        ("?Expires=99999999999", 99_999_999_999),
        ("?Expires=999999999999", None),
    ],
)
def test_an_address_may_tell_until_when_it_is_good(
    query: str, expires_at_s: int | None, minimax: ScriptedMiniMax
) -> None:
    """
    In seconds since 1970; a number that is none of these says nothing.
    """
    minimax.scripts = [says(document(f"https://{CDN}/a{query}")), says(b"", status=403)]
    with pytest.raises(MusicDownloadError) as caught:
        blocking(delivery=Delivery.URL, retries=attrs.evolve(AT_ONCE, times=0))
    assert expires_at_s == caught.value.expires_at_s
    assert ("good until" in str(caught.value)) == (expires_at_s is not None)


OPEN = b"HTTP/1.1 200 OK\r\ncontent-type: audio/mpeg\r\nconnection: close\r\n\r\n"


def cut(*parts: bytes) -> Script:
    """Send *parts*, and end the connection without a word of TLS that it ends."""

    def script(_: Asked) -> Iterable[bytes]:
        yield from parts
        raise ConnectionAbortedError

    return script


@both
def test_a_song_without_a_length_whose_connection_is_cut_is_fetched_again(
    generate: Generate, minimax: ScriptedMiniMax
) -> None:
    """
    Only the end of the connection ends it: an end that TLS does not tell may be anybody's.
    """
    song = encoded("MP3", tone(5.0))
    minimax.scripts = [says(document(PLACE)), cut(OPEN, song[:30_000]), lambda _: [OPEN, song]]
    clip = generate(request(Container.MP3), delivery=Delivery.URL)
    assert song == clip.encoded
    assert len(minimax.asked) == 3


@both
def test_a_song_without_a_length_that_is_always_cut_can_be_fetched_later(
    generate: Generate, minimax: ScriptedMiniMax
) -> None:
    """
    It is told as a download that failed, and not taken for a shorter song.
    """
    minimax.scripts = [says(document(PLACE)), cut(OPEN, encoded("MP3", tone(5.0))[:30_000])]
    with pytest.raises(MusicDownloadError, match="hung up without a word of TLS") as error:
        generate(request(Container.MP3), delivery=Delivery.URL)
    assert PLACE == error.value.url


@both
def test_a_song_of_the_size_that_was_told_is_whole_though_its_connection_is_cut(
    generate: Generate, minimax: ScriptedMiniMax
) -> None:
    """
    Nothing is missing, so nothing is fetched again.
    """
    song = encoded("MP3")
    told = document(PLACE, extra_info={"music_size": len(song)})
    minimax.scripts = [says(told), cut(OPEN, song)]
    assert song == generate(request(Container.MP3), delivery=Delivery.URL).encoded
    assert len(minimax.asked) == 2


@both
def test_an_answer_whose_last_event_came_is_whole_though_its_connection_is_cut(
    generate: Generate, minimax: ScriptedMiniMax
) -> None:
    """
    Of the service itself: what it says of the audio tells whether it is whole.
    """
    song = encoded("MP3")
    minimax.scripts = [cut(stream_head(), event(song.hex()))]
    assert song == generate(request(Container.MP3)).encoded
