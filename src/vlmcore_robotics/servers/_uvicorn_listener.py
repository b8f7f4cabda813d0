"""The door to uvicorn: connections of HTTP, bounded in number and in time."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import socket
import ssl
from collections.abc import Iterator
from functools import partial
from http import HTTPStatus
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from vlmcore_robotics.servers._keepalive import watch_peer
from vlmcore_robotics.servers._tls import Handshakes
from vlmcore_robotics.wire._pieces import Pieces

__all__ = ["Listener"]

_IDLE_S = 75  # between two requests on one connection
_WAITING_CONNECTIONS = 128  # in the kernel, until they are taken

# Writes nothing: the package warns of every peer that speaks another protocol.
_QUIET = logging.getLogger(f"{__name__}.uvicorn")
_QUIET.disabled = True
_QUIET.setLevel(logging.CRITICAL)


class Listener:
    """
    Listens at one address.

    Args:
        app: An application of ASGI.
        max_clients: How many connections there may be; further ones are told that it is busy.
        patience_s: For how long the headers of a request may come, and an answer may be taken.
        tls: The certificate, if there is one.
    """

    def __init__(
        self, app: Any, *, max_clients: int, patience_s: float, tls: ssl.SSLContext | None
    ) -> None:
        self._handshakes = Handshakes(tls, patience_s=patience_s)
        connection: Any = partial(
            _Connection,
            max_clients=max_clients,
            patience_s=patience_s,
            handshakes=self._handshakes,
        )
        config = uvicorn.Config(
            app,
            http=connection,
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            proxy_headers=False,
            forwarded_allow_ips="",  # None would ask the environment
            workers=1,  # as would this
            server_header=False,
            timeout_keep_alive=_IDLE_S,
            backlog=_WAITING_CONNECTIONS,
        )
        self._server = _Server(config)
        self._serving: asyncio.Task[None] | None = None

    async def open(self, *, host: str, port: int) -> int:
        """
        Listen; return the port, which is another one than *port* if that is 0.

        Raises:
            OSError: If that is not possible.
        """
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening = socket.create_server((host, port), family=family, backlog=_WAITING_CONNECTIONS)
        self._server.config.load()
        self._serving = asyncio.ensure_future(self._server.serve(sockets=[listening]))
        started = asyncio.ensure_future(self._server.is_listening.wait())
        await asyncio.wait((started, self._serving), return_when=asyncio.FIRST_COMPLETED)
        if not started.done():
            started.cancel()
            self._serving.result()
        return int(listening.getsockname()[1])

    async def close(self, *, grace_s: float) -> None:
        """Take nothing more, wait until what is in hand is answered, and hang up on everybody."""
        if self._serving is not None:
            config: Any = self._server.config
            config.timeout_graceful_shutdown = grace_s
            self._server.should_exit = True
            self._handshakes.close()
            await self._serving


class _Server(uvicorn.Server):
    """One that leaves signals to the program, and says when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.is_listening = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.is_listening.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await super().shutdown(sockets)
        for connection in tuple(self.server_state.connections):
            connection.transport.abort()


class _Connection(H11Protocol):
    """
    One connection. The package itself waits for ever for headers, and for an answer to be taken.

    Args:
        max_clients: How many there may be.
        patience_s: For how long it waits.
        handshakes: Those of TLS.
        **given: What the package gives.
    """

    def __init__(
        self, *, max_clients: int, patience_s: float, handshakes: Handshakes, **given: Any
    ) -> None:
        super().__init__(**given)
        self.conn = _Reader(h11.SERVER)
        self.logger = _QUIET
        self.access_log = False
        self._answer, self.app = self.app, self._answered
        self._max_clients = max_clients
        self._patience_s = patience_s
        self._handshakes = handshakes
        self._reading: asyncio.TimerHandle | None = None
        self._writing: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        if self._handshakes.begin(transport, self):
            return
        super().connection_made(transport)
        raw = transport.get_extra_info("socket")
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # or the body waits 40 ms
        watch_peer(raw)
        if len(self.connections) > self._max_clients:
            self._hang_up(503, f"busy: {self._max_clients} clients are connected")
        self._watch_reading()

    def data_received(self, data: bytes) -> None:
        try:
            super().data_received(data)
        except ValueError:  # a length of thousands of digits, before h11 0.16
            self._hang_up(400, "the request is none of HTTP")
        self._watch_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        for timer in (self._reading, self._writing):
            if timer is not None:
                timer.cancel()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._writing = self.loop.call_later(self._patience_s, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._writing is not None:
            self._writing.cancel()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._abort_later()

    def send_400_response(self, _: str) -> None:
        cycle = self.cycle
        is_within = cycle is not None and cycle.response_started and not cycle.response_complete
        self._hang_up(None if is_within else 400, "the request is none of HTTP")

    async def _answered(self, *asgi: Any) -> None:
        try:
            await self._answer(*asgi)
        finally:
            if self.transport.is_closing():
                self._abort_later()
            elif self.cycle.more_body:  # which nobody wants any more
                self._watch_reading()

    def _watch_reading(self) -> None:
        """Wait for the rest of the headers, or of a body that nobody reads, but not for ever."""
        if self.cycle is not None and not self.cycle.response_complete:
            if self._reading is not None:
                self._reading.cancel()
                self._reading = None
        elif self._reading is None:
            self._reading = self.loop.call_later(self._patience_s, self._give_up)

    def _give_up(self) -> None:
        has_begun = bool(self.conn.trailing_data[0])
        self._hang_up(408 if has_begun else None, "the headers did not come in time")

    def _hang_up(self, status: int | None, words: str) -> None:
        if status is not None and not self.transport.is_closing():
            self.transport.write(_last_words(status, words))
        self.transport.close()
        self._abort_later()

    def _abort_later(self) -> None:
        """Do not wait for ever until what was written is taken."""
        self.loop.call_later(self._patience_s, self.transport.abort)


class _Reader(h11.Connection):
    """One that refuses what keeps others waiting, and what a gateway may read otherwise."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._pieces = Pieces()

    def receive_data(self, data: bytes) -> None:
        self._pieces.begin()
        super().receive_data(data)

    def next_event(self) -> Any:
        event = super().next_event()
        if isinstance(event, h11.Data) and not self._pieces.take():
            raise h11.RemoteProtocolError("too many small chunks at once")
        if isinstance(event, h11.Request):
            names = {name for name, _ in event.headers}
            if {b"content-length", b"transfer-encoding"} <= names:
                raise h11.RemoteProtocolError("a length beside chunks")
        return event


def _last_words(status: int, words: str) -> bytes:
    """Write an answer to what is no request, or not one yet."""
    body = json.dumps({"error": words}).encode()
    more = "retry-after: 1\r\n" if status == HTTPStatus.SERVICE_UNAVAILABLE else ""
    head = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: application/json\r\n"
        f"content-length: {len(body)}\r\nconnection: close\r\n{more}\r\n"
    )
    return head.encode() + body
