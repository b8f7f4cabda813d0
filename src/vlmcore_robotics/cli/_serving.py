"""A server that runs until somebody stops it."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Iterator
from typing import Protocol

from vlmcore.cli.commands import ExitCode

__all__ = ["Server", "serve_until_stopped"]


class Server(Protocol):
    """A server of whatever protocol."""

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


async def serve_until_stopped(server: Server, announce: Callable[[], None]) -> ExitCode:
    """
    Serve until SIGINT or SIGTERM, then stop. A second signal of the same kind does not wait.

    Args:
        server: What serves.
        announce: Is called once it listens.

    Returns:
        ``INTERRUPTED`` after Ctrl-C, ``DONE`` after SIGTERM.
    """
    with _signals() as came:
        await server.start()
        try:
            announce()
            number = await came
        finally:
            await server.stop()
    return ExitCode.INTERRUPTED if number == signal.SIGINT else ExitCode.DONE


@contextlib.contextmanager
def _signals() -> Iterator[asyncio.Future[int]]:
    """Give what becomes the first signal; where there is no such thing, Ctrl-C is an exception."""
    loop = asyncio.get_running_loop()
    came: asyncio.Future[int] = loop.create_future()
    handled = (signal.SIGINT, signal.SIGTERM)

    def stop(number: int) -> None:
        loop.remove_signal_handler(number)
        if not came.done():
            came.set_result(number)

    with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):  # Windows, a thread
        for number in handled:
            loop.add_signal_handler(number, stop, number)
    try:
        yield came
    finally:
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
            for number in handled:
                loop.remove_signal_handler(number)
