"""
Writing several tokens at once, where the answer repeats what was said before.

The tokens that followed the last few the last time they were seen are guessed to follow again. One
pass of the model over the guess tells its own choice at each place, and the guess is taken as far
as it is that choice. So the answer is the greedy one; but the sums of a pass over several tokens
are rounded otherwise than those of a pass over one. In float32 the tests see the same tokens; in
shorter formats a rounding weighs more, so there nothing is looked up.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import takewhile
from typing import Any

import attrs
import torch

from vlmcore.vlm.backends._writing import (
    IS_KNOWN_RELEASE,
    Writer,
    Writing,
    cache_of,
    keeps_every_token,
    write_plainly,
)
from vlmcore.vlm.lookup import LookedUp

__all__ = ["Lookup", "Past"]

_LONGEST, _SHORTEST = 4, 2  # how many of the last tokens are looked up
_MOST_GUESSED = 16
_VISION_TOKENS = ("image_token_id", "image_token_index", "video_token_id", "video_token_index")


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

    Where nothing can be looked up, the answer is written as it is without, and `report` says why.

    Args:
        otherwise: Writes where nothing can be looked up, since steps of one token read other
            weights than those of several; ``None`` where they do not.
    """

    def __init__(self, *, otherwise: Writer | None = None) -> None:
        self._otherwise = otherwise
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
        why = self._obstacle(model, input_ids, generation_config, given)
        if why:
            self.report = LookedUp(plain_because=why)
            return (self._otherwise or write_plainly)(
                model,
                input_ids,
                logits_processor=logits_processor,
                stopping_criteria=stopping_criteria,
                generation_config=generation_config,
                **given,
            )
        for name in ("synced_gpus", "streamer"):
            given.pop(name, None)
        loop = _Loop(
            model,
            Writing(model, input_ids, logits_processor, stopping_criteria, generation_config),
        )
        written = loop.write(given)
        self.report = loop.report
        return written

    def _obstacle(self, model: Any, ids: torch.Tensor, config: Any, given: dict[str, Any]) -> str:
        obstacles = {
            "transformers before 5 tells a pass over several tokens otherwise": (
                not IS_KNOWN_RELEASE
            ),
            "several prompts are answered at once": len(ids) != 1,
            "the answer is sampled": config.do_sample,
            "in any format but float32, rounding could change the answer": model.dtype
            is not torch.float32,
            "steps of one token read copies of the weights": self._otherwise is not None,
            "its cache of keys and values cannot be shortened": not keeps_every_token(
                cache_of(given)
            ),
        }
        return next((reason for reason, is_so in obstacles.items() if is_so), "")


class _Loop:
    """The loop over one prompt."""

    def __init__(self, model: Any, writing: Writing) -> None:
        self._model, self._writing = model, writing
        named = [getattr(model.config, name, None) for name in _VISION_TOKENS]
        never = [token for token in named if isinstance(token, int)]
        self._past = Past(writing.ids[0].tolist(), never)
        self.report = LookedUp()

    def write(self, given: dict[str, Any]) -> torch.Tensor:
        outputs = self._writing.read_prompt(given)
        taken, goes_on = self._take(outputs.logits[0, -1:], [])
        most = 1
        while goes_on:
            given = self._writing.grown(given, outputs, taken)
            guess = self._past.guess(min(most, self._writing.room - 1))
            grown = self._writing.grown(given, outputs, len(guess))
            outputs = self._model(**self._writing.inputs(grown, guess), return_dict=True)
            taken, goes_on = self._take(outputs.logits[0, -len(guess) - 1 :], guess)
            _shorten(outputs, self._writing.ids.shape[1] - 1)
            self._count(len(guess), taken - 1)
            most = min(2 * taken, _MOST_GUESSED)  # a guess that fails costs more, the longer it is
        return self._writing.ids

    def _take(self, logits: torch.Tensor, guess: list[int]) -> tuple[int, bool]:
        """Take tokens as far as the guess holds, and the one after; say whether to go on."""
        for place, row in enumerate(logits):
            token = self._writing.choose(row)
            self._past.add(token)
            if self._writing.is_over():
                return place + 1, False
            if place < len(guess) and token != guess[place]:
                break
        return place + 1, True

    def _count(self, guessed: int, accepted: int) -> None:
        self.report = attrs.evolve(
            self.report,
            passes=self.report.passes + 1,
            guessed_tokens=self.report.guessed_tokens + guessed,
            accepted_tokens=self.report.accepted_tokens + accepted,
        )


def _shorten(outputs: Any, length: int) -> None:
    """Forget keys and values past *length*: ``crop`` has changed what its argument means."""
    for layer in cache_of(outputs).layers:
        layer.keys, layer.values = layer.keys[:, :, :length], layer.values[:, :, :length]
