"""The addresses of a host, looked up on a thread: the system waits as long as it likes."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable
from typing import Any

from vlmcore._net.deadline import Deadline
from vlmcore.endpoint import Endpoint, is_public_address
from vlmcore.errors import EndpointError

__all__ = ["Lookup", "require_public"]

_UNDER_WAY = threading.BoundedSemaphore(16)  # those that nobody waits for any more too


class Lookup:
    """
    Asks for the addresses of a host, once. What is an address already needs no thread.

    Args:
        endpoint: What to dial.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._where = (endpoint.address, endpoint.port)
        self._news = threading.Event()
        self._found: Any = ConnectionAbortedError("this side ended it")

    def found(self, deadline: Deadline) -> list[Any]:
        """
        Wait for the addresses, as `socket.getaddrinfo` returns them.

        Raises:
            OSError: If there are none, not until the deadline, or `cut` was called.
        """
        with contextlib.suppress(socket.gaierror):
            return self._asked(socket.AI_NUMERICHOST)
        self._begin(deadline.left_s(), self._news.set)
        if not self._news.wait(deadline.left_s()):
            raise TimeoutError
        return self._result()

    async def awaited(self) -> list[Any]:
        """
        As `found`, for ``asyncio``. The event loop can end before an answer has come.

        Raises:
            OSError: If there are none.
        """
        with contextlib.suppress(socket.gaierror):
            return self._asked(socket.AI_NUMERICHOST)
        loop, news = asyncio.get_running_loop(), asyncio.Event()

        def tell() -> None:
            with contextlib.suppress(RuntimeError):  # it has ended
                loop.call_soon_threadsafe(news.set)

        self._begin(0.0, tell)
        await news.wait()
        return self._result()

    def cut(self) -> None:
        """End the wait of `found`, from any thread."""
        self._news.set()

    def _begin(self, patience_s: float, tell: Callable[[], None]) -> None:
        if not _UNDER_WAY.acquire(timeout=patience_s):
            raise TimeoutError

        def look_up() -> None:
            try:
                self._found = self._asked(0)
            except Exception as error:  # noqa: BLE001 - it is raised to who waits
                self._found = error
            finally:
                _UNDER_WAY.release()
                tell()

        threading.Thread(target=look_up, name="vlmcore lookup", daemon=True).start()

    def _result(self) -> list[Any]:
        if isinstance(self._found, Exception):
            raise self._found
        found: list[Any] = self._found
        return found

    def _asked(self, flags: int) -> list[Any]:
        host, port = self._where
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)


def require_public(endpoint: Endpoint, found: list[Any]) -> None:
    """
    Require that all addresses of *endpoint* are of the internet, and none of a network in here.

    Args:
        endpoint: What was looked up.
        found: What was found, as `Lookup.found` returns it.

    Raises:
        EndpointError: If one is not.
    """
    if not all(is_public_address(str(address[0])) for *_, address in found):
        raise EndpointError(
            endpoint.origin, "got a host in a private network, expected one of the internet"
        )
