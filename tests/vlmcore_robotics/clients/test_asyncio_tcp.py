"""Tests of the connection of ``asyncio`` clients."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator

import pytest

from client_cases import misbehaving
from vlmcore.endpoint import Endpoint
from vlmcore_robotics.clients._asyncio_tcp import AsyncTcpConnection
from vlmcore_robotics.clients._boundary import Stage


class Talk:
    """A line that sends what it is told to, and keeps what it hears."""

    stage = Stage.ANSWER

    def __init__(self, enough: int) -> None:
        self._enough = enough
        self.unsent: list[bytes] = []
        self.heard = b""
        self.losses: list[Exception | None] = []

    @property
    def is_usable(self) -> bool:
        return not self.losses and len(self.heard) < self._enough

    def ask(self, request: bytes, /) -> None:
        self.unsent.append(request)

    def outgoing(self) -> Iterator[bytes]:
        while self.unsent:
            yield self.unsent.pop(0)

    def feed(self, data: bytes) -> None:
        self.heard += data

    def lose(self, error: Exception | None) -> None:
        self.losses.append(error)

    def leave(self) -> None:
        pass

    def take(self) -> bytes | None:
        return self.heard or None


@pytest.mark.parametrize("size", [1, 30_000])
def test_what_a_peer_said_before_it_hung_up_is_heard_where_sending_fails_first(size: int) -> None:
    """
    It refuses what it has not read to its end, and closes: the next byte to it cannot be sent.
    """
    words, has_hung_up = b"no" * (size // 2) + b"!" * (size % 2), threading.Event()

    def refusing(connection: socket.socket) -> None:
        connection.recv(1, socket.MSG_PEEK)
        connection.sendall(words)
        connection.close()
        has_hung_up.set()

    async def talk(url: str) -> Talk:
        tcp, line = AsyncTcpConnection(), Talk(len(words))
        await tcp.open(line, Endpoint.parse(url, schemes=("http",)), None)
        line.ask(b"not read")
        tcp.flush()
        assert has_hung_up.wait(10)  # and the event loop has not read what came
        line.ask(b"cannot be sent")
        tcp.flush()
        while line.is_usable:
            await tcp.news()
        await tcp.gone(1.0)
        return line

    with misbehaving(refusing, scheme="http") as url:
        line = asyncio.run(asyncio.wait_for(talk(url), 20))
    assert words == line.heard
    assert all(isinstance(each, OSError) for each in line.losses)
