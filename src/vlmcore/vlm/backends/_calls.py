"""One call of a predictor: its arguments checked, and what they ask for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import attrs

from vlmcore.errors import ContractError
from vlmcore.vlm.generation import (
    CancelToken,
    Generation,
    GenerationOptions,
    StopReason,
    Timings,
)
from vlmcore.vlm.prompt import Prompt

__all__ = ["Call", "cancel_tokens", "listed", "not_begun", "require_call"]


@attrs.frozen(eq=False)
class Call:
    """One call of a predictor: what was asked, and who wants to see or stop the answer."""

    prompts: Sequence[Prompt]
    options: GenerationOptions
    cancels: Sequence[CancelToken]
    show: Callable[[str], None]
    started_s: float = attrs.field(factory=time.monotonic, init=False)

    @property
    def elapsed_s(self) -> float:
        """Seconds since the call."""
        return time.monotonic() - self.started_s


def listed(prompts: Iterable[Prompt]) -> list[Prompt]:
    """Take a list of *prompts*, whatever holds them."""
    if isinstance(prompts, (str, Prompt)) or not isinstance(prompts, Iterable):
        raise ContractError("prompts", f"got {type(prompts).__name__}, expected a list of Prompt")
    return list(prompts)


def require_call(prompts: Sequence[Any], options: Any) -> None:
    """Require prompts and options, and not what looks like them."""
    for prompt in prompts:
        if not isinstance(prompt, Prompt):
            problem = f"got {type(prompt).__name__}, expected a Prompt, as Prompt.of(text, image)"
            raise ContractError("prompt", problem)
    if not isinstance(options, GenerationOptions):
        problem = f"got {type(options).__name__}, expected GenerationOptions"
        raise ContractError("options", problem)


def cancel_tokens(cancel: CancelToken | None) -> tuple[CancelToken, ...]:
    """Take the token that a caller may have given."""
    if cancel is None:
        return ()
    if not isinstance(cancel, CancelToken):
        raise ContractError("cancel", f"got {type(cancel).__name__}, expected a CancelToken")
    return (cancel,)


def not_begun(call: Call) -> Generation:
    """Answer a prompt that was cancelled before the model saw it."""
    waited_s = call.elapsed_s
    return Generation(
        text="",
        stop_reason=StopReason.CANCELLED,
        prompt_tokens=0,
        new_tokens=0,
        timings=Timings(prepare_s=waited_s, first_token_s=None, total_s=waited_s),
    )
