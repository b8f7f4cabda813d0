"""Handshakes of TLS: counted, and waited for no longer than others who want to connect allow."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

__all__ = ["Handshakes"]

_MOST = 64  # under way at once; the oldest gives way
_PATIENCE_S = 10.0


class Handshakes:
    """
    Shakes hands with clients before the protocol of a server hears of them.

    An event loop that is given the certificate itself tells nobody of a handshake before it is
    over, which may be a minute later, and counts none.

    Args:
        tls: The certificate; ``None`` for a server without TLS.
        patience_s: For how long a handshake may take.
    """

    def __init__(self, tls: ssl.SSLContext | None, *, patience_s: float = _PATIENCE_S) -> None:
        self._tls = tls
        self._patience_s = min(patience_s, _PATIENCE_S)
        self._under_way: dict[asyncio.Task[None], Any] = {}  # and its connection; oldest first

    def begin(self, transport: Any, protocol: Any) -> bool:
        """
        Begin with a new connection, if there is TLS and no hands were shaken yet.

        Returns:
            Whether it has begun: then ``protocol.connection_made`` is called again in the end.
        """
        if self._tls is None or transport.get_extra_info("sslcontext") is not None:
            return False
        if len(self._under_way) >= _MOST:
            oldest = next(iter(self._under_way))
            self._under_way.pop(oldest).abort()
        first = _First()
        transport.pause_reading()
        transport.set_protocol(first)
        task = asyncio.ensure_future(self._shake(transport, first, protocol, self._tls))
        self._under_way[task] = transport
        return True

    def close(self) -> None:
        """Hang up on everybody who has not finished."""
        for transport in self._under_way.values():
            transport.abort()

    async def _shake(
        self, transport: Any, first: _First, protocol: Any, tls: ssl.SSLContext
    ) -> None:
        try:
            shaken = await asyncio.get_running_loop().start_tls(
                transport, first, tls, server_side=True, ssl_handshake_timeout=self._patience_s
            )
        except (OSError, asyncio.TimeoutError):  # those of TLS included: the client hears of it
            transport.abort()
            return
        finally:
            task = asyncio.current_task()
            assert task is not None
            self._under_way.pop(task, None)
        if shaken is not None and not transport.is_closing():
            first.hand_over(shaken, protocol)


class _First(asyncio.Protocol):
    """Keeps what comes right behind a handshake, until the protocol of the server is told."""

    def __init__(self) -> None:
        self._data = bytearray()

    def data_received(self, data: bytes) -> None:
        self._data += data

    def hand_over(self, transport: Any, protocol: Any) -> None:
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        if self._data:
            protocol.data_received(bytes(self._data))
