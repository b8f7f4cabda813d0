"""A TCP connection, encrypted or not, on which everything ends at one deadline."""

from __future__ import annotations

import contextlib
import selectors
import socket
import ssl
from collections.abc import Sequence
from typing import Any

from vlmcore._net.deadline import Deadline
from vlmcore._net.lookup import Lookup, require_public
from vlmcore.endpoint import Endpoint

__all__ = ["TcpConnection"]

_AT_A_TIME = 1 << 18  # bytes
_MOST_PARTS = 64  # that are sent at a time
_CAN_GATHER = hasattr(socket.socket, "sendmsg")  # Windows cannot
_NOT_NOW = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class TcpConnection:
    """
    One connection, opened once. Only `cut` may be called from another thread.

    The name of the host is looked up once, and what was found is dialled; no proxy is asked.
    """

    def __init__(self) -> None:
        self._socket: socket.socket | None = None
        self._lookup: Lookup | None = None
        self._is_cut = False

    def open(
        self,
        endpoint: Endpoint,
        tls: ssl.SSLContext | None,
        deadline: Deadline,
        *,
        only_public: bool = False,
        needs_end: bool = False,
    ) -> None:
        """
        Connect to the first address that answers, and check who answers.

        Args:
            endpoint: Where to connect.
            tls: How it proves who it is; ``None`` where nothing is encrypted.
            deadline: When it has to be connected.
            only_public: Whether every address that is found has to be one of the internet.
            needs_end: Whether an end that TLS does not tell is an error of `receive`.

        Raises:
            EndpointError: If one is not; nothing was dialled.
            OSError: If none answers, or it cannot prove that it is *endpoint*.
        """
        self._lookup = lookup = Lookup(endpoint)
        if self._is_cut:
            lookup.cut()
        found = lookup.found(deadline)
        if only_public:
            require_public(endpoint, found)
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
            encrypted = tls.wrap_socket(
                self._socket,
                server_hostname=endpoint.host,
                suppress_ragged_eofs=not needs_end,
                do_handshake_on_connect=False,
            )
            self._keep(encrypted)  # before the peer says something: `cut` ends that wait, too
            encrypted.do_handshake()

    def send_some(self, data: memoryview, deadline: Deadline) -> int:
        """
        Send as much of *data* as goes at once, and say how much; if none does, wait for a change.

        The change may also be that something came: a peer that has answered may read no more.

        Raises:
            OSError: If the connection is lost, or nothing changes until the deadline.
        """
        return self.send_parts([data], deadline)

    def send_parts(self, parts: Sequence[memoryview], deadline: Deadline) -> int:
        """
        Send as `send_some`, some of *parts* one after the other.

        Raises:
            OSError: As there.
        """
        connection = self._open()
        left_s = deadline.left_s()
        connection.settimeout(0.0)
        try:
            if len(parts) > 1 and _CAN_GATHER and not isinstance(connection, ssl.SSLSocket):
                return connection.sendmsg(parts[:_MOST_PARTS])
            return connection.send(parts[0])
        except _NOT_NOW:
            with selectors.DefaultSelector() as selector:
                selector.register(connection, selectors.EVENT_READ | selectors.EVENT_WRITE)
                if not selector.select(left_s):
                    raise TimeoutError from None
            return 0

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
        except _NOT_NOW:
            return None

    def send_at_once(self, data: bytes | memoryview) -> None:
        """Send as much of *data* as goes without waiting; that some does not is no error."""
        with contextlib.suppress(OSError):
            connection = self._open()
            connection.settimeout(0.0)
            connection.send(data)

    def cut(self) -> None:
        """End whatever is waited for on the connection, from any thread."""
        self._is_cut = True
        if self._lookup is not None:
            self._lookup.cut()
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
