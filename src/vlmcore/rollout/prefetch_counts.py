"""What came of the requests of a broker that asks ahead."""

from __future__ import annotations

import attrs

__all__ = ["PrefetchCounts"]


@attrs.frozen(kw_only=True)
class PrefetchCounts:
    """
    What came of the requests of a `PrefetchingBroker` since its last reset.

    Attributes:
        asked: How many requests were made.
        answered: How many were answered with a chunk that was taken in.
        failed: How many the policy failed at.
        late: How many were answered when all rows of the answer were past.
        stale_observations: How many times an observation was too old to ask with.
        stale_chunks: How many times the rest of a plan was too old to be executed.
        starved: In how many steps there was nothing to execute; the wait for the first answer
            counts.
    """

    asked: int = 0
    answered: int = 0
    failed: int = 0
    late: int = 0
    stale_observations: int = 0
    stale_chunks: int = 0
    starved: int = 0
