"""The connection of an ``asyncio`` client: it feeds its line as soon as something comes."""

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import TYPE_CHECKING, Any

from vlmcore._net.lookup import Lookup
from vlmcore.endpoint import Endpoint
from vlmcore_robotics.clients._line import rest_after, views_of

if TYPE_CHECKING:
    import ssl

    from vlmcore_robotics.clients._line import Line

__all__ = ["AsyncTcpConnection"]

_AT_A_TIME = 1 << 18  # bytes: what is given to the event loop it may have to copy


class AsyncTcpConnection(asyncio.Protocol):
    """Moves bytes between a socket and a line, those that nobody waits for included."""

    def __init__(self) -> None:
        self._line: Line[Any, Any] | None = None
        self._transport: asyncio.Transport | None = None
        self._unsent: list[memoryview] = []
        self._is_full = False
        self._is_cut = False
        self._news = asyncio.Event()
        self._lost = asyncio.Event()

    async def open(
        self, line: Line[Any, Any], endpoint: Endpoint, tls: ssl.SSLContext | None
    ) -> None:
        """
        Connect to the first address that answers, and check who answers.

        Raises:
            OSError: If none does, or it cannot prove that it is *endpoint*.
        """
        self._line = line
        found = await Lookup(endpoint).awaited()
        for i, (*_, address) in enumerate(found):
            try:
                await self._dial(str(address[0]), endpoint, tls)
                break
            except OSError:
                if i == len(found) - 1:
                    raise

    async def _dial(self, host: str, endpoint: Endpoint, tls: ssl.SSLContext | None) -> None:
        try:
            await asyncio.get_running_loop().create_connection(
                lambda: self,
                host,
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

    async def news(self) -> None:
        """Wait until something comes, or the connection ends."""
        self._news.clear()
        await self._news.wait()

    def flush(self) -> None:
        """Send what the line has to send, as far as the socket takes it; the rest follows."""
        transport, line = self._transport, self._line
        if transport is None or line is None:
            return
        while not (self._is_full or transport.is_closing()):
            if not self._unsent:
                part = next(iter(line.outgoing()), None)
                if part is None:
                    return
                self._unsent = views_of(part)
            data = self._unsent[0][:_AT_A_TIME]
            self._unsent = rest_after(len(data), self._unsent)
            transport.write(data)

    def cut(self) -> None:
        """End the connection, and whatever is waited for on it."""
        self._is_cut = True
        self._unsent = []
        if self._line is not None:
            self._line.lose(None)
        self._news.set()
        if self._transport is not None:
            self._transport.abort()

    def forget(self) -> None:
        """Let go of the socket in a forked process, or where its event loop runs no more."""
        transport = self._transport
        number = -1 if transport is None else transport.get_extra_info("socket").fileno()
        if number >= 0 and os.name == "posix":  # elsewhere it is closed when nobody has it any more
            nothing = os.open(os.devnull, os.O_RDONLY)
            os.dup2(nothing, number)  # the transport closes the number, once nobody has it any more
            os.close(nothing)

    def leave(self) -> None:
        """Say farewell, and end the connection once that is sent."""
        if self._line is not None and not self._is_cut:
            self._line.leave()
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
        if self._is_cut:  # before there was one
            transport.abort()

    def pause_writing(self) -> None:
        """Note that the socket takes no more; called by the event loop."""
        self._is_full = True

    def resume_writing(self) -> None:
        """Go on sending; called by the event loop."""
        self._is_full = False
        self.flush()

    def data_received(self, data: bytes) -> None:
        """Feed the line; called by the event loop."""
        assert self._line is not None
        self._line.feed(data)
        self.flush()
        self._news.set()
        if not self._line.is_usable:
            self._end()

    def _end(self) -> None:
        """Close the socket, without what a peer that takes nothing was to be sent."""
        if self._transport is None:
            return
        if self._is_full:
            self._transport.abort()
        else:
            self._transport.close()

    def eof_received(self) -> None:
        """Feed the end to the line; called by the event loop, which then closes the socket."""
        assert self._line is not None
        self._line.feed(b"")
        self._news.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """Note the loss, and what came before it; called by the event loop."""
        self._unsent = []
        if self._line is not None:
            if exc is not None and not self._is_cut:
                self._read_the_rest(self._line)
            self._line.lose(exc)
        self._news.set()
        self._lost.set()

    def _read_the_rest(self, line: Line[Any, Any]) -> None:
        """
        Feed what came before sending failed: the event loop reads no more then.

        What was encrypted is beyond reach: the event loop has the keys.
        """
        transport = self._transport
        if transport is None or transport.get_extra_info("ssl_object") is not None:
            return
        with contextlib.suppress(OSError), transport.get_extra_info("socket").dup() as connection:
            connection.settimeout(0.0)
            while line.is_usable and (data := connection.recv(_AT_A_TIME)):
                line.feed(data)
