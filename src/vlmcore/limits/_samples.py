"""What the speed lab keeps of a request, and what it draws from many."""

from __future__ import annotations

import attrs

from vlmcore.limits._base import MIB, Bounds

__all__ = ["ResamplingLimits", "SampleLimits"]


@attrs.frozen(kw_only=True)
class SampleLimits(Bounds):
    """
    What is kept of one measured request, and how many there are in a run.

    Attributes:
        max_ns: Time since the beginning of a run, in nanoseconds; over 104 days. Larger numbers are
            not exact in JSON.
        max_name_characters: Characters of a name: of a case, a target, a reason to end.
        max_chunks: Pieces of an answer.
        max_text_characters: Characters of an answer, and of the reasoning before it.
        max_message_characters: Characters of what was said of a failure.
        max_tokens: Tokens that may be told of one request.
        max_memory_bytes: Memory that a model may be said to have taken.
        max_requests: Requests of a run.
    """

    max_ns: int = (1 << 53) - 1
    max_name_characters: int = 256
    max_chunks: int = 1 << 18
    max_text_characters: int = 4 * MIB
    max_message_characters: int = 1000
    max_tokens: int = 1 << 31
    max_memory_bytes: int = 1 << 50
    max_requests: int = 1 << 20


@attrs.frozen(kw_only=True)
class ResamplingLimits(Bounds):
    """
    How much is drawn to find out how sure a comparison is.

    Attributes:
        max_resamples: How often blocks are drawn anew.
        max_drawn: Numbers that are drawn at a time; each takes eight bytes.
    """

    max_resamples: int = 100_000
    max_drawn: int = 1 << 22
