"""What is taken off an answer before it is a caption; doing it twice changes nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

__all__ = ["collapsed", "cut_at_sentence", "cut_at_word", "one_line", "plain", "stripped"]

_LINE_ENDS = re.compile("\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f]")
_SURROGATES = re.compile("[\ud800-\udfff]")
_BLANK_LINES = re.compile("\n{3,}")
_SENTENCE = re.compile("[.!?][\"'\u201d\u2019\u00bb)]?(?=\\s)|[\u3002\uff01\uff1f]")

_FENCE = "```"
_FENCE_LINE = re.compile(r"```[\w+.-]*[ \t]*(?:\n|```)")
_QUOTES = {
    '"': '"',
    "'": "'",
    "`": "`",
    "\u201c": "\u201d",
    "\u201e": "\u201c",
    "\u2018": "\u2019",
    "\u00ab": "\u00bb",
    "\u300c": "\u300d",
}
_FULL_STOPS = ".\u3002"
_AFTER_A_PHRASE = " \t\n,:;-\u2013\u2014"
_BEFORE_A_CUT = " \n,;:-\u2013\u2014"


def plain(text: str) -> str:
    """Make all ends of lines one, and leave out what no text file holds."""
    text = _CONTROLS.sub("", _LINE_ENDS.sub("\n", text))
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


def one_line(text: str) -> str:
    """Put a name on one line."""
    return " ".join(plain(text).split())


def collapsed(text: str, *, keep_lines: bool) -> str:
    """Make every run of white space one space; line ends are kept if wanted."""
    if not keep_lines:
        return " ".join(text.split())
    lines = "\n".join(" ".join(line.split()) for line in text.split("\n"))
    return _BLANK_LINES.sub("\n\n", lines).strip("\n")


def stripped(
    text: str, *, phrases: Sequence[str], fences: bool, quotes: bool, full_stop: bool
) -> str:
    """
    Take off what stands around a caption, until nothing of it is left.

    Nothing is copied before the end, so that the time is in proportion to the text.
    """
    start, stop = 0, len(text)
    while True:
        before = start, stop
        start, stop = _trimmed(text, start, stop)
        if fences:
            start, stop = _without_fence(text, start, stop)
        if quotes:
            start, stop = _without_quotes(text, start, stop)
        if phrases:
            start = _after_phrase(text, start, stop, tuple(phrases))
        if full_stop:
            stop = _before_full_stop(text, start, stop)
        if (start, stop) == before:
            return text[start:stop]


def cut_at_word(text: str, most: int) -> str:
    """Keep *most* characters at most, and no part of a word, if there is a whole one."""
    if len(text) <= most:
        return text
    end = most
    if not text[most].isspace():
        end = max(text.rfind(" ", 0, most), text.rfind("\n", 0, most))
    return text[: max(end, 0)].rstrip(_BEFORE_A_CUT) or text[:most]


def cut_at_sentence(text: str, most: int) -> str:
    """Keep *most* characters at most, and whole sentences, if there is one; or else whole words."""
    if len(text) <= most:
        return text
    ends = [match.end() for match in _SENTENCE.finditer(text[: most + 1]) if match.end() <= most]
    return text[: ends[-1]] if ends else cut_at_word(text, most)


def _trimmed(text: str, start: int, stop: int) -> tuple[int, int]:
    while start < stop and text[start].isspace():
        start += 1
    while stop > start and text[stop - 1].isspace():
        stop -= 1
    return start, stop


def _without_fence(text: str, start: int, stop: int) -> tuple[int, int]:
    size = len(_FENCE)
    if stop - start < 2 * size or not text.startswith(_FENCE, start, stop):
        return start, stop
    if not text.endswith(_FENCE, start, stop):
        return start, stop
    line = _FENCE_LINE.match(text, start, stop)
    opened = line.end() if line and text[line.end() - 1] == "\n" else start + size
    return _trimmed(text, opened, max(stop - size, opened))


def _without_quotes(text: str, start: int, stop: int) -> tuple[int, int]:
    while stop - start >= 2:
        opening = text[start]
        closing = _QUOTES.get(opening)
        if closing is None or text[stop - 1] != closing:
            break
        # 'a "b" and "c"' is not in quotes although it may begin and end with one.
        if any(text.find(mark, start + 1, stop - 1) >= 0 for mark in (opening, closing)):
            break
        start, stop = _trimmed(text, start + 1, stop - 1)
    return start, stop


def _after_phrase(text: str, start: int, stop: int, phrases: tuple[str, ...]) -> int:
    found = _pattern(phrases).match(text, start, stop)
    if not found:
        return start
    start = found.end()
    while start < stop and text[start] in _AFTER_A_PHRASE:
        start += 1
    return start


@lru_cache(maxsize=16)
def _pattern(phrases: tuple[str, ...]) -> re.Pattern[str]:
    """Find one of the phrases, the longest first, in any case and however it is spaced."""
    words = [r"\s+".join(map(re.escape, each.split())) for each in phrases]
    ends = [r"(?!\w)" if (each.split() or [""])[-1][-1:].isalnum() else "" for each in phrases]
    pairs = sorted(zip(words, ends, strict=True), key=lambda pair: -len(pair[0]))
    return re.compile("|".join(word + end for word, end in pairs), re.IGNORECASE)


def _before_full_stop(text: str, start: int, stop: int) -> int:
    """Leave out one full stop; several are an ellipsis."""
    if stop - start < 1 or text[stop - 1] not in _FULL_STOPS:
        return stop
    is_ellipsis = stop - start >= 2 and text[stop - 2] in _FULL_STOPS
    return stop if is_ellipsis else stop - 1
