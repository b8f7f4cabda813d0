"""The door to starlette: one request, its headers first, then its body, then the answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from vlmcore_robotics.wire.http_messages import HttpResponse

__all__ = ["Visit", "app_of"]


class Visit:
    """One request whose headers have come."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self.has_left = False
        self.method = request.method
        self.path: str = request.scope["raw_path"].decode("latin-1")

    def header(self, name: str) -> list[str]:
        """Say the values of a header, as many as came."""
        return self._request.headers.getlist(name)

    async def pieces(self) -> AsyncIterator[bytes]:
        """Read the body as it comes; it ends, too, where the client leaves."""
        try:
            async for piece in self._request.stream():
                yield piece
        except ClientDisconnect:
            self.has_left = True

    async def gone(self) -> None:
        """Wait until the client is gone; the body has to be read."""
        while (await self._request.receive())["type"] != "http.disconnect":
            pass


def app_of(answer: Callable[[Visit], Awaitable[HttpResponse | None]]) -> Any:
    """Make an application of ASGI that gives each request to *answer*; ``None`` is no answer."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        found = await answer(Visit(Request(scope, receive)))
        if found is not None:
            response = Response(found.body, found.status, dict(found.headers))
            await response(scope, receive, send)

    return app
