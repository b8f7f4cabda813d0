"""Many prompts at a server at once, within a window, and what is kept where some fail."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from vlmcore.errors import (
    IncompleteAnswersError,
    ModelNotServedError,
    ModelServerKeyError,
    ModelServerUnavailableError,
    VlmcoreError,
)
from vlmcore.vlm.generation import Generation
from vlmcore.vlm.prompt import Prompt

__all__ = ["answered_in_a_window"]

_OF_ALL = (ModelServerKeyError, ModelNotServedError, ModelServerUnavailableError)


async def answered_in_a_window(
    prompts: Sequence[Prompt],
    answer: Callable[[Prompt], Awaitable[Generation]],
    *,
    model: str,
    window: int,
) -> list[Generation]:
    """
    Answer *prompts*, no more than *window* at once, and give the answers in their order.

    Raises:
        IncompleteAnswersError: If one was not answered.
    """
    answers: list[Generation | VlmcoreError | None] = [None] * len(prompts)
    waiting = iter(enumerate(prompts))
    is_over = False

    async def work() -> None:
        nonlocal is_over
        for i, prompt in waiting:
            try:
                answers[i] = await answer(prompt)
            except VlmcoreError as error:
                answers[i] = error
                is_over = is_over or isinstance(error, _OF_ALL)
            if is_over:
                return

    workers = [asyncio.ensure_future(work()) for _ in range(min(window, len(prompts)))]
    try:
        await asyncio.gather(*workers)
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
    whole = [each for each in answers if isinstance(each, Generation)]
    if len(whole) < len(prompts):
        raise _incomplete(model, answers, len(whole))
    return whole


def _incomplete(
    model: str, answers: Sequence[Generation | VlmcoreError | None], whole: int
) -> IncompleteAnswersError:
    errors = [each for each in answers if isinstance(each, VlmcoreError)]
    first = errors[0]
    told = getattr(first, "problem", str(first))
    problem = f"{len(answers) - whole} of {len(answers)} prompts were not answered; first: {told}"
    return IncompleteAnswersError(model, problem, tuple(answers))
