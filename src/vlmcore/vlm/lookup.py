"""What guessing an answer from its prompt came to."""

from __future__ import annotations

import attrs

__all__ = ["LookedUp"]


@attrs.frozen(kw_only=True)
class LookedUp:
    """
    How many tokens of an answer were guessed from the prompt, and written at once.

    Attributes:
        passes: Passes of the model after the one over the prompt.
        guessed_tokens: Tokens that were guessed.
        accepted_tokens: Those of them that the model wrote.
        plain_because: Why nothing was looked up, and the answer was written token by token; empty
            where it was not so.
    """

    passes: int = 0
    guessed_tokens: int = 0
    accepted_tokens: int = 0
    plain_because: str = ""
