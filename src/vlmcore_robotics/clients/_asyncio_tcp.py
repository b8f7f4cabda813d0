"""The connection of an ``asyncio`` client: it feeds its line as soon as something comes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from vlmcore.endpoint import Endpoint

if TYPE_CHECKING:
    import ssl

    from vlmcore_robotics.clients._websocket_line import Line

__all__ = ["AsyncTcpConnection"]


class AsyncTcpConnection(asyncio.Protocol):
    """
    Moves bytes between a socket and a line, pings and their answers included.

    Attributes:
        line: The line; it knows when the connection is over.
    """

    def __init__(self, line: Line) -> None:
        self.line = line
        self._transport: asyncio.Transport | None = None
        self._news = asyncio.Event()
        self._lost = asyncio.Event()

    async def open(self, endpoint: Endpoint, tls: ssl.SSLContext | None) -> None:
        """
        Connect to the first address that answers, and check who answers.

        Raises:
            OSError: If none does, or it cannot prove that it is *endpoint*.
        """
        try:
            await asyncio.get_running_loop().create_connection(
                lambda: self,
                endpoint.address,
                endpoint.port,
                ssl=tls,
                server_hostname=None if tls is None else endpoint.host,
            )
        except BaseException:
            # The loop closes the socket of a handshake that failed in its next rounds; a program
            # that ends here would leave it open.
            for _ in range(3):
                await asyncio.sleep(0)
            raise

    async def message(self) -> bytes | str:
        """
        Wait for the next message.

        Raises:
            Exception: What ended the connection.
        """
        while (message := self.line.take()) is None:
            self._news.clear()
            await self._news.wait()
        return message

    def flush(self) -> None:
        """Send what the line has to send."""
        for data in self.line.outgoing():
            if self._transport is not None:
                self._transport.write(data)

    def cut(self) -> None:
        """End the connection, and whatever is waited for on it."""
        self.line.lose(None)
        self._news.set()
        if self._transport is not None:
            self._transport.abort()

    def leave(self) -> None:
        """Say farewell, and end the connection once that is sent."""
        self.line.leave()
        self.flush()
        if self._transport is not None:
            self._transport.close()

    async def gone(self, patience_s: float) -> None:
        """Wait until the socket is closed; after *patience_s* it is closed without a farewell."""
        if self._transport is None:
            return
        try:
            await asyncio.wait_for(self._lost.wait(), patience_s)
        except asyncio.TimeoutError:
            self._transport.abort()
            await self._lost.wait()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport; called by the event loop."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if not self.line.is_usable:  # cut before there was one
            transport.abort()

    def data_received(self, data: bytes) -> None:
        """Feed the line; called by the event loop."""
        self.line.feed(data)
        self.flush()
        self._news.set()
        if not self.line.is_usable and self._transport is not None:
            self._transport.close()

    def eof_received(self) -> None:
        """Feed the end to the line; called by the event loop, which then closes the socket."""
        self.line.feed(b"")
        self._news.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """Note the loss; called by the event loop."""
        self.line.lose(exc)
        self._news.set()
        self._lost.set()
