"""A loop of our own inside ``generate`` of transformers: what every such loop does."""

from __future__ import annotations

import inspect
from typing import Any, Protocol

import torch
import transformers
from transformers.cache_utils import DynamicLayer

__all__ = [
    "CACHE",
    "IS_KNOWN_RELEASE",
    "Copies",
    "Writer",
    "Writing",
    "cache_of",
    "keeps_every_token",
    "write_plainly",
]

_mixin: Any = transformers.GenerationMixin  # its annotations are partial
IS_KNOWN_RELEASE = hasattr(_mixin, "_prefill") and (
    "next_sequence_length" in inspect.signature(_mixin.prepare_inputs_for_generation).parameters
)  # the methods below are those of transformers 5
# transformers has called the argument both, and warns where it is given the older name.
CACHE = (
    "cache"
    if "cache" in inspect.signature(_mixin.prepare_inputs_for_generation).parameters
    else "past_key_values"
)


def cache_of(given: Any) -> Any:
    """Return the cache of keys and values in what a model is given, or gives."""
    return given.get(CACHE)


def keeps_every_token(cache: Any) -> bool:
    """Whether each layer of a cache keeps every token, as one that slides or sums up does not."""
    layers = getattr(cache, "layers", ())
    return bool(layers) and all(type(layer) is DynamicLayer for layer in layers)


class Writer(Protocol):
    """A loop as ``generate`` takes it for its ``custom_generate``."""

    def __call__(
        self,
        model: Any,
        input_ids: torch.Tensor,
        *,
        logits_processor: Any,
        stopping_criteria: Any,
        generation_config: Any,
        **given: Any,
    ) -> torch.Tensor:
        """Write after *input_ids*, ``[B, L]``, and return them with what was written."""
        ...


class Copies(Protocol):
    """What steps of one token read in place of the weights."""

    @property
    def write(self) -> Writer:
        """The loop that reads them, for one prompt."""
        ...

    @property
    def nbytes(self) -> int:
        """What they hold."""
        ...

    @property
    def report(self) -> str:
        """What is copied, and whether it is the same numbers."""
        ...

    def drop(self) -> None:
        """Give their memory back."""
        ...


def write_plainly(model: Any, input_ids: torch.Tensor, **given: Any) -> torch.Tensor:
    """Write as transformers does; a `Writer`."""
    written: torch.Tensor = model._sample(input_ids, **given)  # noqa: SLF001
    return written


class Writing:
    """
    One answer as it is written.

    Args:
        model: A model of transformers.
        ids: The tokens of one prompt, ``[1, L]``.
        processor: What ``generate`` has made of the options that change scores.
        criteria: What it has made of those that end an answer.
        config: How it is to write.
    """

    def __init__(
        self, model: Any, ids: torch.Tensor, processor: Any, criteria: Any, config: Any
    ) -> None:
        self._model, self.ids, self._config = model, ids, config
        self._processor, self._criteria = processor, criteria

    @property
    def room(self) -> int:
        """How many more tokens may be written."""
        most: int = self._config.max_length
        return most - self.ids.shape[1]

    def read_prompt(self, given: dict[str, Any]) -> Any:
        """Have the model read the prompt, as ``generate`` itself begins."""
        return self._model._prefill(  # noqa: SLF001
            self.ids, self._config, given, is_first_iteration=True
        )

    def choose(self, logits: torch.Tensor) -> int:
        """Take the next token by its logits, ``[V]``."""
        scores = self._processor(self.ids, logits[None].to(torch.float32, copy=True))
        if self._config.do_sample:
            token = torch.multinomial(scores.softmax(dim=-1), num_samples=1)
        else:
            token = scores.argmax(dim=-1, keepdim=True)
        self.ids = torch.cat([self.ids, token], dim=1)
        return int(token)

    def is_over(self) -> bool:
        """Whether the last token was the last."""
        return bool(self._criteria(self.ids, None).all())

    def grown(self, given: dict[str, Any], outputs: Any, tokens: int) -> dict[str, Any]:
        """Return the arguments of the model for so many more tokens."""
        grown = dict(given)
        for _ in range(tokens):
            grown = self._model._update_model_kwargs_for_generation(outputs, grown)  # noqa: SLF001
        return grown

    def inputs(self, given: dict[str, Any], guess: list[int]) -> dict[str, Any]:
        """Return the inputs of a pass over the last token and a guess of what follows."""
        asked = torch.cat([self.ids, self.ids.new_tensor([guess], dtype=self.ids.dtype)], dim=1)
        length = len(guess) + 1
        inputs: dict[str, Any] = self._model.prepare_inputs_for_generation(
            asked, next_sequence_length=length, **given
        )
        if "logits_to_keep" in inputs:
            inputs["logits_to_keep"] = length
        return inputs
