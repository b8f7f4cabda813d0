"""Tokens that may come next in an answer that has to fit a schema; the grammar is llguidance's."""

from __future__ import annotations

import json
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from llguidance import LLMatcher, LLTokenizer
from llguidance.numpy import allocate_token_bitmask, fill_next_token_bitmask
from transformers import LogitsProcessor

from vlmcore.errors import GenerationError
from vlmcore.secrets import redact
from vlmcore.vlm.answers import THINKING_TAGS
from vlmcore.vlm.backends._watching import Answer
from vlmcore.vlm.outputs import JsonOutput

__all__ = ["Grammar"]

# One space, and nothing else: a model that could write white space for ever does so sometimes.
# What the grammar has no rule for, as `not`, it lets pass: the answer is validated in any case.
_SPACING = {
    "whitespace_flexible": False,
    "item_separator": ", ",
    "key_separator": ": ",
    "lenient": True,
}
_tokenizers: weakref.WeakKeyDictionary[Any, LLTokenizer] = weakref.WeakKeyDictionary()


class Grammar(LogitsProcessor):
    """
    Leaves only tokens that go on to what is asked for, row by row; reasoning is left free.

    Args:
        tokenizer: A fast tokenizer of transformers.
        output: What is asked for.
        answers: The answer of each row, which sees each token before the next is chosen.
        end_tokens: Token ids with which the model ends an answer.
        may_think: Whether a model may open its reasoning before the answer.
        model: The model as the caller named it, for errors.

    Raises:
        GenerationError: If the tokenizer or the schema is none that the grammar takes.
    """

    def __init__(
        self,
        tokenizer: Any,
        output: JsonOutput,
        answers: Sequence[Answer],
        *,
        end_tokens: frozenset[int],
        may_think: bool,
        model: str,
    ) -> None:
        self._model = model
        self._answers = answers
        known = self._known(tokenizer, end_tokens)
        plain = output.plain_schema()
        schema = {**({"type": "object"} if plain is None else plain), "x-guidance": _SPACING}
        matcher = LLMatcher(
            known, LLMatcher.grammar_from_json_schema(json.dumps(schema)), log_level=0
        )
        self._require_well(matcher)
        self._matchers = [matcher.deep_copy() for _ in answers]
        # Whether the newest token of each row was chosen among those of the grammar.
        self._is_held = [False] * len(answers)
        self._ends = sorted(end_tokens)
        self._bits = allocate_token_bitmask(1, known.vocab_size)
        self._openings = _opening_tokens(tokenizer) if may_think else []

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Take the tokens, shape ``[B, L]``, and return *scores*, ``[B, V]``, of what may come."""
        newest = input_ids[:, -1].tolist()
        allowed = torch.ones(scores.shape, dtype=torch.bool)
        for row, answer in enumerate(self._answers):
            if answer.ended:
                continue
            if self._is_held[row] and not answer.is_thinking:
                self._matchers[row].consume_token(newest[row])
            self._is_held[row] = not answer.is_thinking
            if self._is_held[row]:
                allowed[row] = self._allowed(row, scores.shape[-1], is_first=not answer.has_begun)
        return scores.masked_fill(~allowed.to(scores.device), -torch.inf)

    def _allowed(self, row: int, width: int, *, is_first: bool) -> torch.Tensor:
        matcher = self._matchers[row]
        self._require_well(matcher)
        fill_next_token_bitmask(matcher, self._bits)
        bits = np.unpackbits(self._bits[0].view(np.uint8), bitorder="little")[:width]
        allowed = torch.zeros(width, dtype=torch.bool)
        allowed[: len(bits)] = torch.from_numpy(bits.astype(np.bool_))
        if self._ends and allowed[self._ends[0]]:  # the grammar knows of one end only
            allowed[self._ends] = True
        if is_first and self._openings:
            allowed[self._openings] = True
        return allowed

    def _known(self, tokenizer: Any, end_tokens: frozenset[int]) -> LLTokenizer:
        if tokenizer not in _tokenizers:
            backend = getattr(tokenizer, "backend_tokenizer", None)
            if backend is None:
                problem = "its tokenizer is not a fast one: ask with JsonOutput(constrained=False)"
                raise GenerationError(self._model, problem)
            content = json.loads(backend.to_str())
            plain = json.dumps({**content, "padding": None, "truncation": None})
            _tokenizers[tokenizer] = LLTokenizer(plain, eos_token=min(end_tokens, default=None))
        return _tokenizers[tokenizer]

    def _require_well(self, matcher: LLMatcher) -> None:
        if matcher.is_error():
            why = redact(matcher.get_error(), max_characters=300)
            problem = f"no grammar can be made of the schema, or followed: {why}"
            raise GenerationError(self._model, problem)


def _opening_tokens(tokenizer: Any) -> list[int]:
    """List the tokens that open reasoning by themselves."""
    known = tokenizer.get_vocab()
    return [known[opening] for opening, _ in THINKING_TAGS if opening in known]
