"""What connections over TCP have in common, whatever is said on them: a line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, TypeVar

from vlmcore_robotics.clients._boundary import Stage
from vlmcore_robotics.wire._blobs import Parts

__all__ = ["Line", "rest_after", "views_of"]

_Request_contra = TypeVar("_Request_contra", contravariant=True)
_Answer_co = TypeVar("_Answer_co", covariant=True)


class Line(Protocol[_Request_contra, _Answer_co]):
    """One connection without its socket: bytes come in, bytes and answers go out."""

    @property
    def stage(self) -> Stage:
        """What is waited for before anything is asked."""
        ...

    @property
    def is_usable(self) -> bool:
        """Whether something can be asked, now or after what is awaited."""
        ...

    def ask(self, request: _Request_contra, /) -> None:
        """Put a request among what is to be sent."""
        ...

    def outgoing(self) -> Iterator[bytes | Parts]:
        """Take what is to be sent, piece by piece; who stops goes on with the next one later."""
        ...

    def feed(self, data: bytes) -> None:
        """Take what came; nothing means that the peer sends no more."""
        ...

    def lose(self, error: Exception | None) -> None:
        """Note that the connection is gone."""
        ...

    def leave(self) -> None:
        """Put a farewell among what is to be sent, if there is one."""
        ...

    def take(self) -> _Answer_co | None:
        """Take the answer that is awaited, ``None`` if it has not come; raise what ended it."""
        ...


def views_of(piece: bytes | Parts) -> list[memoryview]:
    """View what is to be sent."""
    parts = piece if isinstance(piece, Parts) else (piece,)
    return [memoryview(part) for part in parts]


def rest_after(sent: int, views: list[memoryview]) -> list[memoryview]:
    """Leave out what was sent of *views*, and what is empty after it."""
    for i, view in enumerate(views):
        if sent < len(view):
            return [view[sent:], *views[i + 1 :]]
        sent -= len(view)
    return []
