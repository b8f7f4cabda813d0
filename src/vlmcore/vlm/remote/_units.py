"""Text as something like tokens, where a server sends no tokens: to see that it is a loop."""

from __future__ import annotations

import re

from vlmcore.vlm.repetition import LoopDetector, is_one_loop

__all__ = ["TextLoops"]

# Words of languages with spaces, one character of the others, and up to eight marks that are alike:
# about what tokenizers make of text, so that what counts as a loop is about the same.
_UNIT = re.compile(r"\s?(?:[A-Za-z0-9]{1,16}|([^A-Za-z0-9])\1{0,7})")


class TextLoops:
    """
    Watches text as it comes, in whatever portions.

    Example:
        >>> loops = TextLoops()
        >>> loops.add("a dog and " * 40)
        True
    """

    def __init__(self) -> None:
        self._detector = LoopDetector()
        self._units: list[int] = []
        self._rest = ""

    @property
    def is_one_loop(self) -> bool:
        """Whether all of it, cut by its length limit, is one short phrase again and again."""
        return is_one_loop(self._units)

    def add(self, text: str) -> bool:
        """Take the next portion, and return whether the text has become a loop."""
        text = self._rest + text
        end = 0
        for match in _UNIT.finditer(text):
            if match.end() == len(text):
                break  # it may go on
            end = match.end()
            unit = hash(match[0].lstrip() or match[0])
            self._units.append(unit)
            if self._detector.add(unit):
                return True
        self._rest = text[end:]
        return False
