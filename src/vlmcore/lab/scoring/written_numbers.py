"""
Numbers as people and models write them in a text.

What has more than one reading is not read as one of them: ``3,5`` is two numbers, ``1.000,5`` is
none, and both are told.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from decimal import Decimal

import attrs

from vlmcore.lab.scoring.normalising import Level, normalised

__all__ = ["WrittenNumber", "read_numbers"]

_MINUS = "\u2212"
_MOST_CHARACTERS = 64
_NUMBER = re.compile(r"(?:(?<![\w.])\.\d+|\d[\d.,]*)(?:(?<=\d)e[-+]?\d{1,3}(?!\w))?")
_PLAIN = re.compile(r"(\d+|\d*\.\d+)(e[-+]?\d+)?")
_GROUPED = re.compile(r"[^\D0]\d{0,2}(?:,\d{3})+(?:\.\d+)?")
_LISTED = re.compile(r"\d+(?:,\d+)+")
_SPELLED = {
    word: Decimal(i)
    for i, word in enumerate(
        (
            *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"),
            *("ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen"),
            *("seventeen", "eighteen", "nineteen", "twenty"),
        )
    )
}
_SPELLED_WORD = re.compile(rf"\b(?:{'|'.join(_SPELLED)})\b")


@attrs.frozen
class WrittenNumber:
    """
    A number in a text.

    Attributes:
        text: As it is written.
        value: What it is; ``None`` if that has more than one reading.
    """

    text: str
    value: Decimal | None


def read_numbers(text: str, *, spelled: bool = False) -> tuple[WrittenNumber, ...]:
    """
    Find every number of a text, in their order.

    Digits of any script are read, signs, decimals, groups of three digits between commas, and
    exponents; units and signs of currency make no difference. Digits behind a letter are part of a
    name, as in ``mp3`` or ``F-16``.

    Args:
        text: What a model wrote.
        spelled: Whether the English words from zero to twenty are numbers, too.

    Example:
        >>> [str(each.value) for each in read_numbers("-3.5 of 1,200 (1, 2), mp3")]
        ['-3.5', '1200', '1', '2']
    """
    plain = normalised("".join(map(_spaced, text)), Level.FOLDED).replace(_MINUS, "-")
    found = [(match.start(), each) for match in _NUMBER.finditer(plain) for each in _read(match)]
    if spelled:
        found += [
            (match.start(), WrittenNumber(match.group(), _SPELLED[match.group()]))
            for match in _SPELLED_WORD.finditer(plain)
        ]
        found.sort(key=lambda pair: pair[0])
    return tuple(number for _, number in found)


def _spaced(character: str) -> str:
    """Keep what is written small apart: 10 with a small 2 is not 102, nor is 3 and a half 31/2."""
    is_small = unicodedata.decomposition(character).startswith(("<super>", "<sub>", "<fraction>"))
    return f" {character}" if is_small else character


def _read(match: re.Match[str]) -> Iterator[WrittenNumber]:
    """Read what looks like a number, or like several."""
    written = match.group().rstrip(".,")
    before = match.string[max(0, match.start() - 2) : match.start()]
    if before[-1:].isalpha() or (before[-1:] == "-" and before[:-1].isalpha()):
        return  # part of a name
    is_signed = before[-1:] in ("-", "+") and not before[:-1].isdigit()
    sign = before[-1:] if is_signed else ""
    if len(written) > _MOST_CHARACTERS:
        yield WrittenNumber(f"{sign}{written[:_MOST_CHARACTERS]}", None)
    elif _PLAIN.fullmatch(written) or _GROUPED.fullmatch(written):
        yield WrittenNumber(sign + written, Decimal(sign + written.replace(",", "")))
    elif _LISTED.fullmatch(written):
        for i, part in enumerate(written.split(",")):
            yield WrittenNumber(part, Decimal(part if i else sign + part))
    else:
        yield WrittenNumber(sign + written, None)
