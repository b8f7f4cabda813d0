"""
What calls over a network do, step by step, for clients that block and clients for ``asyncio``.

A call is a generator: it says what is to be done next, and is given what came. It opens no socket,
reads no clock and waits for nothing itself. Whatever else it gives is news for its caller.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TypeAlias, TypeVar

import attrs

from vlmcore.endpoint import Endpoint

__all__ = ["Dial", "Receive", "Send", "Step", "Steps", "Wait"]

_News = TypeVar("_News")
_Result = TypeVar("_Result")


@attrs.frozen(kw_only=True)
class Dial:
    """
    Connect anew; where only public hosts may be, to none of a network in here.

    Where *needs_end*, a peer that ends an encrypted connection without saying so in TLS has cut it:
    that may be anybody between here and there. A context whose options ignore that cannot tell.
    """

    endpoint: Endpoint
    only_public: bool
    needs_end: bool = False


@attrs.frozen(repr=False)
class Send:
    """Send these bytes. A token may be in them."""

    parts: Sequence[bytes]


@attrs.frozen
class Receive:
    """Wait for what comes, so long at most, and give it; nothing means that no more comes."""

    longest_s: float | None = None


@attrs.frozen
class Wait:
    """Wait for so many seconds."""

    seconds: float


Step: TypeAlias = Dial | Send | Receive | Wait
Steps: TypeAlias = Generator[Step | _News, bytes | None, _Result]
