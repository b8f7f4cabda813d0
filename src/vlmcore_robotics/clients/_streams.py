"""Clients of servers over TCP, encrypted or not: their connection, and one request on it."""

from __future__ import annotations

from typing import Generic, TypeVar

from vlmcore._net.deadline import Deadline
from vlmcore._net.tcp import TcpConnection
from vlmcore_robotics.clients._asyncio_tcp import AsyncTcpConnection
from vlmcore_robotics.clients._boundary import Stage
from vlmcore_robotics.clients._line import Line, rest_after, views_of
from vlmcore_robotics.clients._terms import Terms
from vlmcore_robotics.clients._turns import FAREWELL_S, AsyncClient, BlockingClient

__all__ = ["AsyncStreamClient", "StreamClient"]

_Request = TypeVar("_Request")
_Answer = TypeVar("_Answer")


class StreamClient(BlockingClient, Generic[_Request, _Answer]):
    """A client whose calls block, over TCP."""

    def __init__(self, terms: Terms) -> None:
        super().__init__(terms)
        self._line: Line[_Request, _Answer] | None = None
        self._tcp = TcpConnection()

    def _dial(self, line: Line[_Request, _Answer], deadline: Deadline) -> None:
        """Make a connection for *line*."""
        self._give_up()
        self._stage = Stage.CONNECTION
        self._tcp = TcpConnection()
        self._require_open()  # it may have been closed before there was something to cut
        self._tcp.open(self._terms.endpoint, self._terms.tls, deadline)
        self._line = line

    def _is_alive(self, line: Line[_Request, _Answer], deadline: Deadline) -> bool:
        """Hear what came since the last call: a farewell, or what nobody asked for."""
        try:
            while line.is_usable and (data := self._tcp.arrived()) is not None:
                line.feed(data)
                deadline.left_s()
            self._flush(line, deadline)
        except OSError as error:
            line.lose(error)
        return line.is_usable

    def _asked(self, request: _Request, deadline: Deadline) -> _Answer:
        """Ask on the connection that is there, and wait for the answer."""
        line = self._line
        assert line is not None
        self._stage = Stage.REQUEST
        line.ask(request)
        try:
            self._flush(line, deadline)
        except ConnectionError as error:
            # What the peer said last tells more than that it is gone.
            self._is_alive(line, deadline)
            line.lose(error)
        self._stage = Stage.ANSWER
        return self._next(line, deadline)

    def _next(self, line: Line[_Request, _Answer], deadline: Deadline) -> _Answer:
        while (answer := line.take()) is None:
            if not self._stage.is_asked:
                self._stage = line.stage
            line.feed(self._tcp.receive(deadline))
            self._flush(line, deadline)
        return answer

    def _flush(self, line: Line[_Request, _Answer], deadline: Deadline) -> None:
        """Send what the line has to send, and hear what comes meanwhile if that takes long."""
        for data in line.outgoing():
            rest = views_of(data)
            while rest:
                sent = self._tcp.send_parts(rest, deadline)
                rest = rest_after(sent, rest)
                if not sent and (came := self._tcp.arrived()) is not None:
                    line.feed(came)
                    if not line.is_usable:
                        return

    def _cut(self) -> None:
        self._tcp.cut()

    def _leave(self) -> None:
        if self._line is not None:
            self._line.leave()
            for data in self._line.outgoing():
                self._tcp.send_at_once(b"".join(views_of(data)))

    def _give_up(self) -> None:
        self._line = None
        self._tcp.close()


class AsyncStreamClient(AsyncClient, Generic[_Request, _Answer]):
    """A client for ``asyncio``, over TCP."""

    def __init__(self, terms: Terms) -> None:
        super().__init__(terms)
        self._line: Line[_Request, _Answer] | None = None
        self._tcp = AsyncTcpConnection()

    async def _dial(self, line: Line[_Request, _Answer]) -> None:
        """Make a connection for *line*."""
        await self._give_up()
        self._stage = Stage.CONNECTION
        self._tcp = AsyncTcpConnection()
        await self._tcp.open(line, self._terms.endpoint, self._terms.tls)
        self._line = line

    async def _asked(self, request: _Request) -> _Answer:
        """Ask on the connection that is there, and wait for the answer."""
        line = self._line
        assert line is not None
        self._stage = Stage.REQUEST
        line.ask(request)
        self._tcp.flush()
        self._stage = Stage.ANSWER
        return await self._next(line)

    async def _next(self, line: Line[_Request, _Answer]) -> _Answer:
        while (answer := line.take()) is None:
            if not self._stage.is_asked:
                self._stage = line.stage
            await self._tcp.news()
        return answer

    def _cut(self) -> None:
        self._tcp.cut()

    async def _leave(self) -> None:
        self._line = None
        self._tcp.leave()
        await self._tcp.gone(FAREWELL_S)

    def _forget(self) -> None:
        super()._forget()
        self._line = None
        self._tcp.forget()
        self._tcp = AsyncTcpConnection()

    async def _give_up(self) -> None:
        self._line = None
        self._tcp.cut()
        await self._tcp.gone(FAREWELL_S)
