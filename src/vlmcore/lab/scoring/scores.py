"""What an evaluator says of an answer."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Any, Protocol, runtime_checkable

import attrs

from vlmcore._arrays import plain_float, require_finite_between, require_member, require_text
from vlmcore.lab.scoring.normalising import answer_of

__all__ = ["Evaluator", "Score", "ScoreFlag", "Seen", "is_cut", "listed", "look_at"]

# Words of servers and of `vlmcore.vlm.generation.StopReason` for an answer that is not whole.
_CUT = frozenset(
    ("length", "max_tokens", "cancelled", "repetition", "filtered", "content_filter", "error")
)

_SHOWN_NAMES = 5
_SHOWN_CHARACTERS = 40


class ScoreFlag(enum.Enum):
    """What a person should know of an answer beside its score."""

    EMPTY = "empty"  # there is no answer, or nothing but reasoning
    CUT = "cut"  # it ended at a limit, not of itself
    REASONING = "reasoning"  # reasoning stood in the text, and was left out
    NEGATED = "negated"  # something expected is named only to say that it is not there
    FORBIDDEN = "forbidden"  # something forbidden is named
    TOO_LONG = "too long"  # it has more words than the case allows
    AMBIGUOUS = "ambiguous"  # it says more than one thing where one was asked for
    BROKEN = "broken"  # it is not written as it was asked for


def _ordered(flags: Any) -> Any:
    """Order flags, and keep each once; what is no flag stays, and is refused."""
    given = tuple(flags)
    known = tuple(flag for flag in ScoreFlag if flag in given)
    return known + tuple(flag for flag in given if not isinstance(flag, ScoreFlag))


@attrs.frozen(kw_only=True)
class Score:
    """
    How good an answer is.

    Attributes:
        value: From 0 to 1.
        reason: Why, in one line.
        flags: What to know beside it, each once, in the order of `ScoreFlag`.

    Raises:
        ContractError: If a field is not as described.
    """

    value: float = attrs.field(converter=plain_float)
    reason: str
    flags: tuple[ScoreFlag, ...] = attrs.field(default=(), converter=_ordered)

    def __attrs_post_init__(self) -> None:
        require_finite_between(0.0, 1.0, value=self.value)
        require_text(reason=self.reason)
        require_member(ScoreFlag, **{f"flags[{i}]": flag for i, flag in enumerate(self.flags)})


@runtime_checkable
class Evaluator(Protocol):
    """
    Scores the answers to one case.

    It is made with what is expected, and checks that then: `score` takes any text, and raises
    nothing about it.
    """

    def score(self, text: str, *, finish_reason: str | None = None) -> Score:
        """
        Score an answer.

        Args:
            text: What the model wrote, reasoning and all.
            finish_reason: Why it ended, in the word of the server or of `StopReason`; ``None`` if
                that is not known.
        """
        ...


def is_cut(finish_reason: str | None) -> bool:
    """
    Say whether an answer that ended so is not whole. Where nobody said why, it passes for whole.

    Example:
        >>> is_cut("length"), is_cut("stop"), is_cut(None)
        (True, False, False)
    """
    return finish_reason in _CUT


@attrs.frozen
class Seen:
    """
    What of an answer an evaluator looks at.

    Attributes:
        text: The answer without reasoning; not empty.
        flags: What is known of it already.
    """

    text: str
    flags: tuple[ScoreFlag, ...]

    def score(self, value: float, reason: str, *flags: ScoreFlag) -> Score:
        """Make the score of it."""
        return Score(value=value, reason=reason, flags=(*self.flags, *flags))


def look_at(text: str, finish_reason: str | None, *, must_be_whole: bool) -> Seen | Score:
    """
    Take the reasoning out of an answer, and see whether there is anything to look at.

    Args:
        text: What the model wrote.
        finish_reason: Why it ended.
        must_be_whole: Whether an answer that is cut counts nothing.

    Returns:
        What to look at; or the score, where it is 0 whatever is expected.
    """
    answer = answer_of(text)
    flags = [ScoreFlag.REASONING] if answer.had_reasoning else []
    if is_cut(finish_reason):
        flags.append(ScoreFlag.CUT)
    seen = Seen(answer.text, tuple(flags))
    if not answer.text.strip():
        return seen.score(0.0, "there is no answer", ScoreFlag.EMPTY)
    if must_be_whole and ScoreFlag.CUT in flags:
        return seen.score(0.0, f"the answer is cut: it ended with {finish_reason!r}")
    return seen


def listed(names: Iterable[str]) -> str:
    """
    List a few names for a reason, shortly.

    Example:
        >>> listed(["dog", "cat"])
        "'dog', 'cat'"
    """
    shown = [repr(name[:_SHOWN_CHARACTERS]) for name in names]
    more = len(shown) - _SHOWN_NAMES
    return ", ".join(shown[:_SHOWN_NAMES]) + (f" and {more} more" if more > 0 else "")
