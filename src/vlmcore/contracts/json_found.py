"""JSON in what a model wrote: in fences, between words, or cut."""

from __future__ import annotations

import re

import attrs

__all__ = ["FoundJson", "find_json"]

_OPENING = re.compile(r"[\[{]")
# Inside brackets: a bracket, a whole text, or a quotation mark that none closes.
_INSIDE = re.compile(r'[\[\]{}]|"[^"\\]*(?:\\.[^"\\]*)*"|"', re.DOTALL)
_FENCE_OPENS = re.compile(r"```[ \t]*\w*[ \t]*\r?\n")
# A text that is closed on its line, as all of JSON are, may have a fence in it that closes nothing.
_IN_FENCE = re.compile(r'"[^"\\\n]*(?:\\.[^"\\\n]*)*"|```')
_CLOSES = {"]": "[", "}": "{"}


@attrs.frozen
class FoundJson:
    """
    What looks like JSON in a text.

    Attributes:
        parts: Objects and lists in their order, none inside another of them; nobody has read them.
        is_cut: Whether an object or a list is open at the end, or closes wrongly. Of it *parts* has
            what is whole inside.
    """

    parts: tuple[str, ...]
    is_cut: bool


def find_json(text: str) -> FoundJson:
    """
    Find the objects and lists of JSON in *text*, in time that grows with its length.

    Where a text that is not JSON itself has whole fences of Markdown, they alone are looked into.

    Args:
        text: What a model wrote.

    Example:
        >>> find_json('Here it is: {"a": [1]}.').parts
        ('{"a": [1]}',)
        >>> find_json('[{"a": 1}, {"a"')
        FoundJson(parts=('{"a": 1}',), is_cut=True)
    """
    fenced = [] if text.lstrip().startswith(("[", "{")) else _fenced(text)
    found = [_balanced(part) for part in fenced] or [_balanced(text)]
    parts = tuple(part for each in found for part in each.parts)
    return FoundJson(parts, any(each.is_cut for each in found))


def _fenced(text: str) -> list[str]:
    """Return what stands in each whole fence of Markdown."""
    parts: list[str] = []
    at = 0
    while opening := _FENCE_OPENS.search(text, at):
        at = opening.end()
        marks = (mark for mark in _IN_FENCE.finditer(text, at) if mark.group() == "```")
        closing = next(marks, None)
        if closing is None:
            break
        parts.append(text[at : closing.start()])
        at = closing.end()
    return parts


def _balanced(text: str) -> FoundJson:
    spans: list[tuple[int, int]] = []
    open_at: list[int] = []
    at = 0
    while match := (_INSIDE if open_at else _OPENING).search(text, at):
        at, mark = match.end(), match.group()
        if mark in ("[", "{"):
            open_at.append(match.start())
        elif mark in _CLOSES:
            start = open_at.pop()
            if text[start] != _CLOSES[mark]:
                open_at.append(start)
                break
            while spans and spans[-1][0] > start:
                spans.pop()
            spans.append((start, at))
        elif mark == '"':
            break
    return FoundJson(tuple(text[start:end] for start, end in spans), bool(open_at))
