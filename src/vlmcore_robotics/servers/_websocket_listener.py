"""The door to the websockets package of servers: connections come in, messages go both ways."""

from __future__ import annotations

import asyncio
import enum
import logging
import ssl
from collections.abc import Awaitable, Callable, Generator
from functools import partial
from typing import Any

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed, ProtocolError
from websockets.frames import DATA_OPCODES, Frame
from websockets.http11 import Request, Response
from websockets.server import ServerProtocol

from vlmcore_robotics.servers._admission import Refusal
from vlmcore_robotics.servers._keepalive import watch_peer
from vlmcore_robotics.servers._tls import Handshakes
from vlmcore_robotics.wire._pieces import Pieces

__all__ = ["Listener", "Visit"]

_HANDSHAKE_TIMEOUT_S = 10.0
_MOST_HANDSHAKES = 64  # under way at once; the oldest gives way
_LATE = 1008  # a code of WebSocket, of rules that are broken


class _Due(enum.Enum):
    """What a peer has to do in time."""

    MESSAGE = "end a message that has begun to come, and is waited for"
    TAKING = "take what it is told"
    FAREWELL = "hang up after the farewell"


_WITHIN_S = {_Due.MESSAGE: 30.0, _Due.TAKING: 30.0, _Due.FAREWELL: 2.0}

# Writes nothing: the package writes headers at its debug level, and tracebacks of handshakes.
_QUIET = logging.getLogger(f"{__name__}.websockets")
_QUIET.disabled = True
_QUIET.setLevel(logging.CRITICAL)


class Visit:
    """One connection, after its handshake."""

    def __init__(self, connection: _Connection) -> None:
        self._connection = connection

    async def receive(self) -> bytes | str | None:
        """Wait for the next message; ``None`` once the peer is gone, or late with what it began."""
        try:
            return await self._connection.next_message()
        except ConnectionClosed:
            return None

    async def send(self, message: bytes | str) -> bool:
        """Send a message; return whether the peer was still there."""
        try:
            await self._connection.send(message)
        except ConnectionClosed:
            return False
        return True

    async def gone(self) -> None:
        """Wait until the peer is gone."""
        await self._connection.wait_closed()

    async def close(self, code: int, reason: str) -> None:
        """Say farewell in at most 123 bytes and hang up; the peer may be gone."""
        await self._connection.close(code, reason)


class Listener:
    """
    Listens at one address.

    Args:
        visit: Is awaited for each connection; once it returns, the connection is closed.
        admit: Says why a request is refused, by its path and its values of headers.
        answer: Answers plain HTTP requests by their path, instead of a WebSocket; or ``None``.
    """

    def __init__(
        self,
        *,
        visit: Callable[[Visit], Awaitable[None]],
        admit: Callable[[str, Callable[[str], list[str]]], Refusal | None],
        answer: Callable[[str], str | None],
    ) -> None:
        self._visit = visit
        self._admit = admit
        self._answer = answer
        self._server: Server | None = None
        self._handshakes = Handshakes(None)
        self._shaking: dict[_Connection, None] = {}  # hands; the oldest first

    async def open(
        self, *, host: str, port: int, tls: ssl.SSLContext | None, max_bytes: int
    ) -> int:
        """
        Listen; return the port, which is another one than *port* if that is 0.

        Raises:
            OSError: If that is not possible.
        """
        self._handshakes = Handshakes(tls)
        connection: Any = partial(_Connection, shaking=self._shaking, handshakes=self._handshakes)
        self._server = await serve(
            self._handle,
            host,
            port,
            process_request=self._process_request,
            compression=None,
            max_size=max_bytes,
            max_queue=1,
            ping_interval=None,  # a client that computes, or is at a breakpoint, is not gone
            open_timeout=_HANDSHAKE_TIMEOUT_S,
            close_timeout=_WITHIN_S[_Due.FAREWELL],
            server_header=None,
            logger=_QUIET,
            create_connection=connection,
        )
        return int(next(iter(self._server.sockets)).getsockname()[1])

    def stop_accepting(self) -> None:
        """Take no more connections; those that are there stay."""
        if self._server is not None:
            self._server.close(close_connections=False)

    async def close(self) -> None:
        """Hang up on everybody, and wait until that is done."""
        if self._server is not None:
            self._handshakes.close()
            for connecting in tuple(self._shaking):
                connecting.transport.abort()
            left = [connection.close(1001) for connection in self._server.connections]
            await asyncio.gather(*left)
            await self._server.wait_closed()

    async def _handle(self, connection: ServerConnection) -> None:
        assert isinstance(connection, _Connection)
        self._shaking.pop(connection, None)
        watch_peer(connection.transport.get_extra_info("socket"))
        await self._visit(Visit(connection))

    def _process_request(self, connection: ServerConnection, request: Request) -> Response | None:
        refusal = self._admit(request.path, request.headers.get_all)
        if refusal is not None:
            return connection.respond(refusal.status, f"{refusal.words}\n")
        words = self._answer(request.path)
        return None if words is None else connection.respond(200, words)


class _Connection(ServerConnection):
    """
    One that holds nobody else up.

    It reads no more from a peer that takes no answers, whom the package pongs without end. It hangs
    up on one that sends a flood of small frames, that stays after its farewell, that does not end
    its request or take its answer in time, or that does not shake hands while others want to.
    """

    def __init__(
        self,
        protocol: ServerProtocol,
        *given: Any,
        shaking: dict[_Connection, None],
        handshakes: Handshakes,
        **named: Any,
    ) -> None:
        super().__init__(protocol, *given, **named)
        self._shaking = shaking
        self._handshakes = handshakes
        self._is_full = False
        self._is_held = False
        self._is_awaited = False
        self._is_within_frame = False
        self._has_part = False
        self._timers: dict[_Due, asyncio.TimerHandle] = {}
        self._pieces = Pieces()
        self._watch_frames(protocol)

    def _watch_frames(self, protocol: ServerProtocol) -> None:
        """Learn when a frame begins, for which the package first looks whether more comes."""
        take, has_ended = protocol.recv_frame, protocol.reader.at_eof

        def take_some(frame: Frame) -> None:
            if not self._pieces.take():
                raise ProtocolError("too many small frames at once")
            take(frame)
            if frame.opcode in DATA_OPCODES:
                self._has_part = not frame.fin

        def begin_frame() -> Generator[None, None, bool]:
            self._is_within_frame = False
            is_end = yield from has_ended()
            self._is_within_frame = not is_end
            return is_end

        protocol.recv_frame = take_some  # type: ignore[method-assign]
        protocol.reader.at_eof = begin_frame  # type: ignore[method-assign]

    async def next_message(self) -> bytes | str:
        """Wait for the next message; what began while nobody waited has its time from now on."""
        self._is_awaited = True
        self._watch_message()
        try:
            return await self.recv()
        finally:
            self._is_awaited = False
            self._watch_message()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if self._handshakes.begin(transport, self):
            return
        super().connection_made(transport)
        if len(self._shaking) >= _MOST_HANDSHAKES:
            oldest = next(iter(self._shaking))
            del self._shaking[oldest]
            oldest.transport.abort()
        self._shaking[self] = None

    def connection_lost(self, exc: Exception | None) -> None:
        self._shaking.pop(self, None)
        self._is_awaited = False
        for due in _Due:
            self._expect_no_more(due)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._pieces.begin()
        super().data_received(data)
        self._watch_message()
        if self.protocol.close_expected():
            self._expect(_Due.FAREWELL)
        if self._is_full and not self._is_held and self.transport.is_reading():
            self._is_held = True
            self.transport.pause_reading()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._is_full = True
        self._expect(_Due.TAKING)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._is_full = False
        self._expect_no_more(_Due.TAKING)
        if self._is_held:
            self._is_held = False
            self.transport.resume_reading()

    def _watch_message(self) -> None:
        if self._is_awaited and (self._is_within_frame or self._has_part):
            self._expect(_Due.MESSAGE)
        else:
            self._expect_no_more(_Due.MESSAGE)

    def _expect(self, due: _Due) -> None:
        """Hang up if that is not done in time, counted from when it was first expected."""
        if due not in self._timers:
            late = self._say_late if due is _Due.MESSAGE else self.transport.abort
            self._timers[due] = self.loop.call_later(_WITHIN_S[due], late)

    def _expect_no_more(self, due: _Due) -> None:
        timer = self._timers.pop(due, None)
        if timer is not None:
            timer.cancel()

    def _say_late(self) -> None:
        self.protocol.fail(_LATE, "the request did not come in time")
        self.send_data()
        self._expect(_Due.FAREWELL)
