"""What a job says about an image, as one row of a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

__all__ = ["CaptionRow"]


@attrs.frozen(kw_only=True)
class CaptionRow:
    """
    What a job says about an image.

    Attributes:
        key: The image, as in `vlmcore.jobs.items.Item`.
        captions: The caption of each prompt, by the prompt's name; empty if it failed.
        values: What each caption says, where JSON was asked for: plain values, by the prompt's
            name.
        model: The model that wrote them.
        width_px: Width of the image as stored, turned upright; ``None`` if it could not be read.
        height_px: Its height.
        duplicate_of: The key of the image that it is like, where it was skipped for that.
        error: Why it has no caption; empty if it has.
    """

    key: str
    captions: Mapping[str, str]
    values: Mapping[str, Any] = attrs.field(factory=dict)
    model: str
    width_px: int | None
    height_px: int | None
    duplicate_of: str = ""
    error: str = ""
