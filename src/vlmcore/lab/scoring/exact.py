"""Scores an answer that has to be one text."""

from __future__ import annotations

import attrs

from vlmcore._arguments import require_characters, require_switch, shown
from vlmcore._arrays import require_member, require_text
from vlmcore.errors import ContractError
from vlmcore.lab.scoring.normalising import Level, normalised
from vlmcore.lab.scoring.scores import Score, look_at
from vlmcore.limits import SuiteLimits, require_at_most

__all__ = ["ExactEvaluator"]

_LIMITS = SuiteLimits()


@attrs.frozen(kw_only=True)
class ExactEvaluator:
    """
    Scores an answer 1 if it is the text that is expected, else 0.

    Whether two models write the same bytes is another question, which no evaluator answers.

    Attributes:
        expected: The text. Not blank.
        level: How strictly they are compared.
        must_be_whole: Whether an answer that is cut counts nothing.

    Raises:
        ContractError: If a field is not as described, or nothing is left of *expected* at *level*.
        LimitExceededError: If it is larger than `vlmcore.limits.SuiteLimits` allows.

    Example:
        >>> ExactEvaluator(expected="3.5", level=Level.LOOSE).score("3 5").reason
        "got '3 5', expected '3.5'"
    """

    expected: str
    level: Level = Level.TRIM
    must_be_whole: bool = True

    def __attrs_post_init__(self) -> None:
        require_text(expected=self.expected)
        most = _LIMITS.max_expected_characters
        require_at_most("max_expected_characters", len(self.expected), most)
        require_characters("expected", self.expected)
        require_member(Level, level=self.level)
        require_switch(must_be_whole=self.must_be_whole)
        if not normalised(self.expected, self.level):
            problem = f"got {shown(self.expected)}, of which {self.level.value!r} leaves nothing"
            raise ContractError("expected", problem)

    def score(self, text: str, *, finish_reason: str | None = None) -> Score:
        """Score an answer, as `vlmcore.lab.scoring.scores.Evaluator` says."""
        seen = look_at(text, finish_reason, must_be_whole=self.must_be_whole)
        if isinstance(seen, Score):
            return seen
        if normalised(seen.text, self.level) == normalised(self.expected, self.level):
            return seen.score(1.0, f"is what is expected ({self.level.value})")
        return seen.score(0.0, f"got {shown(seen.text, 40)}, expected {shown(self.expected, 40)}")
