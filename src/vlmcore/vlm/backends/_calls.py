"""One call of a predictor: its arguments checked, and what they ask for."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import attrs

from vlmcore.vlm._requirements import cancel_tokens, listed, require_call
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
    batch_bytes: int | None = None
    started_s: float = attrs.field(factory=time.monotonic)

    @property
    def elapsed_s(self) -> float:
        """Seconds since the call."""
        return time.monotonic() - self.started_s

    def of_first(self, count: int) -> Call:
        """Return the same call with the first *count* prompts only."""
        return attrs.evolve(self, prompts=self.prompts[:count])


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
