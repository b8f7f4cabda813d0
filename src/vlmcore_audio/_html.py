"""What clips look like in notebooks, and what is drawn of them."""

from __future__ import annotations

import html
from base64 import b64encode
from typing import TYPE_CHECKING

import numpy as np

from vlmcore.charts.chart import Chart
from vlmcore.charts.drawing import draw_svg
from vlmcore.errors import VlmcoreError

if TYPE_CHECKING:
    from vlmcore_audio.clips import MusicClip

__all__ = ["clip_html", "waveform_chart"]

_COLUMNS = 480  # of the picture: the lowest and the highest sample of each
_NAMES = {1: ("mono",), 2: ("left", "right")}
_LARGEST_PLAYER = 32  # MiB of audio: a notebook keeps it in its file


def waveform_chart(clip: MusicClip) -> Chart:
    """Draw each channel as the lowest and the highest sample of each of its columns."""
    samples = clip.samples
    edges = np.linspace(0, len(samples), min(_COLUMNS, len(samples)) + 1).astype(np.int64)[:-1]
    envelope = np.stack(
        [np.minimum.reduceat(samples, edges), np.maximum.reduceat(samples, edges)], axis=1
    ).reshape(-1, samples.shape[1])
    channels = samples.shape[1]
    return Chart(
        values=envelope,
        names=_NAMES.get(channels) or tuple(f"channel {i + 1}" for i in range(channels)),
        low=[-1.0] * channels,
        high=[1.0] * channels,
        rate_hz=len(envelope) / clip.duration_s,
    )


def clip_html(clip: MusicClip) -> str:
    """Write a player, what is known of the clip, and its waveform."""
    kind, data = clip.playable
    player = "<p>It is too large to be played here: save it.</p>"
    if len(data) <= _LARGEST_PLAYER << 20:
        source = f"data:{kind};base64,{b64encode(data).decode()}"
        player = f'<audio controls preload="none" src="{source}"></audio>'
    try:
        said, picture = _known(clip), draw_svg(waveform_chart(clip)) if len(clip.samples) else ""
    except VlmcoreError as error:  # a browser may play what cannot be decoded here
        said, picture = str(error), ""
    return f"<div>{player}<p>{html.escape(said)}</p>{picture}</div>"


def _known(clip: MusicClip) -> str:
    return (
        f"{clip.duration_s:.1f} s, {clip.sample_rate_hz} Hz, "
        f"{'stereo' if clip.channels == 2 else 'mono' if clip.channels == 1 else clip.channels}, "
        f"peak {clip.peak:.2f}"
    )
