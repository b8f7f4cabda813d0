"""Tests of the clients of MiniMax, blocking and awaited, against one that does what a test says."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from music_cases import (
    AT_ONCE,
    CDN,
    DONE,
    KEY,
    MP3,
    PLACE,
    TERMS,
    WAV,
    Asked,
    Generate,
    ScriptedMiniMax,
    blocking,
    both,
    document,
    encoded,
    event,
    request,
    says,
    stream_head,
    streams,
    tone,
)
from vlmcore.cli import main
from vlmcore.errors import (
    ContractError,
    MusicBlockedError,
    MusicCancelledError,
    MusicDownloadError,
    MusicError,
    MusicIncompleteError,
    MusicProtocolError,
    MusicRateLimitError,
    MusicRefusedError,
    MusicTimeoutError,
    MusicUnavailableError,
)
from vlmcore.limits import MusicLimits
from vlmcore.secrets import Secret
from vlmcore_audio.clips import MusicClip
from vlmcore_audio.containers import Container
from vlmcore_audio.minimax._terms import Terms
from vlmcore_audio.minimax.async_client import AsyncMiniMaxMusic
from vlmcore_audio.minimax.client import MiniMaxMusic, Retries
from vlmcore_audio.minimax.covers import CoverFeature
from vlmcore_audio.minimax.regions import Region
from vlmcore_audio.minimax.wire import Delivery
from vlmcore_audio.music import MusicRequest, Reference


@both
@pytest.mark.parametrize("kind", ["WAV", "PCM", "MP3"])
def test_a_stream_is_the_audio_that_was_sent(
    kind: str, generate: Generate, minimax: ScriptedMiniMax
) -> None:
    """
    Byte by byte, with pings between, cut within a byte, and repeated whole at the end.
    """
    sent = encoded(kind)
    digits = sent.hex()
    parts = [event(digits[at : at + 20_001], status=1) for at in range(0, len(digits), 20_001)]
    last = event(digits, extra_info={"music_size": len(sent), "music_channel": 2})
    minimax.scripts = [streams(b": ping\n\n", *parts, b": ping\n\n", last, DONE)]

    clip = generate(request(Container[kind]))

    assert sent == clip.encoded
    assert clip.trace_id == "t-1"
    assert clip.duration_s == pytest.approx(0.5, abs=0.06)
    (asked,) = minimax.asked
    assert f"Bearer {KEY}" == asked.headers["authorization"]
    assert ("POST", "/v1/music_generation") == (asked.method, asked.target)
    assert asked.document["audio_setting"]["format"] == kind.lower()


SONG = encoded("MP3", tone(5.0))
END = SONG.rindex(b"\xff\xfb", 0, len(SONG) - 2000)


@both
@pytest.mark.parametrize("told", [{}, {"music_duration": 5000}, {"music_size": len(SONG)}])
def test_the_end_of_a_song_that_begins_with_a_frame_is_not_taken_for_the_song(
    told: dict[str, int], generate: Generate, minimax: ScriptedMiniMax
) -> None:
    """
    Five seconds are not replaced by the last 2,005 bytes of them.
    """
    last = event(SONG[END:].hex(), extra_info=told)
    minimax.scripts = [streams(event(SONG[:END].hex(), status=1), last, DONE)]
    assert SONG == generate(request(Container.MP3)).encoded


@both
def test_a_song_that_is_not_as_long_as_was_told_is_not_joined_on_a_guess(
    generate: Generate, minimax: ScriptedMiniMax
) -> None:
    """
    What came last may have been all of it: nobody knows.
    """
    last = event(SONG[END:].hex(), extra_info={"music_duration": 100})
    minimax.scripts = [streams(event(SONG[:END].hex(), status=1), last, DONE)]
    with pytest.raises(MusicProtocolError, match=r"lasts 5\.0 s, and the service said 0\.1 s"):
        generate(request(Container.MP3))


@both
def test_an_answer_in_one_piece_is_the_audio(generate: Generate, minimax: ScriptedMiniMax) -> None:
    """
    In hex, without a stream.
    """
    minimax.scripts = [says(document(WAV.hex()))]
    assert WAV == generate(delivery=Delivery.HEX).encoded


@both
def test_audio_at_an_address_is_fetched_without_the_key(
    generate: Generate, minimax: ScriptedMiniMax
) -> None:
    """
    Also over three redirects, absolute and relative; the query goes with it.
    """
    minimax.scripts = [
        says(document(PLACE)),
        says(b"", status=302, more="location: /a?b=c\r\n"),
        says(b"", status=307, more=f"location: //{CDN}/d\r\n"),
        says(b"", status=301, more=f"location: https://{CDN}/e\r\n"),
        says(WAV, kind="audio/wav"),
    ]
    assert WAV == generate(delivery=Delivery.URL).encoded
    assert ["/song.wav?sign=1", "/a?b=c", "/d", "/e"] == [a.target for a in minimax.asked[1:]]
    assert all("authorization" not in asked.headers for asked in minimax.asked[1:])
    assert all(KEY not in repr(asked) for asked in minimax.asked[1:])


@both
@pytest.mark.parametrize(
    "place",
    [
        "https://127.0.0.1/a",
        "https://169.254.169.254/a",
        "https://[::1]/a",
        "https://10.0.0.5/a",
        "https://[::ffff:127.0.0.1]/a",
        "https://2130706433/a",
        "https://localhost/a",
        "https://private.example.net/a",
        "https://metadata.example.net/a",
        f"http://{CDN}/a",
        f"https://{CDN}:8443/a",
        f"https://user:password@{CDN}/a",
    ],
)
@pytest.mark.parametrize("redirects", [0, 1])
def test_no_host_of_a_private_network_is_dialled(
    place: str,
    redirects: int,
    generate: Generate,
    minimax: ScriptedMiniMax,
) -> None:
    """
    By its address or by a name that leads there, at once or behind a redirect.
    """
    if redirects:
        minimax.scripts = [
            says(document(PLACE)),
            says(b"", status=302, more=f"location: {place}\r\n"),
        ]
    else:
        minimax.scripts = [says(document(place))]
    with pytest.raises(MusicProtocolError, match="address"):
        generate(delivery=Delivery.URL)
    assert 1 + redirects == len(minimax.asked)


@both
def test_a_fourth_redirect_is_not_followed(generate: Generate, minimax: ScriptedMiniMax) -> None:
    """
    It may be a circle.
    """
    around = says(b"", status=302, more="location: /again\r\n")
    minimax.scripts = [says(document(PLACE)), around]
    with pytest.raises(MusicDownloadError, match="more than 3 redirects"):
        generate(delivery=Delivery.URL)
    assert len(minimax.asked) == 5


@both
def test_hosts_of_audio_can_be_listed(generate: Generate, minimax: ScriptedMiniMax) -> None:
    """
    With the names below them; others are not dialled.
    """
    minimax.scripts = [says(document(PLACE)), says(WAV)]
    assert generate(delivery=Delivery.URL, download_hosts=("Example.net",)).encoded == WAV
    minimax.scripts = [says(document(PLACE))]
    with pytest.raises(MusicProtocolError, match="none of download_hosts"):
        generate(delivery=Delivery.URL, download_hosts=("ample.net",))
    assert len(minimax.asked) == 3


@both
@pytest.mark.parametrize("sent", [b"<html>no</html>", MP3, WAV[:-10], b""])
def test_a_file_that_is_not_what_was_asked_for_is_an_error(
    sent: bytes, generate: Generate, minimax: ScriptedMiniMax
) -> None:
    """
    By its bytes, whatever its type says: a page, another container, half a file.
    """
    minimax.scripts = [says(document(PLACE)), says(sent, kind="audio/wav")]
    with pytest.raises(MusicDownloadError, match="other audio"):
        generate(delivery=Delivery.URL)


@both
@pytest.mark.parametrize(
    "head", [f"HTTP/1.1 200 OK\r\ncontent-length: {len(WAV)}\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n"]
)
def test_a_file_over_the_limit_is_not_fetched(
    head: str,
    generate: Generate,
    minimax: ScriptedMiniMax,
) -> None:
    """
    By the size that it says, or as it comes.
    """
    minimax.scripts = [says(document(PLACE)), lambda _: [head.encode(), WAV]]
    with pytest.raises(MusicDownloadError, match="max_audio_bytes, 5,000"):
        generate(delivery=Delivery.URL, limits=MusicLimits(max_audio_bytes=5000))


@both
@pytest.mark.parametrize(
    "busy",
    [says(document(None, code=1002)), says(document(None, code=1001)), says(b"", status=503)],
)
def test_a_busy_service_is_asked_again(
    busy: Any, generate: Generate, minimax: ScriptedMiniMax
) -> None:
    """
    Where that is free: it was refused, or the answer is empty.
    """
    minimax.scripts = [busy, busy, streams(event(WAV.hex()), DONE)]
    assert WAV == generate().encoded
    assert len(minimax.asked) == 3


@both
def test_a_busy_service_is_not_asked_for_ever(generate: Generate, minimax: ScriptedMiniMax) -> None:
    """
    The last error is told.
    """
    minimax.scripts = [says(document(None, code=1002, words="slow down"))]
    with pytest.raises(MusicRateLimitError, match=r"slow down \(code 1002, trace t-1\)"):
        generate(retries=attrs.evolve(AT_ONCE, times=2))
    assert len(minimax.asked) == 3


@both
@pytest.mark.parametrize(
    ("script", "kind"),
    [
        (says(document(None, code=1026)), MusicBlockedError),
        (says(document(None, code=1000)), MusicRefusedError),
        (says(b"Bad gateway", status=502), MusicRefusedError),
        (streams(event(MP3.hex(), status=1), event(None, code=1002)), MusicRateLimitError),
        (streams(event(MP3.hex(), status=1)), MusicIncompleteError),
        (streams(b'data: {"data": {"status": 1, "audio": "' + b"00" * 9000), MusicError),
        (lambda _: [stream_head()], MusicIncompleteError),
        (lambda _: [b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n"], MusicProtocolError),
        (lambda _: [], MusicProtocolError),
        (lambda _: [b"SSH-2.0-OpenSSH\r\n\r\n"], MusicProtocolError),
    ],
)
def test_what_may_have_been_charged_is_asked_once(
    script: Any, kind: type, generate: Generate, minimax: ScriptedMiniMax
) -> None:
    """
    Audio had begun, or nobody knows: asking again might cost twice.
    """
    minimax.scripts = [script]
    with pytest.raises(kind):
        generate(request(Container.MP3))
    assert len(minimax.asked) == 1


@both
def test_a_stream_that_is_cut_tells_how_much_came(
    generate: Generate, minimax: ScriptedMiniMax
) -> None:
    """
    Of an answer with a length, before its end.
    """
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 999999\r\n\r\n"
    minimax.scripts = [lambda _: [head, event(MP3.hex(), status=1)]]
    with pytest.raises(MusicIncompleteError) as error:
        generate(request(Container.MP3))
    assert len(MP3) == error.value.received_bytes


class Held:
    """A script that goes on until the client hangs up."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.end = threading.Event()

    def __call__(self, _: Asked) -> Iterable[bytes]:
        yield stream_head() + event("fffb", status=1)
        self.begun.set()
        while not self.end.wait(0.01):
            yield b": ping\n\n"


@both
def test_a_slow_drip_ends_at_the_deadline(generate: Generate, minimax: ScriptedMiniMax) -> None:
    """
    One for the whole call, and not anew for each byte.
    """
    minimax.scripts = [Held()]
    with pytest.raises(MusicTimeoutError) as error:
        generate(timeout_s=1.0)
    assert ("answer", 1.0) == (error.value.wait, error.value.waited_s)
    assert minimax.is_left.wait(10)


def test_a_call_may_take_ten_minutes_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Music takes minutes to be made: both clients wait for 600 s, and so does the command.
    """
    monkeypatch.setenv("MINIMAX_API_KEY", KEY)
    told: list[float] = []

    def refused(terms: Terms, *_: Any) -> Any:
        told.append(terms.timeout_s)
        raise MusicError("MiniMax", "no")

    assert (600.0, 600.0) == (MiniMaxMusic()._terms.timeout_s, AsyncMiniMaxMusic()._terms.timeout_s)
    monkeypatch.setattr("vlmcore_audio.minimax.client.music_call", refused)
    words = ["music", "generate", "--prompt", "x", "--instrumental", "-o", "song.mp3"]
    assert 1 == main(words)
    assert 1 == main([*words, "--timeout", "1800"])
    assert [600.0, 1800.0] == told


def test_another_thread_cancels_a_call(minimax: ScriptedMiniMax) -> None:
    """
    And the connection ends with it; the client can be used again.
    """
    held = Held()
    minimax.scripts = [held]
    music = MiniMaxMusic()
    errors: list[Exception] = []

    def work() -> None:
        try:
            music.generate(request())
        except MusicError as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    assert held.begun.wait(20)
    music.cancel()
    thread.join(20)
    assert [MusicCancelledError] == [type(error) for error in errors]
    assert minimax.is_left.wait(10)
    minimax.scripts = [streams(event(WAV.hex()), DONE)]
    assert WAV == music.generate(request()).encoded


def test_closing_the_iterator_ends_the_call(minimax: ScriptedMiniMax) -> None:
    """
    The service notices.
    """
    minimax.scripts = [Held()]
    steps = MiniMaxMusic().stream(request())
    assert any(not isinstance(each, MusicClip) and each.received_bytes for each in steps)
    steps.close()
    assert minimax.is_left.wait(10)


def test_cancelling_the_task_ends_the_call(minimax: ScriptedMiniMax) -> None:
    """
    As ``asyncio`` cancels everything.
    """
    held = Held()
    minimax.scripts = [held]

    async def cancelled() -> None:
        task = asyncio.create_task(AsyncMiniMaxMusic().generate(request()))
        await asyncio.to_thread(held.begun.wait, 20)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert minimax.is_left.wait(10)


def test_a_wait_before_asking_again_is_cancelled_too(minimax: ScriptedMiniMax) -> None:
    """
    It is the longest of all waits.
    """
    minimax.scripts = [says(document(None, code=1002))]
    music = MiniMaxMusic(retries=Retries(first_s=600.0, longest_s=600.0))
    with pytest.raises(MusicCancelledError):
        music.generate(
            request(), on_progress=lambda each: music.cancel() if each.phase == "waiting" else None
        )


@both
def test_waits_end_at_the_deadline(generate: Generate, minimax: ScriptedMiniMax) -> None:
    """
    However long they were meant to be.
    """
    minimax.scripts = [says(document(None, code=1002))]
    with pytest.raises(MusicTimeoutError, match="no other answer than code 1002 within 1 s"):
        generate(timeout_s=1.0, retries=Retries(first_s=600.0, longest_s=600.0))


def test_waits_get_longer_up_to_a_limit_and_are_not_the_same_for_all() -> None:
    """
    Who waits as long as all others comes back with all others.
    """
    least, most = (Retries(first_s=2.0, longest_s=7.0, jitter=lambda j=j: j) for j in (0.0, 1.0))
    assert [1.0, 2.0, 3.5, 3.5] == [least.wait_s(attempt) for attempt in range(1, 5)]
    assert [2.0, 4.0, 7.0, 7.0] == [most.wait_s(attempt) for attempt in range(1, 5)]


@pytest.mark.parametrize("part", [-1.0, 1.5, float("inf"), float("nan")])
def test_no_jitter_makes_a_wait_longer_than_the_longest(part: float) -> None:
    """
    Nor shorter than half of it.
    """
    wait_s = Retries(first_s=2.0, longest_s=7.0, jitter=lambda: part).wait_s(9)
    assert 3.5 <= wait_s <= 7.0


def test_progress_tells_events_and_bytes(minimax: ScriptedMiniMax) -> None:
    """
    As they come, and from which attempt.
    """
    minimax.scripts = [
        says(document(None, code=1002)),
        streams(event("fffb", status=1), event(MP3.hex()), DONE),
    ]
    told: list[Any] = []
    with MiniMaxMusic(retries=AT_ONCE) as music:
        music.generate(request(Container.MP3), on_progress=told.append)
    # The head of the first answer may come alone, and is told of then.
    heard = [each for each in told if (each.phase, each.attempt) != ("making", 1)]
    phases = [phase for phase, _ in itertools.groupby(each.phase for each in heard)]
    assert ["asking", "waiting", "asking", "making"] == phases
    assert (3, len(MP3), 2) == (told[-1].events, told[-1].received_bytes, told[-1].attempt)


@both
def test_a_server_that_cannot_prove_who_it_is_is_not_asked(
    generate: Generate, minimax: ScriptedMiniMax, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    The key is not sent: nothing was.
    """
    monkeypatch.delenv("SSL_CERT_FILE")
    minimax.scripts = [streams(DONE)]
    with pytest.raises(MusicUnavailableError, match="certificate is not trusted"):
        generate()
    assert minimax.asked == []


@both
def test_no_proxy_of_the_environment_is_asked(
    generate: Generate, minimax: ScriptedMiniMax, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    It would see where the audio is, and what was asked for.
    """
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
        monkeypatch.setenv(name.upper(), "http://127.0.0.1:9")
    minimax.scripts = [streams(event(WAV.hex()), DONE)]
    assert WAV == generate().encoded


@pytest.mark.parametrize("value", [None, "", " ", "two words"])
def test_without_a_key_there_is_no_client(
    value: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    It is taken from the environment only.
    """
    monkeypatch.delenv("MINIMAX_API_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("MINIMAX_API_KEY", value)
    for client in (MiniMaxMusic, AsyncMiniMaxMusic):
        with pytest.raises(ContractError, match="MINIMAX_API_KEY"):
            client()


@pytest.mark.parametrize(
    "terms",
    [
        {"timeout_s": 0.9},
        {"timeout_s": 1800.1},
        {"timeout_s": float("nan")},
        {"region": "global_en"},
        {"delivery": "hex"},
        {"aigc_watermark": True},
        {"aigc_watermark": 1},
        {"download_hosts": "example.net"},
        {"download_hosts": (7,)},
        {"retries": 0},
        {"retries": 5},
        {"retries": False},
        {"limits": {}},
        {"limits": 5},
        {"limits": False},
    ],
)
def test_terms_that_are_not_as_described_are_refused(
    terms: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Before anything is sent.
    """
    monkeypatch.setenv("MINIMAX_API_KEY", KEY)
    for client in (MiniMaxMusic, AsyncMiniMaxMusic):
        with pytest.raises(ContractError):
            client(**terms)
    assert MiniMaxMusic(region=Region.CN_ZH, aigc_watermark=True, timeout_s=1800)


def test_a_recording_is_looked_at_and_covered(minimax: ScriptedMiniMax, tmp_path: Path) -> None:
    """
    What the service calls it and its lyrics go into the request for the cover.
    """
    song = tmp_path / "song.wav"
    song.write_bytes(encoded("WAV", tone(6.0)))
    told = {"cover_feature_id": "f-7", "formatted_lyrics": "[Verse]\nla la la", "audio_duration": 9}
    minimax.scripts = [
        says(json.dumps({**told, "base_resp": {"status_code": 0}}).encode()),
        streams(event(MP3.hex()), DONE),
    ]
    with MiniMaxMusic() as music:
        feature = music.cover_preprocess(Reference(file=song))
        asked = MusicRequest(
            prompt="slow bossa nova",
            lyrics=feature.lyrics,
            reference=Reference(feature_id=feature.feature_id),
        )
        assert MP3 == music.generate(asked).encoded
    assert ("f-7", 9.0) == (feature.feature_id, feature.duration_s)
    assert ["/v1/music_cover_preprocess", "/v1/music_generation"] == [
        each.target for each in minimax.asked
    ]
    assert minimax.asked[1].document["cover_feature_id"] == "f-7"


def test_a_recording_is_looked_at_with_asyncio_too(minimax: ScriptedMiniMax) -> None:
    """
    An answer without what was asked for is an error.
    """
    minimax.scripts = [says(b'{"data": {"cover_feature_id": "f-7"}}'), says(b"{}")]
    music = AsyncMiniMaxMusic()
    reference = Reference(base64="YWJj")
    assert asyncio.run(music.cover_preprocess(reference)).feature_id == "f-7"
    with pytest.raises(MusicProtocolError, match="cover_feature_id"):
        asyncio.run(music.cover_preprocess(reference))


LOOKED_AT = says(b'{"cover_feature_id": "f-7", "base_resp": {"status_code": 0}}')


@both
def test_a_busy_service_is_asked_again_to_look_at_a_recording(
    generate: Generate, minimax: ScriptedMiniMax
) -> None:
    """
    As it is asked again for music.
    """
    minimax.scripts = [says(document(None, code=1002)), says(b"", status=503), LOOKED_AT]
    assert "f-7" == looked_at(generate).feature_id
    assert len(minimax.asked) == 3


@both
@pytest.mark.parametrize(
    "script",
    [
        streams(b": ping\n\n"),
        streams(DONE),
        streams(),
        *(
            says(b'{"cover_feature_id": "f-7", "audio_duration": %s}' % told)
            for told in (b"-1", b"true", b'"9"', b"[]", b"-0.5")
        ),
    ],
)
def test_a_recording_that_was_not_looked_at_is_an_error(
    script: Any, generate: Generate, minimax: ScriptedMiniMax
) -> None:
    """
    Nothing came, or what is no length of a recording.
    """
    minimax.scripts = [script]
    with pytest.raises(MusicProtocolError, match=r"cover_feature_id|audio_duration"):
        looked_at(generate)


def looked_at(generate: Generate) -> CoverFeature:
    """Let the client that *generate* uses look at a recording."""
    reference = Reference(url=f"https://{CDN}/song.mp3")
    if generate is blocking:
        return MiniMaxMusic(retries=AT_ONCE).cover_preprocess(reference)
    return asyncio.run(AsyncMiniMaxMusic(retries=AT_ONCE).cover_preprocess(reference))


def test_several_calls_of_one_client_run_at_once(minimax: ScriptedMiniMax) -> None:
    """
    Each on a connection of its own.
    """
    together = threading.Barrier(3)

    def script(_: Asked) -> Iterable[bytes]:
        together.wait(20)
        return [stream_head(), event(WAV.hex()), DONE]

    minimax.scripts = [script]
    with MiniMaxMusic() as music:
        threads = [threading.Thread(target=music.generate, args=(request(),)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    assert len(minimax.asked) == 3


def forms(key: str) -> set[str]:
    """The key as it is, as in a URL, and as Python and JSON write it."""
    return {key, quote(key), quote(key, safe=""), quote_plus(key), repr(key)[1:-1]} | {
        json.dumps(key)[1:-1]
    }


def everything_of(error: BaseException) -> str:
    """All that a log, a debugger or a crash report could show of an error."""
    shown = [str(error), repr(error), repr(error.args), repr(vars(error))]
    shown += traceback.format_exception(error)
    frame = error.__traceback__
    while frame is not None:
        if "vlmcore" in frame.tb_frame.f_code.co_filename and "/src/" in (
            frame.tb_frame.f_code.co_filename
        ):
            shown += [repr(value) for value in frame.tb_frame.f_locals.values()]
        frame = frame.tb_next
    assert error.__cause__ is None
    assert error.__context__ is None
    return "\n".join(shown)


@both
@pytest.mark.parametrize("place", ["words", "trace", "body", "status", "location", "json", "hang"])
def test_the_key_is_in_nothing_that_an_error_shows(
    place: str,
    generate: Generate,
    minimax: ScriptedMiniMax,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """
    Also where the service sends it back, in whatever spelling.
    """
    said = " ".join(sorted(forms(KEY)))
    scripts: dict[str, Any] = {
        "words": [says(document(None, code=2049, words=f"bad key {said}"))],
        "trace": [says(json.dumps({"base_resp": {"status_code": 9}, "trace_id": KEY}).encode())],
        "body": [says(said.encode(), status=500)],
        "status": [says(b"", status=401, more=f"trace-id: {KEY}\r\n")],
        "location": [
            says(document(PLACE)),
            says(b"", status=302, more=f"location: https://{KEY.split('+')[0]}.example.org/\r\n"),
        ],
        "json": [says(f'{{"{KEY}'.encode())],
        "hang": [lambda asked: [f"HTTP/1.1 {asked.headers['authorization']}\r\n\r\n".encode()]],
    }
    minimax.scripts = scripts[place]
    with pytest.raises(MusicError) as caught:
        generate(delivery=Delivery.URL)
    shown = everything_of(caught.value) + caplog.text
    assert [] == [form for form in forms(KEY) if form in shown]


PLACES = [
    ("base_resp",),
    ("base_resp", "status_code"),
    ("base_resp", "status_msg"),
    ("data",),
    ("data", "status"),
    ("data", "audio"),
    ("data", "audio_url"),
    ("extra_info",),
    ("extra_info", "music_size"),
    ("extra_info", "music_sample_rate"),
    ("extra_info", "music_channel"),
    ("trace_id",),
    ("cover_feature_id",),
    ("audio_duration",),
]
NESTS: list[Callable[[str], Any]] = [
    lambda text: text,
    lambda text: [text],
    lambda text: {text: text},
    lambda text: [[{"a": text}]],
]


@both
@given(data=st.data())
@settings(max_examples=3, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_key_is_in_no_error_wherever_an_answer_repeats_it(
    generate: Generate, minimax: ScriptedMiniMax, data: st.DataObject
) -> None:
    """
    In any field, nested or not, after so much text that it may be cut within the key.
    """
    told = " " * data.draw(st.sampled_from([0, 30, 38, 70, 392, 990])) + KEY
    minimax.scripts = []
    for *path, last in PLACES:
        answer: dict[str, Any] = {"base_resp": {"status_code": 0}, "data": {"status": 2}}
        inner = answer
        for name in path:
            inner = inner.setdefault(name, {})
        inner[last] = data.draw(st.sampled_from(NESTS))(told)
        text = json.dumps(answer).encode()
        in_stream = data.draw(st.booleans())
        minimax.scripts.append(
            streams(b"data: " + text + b"\n\n", DONE) if in_stream else says(text)
        )
    twice = json.dumps(told).encode()
    minimax.scripts.append(says(b"{%s: 1, %s: 2}" % (twice, twice)))
    for _ in range(len(minimax.scripts)):
        with pytest.raises(MusicError) as caught:
            generate()
        shown = everything_of(caught.value)
        assert [] == [form for form in forms(KEY) | {KEY[:9]} if form in shown]


@both
@pytest.mark.parametrize(
    "answer",
    [
        "HTTP/1.1 {}",
        "HTTP/1.1 200 OK\r\n{}",
        "HTTP/1.1 200 OK\r\ncontent-encoding: {}",
        "HTTP/1.1 200 OK\r\ncontent-length: {}",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: {}",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{}",
    ],
)
def test_the_key_is_in_no_error_wherever_http_repeats_it(
    answer: str, generate: Generate, minimax: ScriptedMiniMax
) -> None:
    """
    Whole, cut, or in the spelling of JSON, which an error of HTTP writes in that of Python.
    """
    for said in (KEY, json.dumps(KEY), *("x" * lead + KEY for lead in (10, 28, 38, 360, 390))):
        minimax.scripts = [lambda _, said=said: [f"{answer.format(said)}\r\n\r\n".encode()]]
        with pytest.raises(MusicError) as caught:
            generate(retries=Retries(times=0))
        shown = everything_of(caught.value)
        assert [] == [form for form in forms(KEY) | {KEY[:9]} if form in shown]


@given(key=st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=8, max_size=60))
def test_any_key_is_in_no_error_whatever_the_error(key: str) -> None:
    """
    Of the system, of TLS, of HTTP, or ours.
    """
    terms = attrs.evolve(TERMS, key=Secret(key))
    for words in (key, f"a {key}", repr(key), json.dumps(key)):
        for error in (OSError(words), ValueError(words), KeyError(words), ConnectionError(words)):
            for is_asked in (False, True):
                told = terms.translated(error, is_asked=is_asked, is_cancelled=False)
                assert key not in everything_of(told)
    assert key not in repr(terms)
