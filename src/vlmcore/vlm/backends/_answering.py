"""One run of a model: prompts go in, answers come out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
import transformers

from vlmcore.limits import ReuseLimits
from vlmcore.vlm.backends._batch_memory import rows_that_fit
from vlmcore.vlm.backends._calls import Call
from vlmcore.vlm.backends._conversation import ModelInputs, prepare
from vlmcore.vlm.backends._generate import (
    end_tokens,
    generation_config,
    kept_to_output,
    room_for,
)
from vlmcore.vlm.backends._lookup import Lookup
from vlmcore.vlm.backends._numerics import numerics
from vlmcore.vlm.backends._opening import OpenedModel
from vlmcore.vlm.backends._reuse import Turn
from vlmcore.vlm.backends._watching import Answer, Watch
from vlmcore.vlm.generation import Generation, Timings

__all__ = ["answer_all"]


def answer_all(
    opened: OpenedModel, call: Call, *, model: str, reuse: ReuseLimits | None
) -> list[Generation]:
    """
    Answer the prompts of *call* as one batch.

    Args:
        opened: A model whose turn is taken.
        call: What is asked.
        model: The model's name, for errors.
        reuse: What may be kept for answers to come; ``None`` keeps and takes nothing.

    Raises:
        GenerationError: If the prompts do not fit, or the processor refuses one.
    """
    inputs = prepare(
        call.prompts,
        opened.processor,
        model=model,
        supports_video=opened.supports_video,
        thinking=call.options.thinking,
        device=opened.device,
        dtype=opened.dtype,
        digests=reuse is not None,
    )
    room = room_for(opened.model, inputs, call.options, name=model)
    fitting = rows_that_fit(opened.model, inputs, room, call.batch_bytes)
    if fitting < len(call.prompts):
        return answer_all(opened, call.of_first(fitting), model=model, reuse=reuse)
    prepared_s = call.elapsed_s
    answers = _answers(opened, inputs, call)
    watch = Watch(answers, call.cancels, started_s=call.started_s)
    copies = None if opened.copies is None else opened.copies.write
    lookup = Lookup(otherwise=copies) if call.options.prompt_lookup else None
    turn = Turn(opened.model, opened.kept, inputs, call.options, reuse)
    with numerics(call.options, opened.device), _kept_given_back(opened):
        opened.generate(
            **turn.arguments(),
            generation_config=generation_config(opened.model, call.options, room),
            logits_processor=kept_to_output(opened, answers, call.options, name=model),
            stopping_criteria=transformers.StoppingCriteriaList([watch]),
            custom_generate=lookup or copies,
        )
    turn.keep()
    timings = Timings(
        prepare_s=prepared_s, first_token_s=watch.first_token_s, total_s=call.elapsed_s
    )
    return [
        answer.finish(
            cancelled=watch.cancelled,
            prompt_tokens=count,
            timings=timings,
            reused=turn.reused,
            looked_up=None if lookup is None else lookup.report,
        )
        for answer, count in zip(answers, inputs.prompt_tokens, strict=True)
    ]


@contextmanager
def _kept_given_back(opened: OpenedModel) -> Iterator[None]:
    """Give back what is kept where memory runs out: the next call may then succeed."""
    try:
        yield
    except (torch.OutOfMemoryError, MemoryError):
        opened.kept.clear()
        raise


def _answers(opened: OpenedModel, inputs: ModelInputs, call: Call) -> list[Answer]:
    ends = end_tokens(opened.model, opened.processor)
    return [
        Answer(
            opened.processor.tokenizer,
            call.options,
            end_tokens=ends,
            in_reasoning=in_reasoning,
            show=call.show,
        )
        for in_reasoning in inputs.in_reasoning
    ]
