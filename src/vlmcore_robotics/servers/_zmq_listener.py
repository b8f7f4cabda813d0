"""Connections of ZeroMQ: requests come in, answers go out, as at a REP socket."""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Awaitable, Callable
from functools import partial

import attrs

from vlmcore.errors import PolicyError
from vlmcore_robotics.servers._keepalive import watch_peer
from vlmcore_robotics.wire.zmtp import Message, SocketKind, ZmtpConnection, encode_message

__all__ = ["Listener", "Request", "Visit"]

_MOST_WAITING = 64  # connections that are not welcome yet; the oldest gives way
_WAITING_CONNECTIONS = 128  # in the kernel, until they are taken


class _Due(enum.Enum):
    """What a peer has to do in time."""

    WELCOME = "say what it is, while there is room for it"
    MESSAGE = "end a message that has begun to come"
    TAKING = "take what it is told"
    FAREWELL = "take what is left, once nothing more is said"


_WITHIN_S = {_Due.WELCOME: 5.0, _Due.MESSAGE: 30.0, _Due.TAKING: 30.0, _Due.FAREWELL: 1.0}


@attrs.frozen(kw_only=True, eq=False)
class Request:
    """
    What a peer asks.

    Attributes:
        envelope: The frames that lead an answer to it; the last one is empty.
        frames: How many frames were sent beside them.
        body: The frame, if it was one.
    """

    envelope: Message
    frames: int
    body: bytes | None

    @classmethod
    def of(cls, message: Message) -> Request:
        """
        Look for the envelope, which ends with the first empty frame.

        A peer that sends none, which no REQ socket does, is answered all the same.
        """
        split = message.index(b"") + 1 if b"" in message else 0
        body = message[split:]
        return cls(
            envelope=message[:split],
            frames=len(body),
            body=body[0] if len(body) == 1 else None,
        )


class Visit:
    """
    One connection, after its handshake.

    Attributes:
        is_welcome: Whether it is served. A client that is one too many has a few seconds to ask,
            and be told; ZeroMQ's own word for no would make a stock client wait for ever.
    """

    def __init__(self, connection: _Connection, *, is_welcome: bool) -> None:
        self._connection = connection
        self.is_welcome = is_welcome

    @property
    def gone(self) -> asyncio.Future[None]:
        """What is done once the peer is gone."""
        return self._connection.gone

    async def receive(self) -> Request | None:
        """Wait for the next request; ``None`` once the peer is gone."""
        message = await self._connection.receive()
        return None if message is None else Request.of(message)

    def answer(self, request: Request, frame: bytes) -> None:
        """Send an answer; it is dropped if the peer is gone."""
        self._connection.send(encode_message([*request.envelope, frame]))


class Listener:
    """
    Listens at one address.

    Args:
        visit: Is awaited for each connection; once it returns, the connection is closed.
        policy: What the policy is called.
        max_clients: How many are welcome at once.
    """

    def __init__(
        self, *, visit: Callable[[Visit], Awaitable[None]], policy: str, max_clients: int
    ) -> None:
        self._visit = visit
        self._policy = policy
        self._max_clients = max_clients
        self._server: asyncio.Server | None = None
        self._waiting: dict[_Connection, None] = {}  # to be welcome; the oldest first
        self._welcome: set[_Connection] = set()
        self._visits: dict[_Connection, asyncio.Future[None]] = {}

    async def open(self, *, host: str, port: int, max_bytes: int) -> int:
        """
        Listen; return the port, which is another one than *port* if that is 0.

        Raises:
            OSError: If that is not possible.
        """
        new = partial(_Connection, self, policy=self._policy, max_bytes=max_bytes)
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(new, host, port, backlog=_WAITING_CONNECTIONS)
        return int(self._server.sockets[0].getsockname()[1])

    def stop_accepting(self) -> None:
        """Take no more connections; those that are there stay."""
        if self._server is not None:
            self._server.close()

    async def close(self) -> None:
        """Hang up on everybody, within a second where something is left to be taken."""
        self.stop_accepting()
        for connection in tuple(self._waiting):
            connection.abort()
        visits = dict(self._visits)
        for connection, visiting in visits.items():
            visiting.cancel()
            connection.hang_up()
        await asyncio.gather(*visits.values(), return_exceptions=True)
        await asyncio.gather(*(connection.gone for connection in visits))

    def begin(self, connection: _Connection) -> None:
        """Note a connection whose handshake begins."""
        if len(self._waiting) >= _MOST_WAITING:
            oldest = next(iter(self._waiting))
            del self._waiting[oldest]
            oldest.abort()
        self._waiting[connection] = None

    def admit(self, connection: _Connection) -> bool:
        """Begin a visit; return whether it is welcome."""
        is_welcome = len(self._welcome) < self._max_clients
        if is_welcome:
            self._waiting.pop(connection, None)
            self._welcome.add(connection)
        visit = Visit(connection, is_welcome=is_welcome)
        self._visits[connection] = asyncio.ensure_future(self._run(visit, connection))
        return is_welcome

    def leave(self, connection: _Connection) -> None:
        """Note a connection that is gone."""
        self._waiting.pop(connection, None)
        self._welcome.discard(connection)

    async def _run(self, visit: Visit, connection: _Connection) -> None:
        try:
            await self._visit(visit)
        finally:
            del self._visits[connection]
            connection.hang_up()


class _Connection(asyncio.BufferedProtocol):
    """
    One connection, which holds nobody else up.

    It reads one request ahead, and nothing from a peer that takes no answers. It hangs up on one
    that does not shake hands, end what it says or take what it is told in time, and on one that
    speaks another protocol or says too much.
    """

    def __init__(self, listener: Listener, *, policy: str, max_bytes: int) -> None:
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._listener = listener
        self._zmtp = ZmtpConnection(SocketKind.ROUTER, policy=policy, max_bytes=max_bytes)
        self._is_admitted = False
        self._is_full = False
        self._next: Message | None = None
        self._receiver: asyncio.Future[Message | None] | None = None
        self._timers: dict[_Due, asyncio.TimerHandle] = {}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        watch_peer(transport.get_extra_info("socket"))
        self._listener.begin(self)
        self._expect(_Due.WELCOME)
        self._flush()

    def get_buffer(self, _sizehint: int) -> memoryview:
        return self._zmtp.room()

    def buffer_updated(self, nbytes: int) -> None:
        self._zmtp.filled(nbytes)
        self._read_on()

    def connection_lost(self, _exc: Exception | None) -> None:
        for due in _Due:
            self._expect_no_more(due)
        self._listener.leave(self)
        self._next = None
        self.gone.set_result(None)
        self._hand_over(None)

    def pause_writing(self) -> None:
        self._is_full = True
        self._expect(_Due.TAKING)

    def resume_writing(self) -> None:
        self._is_full = False
        self._expect_no_more(_Due.TAKING)
        self._read_on()

    async def receive(self) -> Message | None:
        """Wait for the next message; ``None`` once the peer is gone."""
        if self._next is None and not self.gone.done():
            self._receiver = asyncio.get_running_loop().create_future()
            return await self._receiver
        message, self._next = self._next, None
        self._read_on()
        return message

    def send(self, parts: list[bytes]) -> None:
        """Send, unless the peer is gone."""
        if not self._transport.is_closing():
            self._transport.write(b"".join(parts))

    def hang_up(self) -> None:
        """Close once all is taken that was sent, or soon."""
        if not self.gone.done():
            self._transport.close()
            self._expect(_Due.FAREWELL)

    def abort(self) -> None:
        """Close at once."""
        self._transport.abort()

    def _read_on(self) -> None:
        """Read what came, up to a message that nobody waits for; and have more come, or not."""
        while not self._transport.is_closing():
            if self._next is not None or self._is_full:
                self._transport.pause_reading()
                return
            try:
                message = self._zmtp.take()
                self._greet()
            except PolicyError as error:
                self._refuse(error.problem)
                return
            self._watch_message()
            self._flush()
            if message is None:
                self._transport.resume_reading()
                return
            self._hand_over(message)

    def _hand_over(self, message: Message | None) -> None:
        receiver, self._receiver = self._receiver, None
        if receiver is None or receiver.done():  # it was cancelled
            self._next = message
        else:
            receiver.set_result(message)

    def _greet(self) -> None:
        """Let the peer in, once it has said what it is."""
        if self._zmtp.is_greeted and not self._is_admitted:
            self._is_admitted = True
            self._zmtp.accept()
            if self._listener.admit(self):
                self._expect_no_more(_Due.WELCOME)

    def _refuse(self, words: str) -> None:
        """Hang up; ZeroMQ has no words for a reason after the handshake."""
        if not self._is_admitted:
            self._zmtp.refuse(words)
        self._flush()
        self.hang_up()

    def _flush(self) -> None:
        said, self._zmtp.unsent = self._zmtp.unsent, []
        if said:
            self.send(said)

    def _watch_message(self) -> None:
        if not self._zmtp.is_within:
            self._expect_no_more(_Due.MESSAGE)
        elif _Due.MESSAGE not in self._timers:
            self._expect(_Due.MESSAGE)

    def _expect(self, due: _Due) -> None:
        """Hang up at once if that is not done in time."""
        self._expect_no_more(due)
        loop = asyncio.get_running_loop()
        self._timers[due] = loop.call_later(_WITHIN_S[due], self._transport.abort)

    def _expect_no_more(self, due: _Due) -> None:
        timer = self._timers.pop(due, None)
        if timer is not None:
            timer.cancel()
