"""Music as the widgets of a graph ask for it."""

from __future__ import annotations

from vlmcore.errors import ContractError, MusicCancelledError
from vlmcore_audio.clips import MusicClip
from vlmcore_audio.containers import Container
from vlmcore_audio.minimax.client import MiniMaxMusic
from vlmcore_audio.minimax.regions import Region
from vlmcore_audio.minimax.wire import Delivery
from vlmcore_audio.music import AudioFormat, MusicProgress, MusicRequest, Reference
from vlmcore_comfy.hosting import Host

__all__ = ["composed", "reference_from", "request_from"]


def reference_from(url: str, base64: str, feature_id: str) -> Reference | None:
    """
    Say what a cover is made of; ``None`` where nothing is.

    Raises:
        ContractError: If more than one is given, or it is none.
        EndpointError: If *url* is no address of the internet.
    """
    given = {"url": url.strip(), "base64": base64.strip(), "feature_id": feature_id.strip()}
    told = {name: value for name, value in given.items() if value}
    return Reference(**told) if told else None


def request_from(
    *,
    model: str,
    prompt: str,
    lyrics: str,
    lyrics_optimizer: bool,
    is_instrumental: bool,
    audio: tuple[str, int, int],
    reference: Reference | None,
) -> MusicRequest:
    """
    Put a request together.

    Raises:
        ContractError: If the widgets contradict each other.
    """
    kind, rate_hz, bitrate = audio
    container = Container(kind)
    if "cover" in model and reference is None:
        raise ContractError(
            "audio_url", f"is blank, expected a recording: {model} makes covers of one"
        )
    return MusicRequest(
        model=model,
        prompt=prompt.strip(),
        lyrics=lyrics.strip(),
        lyrics_optimizer=lyrics_optimizer,
        is_instrumental=is_instrumental,
        reference=reference,
        audio=AudioFormat(
            container=container,
            sample_rate_hz=rate_hz,
            bitrate_kbps=bitrate // 1000 if container is Container.MP3 else None,
        ),
    )


def composed(
    request: MusicRequest,
    *,
    region: str,
    delivery: str,
    timeout_s: float,
    watermark: bool,
    comfyui: Host,
) -> MusicClip:
    """
    Ask for music, and tell on the node how far it is.

    Raises:
        NodeStoppedError: If the person stopped the graph.
        MusicError: If there is none.
        ContractError: If the request is not one for its model, or there is no key.
    """
    client = MiniMaxMusic(
        region=Region(region),
        delivery=Delivery(delivery),
        timeout_s=timeout_s,
        aigc_watermark=watermark,
    )

    def tell(progress: MusicProgress) -> None:
        size = f", {progress.received_bytes:,} bytes" if progress.received_bytes else ""
        comfyui.show_text(f"{progress.phase}{size}")

    try:
        with comfyui.when_stopped(client.cancel):
            return client.generate(request, on_progress=tell)
    except MusicCancelledError:
        comfyui.raise_if_stopped()
        raise
