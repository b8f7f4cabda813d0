"""Nodes that make, play and keep sound."""

from __future__ import annotations

from typing import Any

from vlmcore_comfy.declaring import (
    Input,
    Node,
    NodeResult,
    Output,
    boolean,
    choice,
    node,
    number,
    socket,
    text,
)
from vlmcore_comfy.hosting import ALONE, Host

__all__ = ["NODES", "minimax_music", "play_music", "save_audio"]

_MODELS = (
    "music-3.0",
    "music-2.6",
    "music-3.0-free",
    "music-2.6-free",
    "music-cover",
    "music-cover-free",
)
_RATES = (16000, 24000, 32000, 44100)
_BITRATES = (32000, 64000, 128000, 256000)


@node(
    "MiniMaxMusicNode",
    title="MiniMax Music",
    category="Audio",
    description="Makes music with MiniMax. The key is taken from MINIMAX_API_KEY in the "
    "environment of ComfyUI. A request costs money; one that has begun to send audio is not made "
    "again.",
    inputs=(
        choice("region", ("global_en", "cn_zh"), "global_en", tooltip="Which MiniMax has the key"),
        choice("model", _MODELS, _MODELS[0]),
        text("prompt", multiline=True),
        text("lyrics", multiline=True),
        boolean("stream", default=False),
        choice("output_format", ("url", "hex"), "hex"),
        choice("audio_format", ("mp3", "wav", "pcm"), "mp3"),
        choice("sample_rate", _RATES, 44100),
        choice("bitrate", _BITRATES, 256000, tooltip="Of MP3"),
        boolean("lyrics_optimizer", default=False),
        boolean("is_instrumental", default=False),
        boolean("aigc_watermark", default=False),
        text("audio_url", is_optional=True, tooltip="Of a cover: the recording"),
        text("audio_base64", multiline=True, is_optional=True),
        text("cover_feature_id", is_optional=True),
        number("timeout_seconds", 600.0, 1.0, 1800.0, is_optional=True),
        boolean("use_system_proxy", default=False, is_optional=True),
    ),
    outputs=(Output("*", "wave_form"), Output("INT", "sample_rate"), Output("AUDIO", "audio")),
    extras=("audio",),
    is_threaded=True,
)
def minimax_music(
    region: str,
    model: str,
    prompt: str,
    lyrics: str,
    stream: bool,
    output_format: str,
    audio_format: str,
    sample_rate: int,
    bitrate: int,
    lyrics_optimizer: bool,
    is_instrumental: bool,
    aigc_watermark: bool,
    audio_url: str = "",
    audio_base64: str = "",
    cover_feature_id: str = "",
    timeout_seconds: float = 600.0,
    use_system_proxy: bool = False,
    *,
    comfyui: Host = ALONE,
) -> tuple[Any, int, dict[str, Any]]:
    """Make music."""
    from vlmcore.errors import ContractError
    from vlmcore_comfy.music import composed, reference_from, request_from
    from vlmcore_comfy.sounds import audio_of

    if use_system_proxy:
        raise ContractError("use_system_proxy", "is on, and nothing here asks a proxy; turn it off")
    request = request_from(
        model=model,
        prompt=prompt,
        lyrics=lyrics,
        lyrics_optimizer=lyrics_optimizer,
        is_instrumental=is_instrumental,
        audio=(audio_format, sample_rate, bitrate),
        reference=reference_from(audio_url, audio_base64, cover_feature_id),
    )
    delivery = "stream" if stream else output_format
    clip = composed(
        request,
        region=region,
        delivery=delivery,
        timeout_s=timeout_seconds,
        watermark=aigc_watermark,
        comfyui=comfyui,
    )
    audio = audio_of(clip)
    return audio["waveform"], clip.sample_rate_hz, audio


@node(
    "PlayMusic",
    title="PlayMusic Node",
    category="Audio",
    description="Plays sound in the page, and passes it on.",
    inputs=(
        choice("mode", ("always", "on empty queue")),
        number("volume", 0.5, 0, 1, 0.1),
        socket("wave_form", "*"),
        Input("sample_rate", "INT"),
    ),
    outputs=(Output("*", "*"),),
    extras=("audio",),
    is_output=True,
)
def play_music(
    mode: str, volume: float, wave_form: Any, sample_rate: int, *, comfyui: Host = ALONE
) -> NodeResult:
    """Play sound."""
    from vlmcore_comfy.sounds import sound_from, temporary_sound

    sound = sound_from("wave_form", wave_form, sample_rate)
    path = temporary_sound(sound, comfyui.temporary_folder)
    file = {"filename": path.name, "subfolder": "", "type": "temp"}
    return NodeResult((wave_form,), {"audio": [file], "mode": [mode], "volume": [volume]})


@node(
    "SaveAudioNode",
    title="Save Audio",
    category="Audio",
    description="Writes sound into ComfyUI's output folder, and never over a file that is there.",
    inputs=(
        socket("waveforms", "*"),
        Input("sample_rate", "INT"),
        choice("extension", ("wav", "flac")),
        text("filename", "audio"),
    ),
    outputs=(),
    extras=("audio",),
    is_output=True,
)
def save_audio(
    waveforms: Any, sample_rate: int, extension: str, filename: str, *, comfyui: Host = ALONE
) -> NodeResult:
    """Keep sound."""
    from vlmcore_comfy.sounds import save_sound, sound_from

    sound = sound_from("waveforms", waveforms, sample_rate)
    path = save_sound(sound, comfyui.output_folder, filename.strip(), extension)
    file = {"filename": path.name, "subfolder": "", "type": "output"}
    return NodeResult((), {"audio": [file]})


NODES: tuple[Node[..., Any], ...] = (minimax_music, play_music, save_audio)
