"""What ``generate`` of transformers is told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import transformers

from vlmcore._optional import optional_dependency
from vlmcore.errors import GenerationError
from vlmcore.vlm.backends._conversation import ModelInputs
from vlmcore.vlm.backends._opening import OpenedModel
from vlmcore.vlm.backends._watching import Answer
from vlmcore.vlm.generation import GenerationCache, GenerationOptions

__all__ = ["end_tokens", "generation_config", "kept_to_output", "room_for"]

# What a checkpoint's generation settings say about the model itself, and not about how to decode.
_OF_THE_MODEL = (
    "bos_token_id",
    "eos_token_id",
    "pad_token_id",
    "decoder_start_token_id",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "bad_words_ids",
    "suppress_tokens",
    "begin_suppress_tokens",
)


def generation_config(
    model: Any, options: GenerationOptions, max_new_tokens: int
) -> transformers.GenerationConfig:
    """
    Express *options* in the terms of transformers.

    Of the checkpoint's own settings only those stay that belong to the model: its special tokens,
    and what it must never write. How to decode is said by the options alone: otherwise a
    checkpoint that samples at temperature 0.7, or stops after a time, would do so unasked. They
    are dropped from the model as well, since ``generate`` fills in from there what is not said.
    """
    own = model.generation_config
    kept = {name: getattr(own, name, None) for name in _OF_THE_MODEL}
    plain = {name: value for name, value in kept.items() if value is not None}
    model.generation_config = transformers.GenerationConfig(**plain)
    config = transformers.GenerationConfig(**plain)
    config.do_sample = options.samples
    if options.samples:
        config.temperature = float(options.temperature)
        config.top_p = float(options.top_p)
        config.top_k = options.top_k or 0
    config.repetition_penalty = float(options.repetition_penalty)
    config.max_new_tokens = max_new_tokens
    config.use_cache = True
    static = options.cache is GenerationCache.STATIC
    config.cache_implementation = "static" if static else None
    if config.pad_token_id is None:  # rows of a batch that have ended are filled with it
        ends = config.eos_token_id
        config.pad_token_id = ends[0] if isinstance(ends, list) else ends
    return config


def end_tokens(model: Any, processor: Any) -> frozenset[int]:
    """Return the ids of the tokens with which the model ends an answer."""
    ends = model.generation_config.eos_token_id
    if ends is None:
        ends = processor.tokenizer.eos_token_id
    if ends is None:
        return frozenset()
    return frozenset(ends if isinstance(ends, (list, tuple)) else [ends])


def room_for(model: Any, inputs: ModelInputs, options: GenerationOptions, *, name: str) -> int:
    """
    Return how many tokens can be written: as many as asked for, within the model's context.

    Raises:
        GenerationError: If the prompt alone fills the context.
    """
    text_config = model.config.get_text_config()
    context = getattr(text_config, "max_position_embeddings", None)
    if not isinstance(context, int) or context < 1:
        return options.max_new_tokens
    length = int(inputs.tensors["input_ids"].shape[1])
    if length >= context:
        raise GenerationError(
            name, f"the prompt has {length} tokens, expected fewer than its context of {context}"
        )
    return min(options.max_new_tokens, context - length)


def kept_to_output(
    opened: OpenedModel, answers: Sequence[Answer], options: GenerationOptions, *, name: str
) -> transformers.LogitsProcessorList:
    """
    Keep a model to the JSON that *options* ask for, if they ask for any.

    Raises:
        GenerationError: If no grammar can be made of the schema, or for the tokenizer.
        MissingDependencyError: If llguidance is not installed.
    """
    output = options.output
    if output is None or not output.constrained:
        return transformers.LogitsProcessorList()
    with optional_dependency("structure", "llguidance"):
        from vlmcore.vlm.backends._grammar import Grammar  # noqa: PLC0415 - the door
    grammar = Grammar(
        opened.processor.tokenizer,
        output,
        answers,
        end_tokens=end_tokens(opened.model, opened.processor),
        may_think=options.thinking is not False,
        model=name,
    )
    return transformers.LogitsProcessorList([grammar])
