"""With how many others a prompt was answered."""

from __future__ import annotations

import attrs

__all__ = ["Batched"]


@attrs.frozen(kw_only=True)
class Batched:
    """
    The batch that an answer was part of.

    Attributes:
        size: The prompts that were answered at once, this one included.
        smaller_because: Why a batch of ``batch_size`` was too much; empty where it was not.
    """

    size: int
    smaller_because: str = ""
