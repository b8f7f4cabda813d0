"""One TCP connection, at either end of it: what was heard is kept, and it can be cut."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import time

from vlmcore.endpoint import Endpoint

__all__ = ["Stream"]

_KEPT = 0x100000  # bytes of what was heard
_AT_A_TIME = 0x10000


class Stream:
    """
    One connection.

    Args:
        connection: The socket.
        patience_s: How long all that is done with it may take; ``None`` for as long as it lasts.
    """

    def __init__(self, connection: socket.socket, *, patience_s: float | None = None) -> None:
        self._socket = connection
        self._ends_at_s = None if patience_s is None else time.monotonic() + patience_s
        self._waiting = bytearray()
        self.heard = bytearray()

    @classmethod
    def dialled(
        cls, endpoint: Endpoint, *, tls: ssl.SSLContext | None, patience_s: float
    ) -> Stream:
        """
        Connect.

        Raises:
            OSError: If that is not possible within *patience_s*.
        """
        where = (endpoint.address, endpoint.port)
        connection = socket.create_connection(where, timeout=patience_s)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls is not None:
            try:
                connection = tls.wrap_socket(connection, server_hostname=endpoint.host)
            except BaseException:
                connection.close()
                raise
        return cls(connection, patience_s=patience_s)

    def send(self, data: bytes) -> None:
        """
        Send all of *data*.

        Raises:
            OSError: If that is not possible in time.
        """
        self._socket.settimeout(self._left_s())
        self._socket.sendall(data)

    def exactly(self, size: int) -> bytes:
        """
        Read *size* bytes.

        Raises:
            EOFError: If the peer sends no more.
            OSError: If the connection is lost, or nothing comes in time.
        """
        while len(self._waiting) < size:
            self._hear()
        taken = bytes(self._waiting[:size])
        del self._waiting[:size]
        return taken

    def through(self, mark: bytes) -> bytes:
        """Read up to *mark*, and that too; what is raised is that of `exactly`."""
        while mark not in self._waiting:
            self._hear()
        return self.exactly(self._waiting.index(mark) + len(mark))

    def to_the_end(self) -> bytes:
        """Read until the peer sends no more, or hangs up; that nothing comes in time is raised."""
        with contextlib.suppress(EOFError, ConnectionError):
            while True:
                self._hear()
        return self.exactly(len(self._waiting))

    def reset(self) -> None:
        """Hang up as the kernel does for a process that was killed."""
        with contextlib.suppress(OSError):
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._socket.close()

    def cut(self) -> None:
        """End whatever is waited for on the connection, from any thread."""
        with contextlib.suppress(OSError):
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def _hear(self) -> None:
        self._socket.settimeout(self._left_s())
        data = self._socket.recv(_AT_A_TIME)
        if not data:
            raise EOFError("the peer hung up")
        self._waiting += data
        self.heard += data[: _KEPT - len(self.heard)]

    def _left_s(self) -> float | None:
        if self._ends_at_s is None:
            return None
        left_s = self._ends_at_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError("nothing came in time")
        return left_s
