"""Tests of `vlmcore_audio.minimax.wire` and `vlmcore_audio.minimax.models`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from vlmcore.errors import ContractError
from vlmcore_audio.containers import Container
from vlmcore_audio.minimax.regions import Region
from vlmcore_audio.minimax.wire import Delivery, preprocess_body, request_body
from vlmcore_audio.music import AudioFormat, MusicRequest, Reference

COVER = Reference(url="https://cdn.example.net/a.mp3")


def written(request: MusicRequest, delivery: Delivery = Delivery.STREAM, **terms: Any) -> Any:
    told = {"region": Region.GLOBAL_EN, "aigc_watermark": False, **terms}
    return json.loads(request_body(request, delivery=delivery, **told))


def test_a_piece_is_asked_for_with_every_field_that_it_has() -> None:
    """
    In the names of the vendor; what is not set is not sent.
    """
    request = MusicRequest(
        prompt="jazz", lyrics="[Verse]\nla ü", audio=AudioFormat(bitrate_kbps=256, channels=1)
    )
    assert {
        "model": "music-3.0",
        "prompt": "jazz",
        "lyrics": "[Verse]\nla ü",
        "stream": True,
        "output_format": "hex",
        "audio_setting": {
            "sample_rate": 44_100,
            "format": "mp3",
            "channel": 1,
            "bitrate": 256_000,
        },
        "lyrics_optimizer": False,
        "is_instrumental": False,
    } == written(request)


def test_a_cover_is_asked_for_without_what_only_pieces_have() -> None:
    """
    The optimizer and instrumental are not sent; the seed is.
    """
    request = MusicRequest(prompt="slow bossa nova", reference=COVER, seed=0)
    sent = written(request)
    assert ("music-cover", "https://cdn.example.net/a.mp3", 0) == (
        sent["model"],
        sent["audio_url"],
        sent["seed"],
    )
    assert not {"lyrics_optimizer", "is_instrumental", "lyrics", "audio_base64"} & sent.keys()


def test_a_stream_is_in_hex() -> None:
    """
    An address cannot be asked for as a stream: there is no way to say it.
    """
    sent = [written(MusicRequest(prompt="x", is_instrumental=True), each) for each in Delivery]
    assert [(True, "hex"), (False, "hex"), (False, "url")] == [
        (each["stream"], each["output_format"]) for each in sent
    ]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"prompt": "x" * 2001, "is_instrumental": True}, "prompt"),
        ({"prompt": "x", "lyrics": "y" * 3501}, "lyrics"),
        ({"prompt": "x" * 9, "reference": COVER}, "prompt"),
        ({"prompt": "x" * 301, "reference": COVER}, "prompt"),
        ({"prompt": "x" * 10, "lyrics": "y" * 9, "reference": COVER}, "lyrics"),
        ({"prompt": "x" * 10, "lyrics": "y" * 1001, "reference": COVER}, "lyrics"),
        ({"prompt": "x" * 10, "reference": COVER, "model": "music-3.0"}, "model"),
        ({"prompt": "x", "is_instrumental": True, "model": "music-cover"}, "model"),
        ({"prompt": "x", "is_instrumental": True, "model": "music-1.0"}, "model"),
    ],
)
def test_a_request_over_the_limits_of_its_model_is_not_written(
    fields: dict[str, Any], field: str
) -> None:
    """
    The service would refuse it, or charge for it.
    """
    with pytest.raises(ContractError) as error:
        written(MusicRequest(**fields))
    assert field == error.value.field


@pytest.mark.parametrize(
    "fields",
    [
        {"prompt": "x" * 2000, "lyrics": "y" * 3500},
        {"prompt": "x" * 10, "lyrics": "y" * 10, "reference": COVER},
        {"prompt": "x" * 300, "lyrics": "y" * 1000, "reference": COVER},
        {"lyrics": "y"},
    ],
)
def test_a_request_at_the_limits_is_written(fields: dict[str, Any]) -> None:
    """
    The limits belong to what is allowed.
    """
    assert written(MusicRequest(**fields))["prompt"] == fields.get("prompt", "")


@pytest.mark.parametrize("name", ["music-3.0", "music-2.6", "music-3.0-free", "music-2.6-free"])
def test_a_piece_is_asked_of_each_model_of_pieces(name: str) -> None:
    """
    The first is the one that is meant where none is named.
    """
    assert written(MusicRequest(lyrics="la", model=name))["model"] == name
    assert written(MusicRequest(lyrics="la"))["model"] == "music-3.0"


@pytest.mark.parametrize("name", ["music-cover", "music-cover-free"])
def test_a_cover_is_asked_of_each_model_of_covers(name: str) -> None:
    """
    With the least and the greatest seed.
    """
    for seed in (0, 1_000_000):
        request = MusicRequest(prompt="x" * 10, reference=COVER, model=name, seed=seed)
        sent = written(request)
        assert (sent["model"], sent["seed"]) == (name, seed)
    assert written(MusicRequest(prompt="x" * 10, reference=COVER))["model"] == "music-cover"


@pytest.mark.parametrize("kind", Container)
@pytest.mark.parametrize("rate_hz", [16000, 24000, 32000, 44100])
@pytest.mark.parametrize("channels", [1, 2])
def test_each_format_that_the_service_makes_can_be_asked_for(
    kind: Container, rate_hz: int, channels: int
) -> None:
    """
    As the service writes it, which counts bit rates in bits.
    """
    for kbps in (None, 32, 64, 128, 256) if kind is Container.MP3 else (None,):
        audio = AudioFormat(
            container=kind, sample_rate_hz=rate_hz, channels=channels, bitrate_kbps=kbps
        )
        sent = {"format": kind.value, "sample_rate": rate_hz, "channel": channels}
        told = sent if kbps is None else {**sent, "bitrate": kbps * 1000}
        assert written(MusicRequest(lyrics="la", audio=audio))["audio_setting"] == told


def test_a_watermark_is_for_china_alone() -> None:
    """
    Elsewhere it is refused, and not dropped in silence.
    """
    request = MusicRequest(prompt="x", is_instrumental=True)
    assert written(request, region=Region.CN_ZH, aigc_watermark=True)["aigc_watermark"] is True
    with pytest.raises(ContractError, match="aigc_watermark: got True in global_en"):
        written(request, aigc_watermark=True)


def test_wav_is_asked_for_without_a_bit_rate() -> None:
    """
    It follows from the samples.
    """
    audio = AudioFormat(container=Container.WAV)
    sent = written(MusicRequest(prompt="x", is_instrumental=True, audio=audio))
    assert "bitrate" not in sent["audio_setting"]


def test_a_recording_is_looked_at_once() -> None:
    """
    What the service calls it already is not looked at again.
    """
    body = json.loads(preprocess_body(Reference(base64="YWJj")))
    assert {"model": "music-cover", "audio_base64": "YWJj"} == body
    with pytest.raises(ContractError, match="feature_id"):
        preprocess_body(Reference(feature_id="f"))


def test_regions_are_two_hosts() -> None:
    """
    And no other.
    """
    assert ["https://api.minimax.io:443", "https://api.minimaxi.com:443"] == [
        region.endpoint.url for region in Region
    ]
