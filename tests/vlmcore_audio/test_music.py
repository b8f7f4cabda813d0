"""Tests of `vlmcore_audio.music`."""

from __future__ import annotations

import io
import sys
from base64 import b64encode
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from vlmcore.errors import (
    ContractError,
    EndpointError,
    LimitExceededError,
    MissingDependencyError,
)
from vlmcore_audio.containers import Container
from vlmcore_audio.music import AudioFormat, MusicRequest, Reference

FEATURE = Reference(feature_id="f-1")


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"sample_rate_hz": 44_100.9}, "sample_rate_hz"),
        ({"sample_rate_hz": 48_000}, "sample_rate_hz"),
        ({"sample_rate_hz": True}, "sample_rate_hz"),
        ({"channels": 1.0}, "channels"),
        ({"channels": 3}, "channels"),
        ({"bitrate_kbps": 320}, "bitrate_kbps"),
        ({"bitrate_kbps": 128.0}, "bitrate_kbps"),
        ({"container": "mp3"}, "container"),
        ({"container": Container.WAV, "bitrate_kbps": 128}, "bitrate_kbps"),
        ({"container": Container.PCM, "bitrate_kbps": 128}, "bitrate_kbps"),
    ],
)
def test_a_format_that_a_service_does_not_make_is_refused(
    fields: dict[str, Any], field: str
) -> None:
    """
    Nothing is rounded: 44100.9 is not 44100; and a bit rate of WAV would have been ignored.
    """
    with pytest.raises(ContractError) as error:
        AudioFormat(**fields)
    assert field == error.value.field


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"prompt": "x"}, "lyrics"),
        ({"prompt": "x", "lyrics": " \n"}, "lyrics"),
        ({"prompt": "x", "lyrics": "la", "is_instrumental": True}, "lyrics"),
        ({"prompt": "x", "lyrics": "la", "lyrics_optimizer": True}, "lyrics"),
        ({"prompt": "x", "is_instrumental": True, "lyrics_optimizer": True}, "lyrics"),
        ({"is_instrumental": True}, "prompt"),
        ({"lyrics_optimizer": True}, "prompt"),
        ({"prompt": "x", "is_instrumental": "false"}, "is_instrumental"),
        ({"prompt": "x", "lyrics_optimizer": 1}, "lyrics_optimizer"),
        ({"prompt": b"x", "is_instrumental": True}, "prompt"),
        ({"prompt": "\ud800", "is_instrumental": True}, "prompt"),
        ({"prompt": "x", "is_instrumental": True, "audio": "mp3"}, "audio"),
        ({"prompt": "x", "is_instrumental": True, "model": 3}, "model"),
        ({"prompt": "x", "is_instrumental": True, "seed": 1}, "seed"),
        ({"prompt": " \t\n", "is_instrumental": True}, "prompt"),
        ({"prompt": "x", "lyrics": " ", "is_instrumental": True}, "lyrics"),
        ({"prompt": "x", "lyrics": "\n", "lyrics_optimizer": True}, "lyrics"),
        ({"prompt": " " * 10, "reference": FEATURE, "lyrics": "la" * 5}, "prompt"),
        ({"prompt": "x" * 10, "reference": FEATURE, "lyrics": " " * 10}, "lyrics"),
        *(({"prompt": "x", "reference": no}, "reference") for no in ("", 0, False, [], {}, b"")),
        *(({"prompt": "x", "is_instrumental": True, "audio": no}, "audio") for no in ("", 0, None)),
        ({"reference": "song.mp3"}, "reference"),
        ({"reference": FEATURE}, "lyrics"),
        ({"reference": FEATURE, "lyrics": "la", "is_instrumental": True}, "is_instrumental"),
        ({"reference": FEATURE, "lyrics": "la", "lyrics_optimizer": True}, "lyrics_optimizer"),
        ({"reference": FEATURE, "lyrics": "la", "seed": False}, "seed"),
        ({"reference": FEATURE, "lyrics": "la", "seed": -1}, "seed"),
        ({"reference": FEATURE, "lyrics": "la", "seed": 1_000_001}, "seed"),
    ],
)
def test_a_request_that_contradicts_itself_is_refused(fields: dict[str, Any], field: str) -> None:
    """
    Instrumental with lyrics, a cover that is instrumental: whatever was dropped, it was meant.
    """
    with pytest.raises(ContractError) as error:
        MusicRequest(**fields)
    assert field == error.value.field


@pytest.mark.parametrize("given", [{}, {"url": "https://a.example/x", "feature_id": "f"}])
def test_a_reference_is_exactly_one_recording(given: dict[str, Any]) -> None:
    """
    None would be refused after it was paid for, and of two one would be ignored.
    """
    with pytest.raises(ContractError, match="expected one of url, file, base64, feature_id"):
        Reference(**given)


@pytest.mark.parametrize("field", ["url", "file", "base64", "feature_id"])
@pytest.mark.parametrize("value", ["", 0, False, b"", [], {}])
def test_a_reference_that_is_empty_is_none_of_a_recording(field: str, value: Any) -> None:
    """
    The field is named: what is false in Python is not what was left out.
    """
    with pytest.raises(ContractError, match=f"^{field}: got "):
        Reference(**{field: value})


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "http://10.0.0.1/a.mp3",
        "http://cdn.example.net/a.mp3",
        "https://10.0.0.1/a.mp3",
        "https://localhost/a.mp3",
        "https://127.0.0.1/a.mp3",
        "https://[::1]/a.mp3",
        "https://[::ffff:127.0.0.1]/a.mp3",
        "https://169.254.169.254/latest",
        "https://2130706433/a.mp3",
        "https://0x7f.1/a.mp3",
        "https://me:secret@cdn.example.net/a.mp3",
        "https://cdn.example.net:8443/a.mp3",
        "https://cdn.example.net/a b.mp3",
        "https://cdn.example.net\\@10.0.0.1/a.mp3",
        "https:///a.mp3",
        "https://cdn.example.net/" + "a" * 9000,
        "ftp://cdn.example.net/a.mp3",
    ],
)
def test_a_recording_lies_on_a_public_host_over_https(url: str) -> None:
    """
    An address of file:, of this machine or of a network in here is not sent to anybody.
    """
    with pytest.raises(EndpointError) as error:
        Reference(url=url)
    assert "secret" not in str(error.value)


def test_an_address_of_a_recording_keeps_its_query() -> None:
    """
    Links that are signed have their signature there.
    """
    assert Reference(url="https://cdn.example.net/a.mp3?sign=x%2F").url is not None


def test_what_stands_before_the_data_of_a_data_url_is_dropped() -> None:
    """
    So are line breaks: both are how Base64 is passed on.
    """
    assert "YWJj" == Reference(base64="data:audio/mpeg;base64,YW\r\nJj").base64


@pytest.mark.parametrize("text", ["data:audio/mpeg,abc", "YWJj!", "YWJ", "", "é"])
def test_text_that_is_no_base64_is_refused(text: str) -> None:
    """
    Before it is sent.
    """
    with pytest.raises(ContractError) as error:
        Reference(base64=text)
    assert error.value.field == "base64"


def test_a_recording_of_more_than_50_million_bytes_is_refused(tmp_path: Path) -> None:
    """
    A file by its size, before it is read.
    """
    path = tmp_path / "long.wav"
    with path.open("wb") as file:
        file.truncate(50_000_001)
    with pytest.raises(LimitExceededError, match="got 50000001, limit is 50000000"):
        Reference(file=path).encoded()
    with pytest.raises(LimitExceededError, match="max_reference_bytes"):
        Reference(base64="A" * (4 * 16_666_668))


def test_a_recording_of_exactly_50_million_bytes_is_taken(tmp_path: Path) -> None:
    """
    The limit is part of what is allowed, in a file and in Base64.
    """
    path = tmp_path / "long.bin"
    with path.open("wb") as file:
        file.truncate(50_000_000)
    text = Reference(file=path).encoded()
    assert (len(text), text[-2:]) == (66_666_668, "A=")
    assert Reference(base64=text).base64 is not None


@pytest.mark.parametrize("kind", ["missing", "folder", "empty"])
def test_a_recording_that_is_no_file_is_told(kind: str, tmp_path: Path) -> None:
    """
    By its path, as a fault of the argument.
    """
    path = {"missing": tmp_path / "no.mp3", "folder": tmp_path, "empty": tmp_path / "empty.mp3"}
    (tmp_path / "empty.mp3").touch()
    with pytest.raises(ContractError) as error:
        Reference(file=path[kind]).encoded()
    assert error.value.field == "file"


def test_a_file_is_read_when_it_is_sent(tmp_path: Path) -> None:
    """
    Whole, in Base64.
    """
    path = tmp_path / "song.mp3"
    path.write_bytes(b"abc")
    assert b64encode(b"abc").decode() == Reference(file=str(path)).encoded()


def recording(kind: str, seconds: float) -> bytes:
    """Silence, at a rate that keeps it small."""
    out = io.BytesIO()
    with soundfile.SoundFile(out, "w", 8000, 1, format=kind) as file:
        for part in np.array_split(np.zeros(round(8000 * seconds)), 60):  # Vorbis takes no more
            file.write(part)
    return out.getvalue()


def given(way: str, data: bytes, folder: Path) -> Reference:
    if way == "base64":
        return Reference(base64=b64encode(data).decode())
    path = folder / "recording"
    path.write_bytes(data)
    return Reference(file=path)


@pytest.mark.parametrize("way", ["file", "base64"])
@pytest.mark.parametrize("kind", ["WAV", "FLAC", "OGG", "MP3"])
@pytest.mark.parametrize("seconds", [5.9, 361.0])
def test_a_recording_that_is_too_short_or_too_long_is_refused(
    way: str, kind: str, seconds: float, tmp_path: Path
) -> None:
    """
    Six seconds to six minutes: the service would refuse it after it was sent.
    """
    reference = given(way, recording(kind, seconds), tmp_path)
    with pytest.raises(ContractError, match=rf"{way}: got {seconds:.3f} s, expected 6 to 360 s"):
        reference.encoded()


@pytest.mark.parametrize("way", ["file", "base64"])
@pytest.mark.parametrize("kind", ["WAV", "FLAC", "OGG", "MP3"])
@pytest.mark.parametrize("seconds", [6.0, 360.0])
def test_a_recording_may_last_from_six_seconds_to_six_minutes(
    way: str, kind: str, seconds: float, tmp_path: Path
) -> None:
    """
    Both included.
    """
    data = recording(kind, seconds)
    assert b64encode(data).decode() == given(way, data, tmp_path).encoded()


def test_a_recording_that_does_not_say_how_long_it_is_is_left_to_the_service(
    tmp_path: Path,
) -> None:
    """
    As one that was streamed, or that cannot be read here.
    """
    flac = bytearray(recording("FLAC", 7.0))
    flac[21] &= 0xF0  # the number of samples, of 36 bits: 0 stands for any
    flac[22:26] = bytes(4)
    wav = bytearray(recording("WAV", 7.0))
    wav[40:44] = bytes(4)
    for data in (bytes(flac), bytes(wav), b"\0\0\0\x20ftypM4A " + bytes(99)):
        assert b64encode(data).decode() == given("file", data, tmp_path).encoded()


def unmeasured(seconds: float) -> tuple[bytes, bytes]:
    """MP3 without the number of its frames, alone and behind a picture of 1 MiB."""
    data = recording("MP3", seconds)
    frames = data[data.index(data[:2], max(data.find(b"Xing"), data.find(b"Info"))) :]
    return frames, b"ID3\4\0\0\0\x40\0\0" + bytes(0x40 << 14) + frames


@pytest.mark.parametrize("seconds", [7.0, 358.0])
def test_a_recording_in_mp3_may_leave_open_how_long_it_is(seconds: float, tmp_path: Path) -> None:
    """
    Its size would tell something else.
    """
    for data in unmeasured(seconds):
        assert b64encode(data).decode() == given("file", data, tmp_path).encoded()


def test_a_recording_in_mp3_that_leaves_open_how_long_it_is_is_decoded_to_see(
    tmp_path: Path,
) -> None:
    """
    It is refused if that is too short.
    """
    for data in unmeasured(5.0):
        with pytest.raises(ContractError, match=r"file: got 5\.\d+ s, expected 6 to 360 s"):
            given("file", data, tmp_path).encoded()


def test_a_recording_needs_what_reads_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    What is missing is named, with what brings it.
    """
    reference = given("file", recording("WAV", 7.0), tmp_path)
    monkeypatch.setitem(sys.modules, "soundfile", None)
    monkeypatch.delitem(sys.modules, "vlmcore_audio._soundfile", raising=False)
    monkeypatch.delattr("vlmcore_audio._soundfile", raising=False)
    with pytest.raises(MissingDependencyError, match=r"vlmcore\[audio\]"):
        reference.encoded()
