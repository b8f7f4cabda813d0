"""Questions to hosted models, and their answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from vlmcore._arrays import UInt8Array
from vlmcore.errors import ContractError
from vlmcore.vlm.generation import GenerationOptions
from vlmcore.vlm.prompt import Prompt
from vlmcore.vlm.remote.pictures import PictureRules
from vlmcore_comfy.answering import answer
from vlmcore_comfy.conversations import recall
from vlmcore_comfy.hosted import KEPT, HostedModel, output_from
from vlmcore_comfy.hosting import Host
from vlmcore_comfy.images import pictures_of

__all__ = ["ask_hosted", "evenly", "picture_rules", "question_from"]

_LOW_PX = 512


def question_from(
    node: str | None, *, description: str, question: str, is_chat: bool, exchanges: int
) -> tuple[str, str]:
    """
    Put a question together with what was said before.

    Returns:
        The question, and the system's text.

    Raises:
        ContractError: If there is nothing to ask.
    """
    asked = question.strip()
    if not is_chat or not asked:
        asked = "\n\n".join(part for part in (description.strip(), asked) if part)
    if not asked:
        raise ContractError("question", "is blank, expected a question")
    before = recall(node, exchanges)
    if before:
        said = "\n\n".join(f"User: {each.question}\nAssistant: {each.answer}" for each in before)
        asked = f"Earlier in this conversation:\n\n{said}\n\nUser: {asked}"
    return asked, description.strip() if is_chat and question.strip() else ""


def ask_hosted(
    hosted: HostedModel,
    question: str,
    system: str,
    *,
    frames: Sequence[UInt8Array] = (),
    max_tokens: int,
    seed: int = 0,
    output_format: str,
    json_schema: str,
    comfyui: Host,
    is_shown: bool,
) -> str:
    """
    Ask, and give the text; JSON is checked before.

    Raises:
        NodeStoppedError: If the person stopped the graph.
        VlmcoreError: If there is no answer, or it is not of the form that was asked for.
    """
    if not question.strip():
        raise ContractError("prompt", "is blank, expected a question or an instruction")
    options = GenerationOptions(
        max_new_tokens=max_tokens,
        seed=hosted.seed(seed),
        output=output_from(output_format, json_schema),
    )
    prompt = Prompt(text=question, system=system, images=tuple(frames))
    predictor = KEPT.get(hosted, hosted.open)
    said = answer(predictor, prompt, options, comfyui=comfyui, is_shown=is_shown)
    if said.structure_error is not None:
        raise said.structure_error
    return said.text


def evenly(images: Any, most: int) -> list[UInt8Array]:
    """
    Take at most *most* pictures of a batch, evenly from the first to the last.

    Raises:
        ContractError: If it is no IMAGE.
    """
    if images is None:
        return []
    count = len(images) if getattr(images, "ndim", 0) == 4 else 0
    if count > most:
        images = images[np.linspace(0, count - 1, most).round().astype(int).tolist()]
    return pictures_of("images", images)


def picture_rules(longest_edge_px: int, quality: int, *, is_low: bool) -> PictureRules:
    """Say how pictures are sent."""
    edge = min(longest_edge_px, _LOW_PX) if is_low else longest_edge_px
    return PictureRules(longest_edge_px=edge, quality=quality)
