"""Scores an answer that has to say one number."""

from __future__ import annotations

import enum
from decimal import Decimal

import attrs

from vlmcore._arguments import require_switch
from vlmcore._arrays import require_finite, require_finite_between, require_member
from vlmcore.lab.scoring.scores import Score, ScoreFlag, listed, look_at
from vlmcore.lab.scoring.written_numbers import WrittenNumber, read_numbers

__all__ = ["NumberEvaluator", "NumberPolicy"]

_LARGEST_TOLERANCE = 1e15


class NumberPolicy(enum.Enum):
    """Which number of an answer is meant."""

    ONLY = "only"
    """The only one: an answer with two different numbers is ambiguous, and counts nothing."""
    FINAL = "final"
    """The last one, as in ``I count 1, 2, 3. So 3 objects.``"""


@attrs.frozen(kw_only=True)
class NumberEvaluator:
    """
    Scores an answer 1 if the number in it is the one that is expected, else 0.

    Numbers are compared as they are written: 3.7 is not 3, and 0.1 is 0.1. How they are read is
    written in `vlmcore.lab.scoring.written_numbers`.

    Attributes:
        expected: The number.
        policy: Which number of the answer is meant.
        tolerance: How far from *expected* it may be.
        spelled: Whether the English words from zero to twenty are numbers, too. ``one`` is mostly
            no count.
        must_be_whole: Whether an answer that is cut counts nothing: 1 may be the start of 12.

    Raises:
        ContractError: If a field is not as described.

    Example:
        >>> NumberEvaluator(expected=3).score("There are 3 to 5.").reason
        "ambiguous: the answer says '3', '5'"
    """

    expected: float
    policy: NumberPolicy = NumberPolicy.ONLY
    tolerance: float = 0.0
    spelled: bool = False
    must_be_whole: bool = True

    def __attrs_post_init__(self) -> None:
        require_finite(expected=self.expected)
        require_member(NumberPolicy, policy=self.policy)
        require_finite_between(0.0, _LARGEST_TOLERANCE, tolerance=self.tolerance)
        require_switch(spelled=self.spelled, must_be_whole=self.must_be_whole)

    def score(self, text: str, *, finish_reason: str | None = None) -> Score:
        """Score an answer, as `vlmcore.lab.scoring.scores.Evaluator` says."""
        seen = look_at(text, finish_reason, must_be_whole=self.must_be_whole)
        if isinstance(seen, Score):
            return seen
        numbers = read_numbers(seen.text, spelled=self.spelled)
        if not numbers:
            return seen.score(0.0, "the answer says no number")
        if self.policy is NumberPolicy.ONLY and _differ(numbers):
            said = listed(dict.fromkeys(number.text for number in numbers))
            return seen.score(0.0, f"ambiguous: the answer says {said}", ScoreFlag.AMBIGUOUS)
        number = numbers[-1]
        if number.value is None:
            reason = f"ambiguous: {listed([number.text])} has more than one reading"
            return seen.score(0.0, reason, ScoreFlag.AMBIGUOUS)
        is_right = abs(number.value - _exactly(self.expected)) <= _exactly(self.tolerance)
        reason = f"got {listed([number.text])}, expected {self.expected!r}"
        return seen.score(float(is_right), reason)


def _differ(numbers: tuple[WrittenNumber, ...]) -> bool:
    return len({number.value for number in numbers}) > 1


def _exactly(number: float) -> Decimal:
    """Take a number as it is written, not as binary digits nearly say it."""
    return Decimal(repr(number))
