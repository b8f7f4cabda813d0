"""A TCP connection, encrypted or not, on which everything ends at one deadline."""

from __future__ import annotations

import contextlib
import socket
import ssl
import time
from typing import Any

from vlmcore.endpoint import Endpoint

__all__ = ["Deadline", "TcpConnection"]

_AT_A_TIME = 1 << 18  # bytes


class Deadline:
    """When a call has to be over, whatever it waits for until then."""

    def __init__(self, timeout_s: float) -> None:
        self._ends_at_s = time.monotonic() + timeout_s

    @property
    def rest_s(self) -> float:
        """How long there is left, in seconds, zero at least."""
        return max(0.0, self._ends_at_s - time.monotonic())

    def left_s(self) -> float:
        """
        Say how long there is left, in seconds, more than zero.

        Raises:
            TimeoutError: If there is nothing left.
        """
        rest_s = self.rest_s
        if rest_s == 0.0:
            raise TimeoutError
        return rest_s


class TcpConnection:
    """
    One connection, opened once. Only `cut` may be called from another thread.

    The name of the host is looked up once, and what was found is dialled; no proxy is asked.
    """

    def __init__(self) -> None:
        self._socket: socket.socket | None = None
        self._is_cut = False

    def open(self, endpoint: Endpoint, tls: ssl.SSLContext | None, deadline: Deadline) -> None:
        """
        Connect to the first address that answers, and check who answers.

        Raises:
            OSError: If none does, or it cannot prove that it is *endpoint*.
        """
        deadline.left_s()
        found = socket.getaddrinfo(endpoint.address, endpoint.port, type=socket.SOCK_STREAM)
        for i, (family, kind, protocol, _, address) in enumerate(found):
            try:
                self._dial(socket.socket(family, kind, protocol), address, deadline)
                break
            except OSError:
                self.close()
                if i == len(found) - 1:
                    raise
        if tls is not None and self._socket is not None:
            self._socket.settimeout(deadline.left_s())
            self._keep(tls.wrap_socket(self._socket, server_hostname=endpoint.host))

    def send(self, data: bytes, deadline: Deadline) -> None:
        """
        Send all of *data*.

        Raises:
            OSError: If that is not possible, or not until the deadline.
        """
        rest = memoryview(data)
        while rest:
            connection = self._open()
            connection.settimeout(deadline.left_s())
            rest = rest[connection.send(rest) :]

    def receive(self, deadline: Deadline) -> bytes:
        """
        Wait for what comes next; nothing means that the peer sends no more.

        Raises:
            OSError: If the connection is lost, or nothing comes until the deadline.
        """
        connection = self._open()
        connection.settimeout(deadline.left_s())
        return connection.recv(_AT_A_TIME)

    def arrived(self) -> bytes | None:
        """
        Take what is there already; ``None`` if nothing is, nothing if the peer sends no more.

        Raises:
            OSError: If the connection is lost.
        """
        connection = self._open()
        connection.settimeout(0.0)
        try:
            return connection.recv(_AT_A_TIME)
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return None

    def send_at_once(self, data: bytes) -> None:
        """Send as much of *data* as goes without waiting; that some does not is no error."""
        with contextlib.suppress(OSError):
            connection = self._open()
            connection.settimeout(0.0)
            connection.send(data)

    def cut(self) -> None:
        """End whatever is waited for on the connection, from any thread."""
        self._is_cut = True
        connection = self._socket
        if connection is not None:
            with contextlib.suppress(OSError):
                # Not that of SSLSocket, which takes away what another thread is reading with.
                socket.socket.shutdown(connection, socket.SHUT_RDWR)

    def close(self) -> None:
        """Give the socket back."""
        connection, self._socket = self._socket, None
        if connection is not None:
            connection.close()

    def _dial(self, connection: socket.socket, address: Any, deadline: Deadline) -> None:
        self._keep(connection)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.settimeout(deadline.left_s())
        connection.connect(address)

    def _keep(self, connection: socket.socket) -> None:
        """Hold on to a socket, unless the connection was cut before there was one."""
        self._socket = connection
        self._open()

    def _open(self) -> socket.socket:
        if self._socket is None or self._is_cut:
            raise ConnectionAbortedError("this side ended it")
        return self._socket
