"""
Writing several tokens at once, where the answer repeats what was said before.

The tokens that followed the last few the last time they were seen are guessed to follow again. One
pass of the model over the guess tells its own choice at each place, and the guess is taken as far
as it is that choice. So the answer is the greedy one; but the sums of a pass over several tokens
are rounded otherwise than those of a pass over one. In float32 the tests see the same tokens; in
shorter formats a rounding weighs more, so there nothing is looked up.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterable
from itertools import takewhile
from typing import Any

import attrs
import torch
import transformers
from transformers.cache_utils import DynamicLayer

from vlmcore.vlm.backends._opening import OpenedModel
from vlmcore.vlm.generation import GenerationOptions
from vlmcore.vlm.lookup import LookedUp

__all__ = ["Lookup", "Past", "lookup_for"]

_LONGEST, _SHORTEST = 4, 2  # how many of the last tokens are looked up
_MOST_GUESSED = 16
_VISION_TOKENS = ("image_token_id", "image_token_index", "video_token_id", "video_token_index")
_mixin: Any = transformers.GenerationMixin  # its annotations are partial
_IS_KNOWN_RELEASE = hasattr(_mixin, "_prefill") and (
    "next_sequence_length" in inspect.signature(_mixin.prepare_inputs_for_generation).parameters
)


class Past:
    """
    The tokens so far, and what followed each few of them.

    Args:
        tokens: Those of the prompt.
        never: Tokens that stand for pictures: they are neither looked up nor guessed.

    Example:
        >>> past = Past([5, 6, 7, 8, 5, 6])
        >>> past.guess(3)
        [7, 8, 5]
    """

    def __init__(self, tokens: Iterable[int], never: Collection[int] = ()) -> None:
        self._never = frozenset(never)
        self._tokens: list[int] = []
        self._after: dict[tuple[int, ...], int] = {}
        for token in tokens:
            self.add(token)

    def add(self, token: int) -> None:
        """Take the next token."""
        for few in self._endings():
            self._after[few] = len(self._tokens)
        self._tokens.append(token)

    def guess(self, most: int) -> list[int]:
        """Return what followed the last few tokens when they were last seen, *most* at most."""
        for few in self._endings():
            if few in self._after:
                followed = self._tokens[self._after[few] :][:most]
                return list(takewhile(lambda token: token not in self._never, followed))
        return []

    def _endings(self) -> list[tuple[int, ...]]:
        """Return the last few tokens, the longest ending first; none that has a picture in it."""
        last = self._tokens[-_LONGEST:]
        sizes = range(len(last), _SHORTEST - 1, -1)
        return [few for few in (tuple(last[-n:]) for n in sizes) if self._never.isdisjoint(few)]


class Lookup:
    """
    A loop for ``generate`` of transformers, as its ``custom_generate``.

    Where nothing can be looked up, the answer is written as transformers does it, and `report` says
    why.

    Args:
        has_copies: Whether the steps of one token read other weights than those of several.
    """

    def __init__(self, *, has_copies: bool = False) -> None:
        self._has_copies = has_copies
        self.report = LookedUp()

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
        rest = {"logits_processor": logits_processor, "generation_config": generation_config}
        why = self._obstacle(model, input_ids, generation_config, given)
        if why:
            self.report = LookedUp(plain_because=why)
            rest["stopping_criteria"] = stopping_criteria
            plain: torch.Tensor = model._sample(input_ids, **rest, **given)  # noqa: SLF001
            return plain
        for name in ("synced_gpus", "streamer"):
            given.pop(name, None)
        loop = _Loop(model, input_ids, logits_processor, stopping_criteria)
        written = loop.write(generation_config, given)
        self.report = loop.report
        return written

    def _obstacle(self, model: Any, ids: torch.Tensor, config: Any, given: dict[str, Any]) -> str:
        cache = given.get("cache", given.get("past_key_values"))
        layers = getattr(cache, "layers", ())
        obstacles = {
            "transformers before 5 tells a pass over several tokens otherwise": (
                not _IS_KNOWN_RELEASE
            ),
            "several prompts are answered at once": len(ids) != 1,
            "the answer is sampled": config.do_sample,
            "in any format but float32, rounding could change the answer": model.dtype
            is not torch.float32,
            "steps of one token read copies of the weights": self._has_copies,
            "its cache of keys and values cannot be shortened": not layers
            or any(type(layer) is not DynamicLayer for layer in layers),
        }
        return next((reason for reason, is_so in obstacles.items() if is_so), "")


def lookup_for(opened: OpenedModel, options: GenerationOptions) -> Lookup | None:
    """Return the loop that *options* ask for, or ``None`` for that of transformers."""
    return Lookup(has_copies=opened.copies is not None) if options.prompt_lookup else None


class _Loop:
    """The loop over one prompt."""

    def __init__(self, model: Any, ids: torch.Tensor, processor: Any, criteria: Any) -> None:
        self._model, self._ids = model, ids
        self._processor, self._criteria = processor, criteria
        named = [getattr(model.config, name, None) for name in _VISION_TOKENS]
        never = [token for token in named if isinstance(token, int)]
        self._past = Past(ids[0].tolist(), never)
        self.report = LookedUp()

    def write(self, config: Any, given: dict[str, Any]) -> torch.Tensor:
        outputs = self._model._prefill(  # noqa: SLF001 - what `generate` itself begins with
            self._ids, config, given, is_first_iteration=True
        )
        taken, goes_on = self._take(outputs.logits[0, -1:], [])
        most = 1
        while goes_on:
            given = self._grown(given, outputs, taken)
            room = config.max_length - self._ids.shape[1] - 1
            guess = self._past.guess(min(most, room))
            outputs = self._pass(guess, self._grown(given, outputs, len(guess)))
            taken, goes_on = self._take(outputs.logits[0, -len(guess) - 1 :], guess)
            _shorten(outputs, self._ids.shape[1] - 1)
            self._count(len(guess), taken - 1)
            most = min(2 * taken, _MOST_GUESSED)  # a guess that fails costs more, the longer it is
        return self._ids

    def _pass(self, guess: list[int], given: dict[str, Any]) -> Any:
        asked = torch.cat([self._ids, self._ids.new_tensor([guess])], dim=1)
        length = len(guess) + 1
        inputs = self._model.prepare_inputs_for_generation(
            asked, next_sequence_length=length, **given
        )
        if "logits_to_keep" in inputs:
            inputs["logits_to_keep"] = length
        return self._model(**inputs, return_dict=True)

    def _take(self, logits: torch.Tensor, guess: list[int]) -> tuple[int, bool]:
        """Take tokens as far as the guess holds, and the one after; say whether to go on."""
        for place, row in enumerate(logits):
            scores = self._processor(self._ids, row[None].to(torch.float32, copy=True))
            token = scores.argmax(dim=-1)
            self._ids = torch.cat([self._ids, token[:, None]], dim=1)
            self._past.add(int(token))
            if bool(self._criteria(self._ids, None).all()):
                return place + 1, False
            if place < len(guess) and int(token) != guess[place]:
                break
        return place + 1, True

    def _grown(self, given: dict[str, Any], outputs: Any, tokens: int) -> dict[str, Any]:
        """Return the arguments of the model for so many more tokens."""
        grown = dict(given)
        for _ in range(tokens):
            grown = self._model._update_model_kwargs_for_generation(outputs, grown)  # noqa: SLF001
        return grown

    def _count(self, guessed: int, accepted: int) -> None:
        self.report = attrs.evolve(
            self.report,
            passes=self.report.passes + 1,
            guessed_tokens=self.report.guessed_tokens + guessed,
            accepted_tokens=self.report.accepted_tokens + accepted,
        )


def _shorten(outputs: Any, length: int) -> None:
    """Forget keys and values past *length*: ``crop`` has changed what its argument means."""
    cache = outputs.get("cache", outputs.get("past_key_values"))
    for layer in cache.layers:
        layer.keys, layer.values = layer.keys[:, :, :length], layer.values[:, :, :length]
