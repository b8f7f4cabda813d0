"""Steps of calls, done in ``asyncio``."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncGenerator, Coroutine
from contextlib import aclosing
from typing import Any, Generic, TypeVar

import attrs

from vlmcore._net.deadline import Deadline
from vlmcore._net.lookup import Lookup, require_public
from vlmcore._net.steps import Dial, Receive, Send, Steps, Wait
from vlmcore._net.waiting import in_time

__all__ = ["AwaitedConnection", "Done"]

_AT_A_TIME = 0x10000  # bytes
_News = TypeVar("_News")
_Result = TypeVar("_Result")


@attrs.frozen
class Done(Generic[_Result]):
    """What a call returned."""

    result: _Result


class AwaitedConnection:
    """
    Does what calls say, one call at a time, in one event loop.

    Args:
        tls: How servers prove who they are, where that is asked for.
    """

    def __init__(self, tls: ssl.SSLContext | None) -> None:
        self._tls = tls
        self._reader = asyncio.StreamReader()
        self._writer: asyncio.StreamWriter | None = None
        self._sending: asyncio.Task[None] | None = None
        self._cut = asyncio.Event()
        self._needs_end = False
        self.is_asked = False

    @property
    def is_cut(self) -> bool:
        """Whether `cut` ended it."""
        return self._cut.is_set()

    @property
    def _is_stuck(self) -> bool:
        """Whether a request was not sent to its end."""
        sending = self._sending
        return sending is not None and not (sending.done() and sending.exception() is None)

    def cut(self) -> None:
        """End the call that is under way, and all others; in the thread of the event loop."""
        self._cut.set()
        self._wake(ConnectionAbortedError)

    async def arrived(self) -> bytes | None:
        """
        Take what came since the last call; ``None`` if nothing did.

        Raises:
            OSError: If no other call may use the connection.
        """
        if self._writer is None or self._cut.is_set() or self._is_stuck:
            raise ConnectionAbortedError
        try:
            return await in_time(self._reader.read(_AT_A_TIME), 0.0)
        except (TimeoutError, asyncio.TimeoutError):
            return None

    async def run(
        self, steps: Steps[_News, _Result], deadline: Deadline
    ) -> AsyncGenerator[_News | Done[_Result], None]:
        """
        Do what a call says, and give its news, and at last what it returned.

        Raises:
            Exception: What the call raises. It is told of an `OSError`, if the connection is lost
                or something is not done until the deadline.
        """
        self.is_asked = False
        late = asyncio.get_running_loop().call_later(deadline.rest_s, self._wake, TimeoutError)
        try:
            async with aclosing(self._done(steps, deadline)) as parts:
                async for each in parts:
                    yield each
        finally:
            late.cancel()

    async def _done(
        self, steps: Steps[_News, _Result], deadline: Deadline
    ) -> AsyncGenerator[_News | Done[_Result], None]:
        came: bytes | None = None
        lost: OSError | None = None
        while True:
            try:
                step = steps.send(came) if lost is None else steps.throw(lost)
            except StopIteration as end:
                yield Done(end.value)
                return
            finally:
                came = lost = None  # no traceback has in it what came
            try:
                match step:
                    case Dial():
                        await self._dial(step, deadline)
                    case Send():
                        self._send(step)
                    case Receive():
                        came = await self._received(deadline, step.longest_s)
                    case Wait():
                        self.is_asked = False
                        await self._in_time(asyncio.sleep(step.seconds), deadline)
                    case _:
                        yield step
            except OSError as error:
                lost = error

    async def close(self) -> None:
        """End the connection, at once; the event loop closes its socket in its next rounds."""
        if self._writer is not None:
            self._writer.transport.abort()
            self._writer = None
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.gather(self._sending, return_exceptions=True)
            self._sending = None
        for _ in range(3):
            await asyncio.sleep(0)

    async def _dial(self, dial: Dial, deadline: Deadline) -> None:
        await self.close()
        endpoint = dial.endpoint
        self._needs_end = dial.needs_end
        found = await self._in_time(Lookup(endpoint).awaited(), deadline)
        if dial.only_public:
            require_public(endpoint, found)
        tls = self._tls if endpoint.scheme == "https" else None
        for i, (*_, address) in enumerate(found):
            try:
                self._reader, self._writer = await self._in_time(
                    _opened(
                        str(address[0]),
                        endpoint.port,
                        ssl=tls,
                        server_hostname=None if tls is None else endpoint.host,
                    ),
                    deadline,
                )
                break
            except OSError:
                if i == len(found) - 1:
                    raise

    def _wake(self, error: type[OSError]) -> None:
        """Raise *error* to whoever reads: that costs nothing, as a timer for each wait would."""
        self._reader.set_exception(error())

    async def _received(self, deadline: Deadline, longest_s: float | None) -> bytes:
        left_s = deadline.left_s()
        if longest_s is None or longest_s >= left_s:
            came = await self._reader.read(_AT_A_TIME)
        else:
            came = await in_time(self._reader.read(_AT_A_TIME), longest_s)
        if not came and self._needs_end and self._writer is not None:
            _require_end(self._writer)
        return came

    def _send(self, send: Send) -> None:
        """Begin to send. The answer is read meanwhile: who refuses a request may not read it."""
        self.is_asked = True
        if self._is_stuck:  # the rest of another request would have to go first
            raise ConnectionAbortedError
        assert self._writer is not None
        self._sending = asyncio.ensure_future(_sent(self._writer, send))

    async def _in_time(self, action: Coroutine[Any, Any, _Result], deadline: Deadline) -> _Result:
        return await in_time(action, deadline.rest_s, unless=self._cut)


def _require_end(writer: asyncio.StreamWriter) -> None:
    """Require that the peer said in TLS, if it is spoken, that it ends."""
    connection = writer.get_extra_info("ssl_object")
    if connection is not None:
        try:
            connection.read(1)  # nothing, once the peer said it
        except ssl.SSLZeroReturnError:
            pass  # both sides said it
        except ssl.SSLError:
            raise ssl.SSLEOFError from None


class _Reader(asyncio.StreamReader):
    """A reader of what came though the connection has ended: TLS of Python 3.10 fails there."""

    def set_transport(self, transport: Any) -> None:
        super().set_transport(_Resumable(transport))  # type: ignore[arg-type]


class _Resumable:
    """As much of a transport as a reader uses; one that has ended is not resumed."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self.pause_reading = transport.pause_reading
        self._transport = transport

    def resume_reading(self) -> None:
        with contextlib.suppress(AttributeError):
            self._transport.resume_reading()


async def _opened(
    address: str, port: int, **tls: Any
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect, as ``asyncio.open_connection`` does."""
    loop, reader = asyncio.get_running_loop(), _Reader()
    protocol = asyncio.StreamReaderProtocol(reader)
    transport, _ = await loop.create_connection(lambda: protocol, address, port, **tls)
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)


async def _sent(writer: asyncio.StreamWriter, send: Send) -> None:
    for part in send.parts:
        for at in range(0, len(part), _AT_A_TIME):
            writer.write(part[at : at + _AT_A_TIME])
            await writer.drain()
            await asyncio.sleep(0)  # what has come is read before a write that fails drops it
