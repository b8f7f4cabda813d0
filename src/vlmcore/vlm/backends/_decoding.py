"""From token ids to whole characters, as they come."""

from __future__ import annotations

from typing import Any

from vlmcore.vlm.answers import THINKING_TAGS

__all__ = ["TokenDecoder"]

_INCOMPLETE = "\ufffd"  # what a tokenizer writes for bytes that are no whole character yet
_LONGEST_CHARACTER = 16  # tokens: a character has 4 bytes; more replacement signs are the answer's


class TokenDecoder:
    """
    Decodes one token at a time, and holds back bytes until their character is whole.

    A tokenizer cannot decode tokens one by one: the first may lose its space, and a character may
    be spread over several. So each step decodes a short window twice, with and without the new
    tokens, and gives out the difference. Special tokens are dropped, except the tags that set
    reasoning apart, which some tokenizers count among them.

    Args:
        tokenizer: A tokenizer of transformers, fast or not.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._special = set(tokenizer.all_special_ids)
        self._tags = _special_tags(tokenizer, self._special)
        self._window: list[int] = []
        self._shown = 0  # tokens at the head of the window whose text was given out

    def add(self, token: int) -> str:
        """Take the next token, and return the characters that it completes."""
        if token in self._tags:
            rest = self.finish()
            return rest + self._tags[token]
        if token in self._special:
            return ""
        self._window.append(token)
        before, after = self._decode(self._window[: self._shown]), self._decode(self._window)
        held = len(self._window) - self._shown
        if after.endswith(_INCOMPLETE) and held < _LONGEST_CHARACTER:
            return ""
        self._window = self._window[self._shown :]
        self._shown = len(self._window)
        return after[len(before) :]

    def finish(self) -> str:
        """
        Say that no token follows directly, and return the whole characters that were held back.

        Bytes of a character that was never finished are dropped.
        """
        before, after = self._decode(self._window[: self._shown]), self._decode(self._window)
        self._window, self._shown = [], 0
        return after[len(before) :].rstrip(_INCOMPLETE)

    def _decode(self, tokens: list[int]) -> str:
        if not tokens:
            return ""
        # The clean-up of some tokenizers joins " ." across tokens: text already shown would change.
        return str(
            self._tokenizer.decode(
                tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False
            )
        )


def _special_tags(tokenizer: Any, special: set[int]) -> dict[int, str]:
    tags: dict[int, str] = {}
    for tag in (tag for pair in THINKING_TAGS for tag in pair):
        token = tokenizer.convert_tokens_to_ids(tag)
        if isinstance(token, int) and token in special and token != tokenizer.unk_token_id:
            tags[token] = tag
    return tags
