"""Which prompts are given to a model at once, and what happens where they are too many."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from vlmcore.errors import ModelMemoryError
from vlmcore.vlm.batch import Batched
from vlmcore.vlm.generation import Generation
from vlmcore.vlm.prompt import Prompt

__all__ = ["answer_in_batches"]

_ESTIMATED = "more than {} at once would take more memory than there is for them, by estimate"
_RAN_OUT = "memory ran out with {} at once"


def answer_in_batches(
    prompts: Sequence[Prompt], size: int, answer: Callable[[Sequence[Prompt]], list[Generation]]
) -> list[Generation]:
    """
    Answer *prompts* in batches of those that are alike, and return the answers in their order.

    Prompts of one batch all have images or none, and a video or none. They are taken by length, so
    that little of a batch is padding. Where fewer fit, those that are no shorter are asked so few
    at once. Where memory runs out, a batch is asked again in halves, and no batch after it is
    larger than those. Each answer says with how many it was answered, and why not with more.

    Args:
        prompts: What to ask.
        size: The most prompts of a batch.
        answer: Answers one batch, or as many of its first prompts as fit into memory.

    Raises:
        ModelMemoryError: If memory does not suffice for a single prompt.
    """
    answers: dict[int, Generation] = {}
    ran_out = ""
    for group in _alike(prompts):
        waiting = sorted(group, key=lambda index: _length(prompts[index]))
        most, because = size, ran_out
        while waiting:
            batch = waiting[:most]
            try:
                answered = answer([prompts[index] for index in batch])
            except ModelMemoryError:
                if len(batch) == 1:
                    raise
                size = most = len(batch) // 2
                ran_out = because = _RAN_OUT.format(len(batch))
                continue
            if len(answered) < len(batch):
                most, because = len(answered), _ESTIMATED.format(len(answered))
            told = Batched(size=len(answered), smaller_because=because)
            for index, each in zip(batch, answered, strict=False):
                answers[index] = attrs.evolve(each, batched=told)
            waiting = waiting[len(answered) :]
    return [answers[index] for index in range(len(prompts))]


def _alike(prompts: Sequence[Prompt]) -> list[list[int]]:
    groups: dict[tuple[bool, bool], list[int]] = {}
    for index, prompt in enumerate(prompts):
        kind = (bool(prompt.images), prompt.video is not None)
        groups.setdefault(kind, []).append(index)
    return list(groups.values())


def _length(prompt: Prompt) -> tuple[int, int]:
    """Order prompts by their pixels, which are most of their tokens, then by their words."""
    frames = 0 if prompt.video is None else int(prompt.video.size)
    pixels = frames + sum(int(image.size) for image in prompt.images)
    return pixels, len(prompt.text) + len(prompt.system)
