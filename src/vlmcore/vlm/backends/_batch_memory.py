"""How many prompts fit into memory at once, by estimate, before the model is given them."""

from __future__ import annotations

from typing import Any

import torch

from vlmcore.vlm.backends._conversation import ModelInputs
from vlmcore.vlm.backends._placing import free_bytes

__all__ = ["bytes_of_one", "kept_bytes", "rows_that_fit"]

_SHARE = 0.75  # of what is free: the estimate is one


def rows_that_fit(model: Any, inputs: ModelInputs, room: int, budget_bytes: int | None) -> int:
    """
    Return how many rows of a batch fit into memory, at least one.

    Args:
        model: A model of transformers.
        inputs: The whole batch.
        room: How many tokens each answer may have.
        budget_bytes: What the batch may take; ``None`` for three quarters of what is free on the
            model's device.
    """
    rows = len(inputs.prompt_tokens)
    if rows == 1:
        return 1
    if budget_bytes is None:
        free = free_bytes(model.device)
        if free is None:
            return rows
        budget_bytes = int(free * _SHARE)
    return min(rows, max(1, budget_bytes // bytes_of_one(model, inputs, room)))


def bytes_of_one(model: Any, inputs: ModelInputs, room: int) -> int:
    """Estimate what one row takes: keys and values, the pass over the prompt, and the pictures."""
    text = model.config.get_text_config(decoder=True)
    length = int(inputs.tensors["input_ids"].shape[1])  # padding is computed like the rest
    wide = _between(text) * length * model.dtype.itemsize
    if model.config._attn_implementation == "eager":  # noqa: SLF001 - there is no other
        wide += text.num_attention_heads * length * length * model.dtype.itemsize
    logits = 3 * text.vocab_size * torch.float32.itemsize
    rows = len(inputs.prompt_tokens)
    seen = _seen(model, inputs) // rows
    return int(kept_bytes(model, length + room) + wide + logits + seen)


def kept_bytes(model: Any, tokens: int) -> int:
    """Return what keys and values of so many tokens take, if every layer keeps each."""
    text = model.config.get_text_config(decoder=True)
    heads = getattr(text, "num_key_value_heads", None) or text.num_attention_heads
    width = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
    return int(2 * text.num_hidden_layers * heads * width * model.dtype.itemsize * tokens)


def _seen(model: Any, inputs: ModelInputs) -> int:
    """Estimate what the pictures of the whole batch take, with the vision tower's work."""
    pixels = [t for t in inputs.tensors.values() if _is_of_pixels(t)]
    vision = getattr(model.config, "vision_config", None)
    numbers_of_one = 3 * int(getattr(vision, "patch_size", None) or 1) ** 2
    patches = sum(t.numel() for t in pixels) // numbers_of_one
    work = patches * _between(vision) * model.dtype.itemsize if vision is not None else 0
    return int(sum(t.nbytes for t in pixels) + work)


def _is_of_pixels(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def _between(config: Any) -> int:
    """Estimate how many numbers a layer holds for each of its tokens while it computes."""
    hidden = int(getattr(config, "hidden_size", None) or 0)
    return 4 * hidden + 3 * int(getattr(config, "intermediate_size", None) or 4 * hidden)
