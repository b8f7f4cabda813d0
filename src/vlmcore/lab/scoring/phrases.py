"""
Words and phrases that an answer names, at the boundaries of words, and whether it denies them.

That ``no dog`` is no dog is told by rules of thumb for English. They look for a word that negates
within the clause, a few words before, and for what follows in ``the dog is not visible`` and in
``Dog: no``; a comma before an article, as in ``no people, a dog``, begins something new.
"""

from __future__ import annotations

import re
from typing import Any

import attrs

from vlmcore._arguments import shown
from vlmcore._arrays import require_count, require_name
from vlmcore.errors import ContractError
from vlmcore.lab.scoring.normalising import tokens_of
from vlmcore.lab.scoring.scores import Score, ScoreFlag, Seen, look_at
from vlmcore.limits import SuiteLimits, require_at_most

__all__ = [
    "MOST_WORDS",
    "NEGATION_WINDOW",
    "Mentions",
    "Passage",
    "phrases_of",
    "read_passage",
    "require_most_words",
    "words_of",
]

#: How many words an answer may have, unless a case says otherwise; in scripts without spaces each
#: character is one.
MOST_WORDS = 300

#: How many words before a phrase are looked at for one that negates, unless told otherwise.
NEGATION_WINDOW = 5

_LIMITS = SuiteLimits()
_WITHIN = re.compile(r"(?<=[^\W\d_])[-.](?=[^\W\d_])")
_BREAK = re.compile(
    r"([.!?]+(?=\s|\Z)|[;:,](?!\d)|[()\[\]\u2014\u2026]"
    r"|\n(?:[ \t]{0,8}(?:[-*\u2022]|\d{1,3}[.)])[ \t])?)"
)
_SOFT = frozenset(",\n")

_NEGATING = frozenset(("no", "not", "non", "never", "without", "neither", "nor", "none", "cannot"))
_NOUNS_ONLY = frozenset(("no", "non", "without", "neither", "nor", "none"))
_NOT_NEGATING_BEFORE = frozenset(("only", "just", "merely", "doubt"))
_TURNS = frozenset(("but", "however", "although", "though", "yet", "except", "instead", "while"))
_ARTICLES = frozenset(("a", "an", "the", "one", "there", "it", "this", "i", "we", "he", "she"))
_LEADS_ON = frozenset(("of", "or", "nor", "is", "are", "for", "like", "as"))
_DENIED = re.compile(
    r"(?:(?:is|are|was|were|can|could) not|(?:is|are|was|were|ca|could)n't|cannot)(?: be)? "
    r"(?:visible|present|seen|shown|there|here|pictured|depicted|found|detected)\b"
    r"|(?:is|are|was|were) (?:absent|missing|nowhere)\b"
)
_DENIED_WORDS = 5
_ANSWERS_NO = frozenset(("no", "none", "absent", "false"))


def words_of(text: str) -> tuple[str, ...]:
    """
    Split a text into words that phrases are made of: ``high-five`` is two, ``dog's`` is ``dog``.

    Example:
        >>> words_of("The dog's high-five!")
        ('the', 'dog', 'high', 'five')
    """
    return tuple(
        part.removesuffix("'s") for token in tokens_of(text) for part in _WITHIN.split(token)
    )


@attrs.frozen
class Mentions:
    """
    How often a passage names something.

    Attributes:
        count: How often.
        negated: How many of these say that it is not there.
    """

    count: int
    negated: int

    @property
    def affirmed(self) -> bool:
        """Whether it is named at least once without being denied."""
        return self.count > self.negated


class Passage:
    """
    An answer, word by word, to look for phrases in.

    Args:
        seen: The answer, without reasoning.
        window: How many words before a phrase may negate it; 0 looks for no negation.

    Example:
        >>> Passage(Seen("There is no dog. A cat sleeps.", ())).mentions(("dog",))
        Mentions(count=1, negated=1)
    """

    def __init__(self, seen: Seen, *, window: int = NEGATION_WINDOW) -> None:
        self.seen = seen
        self._window = window
        self._words: list[str] = []
        self._breaks: list[str] = []  # before each word: nothing, a soft break, or the end
        self._places: dict[str, list[int]] = {}
        pending = ""
        for i, part in enumerate(_BREAK.split(seen.text)):
            if i % 2:
                pending = "," if part in _SOFT and pending in ("", ",") else ";"
                continue
            for word in words_of(part):
                self._places.setdefault(word, []).append(len(self._words))
                self._words.append(word)
                self._breaks.append(pending)
                pending = ""

    def __len__(self) -> int:
        return len(self._words)

    def mentions(self, phrase: tuple[str, ...], *, plurals: bool = False) -> Mentions:
        """
        Count where a phrase is named.

        Args:
            phrase: Its words, as `words_of` gives them; at least one.
            plurals: Whether its last word is also found in its regular English plural.
        """
        ends = _with_plurals(phrase[-1]) if plurals else (phrase[-1],)
        count = negated = 0
        for form in ends:
            words = [*phrase[:-1], form]
            for start in self._places.get(words[0], ()):
                if self._words[start : start + len(words)] == words:
                    count += 1
                    negated += self._is_negated(start, start + len(words))
        return Mentions(count, negated)

    def _is_negated(self, start: int, end: int) -> bool:
        return bool(self._window) and (self._is_negated_before(start) or self._is_denied_after(end))

    def _is_negated_before(self, start: int) -> bool:
        """Look back from a phrase to a word that negates, as far as it can reach."""
        only_verbs = False  # past an article "no" reaches no further; "not" does
        for i in range(start - 1, max(-1, start - 1 - self._window), -1):
            word, following = self._words[i], self._words[i + 1]
            gap = self._breaks[i + 1]
            if gap == ";" or word in _TURNS or (gap and following in _ARTICLES):
                return False
            negates = word in _NEGATING or word.endswith("n't")
            if negates and not gap and following not in _NOT_NEGATING_BEFORE:
                return not (only_verbs and word in _NOUNS_ONLY)
            only_verbs |= following in _ARTICLES and word not in _LEADS_ON
        return False

    def _is_denied_after(self, end: int) -> bool:
        if end < len(self._words) and self._breaks[end]:
            is_alone = end + 1 == len(self._words) or bool(self._breaks[end + 1])
            return is_alone and self._words[end] in _ANSWERS_NO
        following = []
        for i in range(end, min(end + _DENIED_WORDS, len(self._words))):
            if self._breaks[i]:
                break
            following.append(self._words[i])
        return _DENIED.match(" ".join(following)) is not None


def read_passage(
    text: str,
    finish_reason: str | None,
    *,
    must_be_whole: bool,
    most_words: int,
    window: int = NEGATION_WINDOW,
) -> Passage | Score:
    """
    Read an answer word by word.

    Args:
        text: What the model wrote.
        finish_reason: Why it ended.
        must_be_whole: Whether an answer that is cut counts nothing.
        most_words: How many words it may have.
        window: How many words before a phrase may negate it.

    Returns:
        The passage; or the score, where it is 0 whatever is expected.
    """
    seen = look_at(text, finish_reason, must_be_whole=must_be_whole)
    if isinstance(seen, Score):
        return seen
    passage = Passage(seen, window=window)
    if len(passage) > most_words:
        reason = f"the answer has {len(passage):,} words, and {most_words:,} are allowed"
        return seen.score(0.0, reason, ScoreFlag.TOO_LONG)
    return passage


def require_most_words(most_words: int) -> None:
    """
    Require a number of words that an answer may have.

    Raises:
        ContractError: If it is no whole number of at least 1.
        LimitExceededError: If it is more than `vlmcore.limits.SuiteLimits` allows.
    """
    require_count(most_words=most_words)
    require_at_most("max_words", most_words, _LIMITS.max_words)


def phrases_of(field: str, texts: Any, *, distinct: bool = True) -> tuple[tuple[str, ...], ...]:
    """
    Split phrases into their words.

    Args:
        field: Their name, for the error.
        texts: The phrases.
        distinct: Whether each has to be another one.

    Raises:
        ContractError: If they are not a tuple of texts with words in them, or are not distinct.
    """
    if not isinstance(texts, tuple):
        raise ContractError(field, f"got {shown(texts)}, expected a list of texts")
    require_at_most("max_phrases", len(texts), _LIMITS.max_phrases)
    phrases: list[tuple[str, ...]] = []
    for i, text in enumerate(texts):
        require_name(f"{field}[{i}]", text, max_characters=_LIMITS.max_phrase_characters)
        words = words_of(text)
        if not words:
            raise ContractError(f"{field}[{i}]", f"got {shown(text)}, expected a word in it")
        if distinct and words in phrases:
            same = shown(texts[phrases.index(words)])
            raise ContractError(f"{field}[{i}]", f"got {shown(text)}, which is the same as {same}")
        phrases.append(words)
    return tuple(phrases)


def _with_plurals(word: str) -> tuple[str, ...]:
    """Return a word and its regular plurals: ``s``; ``es`` after a hiss or o; ``ies`` for y."""
    forms = [word, f"{word}s"]
    if word.endswith(("s", "x", "z", "ch", "sh", "o")):
        forms.append(f"{word}es")
    if word.endswith("y") and word[-2:-1] not in ("a", "e", "i", "o", "u", ""):
        forms.append(f"{word[:-1]}ies")
    return tuple(forms)
