"""Scores an answer by the concepts that it names, each by one of its names."""

from __future__ import annotations

from typing import Any

import attrs

from vlmcore._arguments import require_switch, shown
from vlmcore._arrays import as_tuple
from vlmcore.errors import ContractError
from vlmcore.lab.scoring.phrases import (
    MOST_WORDS,
    NEGATION_WINDOW,
    Passage,
    phrases_of,
    read_passage,
    require_most_words,
    words_of,
)
from vlmcore.lab.scoring.scores import Score, ScoreFlag, listed
from vlmcore.limits import SuiteLimits, require_at_most

__all__ = ["ConceptEvaluator"]

_LIMITS = SuiteLimits()


def _groups(value: Any) -> Any:
    outer = as_tuple(value)
    return tuple(map(as_tuple, outer)) if isinstance(outer, tuple) else outer


def _require_some(concepts: object) -> None:
    if not isinstance(concepts, tuple):
        raise ContractError("expected", f"got {shown(concepts)}, expected a list of concepts")
    if not concepts:
        raise ContractError("expected", "got no concepts, expected at least one")
    require_at_most("max_phrases", len(concepts), _LIMITS.max_phrases)


@attrs.frozen(kw_only=True)
class ConceptEvaluator:
    """
    Scores an answer by how many concepts it names, word by word, without denying them.

    Capitals and punctuation make no difference, and a hyphen is as good as a space. How a denial is
    told is written in `vlmcore.lab.scoring.phrases`.

    Attributes:
        expected: The concepts, at least one; each is the names that it goes by, at least one.
        forbidden: Phrases that make an answer count nothing where it has one and does not deny it.
        negation_window: How many words before a name may deny it; 0 counts what is denied, too.
        plurals: Whether a name is also found in its regular English plural: with ``s``, with ``es``
            after a hiss or o, with ``ies`` for y.
        most_words: A longer answer counts nothing: a list of all words there are names everything.
        must_be_whole: Whether an answer that is cut counts nothing.

    Raises:
        ContractError: If a field is not as described, or a name stands for two things.
        LimitExceededError: If it is larger than `vlmcore.limits.SuiteLimits` allows.

    Example:
        >>> scene = ConceptEvaluator(expected=[["beach", "seaside"], ["dog"]])
        >>> scene.score("A seaside. There is no dog.").reason
        "1 of 2 concepts; denied: 'dog'"
    """

    expected: tuple[tuple[str, ...], ...] = attrs.field(converter=_groups)
    forbidden: tuple[str, ...] = attrs.field(default=(), converter=as_tuple)
    negation_window: int = NEGATION_WINDOW
    plurals: bool = False
    most_words: int = MOST_WORDS
    must_be_whole: bool = False

    def __attrs_post_init__(self) -> None:
        _require_some(self.expected)
        for i, names in enumerate(self.expected):
            if not phrases_of(f"expected[{i}]", names, distinct=False):
                raise ContractError(f"expected[{i}]", "got no names, expected at least one")
        phrases_of("forbidden", self.forbidden)
        self._require_one_meaning()
        require_switch(plurals=self.plurals, must_be_whole=self.must_be_whole)
        require_most_words(self.most_words)
        window, most = self.negation_window, _LIMITS.max_window_words
        if isinstance(window, bool) or not isinstance(window, int) or not 0 <= window <= most:
            problem = f"got {shown(window)}, expected a whole number from 0 to {most}"
            raise ContractError("negation_window", problem)

    def _require_one_meaning(self) -> None:
        seen: set[tuple[str, ...]] = set()
        for names in (*self.expected, self.forbidden):
            phrases = {words_of(name): name for name in names}
            for words in phrases.keys() & seen:
                problem = f"got {shown(phrases[words])} for two things, expected one"
                raise ContractError("expected", problem)
            seen |= phrases.keys()

    def score(self, text: str, *, finish_reason: str | None = None) -> Score:
        """Score an answer, as `vlmcore.lab.scoring.scores.Evaluator` says."""
        passage = read_passage(
            text,
            finish_reason,
            must_be_whole=self.must_be_whole,
            most_words=self.most_words,
            window=self.negation_window,
        )
        if isinstance(passage, Score):
            return passage
        named = [name for name in self.forbidden if self._found(passage, name)[1]]
        if named:
            reason = f"the answer has what is forbidden: {listed(named)}"
            return passage.seen.score(0.0, reason, ScoreFlag.FORBIDDEN)
        missing: list[str] = []
        denied: list[str] = []
        for names in self.expected:
            found = [self._found(passage, name) for name in names]
            if not any(is_affirmed for _, is_affirmed in found):
                (denied if any(is_named for is_named, _ in found) else missing).append(names[0])
        count = len(self.expected)
        right = count - len(missing) - len(denied)
        parts = [f"{right} of {count} concepts"]
        parts += [f"missing: {listed(missing)}"] if missing else []
        parts += [f"denied: {listed(denied)}"] if denied else []
        flags = [ScoreFlag.NEGATED] if denied else []
        return passage.seen.score(right / count, "; ".join(parts), *flags)

    def _found(self, passage: Passage, name: str) -> tuple[bool, bool]:
        """Say whether a phrase is named, and whether that is not denied."""
        mentions = passage.mentions(words_of(name), plurals=self.plurals)
        return mentions.count > 0, mentions.affirmed
