"""A server on a thread of its own, for tests, notebooks and programs without ``asyncio``."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Protocol

__all__ = ["Startable", "serve_in_thread"]


class Startable(Protocol):
    """A server that is started and stopped in an event loop."""

    @property
    def url(self) -> str:
        """Where a client on this machine reaches it."""
        ...

    async def start(self) -> None:
        """Listen."""
        ...

    async def stop(self) -> None:
        """Answer what is in hand, and hang up."""
        ...


@contextmanager
def serve_in_thread(server: Startable) -> Iterator[str]:
    """
    Serve while the block runs, in an event loop on another thread.

    Yields:
        Where a client reaches it.

    Raises:
        EndpointError: If it cannot listen where it should.
    """
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()
    thread = threading.Thread(
        target=asyncio.run, args=(_serve(server, started),), name="serving", daemon=True
    )
    thread.start()
    try:
        loop, stop = started.result()
        yield server.url
    finally:
        if started.exception() is None:
            loop.call_soon_threadsafe(stop.set)
        thread.join()


async def _serve(
    server: Startable, started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]]
) -> None:
    stop = asyncio.Event()
    try:
        await server.start()
    except BaseException as error:  # noqa: BLE001 - it is raised where it was asked for
        started.set_exception(error)
        return
    started.set_result((asyncio.get_running_loop(), stop))
    await stop.wait()
    await server.stop()
