"""
When a model has fallen into a loop, and its text is no answer any more.

Small and quantised models repeat a word, a line or a paragraph without end, and broken weights
write only ``!`` (token 0). Both cost the whole token budget and look like success.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

__all__ = ["LoopDetector", "is_one_loop"]

_LONGEST_PERIOD = 128  # tokens: about a paragraph
_LOOP_TOKENS = 64  # one token must fill this many places before it counts: rulers and tables do not
_LOOP_ROUNDS = 4  # longer phrases: this many rounds; lists of similar lines differ within that
_WHOLE_ANSWER_ROUNDS = 8
_NO_TOKEN = -1

_PERIODS = np.arange(1, _LONGEST_PERIOD + 1)
_AGREEING_IN_A_LOOP = np.maximum(_LOOP_TOKENS, _LOOP_ROUNDS * _PERIODS) - _PERIODS


class LoopDetector:
    """
    Watches tokens as they are written.

    A loop of *p* tokens is found once it fills the last ``max(64, 4 p)`` tokens, for *p* of up to
    128. Each token costs a comparison for each period; nothing before the last 128 is kept.

    Example:
        >>> detector = LoopDetector()
        >>> [detector.add(7) for _ in range(64)].index(True)
        63
    """

    def __init__(self) -> None:
        self._history = np.full(2 * _LONGEST_PERIOD, _NO_TOKEN, np.int64)
        self._end = _LONGEST_PERIOD  # where the next token goes; the 128 before it are compared
        self._agreeing = np.zeros(_LONGEST_PERIOD, np.int64)  # by period: run of equal tokens

    def add(self, token: int) -> bool:
        """Take the next token, and return whether the text has become a loop."""
        end = self._end
        before = self._history[end - _LONGEST_PERIOD : end][::-1]  # at p - 1 what was p tokens ago
        self._agreeing = (self._agreeing + 1) * (before == token)
        if end == len(self._history):
            self._history[:_LONGEST_PERIOD] = self._history[-_LONGEST_PERIOD:]
            end = _LONGEST_PERIOD
        self._history[end] = token
        self._end = end + 1
        return bool((self._agreeing >= _AGREEING_IN_A_LOOP).any())


def is_one_loop(tokens: Sequence[int]) -> bool:
    """
    Whether a whole answer, cut by its length limit, is one short phrase eight times or more.

    This finds loops that are too short for `LoopDetector`, in answers that ended because there
    was no more room. It is no test for answers that the model ended itself.

    Example:
        >>> is_one_loop([0] * 32), is_one_loop([1, 2, 3, 4] * 3)
        (True, False)
    """
    longest = len(tokens) // _WHOLE_ANSWER_ROUNDS
    return any(
        all(tokens[i] == tokens[i - period] for i in range(period, len(tokens)))
        for period in range(1, longest + 1)
    )
