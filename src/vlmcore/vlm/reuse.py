"""What answers take over from earlier ones, and what was taken over so far."""

from __future__ import annotations

import attrs

__all__ = ["ReuseReport", "Reused"]


@attrs.frozen(kw_only=True)
class Reused:
    """
    What of an answer was not computed again.

    Attributes:
        vision: Whether what the vision tower makes of the pictures was kept from before.
        prefix_tokens: Tokens of the prompt, from its start, whose keys and values were kept from
            before; those of its pictures are among them.
        fresh_because: Why keys and values of the prompt could not be taken over at all; empty
            where they could be, whether or not something was kept.
    """

    vision: bool = False
    prefix_tokens: int = 0
    fresh_because: str = ""


@attrs.frozen(kw_only=True)
class ReuseReport:
    """
    What a model keeps for answers to come, and what it served so far.

    Attributes:
        vision_hits: Prompts whose pictures did not pass the vision tower again.
        vision_misses: Prompts whose pictures did.
        vision_bytes: What is kept of pictures now.
        prefix_hits: Prompts of which a part was known.
        prefix_misses: Prompts of which none was.
        prefix_bytes: What is kept of prompts now.
        prefix_tokens: Tokens of prompts that were not computed again, all together.
    """

    vision_hits: int = 0
    vision_misses: int = 0
    vision_bytes: int = 0
    prefix_hits: int = 0
    prefix_misses: int = 0
    prefix_bytes: int = 0
    prefix_tokens: int = 0
