"""What comes of an answer in HTTP."""

from __future__ import annotations

import attrs

__all__ = ["BrokenHttpError", "Head"]


class BrokenHttpError(Exception):
    """What came is no answer in HTTP, or ended too early."""


@attrs.frozen(kw_only=True)
class Head:
    """The head of an answer; names of headers are in lower case."""

    status: int
    headers: dict[str, str]
