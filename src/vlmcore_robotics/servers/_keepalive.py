"""Connections whose peer may be gone without a word."""

from __future__ import annotations

import socket
from typing import Any

__all__ = ["watch_peer"]


def watch_peer(connection: Any) -> None:
    """Let the kernel find out that a silent peer is gone, which pings would take for slowness."""
    if connection is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 6)):
            if hasattr(socket, option):
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
