"""A question about a video to a model on this machine, and its answer as events."""

from __future__ import annotations

import attrs
import numpy as np

from vlmcore.errors import ContractError, GenerationError
from vlmcore.media.resizing import fit_longest_edge
from vlmcore.media.sampling import SampledVideo
from vlmcore.vision.events import VideoEvents, events_from_text
from vlmcore.vlm.generation import GenerationOptions
from vlmcore.vlm.prompt import Prompt
from vlmcore_comfy.answering import answer
from vlmcore_comfy.hosting import Host
from vlmcore_comfy.models import ModelChoice, opened

__all__ = ["VideoQuestion", "reason"]


@attrs.frozen(kw_only=True)
class VideoQuestion:
    """
    What is asked about a video.

    Attributes:
        text: The question.
        longest_edge_px: What frames are made small to; ``None`` leaves them.
        max_new_tokens: How long the answer may be.
        max_events: How many events are taken of it.
        thinking: Whether the model thinks first.
        is_strict: Whether an answer without events is an error.
    """

    text: str
    longest_edge_px: int | None
    max_new_tokens: int
    max_events: int
    thinking: bool
    is_strict: bool


def reason(
    video: SampledVideo,
    asked: VideoQuestion,
    choice: ModelChoice,
    *,
    unload: bool,
    is_shown: bool,
    comfyui: Host,
) -> tuple[str, VideoEvents, str]:
    """
    Ask, and read the events in the answer.

    Returns:
        What the model wrote, the events, and what is wrong with the answer, empty if nothing is.

    Raises:
        GenerationError: If the answer has no events, and that is an error.
        NodeStoppedError: If the person stopped the graph.
        VlmcoreError: If there is no answer.
    """
    frames = list(video.pixels)
    if asked.longest_edge_px is not None:
        frames = [fit_longest_edge(frame, asked.longest_edge_px) for frame in frames]
    times = video.selection.timestamps_s
    prompt = Prompt(
        text=asked.text,
        video=np.stack(frames),
        video_rate_hz=video.rate_hz,
        video_timestamps_s=times,
        video_indices=tuple(
            index if frame.index is None else frame.index
            for index, frame in enumerate(video.selection.frames)
        ),
    )
    options = GenerationOptions(
        max_new_tokens=asked.max_new_tokens, thinking=asked.thinking or None
    )
    with opened(choice, comfyui, unload=unload) as predictor:
        said = answer(predictor, prompt, options, comfyui=comfyui, is_shown=is_shown).text
        model = predictor.info.model
    try:
        events = events_from_text(
            said, duration_s=video.selection.duration_s, max_events=asked.max_events
        )
    except ContractError as error:
        if asked.is_strict:
            raise GenerationError(
                model, f"its answer {error.problem}; turn strict_output off to take it as text"
            ) from None
        return said, VideoEvents(), error.problem
    return said, events, ""
