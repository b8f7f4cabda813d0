"""MiniMax for ``asyncio``."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine
from typing import Any, TypeVar

from vlmcore._net.deadline import Deadline
from vlmcore._net.lookup import Lookup, require_public
from vlmcore._net.waiting import in_time
from vlmcore.endpoint import Endpoint
from vlmcore.errors import VlmcoreError
from vlmcore.limits import MusicLimits
from vlmcore_audio.clips import MusicClip
from vlmcore_audio.minimax._calls import (
    Dial,
    Receive,
    Send,
    Steps,
    Wait,
    music_call,
    preprocess_call,
)
from vlmcore_audio.minimax._terms import Retries, Terms
from vlmcore_audio.minimax.covers import CoverFeature
from vlmcore_audio.minimax.regions import Region
from vlmcore_audio.minimax.wire import Delivery, preprocess_body, request_body
from vlmcore_audio.music import MusicProgress, MusicRequest, OnProgress, Reference

__all__ = ["AsyncMiniMaxMusic"]

_AT_A_TIME = 0x10000  # bytes
_Result = TypeVar("_Result")


class AsyncMiniMaxMusic:
    """
    As `vlmcore_audio.minimax.client.MiniMaxMusic`, for ``asyncio``. Cancelling a call ends it.

    Args:
        region: Which MiniMax the key is of.
        delivery: How the audio comes.
        timeout_s: How long a call may take with all that belongs to it, 1 to 1800 seconds.
        retries: How often it is made again.
        download_hosts: Where audio may lie that comes as an address, with all names below these;
            anywhere on the internet if ``None``.
        aigc_watermark: Whether an inaudible mark says that a machine made it; ``CN_ZH`` only.
        limits: How much is sent and read.

    Raises:
        ContractError: If an argument is not as described, or there is no key.
        MissingDependencyError: If h11 is not installed.
    """

    def __init__(
        self,
        *,
        region: Region = Region.GLOBAL_EN,
        delivery: Delivery = Delivery.STREAM,
        timeout_s: float = 600.0,
        retries: Retries | None = None,
        download_hosts: tuple[str, ...] | None = None,
        aigc_watermark: bool = False,
        limits: MusicLimits | None = None,
    ) -> None:
        self._terms = Terms.agreed(
            region=region,
            delivery=delivery,
            timeout_s=timeout_s,
            retries=retries,
            download_hosts=download_hosts,
            aigc_watermark=aigc_watermark,
            limits=limits,
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._terms.region})"

    async def generate(
        self, request: MusicRequest, /, *, on_progress: OnProgress | None = None
    ) -> MusicClip:
        """
        Ask for music, and wait until it is there.

        Args:
            request: What is asked for. It is checked before anything is sent.
            on_progress: Is told how far the call has come.

        Raises:
            ContractError: If the request is not one for its model.
            MusicError: If there is no music.
        """
        async with contextlib.aclosing(self.stream(request)) as parts:
            async for each in parts:
                if isinstance(each, MusicClip):
                    return each
                if on_progress is not None:
                    on_progress(each)
        raise AssertionError  # a call ends with a clip, or an error

    def stream(self, request: MusicRequest, /) -> AsyncGenerator[MusicProgress | MusicClip, None]:
        """
        Ask for music step by step: how far it has come, and at last the clip.

        Raises:
            ContractError: If the request is not one for its model; at once.
            MusicError: If there is no music.
        """
        terms = self._terms
        body = request_body(
            request,
            delivery=terms.delivery,
            region=terms.region,
            aigc_watermark=terms.aigc_watermark,
        )
        return self._driven(music_call(terms, body, request.audio))

    async def cover_preprocess(self, reference: Reference, /) -> CoverFeature:
        """
        Let the service look at a recording of 6 s to 6 min, to make covers of it for a day.

        Raises:
            ContractError: If it was looked at already, or its file cannot be read.
            MusicError: If the service does not.
        """
        steps = preprocess_call(self._terms, preprocess_body(reference))
        async with contextlib.aclosing(self._driven(steps)) as parts:
            async for each in parts:
                if not isinstance(each, MusicProgress):
                    return CoverFeature.of(each)
        raise AssertionError  # a call ends with an answer, or an error

    async def _driven(self, steps: Steps[_Result]) -> AsyncGenerator[MusicProgress | _Result, None]:
        """Do what a call says, and raise in words of ours what goes wrong."""
        running = _Running(self._terms)
        problem: VlmcoreError | None = None
        try:
            async for each in running.run(steps):
                yield each
        except Exception as error:  # noqa: BLE001 - all of them: this is the boundary
            problem = self._terms.translated(error, is_asked=running.is_asked, is_cancelled=False)
        finally:
            steps.close()
            await running.close()
        if problem is not None:
            raise problem


class _Running:
    """A call that is under way."""

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._reader = asyncio.StreamReader()
        self._writer: asyncio.StreamWriter | None = None
        self._sending: asyncio.Task[None] | None = None
        self._deadline = Deadline(terms.timeout_s)
        self.is_asked = False

    async def run(self, steps: Steps[_Result]) -> AsyncIterator[MusicProgress | _Result]:
        came: bytes | None = None
        while True:
            try:
                step = steps.send(came)
            except StopIteration as end:
                yield end.value
                return
            came = None
            match step:
                case Dial():
                    await self._dial(step)
                case Send():
                    self._send(step)
                case Receive():
                    came = await self._in_time(self._reader.read(_AT_A_TIME))
                case Wait():
                    self.is_asked = False
                    await self._in_time(asyncio.sleep(step.seconds))
                case MusicProgress():
                    yield step

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

    async def _dial(self, dial: Dial) -> None:
        await self.close()
        endpoint = dial.endpoint
        found = await self._in_time(Lookup(endpoint).awaited())
        if dial.only_public:
            require_public(endpoint, found)
        for i, (*_, address) in enumerate(found):
            try:
                await self._in_time(self._open(str(address[0]), endpoint))
                break
            except OSError:
                if i == len(found) - 1:
                    raise

    async def _open(self, address: str, endpoint: Endpoint) -> None:
        self._reader, self._writer = await asyncio.open_connection(
            address, endpoint.port, ssl=self._terms.tls, server_hostname=endpoint.host
        )

    def _send(self, send: Send) -> None:
        """Begin to send. The answer is read meanwhile: who refuses a recording may not read it."""
        self.is_asked = True
        assert self._writer is not None
        self._sending = asyncio.ensure_future(_sent(self._writer, send))

    async def _in_time(self, action: Coroutine[Any, Any, _Result]) -> _Result:
        return await in_time(action, self._deadline.rest_s)


async def _sent(writer: asyncio.StreamWriter, send: Send) -> None:
    for part in send.parts:
        for at in range(0, len(part), _AT_A_TIME):
            writer.write(part[at : at + _AT_A_TIME])
            await writer.drain()
            await asyncio.sleep(0)  # what has come is read before a write that fails drops it
