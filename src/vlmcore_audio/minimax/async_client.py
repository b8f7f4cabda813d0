"""MiniMax for ``asyncio``."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from typing import TypeVar

from vlmcore._net.awaiting import AwaitedConnection, Done
from vlmcore._net.deadline import Deadline
from vlmcore.errors import VlmcoreError
from vlmcore.limits import MusicLimits
from vlmcore_audio.clips import MusicClip
from vlmcore_audio.minimax._calls import music_call, preprocess_call
from vlmcore_audio.minimax._exchanges import MusicSteps
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
                    return each
        raise AssertionError  # a call ends with an answer, or an error

    async def _driven(
        self, steps: MusicSteps[_Result]
    ) -> AsyncGenerator[MusicProgress | _Result, None]:
        """Do what a call says, and raise in words of ours what goes wrong."""
        running = AwaitedConnection(self._terms.tls)
        problem: VlmcoreError | None = None
        try:
            deadline = Deadline(self._terms.timeout_s)
            async with contextlib.aclosing(running.run(steps, deadline)) as parts:
                async for each in parts:
                    yield each.result if isinstance(each, Done) else each
        except Exception as error:  # noqa: BLE001 - all of them: this is the boundary
            problem = self._terms.translated(error, is_asked=running.is_asked, is_cancelled=False)
        finally:
            steps.close()
            await running.close()
        if problem is not None:
            raise problem
