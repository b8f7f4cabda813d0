"""Answers of models as nodes give them: shown while they are written, and stopped when asked to."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from vlmcore.errors import ContractError, GenerationError
from vlmcore.media.selections import FrameSelection
from vlmcore.vlm.generation import CancelToken, Generation, GenerationOptions, StopReason
from vlmcore.vlm.predictor import Predictor
from vlmcore.vlm.prompt import Prompt
from vlmcore_comfy.hosting import Host
from vlmcore_comfy.images import pictures_of

__all__ = ["answer", "prompt_from"]

_SHOWN_EVERY_S = 0.1


def prompt_from(
    text: str,
    system: str,
    *,
    image: Any = None,
    video_frames: Any = None,
    selection: Any = None,
    fps: float = 1.0,
) -> Prompt:
    """
    Put a question together: a batch of images is several pictures, frames are one video.

    Raises:
        ContractError: If an input is not of its kind, or a selection is not of the frames.
        LimitExceededError: If there is more than a prompt may hold.
    """
    if not text.strip():
        raise ContractError("prompt", "is blank, expected a question or an instruction")
    frames = None if video_frames is None else np.stack(pictures_of("video_frames", video_frames))
    times: tuple[float, ...] | None = None
    indices: tuple[int, ...] | None = None
    if selection is not None and frames is not None:
        times, indices = _chosen(selection, len(frames))
    return Prompt(
        text=text,
        system=system,
        images=() if image is None else tuple(pictures_of("image", image)),
        video=frames,
        video_rate_hz=fps,
        video_timestamps_s=times,
        video_indices=indices,
    )


def answer(
    predictor: Predictor,
    prompt: Prompt,
    options: GenerationOptions,
    *,
    comfyui: Host,
    is_shown: bool = True,
) -> Generation:
    """
    Ask, show the answer on the node while it is written, and stop within a token when asked to.

    Raises:
        NodeStoppedError: If the person stopped the graph.
        GenerationError: If the model fell into a loop, or the answer was withheld.
        VlmcoreError: If there is no answer.
    """
    comfyui.raise_if_stopped()
    cancel = CancelToken()
    text, shown_s = "", time.monotonic()
    with (
        comfyui.when_stopped(cancel.cancel),
        predictor.stream(prompt, options, cancel=cancel) as stream,
    ):
        for count, piece in enumerate(stream, start=1):
            text += piece
            now_s = time.monotonic()
            if is_shown and now_s - shown_s >= _SHOWN_EVERY_S:
                shown_s = now_s
                comfyui.show_text(text)
                comfyui.progress(min(count, options.max_new_tokens), options.max_new_tokens)
            comfyui.raise_if_stopped()
    comfyui.raise_if_stopped()
    generation = stream.result
    problem = _PROBLEMS.get(generation.stop_reason)
    if problem is not None:
        raise GenerationError(predictor.info.model, problem)
    if is_shown:
        comfyui.show_text(generation.text)
    return generation


_PROBLEMS = {
    StopReason.REPETITION: "fell into a loop and repeats itself; try another prompt, a higher "
    "temperature or another model",
    StopReason.FILTERED: "its service withheld the answer, or the rest of it, for its content",
}


def _chosen(selection: Any, frames: int) -> tuple[tuple[float, ...], tuple[int, ...] | None]:
    if not isinstance(selection, FrameSelection):
        raise ContractError(
            "video_selection", f"got {type(selection).__name__}, expected a selection of frames"
        )
    if len(selection.frames) != frames:
        raise ContractError(
            "video_selection",
            f"is of {len(selection.frames)} frames, expected the {frames} of video_frames: take "
            "both from the same sampler",
        )
    indices = tuple(frame.index for frame in selection.frames if frame.index is not None)
    return selection.timestamps_s, indices if len(indices) == frames else None
