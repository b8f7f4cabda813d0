"""Peers that misbehave over real sockets, and clients called alike, whether awaited or not."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import pytest
import trustme

__all__ = [
    "PROXIES",
    "Remote",
    "Script",
    "asked_once",
    "certified",
    "drain",
    "exactly",
    "half",
    "hear_request",
    "misbehaving",
    "most_memory",
    "remotes",
    "reset",
    "said",
    "skip",
    "trusting",
]

Script = Callable[[socket.socket], None]

PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")

NOBODY_READS = bytearray(1 << 16)  # what peers skip ends here, whatever thread they run in


class Remote:
    """A client that is called the same way whether it must be awaited or not."""

    def __init__(self, policy: Any) -> None:
        self.loop = asyncio.new_event_loop()
        self.policy = policy

    def _done(self, value: Any) -> Any:
        return self.loop.run_until_complete(value) if asyncio.iscoroutine(value) else value

    def infer(self, seen: Any) -> Any:
        return self._done(self.policy.infer(seen))

    def connect(self) -> None:
        self._done(self.policy.connect())

    def reset(self) -> None:
        self._done(self.policy.reset())

    def close(self) -> None:
        closes = "close" if hasattr(self.policy, "close") else "aclose"
        self._done(getattr(self.policy, closes)())
        self.wait(0.0)

    def wait(self, seconds: float) -> None:
        self.loop.run_until_complete(asyncio.sleep(seconds))


def remotes(blocking: Callable[..., Any], awaited: Callable[..., Any]) -> Any:
    """Make a fixture of what makes clients of both kinds, and closes them."""

    @pytest.fixture(params=["sync", "async"])
    def remote(request: pytest.FixtureRequest) -> Iterator[Callable[..., Remote]]:
        made: list[Remote] = []
        kind = blocking if request.param == "sync" else awaited

        def make(url: str, **options: Any) -> Remote:
            made.append(Remote(kind(url, **options)))
            return made[-1]

        yield make
        for each in made:
            each.close()
            each.loop.close()

    return remote


def asked_once(
    blocking: Callable[..., Any], awaited: Callable[..., Any], seen: Any
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Make two functions that make a client of either kind, show it *seen*, and close it."""

    def ask_once(url: str, **options: Any) -> Any:
        with blocking(url, **options) as policy:
            return policy.infer(seen)

    def ask_once_async(url: str, **options: Any) -> Any:
        async def ask() -> Any:
            async with awaited(url, **options) as policy:
                return await policy.infer(seen)

        return asyncio.run(ask())

    return ask_once, ask_once_async


@contextmanager
def misbehaving(
    *scripts: Script, scheme: str = "ws", port: int = 0, rcvbuf: int | None = None
) -> Iterator[str]:
    """Listen, and play the next of *scripts* on each connection, the last one for ever."""
    with ExitStack() as stack:
        listener = socket.socket()
        stack.callback(listener.close)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if rcvbuf is not None:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
        listener.bind(("127.0.0.1", port))
        listener.listen()
        taken: list[socket.socket] = []

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    script = scripts[min(len(taken), len(scripts) - 1)]
                    taken.append(connection)
                    threading.Thread(target=_play, args=(script, connection), daemon=True).start()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield f"{scheme}://127.0.0.1:{listener.getsockname()[1]}"
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        thread.join(5)
        for connection in taken:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()


def _play(script: Script, connection: socket.socket) -> None:
    """Play one script; that the client hangs up ends it."""
    with suppress(OSError):
        script(connection)
        connection.shutdown(socket.SHUT_RDWR)


def hear_request(connection: socket.socket) -> bytes:
    """Read the head of a request of HTTP, and what of its body comes with it."""
    heard = b""
    while b"\r\n\r\n" not in heard:
        data = connection.recv(1024)
        if not data:
            raise ConnectionError
        heard += data
    return heard


def exactly(connection: socket.socket, size: int) -> bytes:
    """Read *size* bytes."""
    heard = bytearray()
    while len(heard) < size:
        data = connection.recv(size - len(heard))
        if not data:
            raise ConnectionError
        heard += data
    return bytes(heard)


def skip(connection: socket.socket, size: int) -> None:
    """Read *size* bytes, and keep none; `most_memory` must not count what a peer holds."""
    while size:
        came = connection.recv_into(NOBODY_READS, min(size, len(NOBODY_READS)))
        if not came:
            raise ConnectionError
        size -= came


def most_memory(action: Callable[[], Any]) -> int:
    """Do *action*, and say how many bytes were held at once for it."""
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def drain(connection: socket.socket) -> None:
    """Read until the client hangs up."""
    with suppress(OSError):
        while connection.recv(1 << 16):
            pass


def reset(connection: socket.socket) -> None:
    """Hang up as the kernel does for a process that was killed with data unread."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def half(data: bytes) -> bytes:
    """Take the first half."""
    return data[: len(data) // 2]


def said(error: BaseException | None) -> str:
    """Collect all that an error shows, its causes and contexts included."""
    shown = ""
    while error is not None:
        shown += f"{error!s} {error!r} {error.args} {vars(error)}"
        error = error.__cause__ or error.__context__
    return shown


def trusting(authority: trustme.CA) -> ssl.SSLContext:
    """Trust what *authority* signed."""
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


def certified(authority: trustme.CA, name: str) -> ssl.SSLContext:
    """Be *name*, as *authority* says."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    return context
