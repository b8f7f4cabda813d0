"""Following each answer of a batch while the model writes it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from transformers import StoppingCriteria

from vlmcore.vlm.answers import AnswerWriter
from vlmcore.vlm.backends._decoding import TokenDecoder
from vlmcore.vlm.generation import CancelToken, Generation, GenerationOptions, StopReason, Timings
from vlmcore.vlm.lookup import LookedUp
from vlmcore.vlm.repetition import LoopDetector, is_one_loop
from vlmcore.vlm.reuse import Reused

__all__ = ["Answer", "Watch"]


class Answer:
    """
    One answer of a batch, token by token.

    Args:
        tokenizer: The model's tokenizer.
        options: What was asked for.
        end_tokens: Token ids with which the model ends an answer.
        in_reasoning: Whether the prompt already opened the reasoning.
        show: Called with each piece of the answer.
    """

    def __init__(
        self,
        tokenizer: Any,
        options: GenerationOptions,
        *,
        end_tokens: frozenset[int],
        in_reasoning: bool,
        show: Callable[[str], None],
    ) -> None:
        self._decoder = TokenDecoder(tokenizer)
        self._writer = AnswerWriter(stop=options.stop, in_reasoning=in_reasoning)
        self._loops = LoopDetector() if options.stop_on_repetition else None
        self._end_tokens = end_tokens
        self._show = show
        self._tokens: list[int] = []
        self._stop_reason: StopReason | None = None

    @property
    def ended(self) -> bool:
        """Whether nothing more belongs to this answer."""
        return self._stop_reason is not None

    @property
    def has_begun(self) -> bool:
        """Whether the model has written a token of it."""
        return bool(self._tokens)

    @property
    def is_thinking(self) -> bool:
        """Whether the model is at its reasoning."""
        return self._writer.thinking

    def add(self, token: int) -> None:
        """Take the next token that the model wrote."""
        self._tokens.append(token)
        if token in self._end_tokens:
            self._stop_reason = StopReason.END
            return
        self._give(self._writer.write(self._decoder.add(token)))
        if self._writer.stopped:
            self._stop_reason = StopReason.END
        elif self._loops is not None and self._loops.add(token):
            self._stop_reason = StopReason.REPETITION

    def finish(
        self,
        *,
        cancelled: bool,
        prompt_tokens: int,
        timings: Timings,
        reused: Reused | None = None,
        looked_up: LookedUp | None = None,
    ) -> Generation:
        """Say that the model has stopped, and return the answer."""
        self._give(self._writer.write(self._decoder.finish()))
        self._give(self._writer.finish())
        return Generation(
            text=self._writer.text,
            reasoning=self._writer.reasoning,
            stop_reason=self._stop_reason or self._reason_from_outside(cancelled=cancelled),
            prompt_tokens=prompt_tokens,
            new_tokens=len(self._tokens),
            timings=timings,
            reused=reused,
            looked_up=looked_up,
        )

    def _reason_from_outside(self, *, cancelled: bool) -> StopReason:
        if cancelled:
            return StopReason.CANCELLED
        if self._loops is not None and is_one_loop(self._tokens):
            return StopReason.REPETITION
        return StopReason.LENGTH

    def _give(self, piece: str) -> None:
        if piece:
            self._show(piece)


class Watch(StoppingCriteria):
    """
    Hands each new token to the answer that it belongs to, and says which rows are to stop.

    ``generate`` calls a stopping criterion after every token, for batches too; a streamer of
    transformers takes batches of one only, and cannot stop anything.
    """

    def __init__(
        self, answers: Sequence[Answer], cancels: Iterable[CancelToken], *, started_s: float
    ) -> None:
        self._answers = answers
        self._cancels = tuple(cancels)
        self._started_s = started_s
        self.first_token_s: float | None = None

    @property
    def cancelled(self) -> bool:
        """Whether one of the cancel tokens was used."""
        return any(token.cancelled for token in self._cancels)

    def __call__(self, input_ids: torch.Tensor, _scores: Any, **_: Any) -> torch.Tensor:
        """Take the newest token of each row, shape ``[B, L]``, and return who stops, ``[B]``."""
        newest = input_ids[:, -1].tolist()
        if self.first_token_s is None:
            self.first_token_s = time.monotonic() - self._started_s
        for answer, token in zip(self._answers, newest, strict=True):
            if not answer.ended:  # the rest of a row that has ended is padding
                answer.add(token)
        done = [answer.ended or self.cancelled for answer in self._answers]
        return torch.tensor(done, dtype=torch.bool, device=input_ids.device)
