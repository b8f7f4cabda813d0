"""Models behind servers, for ``asyncio``; `predictors` has the twins that block."""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, final

from vlmcore.limits import ModelServerLimits
from vlmcore.vlm._requirements import cancel_tokens, listed
from vlmcore.vlm.generation import CancelToken, Generation, GenerationOptions
from vlmcore.vlm.predictor import PredictorInfo
from vlmcore.vlm.prompt import Prompt
from vlmcore.vlm.remote._awaited_calls import AwaitedCalls
from vlmcore.vlm.remote._info import describe
from vlmcore.vlm.remote._making import make_terms
from vlmcore.vlm.remote.pictures import PictureRules
from vlmcore.vlm.remote.providers import ServerProtocol
from vlmcore.vlm.remote.retrying import Retries
from vlmcore.vlm.structure import required

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "AsyncAnthropicMessagesPredictor",
    "AsyncGenerationStream",
    "AsyncOpenAICompatiblePredictor",
    "AsyncOpenAIResponsesPredictor",
    "AsyncServerPredictor",
]

_GREEDY = GenerationOptions()


class AsyncGenerationStream(AsyncIterator[str]):
    """
    An answer as it is being written: iterate for its pieces, then read `result`.

    Leaving an ``async with`` block, or `aclose`, closes the connection, which makes servers stop.
    """

    def __init__(self, pieces: AsyncGenerator[str | Generation, None]) -> None:
        self._pieces = pieces
        self._result: Generation | None = None

    async def __anext__(self) -> str:
        async for each in self._pieces:
            if isinstance(each, str):
                return each
            self._result = required(each)
        raise StopAsyncIteration

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End the call, and close its connection."""
        await self._pieces.aclose()

    @property
    def result(self) -> Generation:
        """
        The whole answer, once every piece was read.

        Raises:
            RuntimeError: If the stream has not ended, or was closed before its end.
        """
        if self._result is None:
            raise RuntimeError("the stream has no result: read it to its end first")
        return self._result


class AsyncServerPredictor:
    """
    What the predictors of all protocols do; its arguments are those of `ServerPredictor`.

    It belongs to the event loop that it is first used in. A call that is cancelled closes its
    connection, which makes servers stop.
    """

    _protocol: ClassVar[ServerProtocol]
    _provider: ClassVar[str | None] = None

    def __init__(
        self,
        base_url: str | None = None,
        *,
        model: str,
        provider: str | None = None,
        timeout_s: float = 600.0,
        retries: Retries | None = None,
        streaming: bool = True,
        reasoning_effort: str | None = None,
        pictures: PictureRules | None = None,
        request_fields: Mapping[str, Any] | None = None,
        allow_private_network: bool = False,
        tls: ssl.SSLContext | None = None,
        limits: ModelServerLimits | None = None,
    ) -> None:
        self._terms = make_terms(
            self._protocol,
            base_url,
            model=model,
            provider=provider or (self._provider if base_url is None else None),
            timeout_s=timeout_s,
            retries=retries,
            streaming=streaming,
            reasoning_effort=reasoning_effort,
            pictures=pictures,
            request_fields=request_fields,
            allow_private_network=allow_private_network,
            tls=tls,
            limits=limits,
        )
        self._calls = AwaitedCalls(self._terms)

    def __repr__(self) -> str:
        server = self._terms.server.endpoint.origin
        return f"{type(self).__name__}({self._terms.model!r} at {server})"

    @property
    def info(self) -> PredictorInfo:
        """What it is and how it runs, as far as a server tells."""
        return describe(self._terms)

    async def generate(
        self,
        prompt: Prompt,
        options: GenerationOptions = _GREEDY,
        /,
        *,
        cancel: CancelToken | None = None,
    ) -> Generation:
        """
        Answer *prompt*, and return when the answer is whole.

        Raises:
            VlmcoreError: The errors of `ServerPredictor.generate`.
        """
        self._calls.require([prompt], options)
        return await self._calls.answer(prompt, options, cancel_tokens(cancel))

    def stream(
        self,
        prompt: Prompt,
        options: GenerationOptions = _GREEDY,
        /,
        *,
        cancel: CancelToken | None = None,
    ) -> AsyncGenerationStream:
        """Answer *prompt* piece by piece, as the model writes."""
        self._calls.require([prompt], options)
        pieces = self._calls.pieces(prompt, options, cancel_tokens(cancel), streams=True)
        return AsyncGenerationStream(pieces)

    async def generate_many(
        self,
        prompts: Sequence[Prompt],
        options: GenerationOptions = _GREEDY,
        /,
        *,
        cancel: CancelToken | None = None,
        batch_size: int = 16,
    ) -> list[Generation]:
        """
        Answer each of *prompts*, in their order, *batch_size* at a time.

        Raises:
            VlmcoreError: The errors of `ServerPredictor.generate_many`.
        """
        tokens = cancel_tokens(cancel)
        return await self._calls.answer_many(listed(prompts), options, tokens, batch_size)

    async def aclose(self) -> None:
        """End what is under way, and every connection; further calls are refused."""
        await self._calls.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()


@final
class AsyncOpenAICompatiblePredictor(AsyncServerPredictor):
    """
    An `OpenAICompatiblePredictor` for ``asyncio``, with the same arguments and promises.

    Example:
        >>> import asyncio
        >>> from vlmcore.vlm.prompt import Prompt
        >>> predictor = AsyncOpenAICompatiblePredictor("http://localhost:9/v1", model="any")
        >>> asyncio.run(predictor.generate(Prompt(text="What is this?")))
        Traceback (most recent call last):
        vlmcore.errors.ModelServerUnavailableError: any: http://localhost:9: nothing listens there
    """

    _protocol = ServerProtocol.CHAT_COMPLETIONS


@final
class AsyncOpenAIResponsesPredictor(AsyncServerPredictor):
    """An `OpenAIResponsesPredictor` for ``asyncio``, with the same arguments and promises."""

    _protocol = ServerProtocol.RESPONSES
    _provider = "openai-responses"


@final
class AsyncAnthropicMessagesPredictor(AsyncServerPredictor):
    """An `AnthropicMessagesPredictor` for ``asyncio``, with the same arguments and promises."""

    _protocol = ServerProtocol.MESSAGES
    _provider = "anthropic"
