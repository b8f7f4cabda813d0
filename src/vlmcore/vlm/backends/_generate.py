"""What ``generate`` of transformers is told."""

from __future__ import annotations

import copy
from typing import Any

import transformers

from vlmcore.errors import GenerationError
from vlmcore.vlm.backends._conversation import ModelInputs
from vlmcore.vlm.generation import GenerationCache, GenerationOptions

__all__ = ["end_tokens", "generation_config", "room_for"]


def generation_config(
    model: Any, options: GenerationOptions, max_new_tokens: int
) -> transformers.GenerationConfig:
    """
    Express *options* in the terms of transformers.

    Everything that an option speaks of is set, also to "off": otherwise the checkpoint's own
    defaults, often sampling at temperature 0.7, would stand in for what was not said.
    """
    config: transformers.GenerationConfig = copy.deepcopy(model.generation_config)
    config.do_sample = options.samples
    # Values that mean "off" and that transformers does not warn about in greedy decoding.
    config.temperature = options.temperature if options.samples else 1.0
    config.top_p = options.top_p if options.samples else 1.0
    config.top_k = (options.top_k or 0) if options.samples else 50
    config.repetition_penalty = options.repetition_penalty
    config.num_beams = 1
    config.max_length = None
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
