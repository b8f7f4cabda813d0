"""Texts that people and models hand from node to node."""

from __future__ import annotations

import attrs

from vlmcore.limits._base import Bounds

__all__ = ["TextLimits"]


@attrs.frozen(kw_only=True)
class TextLimits(Bounds):
    """
    What is taken of texts, and made of them.

    Attributes:
        max_text_characters: Characters of a text.
        max_items: Items that a text is split into.
        max_pattern_characters: Characters of a regular expression.
        max_pattern_s: Seconds that a regular expression may take over a text.
    """

    max_text_characters: int = 10_000_000
    max_items: int = 100_000
    max_pattern_characters: int = 10_000
    max_pattern_s: int = 10
