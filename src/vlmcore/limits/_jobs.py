"""Jobs over many images."""

from __future__ import annotations

import attrs

from vlmcore.limits._base import MIB, Bounds

__all__ = ["JobLimits"]


@attrs.frozen(kw_only=True)
class JobLimits(Bounds):
    """
    What a job over many images holds at once, whatever their number.

    Attributes:
        max_ahead_images: Images that are read before the model has looked at them.
        max_ahead_bytes: Bytes of the pixels of those that are decoded; one more image may be on its
            way in each thread that reads.
        max_readers: Threads that read and decode images.
        max_sidecar_bytes: Bytes of a caption file that is there already.
        max_failures_told: Failures that a report lists; the journal has all.
    """

    max_ahead_images: int = 256
    max_ahead_bytes: int = 256 * MIB
    max_readers: int = 4
    max_sidecar_bytes: int = MIB
    max_failures_told: int = 1000
