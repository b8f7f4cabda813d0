"""What MiniMax is asked, as bytes. Nothing here is sent, and no key is in it."""

from __future__ import annotations

import enum
import json
from typing import Any

from vlmcore.errors import ContractError
from vlmcore_audio.minimax.models import model_of
from vlmcore_audio.minimax.regions import Region
from vlmcore_audio.music import MusicRequest, Reference

__all__ = ["MUSIC_PATH", "PREPROCESS_PATH", "Delivery", "preprocess_body", "request_body"]

MUSIC_PATH = "/v1/music_generation"
PREPROCESS_PATH = "/v1/music_cover_preprocess"


class Delivery(enum.Enum):
    """How the audio comes: in hex while it is made, in hex at the end, or as an address."""

    STREAM = "stream"
    HEX = "hex"
    URL = "url"


def request_body(
    request: MusicRequest, *, delivery: Delivery, region: Region, aigc_watermark: bool
) -> bytes:
    """
    Write a request for music.

    Args:
        request: What is asked for.
        delivery: How the audio is to come.
        region: Where it is asked.
        aigc_watermark: Whether an inaudible mark says that a machine made it; ``cn_zh`` only.

    Raises:
        ContractError: If the request is not one for its model, or the mark not one of the region.
    """
    model = model_of(request)
    if aigc_watermark and region is not Region.CN_ZH:
        raise ContractError("aigc_watermark", f"got True in {region.value}, expected cn_zh")
    audio = request.audio
    setting: dict[str, Any] = {
        "sample_rate": audio.sample_rate_hz,
        "format": audio.container.value,
        "channel": audio.channels,
    }
    if audio.bitrate_kbps is not None:
        setting["bitrate"] = audio.bitrate_kbps * 1000
    document: dict[str, Any] = {
        "model": model.name,
        "prompt": request.prompt,
        "stream": delivery is Delivery.STREAM,
        "output_format": "url" if delivery is Delivery.URL else "hex",
        "audio_setting": setting,
    }
    if request.lyrics:
        document["lyrics"] = request.lyrics
    if request.reference is None:
        document["lyrics_optimizer"] = request.lyrics_optimizer
        document["is_instrumental"] = request.is_instrumental
    else:
        document |= _reference(request.reference)
        if request.seed is not None:
            document["seed"] = request.seed
    if aigc_watermark:
        document["aigc_watermark"] = True
    return _json(document)


def preprocess_body(reference: Reference) -> bytes:
    """
    Write a request to look at a recording.

    Raises:
        ContractError: If it was looked at already, or its file cannot be read.
    """
    if reference.feature_id is not None:
        raise ContractError("reference", "got a feature_id, expected a recording")
    return _json({"model": "music-cover", **_reference(reference)})


def _reference(reference: Reference) -> dict[str, str]:
    if reference.url is not None:
        return {"audio_url": reference.url}
    if reference.feature_id is not None:
        return {"cover_feature_id": reference.feature_id}
    return {"audio_base64": reference.encoded()}


def _json(document: dict[str, Any]) -> bytes:
    return json.dumps(document, ensure_ascii=False, allow_nan=False).encode()
