"""The door to the ZeroMQ of servers: requests come in from all peers, answers go to one of them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import attrs
import zmq
import zmq.asyncio

__all__ = ["Listener", "Request"]

_HANDSHAKE_S = 5.0
_FAREWELL_S = 1.0  # how long answers may take to leave once the server is closed
_QUEUED = 2  # requests of one peer that wait in ZeroMQ, and answers
_QUIET_S, _BETWEEN_S, _PROBES = 60, 10, 6  # how the kernel finds out that a silent peer is gone


@attrs.frozen(kw_only=True, eq=False)
class Request:
    """
    What a peer asks.

    Attributes:
        envelope: The frames that lead an answer to it; the first one is the peer.
        frames: How many frames were sent.
        body: The frame, if it was one.
    """

    envelope: Sequence[bytes]
    frames: int
    body: bytes | None

    @property
    def peer(self) -> bytes:
        """Which peer it is, as long as it is connected."""
        return self.envelope[0]


class Listener:
    """
    Listens at one address, as a server with a REP socket to its peers.

    Inside it is a ROUTER socket: whoever is slow to send or to read holds nobody up, and can be
    answered in any order. It belongs to one event loop.
    """

    def __init__(self) -> None:
        self._context: zmq.asyncio.Context | None = None
        self._socket: zmq.asyncio.Socket | None = None

    async def open(self, *, host: str, port: int, max_bytes: int) -> int:
        """
        Listen; return the port, which is another one than *port* if that is 0.

        Raises:
            OSError: If that is not possible.
        """
        self._context = zmq.asyncio.Context()
        self._socket = router = self._context.socket(zmq.ROUTER)
        for option, value in (
            (zmq.IPV6, ":" in host),
            (zmq.MAXMSGSIZE, max_bytes),
            (zmq.RCVHWM, _QUEUED),
            (zmq.SNDHWM, _QUEUED),
            (zmq.HANDSHAKE_IVL, int(1000 * _HANDSHAKE_S)),
            (zmq.TCP_KEEPALIVE, 1),
            (zmq.TCP_KEEPALIVE_IDLE, _QUIET_S),
            (zmq.TCP_KEEPALIVE_INTVL, _BETWEEN_S),
            (zmq.TCP_KEEPALIVE_CNT, _PROBES),
            (zmq.LINGER, int(1000 * _FAREWELL_S)),
        ):
            router.setsockopt(option, int(value))
        try:
            router.bind(f"tcp://{f'[{host}]' if ':' in host else host}:{port or '*'}")
        except zmq.ZMQError as error:
            problem = OSError(error.errno, error.strerror)
            await self.close()
            raise problem from None
        return int(router.getsockopt_string(zmq.LAST_ENDPOINT).rpartition(":")[2])

    async def receive(self) -> Request:
        """Wait for the next request, of whomever."""
        assert self._socket is not None
        parts = await self._socket.recv_multipart(copy=False)
        ends = [i for i, part in enumerate(parts) if i > 0 and len(part) == 0]
        # What came before the first empty frame leads back. A peer that sends none, which no REQ
        # socket does, is answered all the same.
        split = ends[0] + 1 if ends else 1
        body = parts[split:]
        return Request(
            envelope=[part.bytes for part in parts[:split]],
            frames=len(body),
            body=body[0].bytes if len(body) == 1 else None,
        )

    async def answer(self, request: Request, frame: bytes) -> None:
        """Send an answer; it is dropped if the peer is gone, or reads nothing."""
        if self._socket is not None:
            await self._socket.send_multipart([*request.envelope, frame])

    async def close(self) -> None:
        """Send what is left to be sent, within a second, and let go of the address."""
        router, self._socket = self._socket, None
        context, self._context = self._context, None
        if router is not None:
            router.close()
        if context is not None:
            await asyncio.to_thread(context.term)
