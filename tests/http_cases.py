"""Servers to try HTTP clients with: byte by byte, as a script says, over real sockets."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from client_cases import Script, exactly, hear_request, misbehaving
from openpi_cases import NAMES, PLAN, ROBOT
from vlmcore_robotics.clients.async_http import AsyncHttpPolicy
from vlmcore_robotics.clients.http import HttpPolicy

__all__ = [
    "ANSWER",
    "METADATA",
    "NEW",
    "acting",
    "answering",
    "async_http_client",
    "hear",
    "http_client",
    "http_peer",
    "introduced",
    "response",
]

NEW = {"encodings": ["jpeg", "png", "raw"], "content_types": ["application/json"], "sessions": True}


def http_client(url: str, **options: Any) -> HttpPolicy:
    """Make a client of the arm."""
    return HttpPolicy(url, **{"embodiment": ROBOT, "timeout_s": 5, **options})


def async_http_client(url: str, **options: Any) -> AsyncHttpPolicy:
    """Make a client of the arm for asyncio."""
    return AsyncHttpPolicy(url, **{"embodiment": ROBOT, "timeout_s": 5, **options})


def http_peer(*scripts: Script, **options: Any) -> AbstractContextManager[str]:
    """Listen, and play the next of *scripts* on each connection, the last one for ever."""
    return misbehaving(*scripts, **{"scheme": "http", **options})


def response(
    body: Any = None,
    status: str = "200 OK",
    headers: Mapping[str, str] | None = None,
    version: str = "1.1",
) -> bytes:
    """Write an answer; a header of ``None`` in *headers* is left out."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    said: dict[str, Any] = {"Content-Type": "application/json", "Content-Length": str(len(data))}
    said |= headers or {}
    head = "".join(f"{name}: {value}\r\n" for name, value in said.items() if value is not None)
    return f"HTTP/{version} {status}\r\n{head}\r\n".encode() + data


METADATA = response({})
ANSWER = response({"actions": PLAN, "action_names": list(NAMES)})


def hear(connection: socket.socket) -> tuple[str, dict[str, str], bytes]:
    """Read one request: its first line, its headers and its body."""
    head, _, body = hear_request(connection).partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines)
    size = int(headers.get("content-length", 0))
    return first, headers, body + exactly(connection, size - len(body))


def introduced(connection: socket.socket, metadata: bytes = METADATA) -> None:
    """Do all until an action is asked for."""
    hear(connection)
    connection.sendall(metadata)


def answering(connection: socket.socket) -> None:
    """Be a good server of old, for ever, on a connection that is kept."""
    acting(ANSWER)(connection)


def acting(answer: bytes, metadata: bytes = METADATA) -> Script:
    """Be a server that answers so, for ever."""

    def script(connection: socket.socket) -> None:
        while True:
            first, _, _ = hear(connection)
            connection.sendall(metadata if first.startswith("GET") else answer)

    return script
