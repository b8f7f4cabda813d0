"""Scores an answer by the keywords that it has."""

from __future__ import annotations

import attrs

from vlmcore._arguments import require_switch
from vlmcore._arrays import as_tuple
from vlmcore.errors import ContractError
from vlmcore.lab.scoring.phrases import MOST_WORDS, phrases_of, read_passage, require_most_words
from vlmcore.lab.scoring.scores import Score, ScoreFlag, listed

__all__ = ["KeywordEvaluator"]


@attrs.frozen(kw_only=True)
class KeywordEvaluator:
    """
    Scores an answer by how many of the keywords it has, word by word.

    A keyword is a word or several in a row; capitals and punctuation make no difference. That an
    answer says what is *not* there only sets `ScoreFlag.NEGATED`: `ConceptEvaluator` counts it.

    Attributes:
        expected: The keywords, at least one.
        plurals: Whether a keyword is also found in its regular English plural: with ``s``, with
            ``es`` after a hiss or o, with ``ies`` for y.
        most_words: A longer answer counts nothing: a list of all words there are has every keyword.
        must_be_whole: Whether an answer that is cut counts nothing.

    Raises:
        ContractError: If a field is not as described.
        LimitExceededError: If it is larger than `vlmcore.limits.SuiteLimits` allows.

    Example:
        >>> KeywordEvaluator(expected=["red", "car"]).score("The bored man sat in a car.")
        Score(value=0.5, reason="1 of 2 keywords; missing: 'red'", flags=())
    """

    expected: tuple[str, ...] = attrs.field(converter=as_tuple)
    plurals: bool = False
    most_words: int = MOST_WORDS
    must_be_whole: bool = False

    def __attrs_post_init__(self) -> None:
        if not phrases_of("expected", self.expected):
            raise ContractError("expected", "got no keywords, expected at least one")
        require_switch(plurals=self.plurals, must_be_whole=self.must_be_whole)
        require_most_words(self.most_words)

    def score(self, text: str, *, finish_reason: str | None = None) -> Score:
        """Score an answer, as `vlmcore.lab.scoring.scores.Evaluator` says."""
        passage = read_passage(
            text,
            finish_reason,
            must_be_whole=self.must_be_whole,
            most_words=self.most_words,
        )
        if isinstance(passage, Score):
            return passage
        missing, flags = [], []
        phrases = phrases_of("expected", self.expected)
        for keyword, words in zip(self.expected, phrases, strict=True):
            mentions = passage.mentions(words, plurals=self.plurals)
            if not mentions.count:
                missing.append(keyword)
            elif not mentions.affirmed:
                flags.append(ScoreFlag.NEGATED)
        found, count = len(self.expected) - len(missing), len(self.expected)
        reason = f"{found} of {count} keywords"
        if missing:
            reason += f"; missing: {listed(missing)}"
        return passage.seen.score(found / count, reason, *flags)
