"""
What of an answer is looked at: without reasoning, in one spelling, and word by word.

Characters are compared as Unicode compares them, so that ``e`` with an accent of its own is ``é``.
"""

from __future__ import annotations

import enum
import re
import unicodedata

import attrs

from vlmcore.vlm.answers import THINKING_TAGS

__all__ = ["Answer", "Level", "answer_of", "normalised", "tokens_of"]

_CLOSINGS = dict(THINKING_TAGS)
_TAGS = re.compile(
    "|".join(re.escape(tag) for pair in THINKING_TAGS for tag in pair), re.IGNORECASE
)


@attrs.frozen
class Answer:
    """
    An answer without the reasoning that stood in its text.

    Attributes:
        text: What is left.
        had_reasoning: Whether anything was left out.
    """

    text: str
    had_reasoning: bool


class Level(enum.Enum):
    """
    How strictly two texts are compared.

    Each level forgives what the one before it does.
    """

    RAW = "raw"
    """Every character; only how accents are encoded (NFC) makes no difference."""
    TRIM = "trim"
    """Space at both ends and the forms of one character (NFKC), as of full-width digits."""
    FOLDED = "folded"
    """Capitals, runs of space, and characters that cannot be seen."""
    LOOSE = "loose"
    """Punctuation, but for signs that change what a token says: ``3.5``, ``-5``, ``C++``."""


def answer_of(text: str) -> Answer:
    """
    Leave out the reasoning between tags, be they closed or not.

    Where a tag is not closed, nothing after it is an answer; where one is only closed, as models
    write whose prompt opened it, nothing before it is.

    Example:
        >>> answer_of("<think>a red bird? no</think>blue").text
        'blue'
        >>> answer_of("blue<think>or is it").text
        'blue'
    """
    kept: list[str] = []
    at, awaited = 0, ""
    for tag in _TAGS.finditer(text):
        word = tag.group().lower()
        if awaited and word != awaited:
            continue
        if awaited:
            awaited = ""
        elif word in _CLOSINGS:
            kept.append(text[at : tag.start()])
            awaited = _CLOSINGS[word]
        else:
            kept.clear()
        at = tag.end()
    if at == 0:
        return Answer(text, had_reasoning=False)
    if not awaited:
        kept.append(text[at:])
    return Answer("".join(kept).strip(), had_reasoning=True)


def normalised(text: str, level: Level) -> str:
    """
    Write *text* as it is compared at a level.

    Example:
        >>> normalised("  The -5, and C++!", Level.LOOSE)
        'the -5 and c++'
    """
    match level:
        case Level.RAW:
            return unicodedata.normalize("NFC", text)
        case Level.TRIM:
            return unicodedata.normalize("NFKC", text).strip()
        case Level.FOLDED:
            return " ".join(_folded(text).split())
        case Level.LOOSE:
            return " ".join(tokens_of(text))


def _folded(text: str) -> str:
    """Fold capitals as NFKC_Casefold of Unicode does: what it gives folds to itself."""
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFKC", text.translate(_UNSEEN))
    for _ in range(2):
        folded = unicodedata.normalize("NFKC", folded.casefold())
    return folded


_ALONE = (  # scripts that put no space between words, and so have no boundaries but characters
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x3040, 0x30FF),  # kana
    (0x3400, 0x4DBF),  # Han
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x3FFFF),
)


class _Unseen(dict[int, "str | None"]):
    """Leaves out what cannot be seen: joiners, marks of direction, selectors of variants."""

    def __missing__(self, code: int) -> str | None:
        character = chr(code)
        is_selector = 0xFE00 <= code <= 0xFE0F
        return None if is_selector or unicodedata.category(character) == "Cf" else character


class _Significant(dict[int, str]):
    """Puts space around signs that are tokens of their own, and in place of other punctuation."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        kind = unicodedata.category(character)
        if kind in ("Sm", "So", "Cn", "Co") or any(low <= code <= high for low, high in _ALONE):
            return f" {character} "
        return character if kind[0] in "LMN" or kind == "Sc" else " "


_UNSEEN = _Unseen()
_SIGNIFICANT = _Significant(
    {
        **{ord(sign): sign for sign in ".-+$%#',:/"},
        **{ord(sign): "-" for sign in "\u2010\u2011\u2212"},  # hyphens, and the sign of minus
        ord("\u2019"): "'",
        ord("^"): " ^ ",
    }
)
_NOT_IN_A_NUMBER = re.compile(r"(?<!\d)[,:/]|[,:/](?!\d)")
_EDGES = ".-'"


def tokens_of(text: str) -> tuple[str, ...]:
    """
    Split a text into tokens: what stands between spaces, without the punctuation around it.

    The signs ``. - + $ % #`` stay in a token that they belong to, ``, : /`` between digits and an
    apostrophe between letters do, too. Each character of a script without spaces is a token.

    Example:
        >>> tokens_of("- **C++**, (3.5 km), -5 and $5.00: well-known...")
        ('c++', '3.5', 'km', '-5', 'and', '$5.00', 'well-known')
    """
    spread = _NOT_IN_A_NUMBER.sub(" ", _folded(text).translate(_SIGNIFICANT))
    chunks = spread.split()
    found = []
    for i, chunk in enumerate(chunks):
        token = _trimmed(chunk)
        if not token and chunk == "-" and _is_between_digits(chunks, i):
            token = chunk
        if token:
            found.append(token)
    return tuple(found)


def _trimmed(chunk: str) -> str:
    """Take punctuation from both ends; a sign or a point before a number is part of it."""
    ended = chunk.rstrip(_EDGES)
    token = ended.lstrip(_EDGES)
    if not token.strip("#"):
        return ""  # the mark of a heading
    before = "" if token[0].isalpha() else ended[: len(ended) - len(token)]
    sign = "-" if before.strip(".'").endswith("-") else ""
    point = "." if before.endswith(".") else ""
    return sign + point + token


def _is_between_digits(chunks: list[str], i: int) -> bool:
    around = chunks[max(0, i - 1) : i + 2]
    return len(around) == 3 and around[0][-1].isdigit() and around[2][0].isdigit()
