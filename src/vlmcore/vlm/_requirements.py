"""What every predictor requires of the arguments of its calls."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from vlmcore.errors import ContractError
from vlmcore.vlm.generation import CancelToken, GenerationOptions
from vlmcore.vlm.prompt import Prompt

__all__ = ["cancel_tokens", "listed", "require_call"]


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
