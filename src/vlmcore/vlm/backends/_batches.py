"""Which prompts are given to a model at once, and what happens where they are too many."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from vlmcore.errors import ModelMemoryError
from vlmcore.vlm.generation import Generation
from vlmcore.vlm.prompt import Prompt

__all__ = ["answer_in_batches"]


def answer_in_batches(
    prompts: Sequence[Prompt], size: int, answer: Callable[[Sequence[Prompt]], list[Generation]]
) -> list[Generation]:
    """
    Answer *prompts* in batches of those that are alike, and return the answers in their order.

    Prompts of one batch all have images or none, and a video or none. They are taken by length, so
    that little of a batch is padding. Where memory runs out, a batch is asked again in halves, and
    no batch after it is larger than those.

    Args:
        prompts: What to ask.
        size: The most prompts of a batch.
        answer: Answers one batch.

    Raises:
        ModelMemoryError: If memory does not suffice for a single prompt.
    """
    answers: dict[int, Generation] = {}
    for group in _alike(prompts):
        waiting = sorted(group, key=lambda index: _length(prompts[index]))
        while waiting:
            batch = waiting[:size]
            try:
                answered = answer([prompts[index] for index in batch])
            except ModelMemoryError:
                if len(batch) == 1:
                    raise
                size = len(batch) // 2
                continue
            answers.update(zip(batch, answered, strict=True))
            waiting = waiting[len(batch) :]
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
