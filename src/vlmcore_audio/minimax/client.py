"""MiniMax for programs that wait for their music."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from vlmcore._net.blocking import BlockingConnection
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

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["MiniMaxMusic", "Retries"]

_Result = TypeVar("_Result")


class MiniMaxMusic:
    """
    Asks MiniMax for music. Safe for threads: each call has a connection of its own.

    The key is that of the environment variable ``MINIMAX_API_KEY``, read when this is made. It goes
    to the host of *region* only, encrypted. No proxy is asked. A call that is refused because the
    service is busy is made again; one that has begun to send audio never is, since it costs money.

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
        self._lock = threading.Lock()
        self._running: set[BlockingConnection] = set()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._terms.region})"

    def generate(
        self, request: MusicRequest, /, *, on_progress: OnProgress | None = None
    ) -> MusicClip:
        """
        Ask for music, and wait until it is there.

        Args:
            request: What is asked for. It is checked before anything is sent.
            on_progress: Is told how far the call has come, on this thread.

        Raises:
            ContractError: If the request is not one for its model.
            MusicError: If there is no music.
        """
        for each in self.stream(request):
            if isinstance(each, MusicClip):
                return each
            if on_progress is not None:
                on_progress(each)
        raise AssertionError  # a call ends with a clip, or an error

    def stream(self, request: MusicRequest, /) -> Iterator[MusicProgress | MusicClip]:
        """
        Ask for music step by step: how far it has come, and at last the clip.

        Closing the iterator ends the call.

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
        return self._streamed(music_call(terms, body, request.audio))

    def cover_preprocess(self, reference: Reference, /) -> CoverFeature:
        """
        Let the service look at a recording of 6 s to 6 min, to make covers of it for a day.

        Raises:
            ContractError: If it was looked at already, or its file cannot be read.
            MusicError: If the service does not.
        """
        for each in self._streamed(preprocess_call(self._terms, preprocess_body(reference))):
            if not isinstance(each, MusicProgress):
                return each
        raise AssertionError  # a call ends with an answer, or an error

    def cancel(self) -> None:
        """
        End every call that is under way, from any thread.

        Each raises `MusicCancelledError`, unless all of its music has come already.
        """
        with self._lock:
            running = tuple(self._running)
        for each in running:
            each.cut()

    def close(self) -> None:
        """End every call that is under way."""
        self.cancel()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _streamed(self, steps: MusicSteps[_Result]) -> Iterator[MusicProgress | _Result]:
        yield (yield from self._driven(steps))

    def _driven(self, steps: MusicSteps[_Result]) -> Generator[MusicProgress, None, _Result]:
        """Do what a call says, and raise in words of ours what goes wrong."""
        running = BlockingConnection(self._terms.tls)
        with self._lock:
            self._running.add(running)
        problem: VlmcoreError | None = None
        try:
            result = yield from running.run(steps, Deadline(self._terms.timeout_s))
        except Exception as error:  # noqa: BLE001 - all of them: this is the boundary
            problem = self._terms.translated(
                error, is_asked=running.is_asked, is_cancelled=running.is_cut
            )
        finally:
            steps.close()
            running.close()
            with self._lock:
                self._running.discard(running)
        if problem is not None:
            raise problem
        return result
