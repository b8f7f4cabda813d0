"""Weights that come and go together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

__all__ = ["Part"]


@attrs.define(eq=False, kw_only=True)
class Part:
    """
    Weights that come and go together: those of one module. Its state belongs to the pool.

    Attributes:
        path: The file they are in, for errors.
        nbytes: What they take.
        load: Reads them.
        is_changed: Whether somebody wrote to them since they were read: then they stay.
        value: What was read; ``None`` while they are not in memory.
        is_loading: Whether a thread reads them now.
        is_closed: Whether they can be asked for no more.
    """

    path: str
    nbytes: int
    load: Callable[[], Any]
    is_changed: Callable[[Any], bool]
    value: Any = attrs.field(default=None, init=False, repr=False)
    is_loading: bool = attrs.field(default=False, init=False)
    is_closed: bool = attrs.field(default=False, init=False)
