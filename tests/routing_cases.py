"""An internet of a test's own: names that it makes up, led to a port of this machine."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from typing import Any
from unittest import mock

__all__ = ["ADDRESSES", "PUBLIC", "routed"]

PUBLIC = "93.184.216.34"
ADDRESSES: dict[str, str] = {}


@contextlib.contextmanager
def routed(port: int) -> Iterator[None]:
    """Lead what is dialled on the internet, and looked up, to *port* of this machine."""
    look_up, connect = socket.getaddrinfo, socket.socket.connect

    def found(host: Any, *args: Any, **kwargs: Any) -> Any:
        is_numeric = kwargs.get("flags", 0) & socket.AI_NUMERICHOST
        return look_up(host if is_numeric else ADDRESSES.get(host, host), *args, **kwargs)

    def dialled(self: socket.socket, address: Any) -> None:
        if address[:2] == (PUBLIC, 443):
            address = ("127.0.0.1", port)
        elif not str(address[0]).startswith("127."):
            raise AssertionError(f"dialled {address}")
        connect(self, address)

    with (
        mock.patch("socket.getaddrinfo", found),
        mock.patch.object(socket.socket, "connect", dialled),
    ):
        yield
