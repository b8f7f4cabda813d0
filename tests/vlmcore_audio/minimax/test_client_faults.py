"""Tests of what services, resolvers and networks do to the clients of MiniMax, and should not."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterable
from typing import Any

import pytest

from music_cases import (
    ADDRESSES,
    API,
    CDN,
    DONE,
    KEY,
    MP3,
    PLACE,
    WAV,
    Asked,
    Generate,
    ScriptedMiniMax,
    both,
    document,
    event,
    http,
    request,
    routed,
    says,
    stream_head,
    streams,
)
from vlmcore.errors import (
    MusicCancelledError,
    MusicError,
    MusicIncompleteError,
    MusicParametersError,
    MusicProtocolError,
    MusicRefusedError,
)
from vlmcore_audio.containers import Container
from vlmcore_audio.minimax.client import MiniMaxMusic
from vlmcore_audio.minimax.regions import Region
from vlmcore_audio.minimax.wire import Delivery
from vlmcore_audio.music import MusicRequest, Reference

LONG = MusicRequest(prompt="slow bossa nova", reference=Reference(base64="A" * 40_000_000))
TOO_LONG = http(document(None, code=2013, words="too long"), status=413)


@both
def test_a_refusal_is_heard_while_a_recording_is_sent(
    generate: Generate, minimax: ScriptedMiniMax
) -> None:
    """
    Of a service that does not read it and does not hang up: nobody waits for the deadline.
    """
    is_told = threading.Event()

    def refuse(_: Asked) -> Iterable[bytes]:
        yield TOO_LONG
        assert is_told.wait(60)

    minimax.reads_bodies = False
    minimax.scripts = [refuse]
    with pytest.raises(MusicParametersError, match=r"too long \(code 2013, HTTP 413, trace t-1\)"):
        generate(LONG, timeout_s=60)
    is_told.set()


@both
def test_who_hangs_up_on_a_recording_is_told_of_at_once(
    generate: Generate, minimax: ScriptedMiniMax
) -> None:
    """
    In its own words, unless the network has dropped them with the connection.
    """
    minimax.reads_bodies = False
    minimax.scripts = [lambda _: [TOO_LONG]]
    with pytest.raises(MusicError, match=r"too long|hung up"):
        generate(LONG, timeout_s=60)


@both
def test_a_long_recording_is_sent_whole(generate: Generate, minimax: ScriptedMiniMax) -> None:
    """
    In many parts.
    """
    minimax.scripts = [streams(event(WAV.hex()), DONE)]
    asked = MusicRequest(prompt=LONG.prompt, reference=LONG.reference, audio=request().audio)
    assert WAV == generate(asked).encoded
    assert len(minimax.asked[0].document["audio_base64"]) == 40_000_000


@both
@pytest.mark.parametrize(
    "early",
    [
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"HTTP/1.1 102 Processing\r\n\r\n" * 3,
        b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n" + stream_head(),
        stream_head() + b": ping\n\n",
    ],
)
def test_a_service_that_answers_early_is_sent_the_rest_of_a_recording(
    early: bytes, generate: Generate, minimax: ScriptedMiniMax
) -> None:
    """
    With a word that it goes on, or with the head of its answer, before it reads the request.
    """
    came: list[bytes] = []

    def script(asked: Asked) -> Iterable[bytes]:
        yield early
        came.append(asked.file.read(int(asked.headers["content-length"])))
        yield b"" if b"200 OK" in early else stream_head()
        yield event(WAV.hex()) + DONE

    minimax.reads_bodies = False
    minimax.scripts = [script]
    asked = MusicRequest(prompt=LONG.prompt, reference=LONG.reference, audio=request().audio)
    assert WAV == generate(asked, timeout_s=10).encoded
    assert b'"}' == came[0][-2:]


class Resolver:
    """Gives a host the next list of addresses each time that it is asked for it."""

    def __init__(self, host: str, *answers: list[str]) -> None:
        self.host = host
        self.answers = list(answers)
        self._look_up = socket.getaddrinfo

    def __call__(self, host: Any, port: Any, *args: Any, **kwargs: Any) -> Any:
        if host != self.host or kwargs.get("flags", 0) & socket.AI_NUMERICHOST:
            return self._look_up(host, port, *args, **kwargs)
        stream = (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "")
        return [(*stream, (address, port)) for address in self.answers.pop(0)]


@both
def test_a_name_that_leads_elsewhere_when_it_is_asked_again_is_asked_once(
    generate: Generate, minimax: ScriptedMiniMax, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    The address that was checked is the one that is dialled.
    """
    resolver = Resolver(CDN, [ADDRESSES[CDN]], ["127.0.0.1"], ["127.0.0.1"])
    monkeypatch.setattr("socket.getaddrinfo", resolver)
    minimax.scripts = [says(document(PLACE)), says(WAV)]
    assert WAV == generate(delivery=Delivery.URL).encoded
    assert [["127.0.0.1"], ["127.0.0.1"]] == resolver.answers


@both
def test_a_redirect_is_asked_for_its_address_anew(
    generate: Generate, minimax: ScriptedMiniMax, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    To the same host too, whose name may lead into a network in here by then.
    """
    monkeypatch.setattr("socket.getaddrinfo", Resolver(CDN, [ADDRESSES[CDN]], ["10.0.0.5"]))
    minimax.scripts = [says(document(PLACE)), says(b"", status=302, more="location: /a\r\n")]
    with pytest.raises(MusicProtocolError, match="private network"):
        generate(delivery=Delivery.URL)
    assert len(minimax.asked) == 2


@both
@pytest.mark.parametrize("inside", ["10.0.0.5", "127.0.0.1", "::1", "fe80::1%1", "64:ff9b::a00:5"])
def test_a_name_with_one_address_in_a_private_network_is_not_dialled(
    inside: str, generate: Generate, minimax: ScriptedMiniMax, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Not even where the first of its addresses is public.
    """
    monkeypatch.setattr("socket.getaddrinfo", Resolver(CDN, [ADDRESSES[CDN], inside]))
    minimax.scripts = [says(document(PLACE))]
    with pytest.raises(MusicProtocolError, match="private network"):
        generate(delivery=Delivery.URL)
    assert len(minimax.asked) == 1


@both
@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_the_service_itself_is_not_followed_elsewhere(
    status: int, generate: Generate, minimax: ScriptedMiniMax
) -> None:
    """
    The key would go with the request.
    """
    minimax.scripts = [says(b"", status=status, more=f"location: https://{CDN}/v1\r\n")]
    with pytest.raises(MusicRefusedError, match=f"HTTP {status}"):
        generate()
    assert [API] == [asked.headers["host"] for asked in minimax.asked]


@both
@pytest.mark.parametrize(
    ("region", "host"),
    [(Region.GLOBAL_EN, "api.minimax.io"), (Region.CN_ZH, "api.minimaxi.com")],
)
def test_the_key_goes_to_the_host_of_its_region(
    region: Region, host: str, generate: Generate, minimax: ScriptedMiniMax
) -> None:
    """
    As a bearer token, and to no other.
    """
    minimax.scripts = [streams(event(WAV.hex()), DONE)]
    generate(region=region)
    (asked,) = minimax.asked
    assert (host, f"Bearer {KEY}") == (asked.headers["host"], asked.headers["authorization"])


HALF = 2 * (len(MP3) // 2)
TOLD = {"extra_info": {"music_size": len(MP3)}}
ALL_EVENTS = (event(MP3.hex()[:HALF], status=1), event(MP3.hex()[HALF:], **TOLD))
ALL_AT_ONCE = (document(MP3.hex(), **TOLD),)


def chunks(kind: str, *parts: bytes) -> bytes:
    """Write an answer in chunks without the last one, which says that it is whole."""
    head = f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n"
    return head.encode() + b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)


@both
@pytest.mark.parametrize("way", ["stream", "json"])
def test_music_that_has_the_size_that_was_told_is_whole_though_the_answer_is_cut(
    way: str, generate: Generate, minimax: ScriptedMiniMax
) -> None:
    """
    In chunks, before the last of them: it is paid for.
    """
    kind, parts = {
        "stream": ("text/event-stream", ALL_EVENTS),
        "json": ("application/json", ALL_AT_ONCE),
    }[way]
    minimax.scripts = [lambda _: [chunks(kind, *parts)]]
    assert MP3 == generate(request(Container.MP3)).encoded
    assert len(minimax.asked) == 1


@both
@pytest.mark.parametrize(
    "answer", [chunks("text/event-stream", *ALL_EVENTS), chunks("application/json", *ALL_AT_ONCE)]
)
def test_music_that_has_the_size_that_was_told_is_whole_though_the_answer_goes_on(
    answer: bytes, generate: Generate, minimax: ScriptedMiniMax
) -> None:
    """
    With words that say nothing, until the deadline or before it.
    """

    def script(_: Asked) -> Iterable[bytes]:
        yield answer
        ping = b": ping\n\n" if b"event-stream" in answer else b"  \r\n"
        while not minimax.is_left.wait(0.01):
            yield b"%x\r\n%s\r\n" % (len(ping), ping)

    minimax.scripts = [script]
    assert MP3 == generate(request(Container.MP3), timeout_s=1.0).encoded


@both
@pytest.mark.parametrize(
    "parts",
    [
        ALL_EVENTS[:1],
        (ALL_EVENTS[0], event(MP3.hex()[HALF:-2], **TOLD)),
        (ALL_EVENTS[0], event(MP3.hex()[HALF:])),
        (event(MP3.hex(), status=1, **TOLD),),
    ],
)
def test_music_of_another_size_than_was_told_is_not_whole_where_the_answer_is_cut(
    parts: tuple[bytes, ...], generate: Generate, minimax: ScriptedMiniMax
) -> None:
    """
    Nor where none is told, or where the last of it did not come.
    """
    minimax.scripts = [lambda _: [chunks("text/event-stream", *parts)]]
    with pytest.raises(MusicIncompleteError):
        generate(request(Container.MP3))


@pytest.mark.usefixtures("minimax")
def test_a_call_is_cancelled_while_nobody_answers_in_tls() -> None:
    """
    From another thread, before anything was asked.
    """
    errors: list[MusicError] = []
    music = MiniMaxMusic(timeout_s=60.0)

    def work() -> None:
        try:
            music.generate(request())
        except MusicError as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    with socket.create_server(("127.0.0.1", 0)) as silent, routed(silent.getsockname()[1]):
        thread.start()
        peer, _ = silent.accept()
        with peer:
            assert peer.recv(1)
            music.cancel()
            thread.join(20)
            assert not thread.is_alive()
    assert [MusicCancelledError] == [type(error) for error in errors]
