"""Models behind servers, as predictors; `async_predictors` has the twins of ``asyncio``."""

from __future__ import annotations

import asyncio
import ssl
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, aclosing
from typing import Any, ClassVar, final

from vlmcore._closing import Closing
from vlmcore._net.blocking import BlockingConnection
from vlmcore._net.deadline import Deadline
from vlmcore.errors import ModelError
from vlmcore.limits import ModelServerLimits
from vlmcore.vlm._requirements import cancel_tokens, listed, require_call
from vlmcore.vlm.generation import CancelToken, Generation, GenerationOptions
from vlmcore.vlm.predictor import GenerationStream, PredictorInfo
from vlmcore.vlm.prompt import Prompt
from vlmcore.vlm.remote._awaited_calls import AwaitedCalls
from vlmcore.vlm.remote._calls import Talk, answer_steps, any_of, asked
from vlmcore.vlm.remote._info import describe
from vlmcore.vlm.remote._making import make_terms
from vlmcore.vlm.remote.pictures import PictureRules
from vlmcore.vlm.remote.providers import ServerProtocol
from vlmcore.vlm.remote.retrying import Retries
from vlmcore.vlm.structure import mended, required, structured

__all__ = [
    "AnthropicMessagesPredictor",
    "OpenAICompatiblePredictor",
    "OpenAIResponsesPredictor",
    "ServerPredictor",
]

_GREEDY = GenerationOptions()
_KEPT = 8  # connections that nobody uses


class ServerPredictor(Closing):
    """
    What the predictors of all protocols do: a `Predictor` whose model is behind a server.

    Safe for threads: each call has a connection of its own, which is kept for the next. All of a
    call, with the lookup of the host's name and the times that the server is asked again, ends
    within *timeout_s*. Cancelling closes the connection, which makes servers stop. No proxy is
    asked and no redirect followed.

    Keys are taken from the environment, and each goes to its own host only: that of a *provider* to
    the provider, over TLS, and ``CUSTOM_API_KEY`` to servers on this machine, and to the hosts that
    the environment lists in ``CUSTOM_API_HOSTS``.

    Args:
        base_url: Where the server is: ``"http://127.0.0.1:8000"``, with or without ``/v1``; on
            another machine it has to be https.
        model: The model, as the server calls it.
        provider: The name of a provider instead of an address, as ``"openai"``; they are listed in
            `vlmcore.vlm.remote.providers.PROVIDERS`.
        timeout_s: How long a call may take, 0.1 seconds to a day.
        retries: How often a server is asked again that is busy.
        streaming: Whether answers come piece by piece where nobody looks at the pieces, too: so a
            model that fell into a loop is stopped, and no proxy ends a connection that is silent.
        reasoning_effort: How much the model is to think, as ``"low"``; ``None`` leaves it to it.
        pictures: How pictures are sent; as the provider says if ``None``.
        request_fields: More fields of the request, for what only one server knows.
        allow_private_network: Whether the name of another machine may lead into a private network.
        tls: How an https server of one's own proves who it is; as browsers do it if ``None``.
        limits: How much is sent and read.

    Raises:
        ContractError: If an argument is not as described, or a provider's key is not set.
        EndpointError: If *base_url* is no address, or not one that may be dialled.
        MissingDependencyError: If h11 is not installed.
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
        self._lock = threading.Lock()
        self._idle: list[tuple[BlockingConnection, Talk]] = []
        self._closing = CancelToken()

    def __repr__(self) -> str:
        server = self._terms.server.endpoint.origin
        return f"{type(self).__name__}({self._terms.model!r} at {server})"

    @property
    def info(self) -> PredictorInfo:
        """What it is and how it runs, as far as a server tells."""
        return describe(self._terms)

    def generate(
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
            ContractError: If the server has no way to be asked so.
            LimitExceededError: If there is more to send than it takes.
            MediaError: If a picture cannot be sent.
            EndpointError: If the name of a host on the internet leads into a private network.
            ModelServerError: If there is no answer, or not all of it.
            StructureError: If it is not the JSON that was asked for.
            ModelError: If this predictor is closed.
        """

        def ask(prompt: Prompt) -> Generation:
            streams = self._terms.options.streaming
            stream = self._streamed(prompt, options, cancel, streams=streams)
            for _ in stream:
                pass
            return stream.result

        return required(mended(ask(prompt), prompt, options, ask))

    def stream(
        self,
        prompt: Prompt,
        options: GenerationOptions = _GREEDY,
        /,
        *,
        cancel: CancelToken | None = None,
    ) -> GenerationStream:
        """
        Answer *prompt* piece by piece, as the model writes.

        The server is asked when the first piece is. Closing the stream closes the connection, which
        makes servers stop. Errors are those of `generate`, raised where the next piece is asked
        for; the pieces that came before are in them.
        """
        return self._streamed(prompt, options, cancel, streams=True, is_last=True)

    def generate_many(
        self,
        prompts: Sequence[Prompt],
        options: GenerationOptions = _GREEDY,
        /,
        *,
        cancel: CancelToken | None = None,
        batch_size: int = 16,
    ) -> list[Generation]:
        """
        Answer each of *prompts*, in their order, many at a time.

        Each has a connection of its own, which is kept for the next. Pictures are encoded when it
        is their turn, so that a long list needs the memory of *batch_size*. Once cancelled, prompts
        that were not begun are answered with an empty text and `StopReason.CANCELLED`.

        Args:
            prompts: What to ask.
            options: How to answer each.
            cancel: Stops those in flight and all that follow.
            batch_size: How many are in flight at once.

        Raises:
            IncompleteAnswersError: If one was not answered; the answers to the others are in it.
                After an error that all would end with, as a wrong key, no more are asked.
            ContractError: If an argument is not as described.
            ModelError: If this predictor is closed.
        """
        self._require_open()
        prompts = listed(prompts)
        left = CancelToken()
        tokens = (*cancel_tokens(cancel), self._closing, left)

        async def answer() -> list[Generation]:
            async with aclosing(AwaitedCalls(self._terms)) as calls:
                return await calls.answer_many(prompts, options, tokens, batch_size)

        # On a thread: the caller's may have an event loop that runs already.
        with ThreadPoolExecutor(1, "vlmcore-many") as pool, ExitStack() as stack:
            stack.callback(left.cancel)  # an interrupt does not wait for the rest
            return pool.submit(asyncio.run, answer()).result()

    def close(self) -> None:
        """End what is under way, and every connection; further calls are refused."""
        self._closing.cancel()
        with self._lock:
            idle, self._idle = self._idle, []
        for connection, _ in idle:
            connection.close()

    def _require_open(self) -> None:
        if self._closing.cancelled:
            raise ModelError(self._terms.model, "this predictor is closed: make it again")

    def _streamed(
        self,
        prompt: Prompt,
        options: GenerationOptions,
        cancel: CancelToken | None,
        *,
        streams: bool,
        is_last: bool = False,
    ) -> GenerationStream:
        self._require_open()
        require_call([prompt], options)
        self._terms.codec.check(options, self._terms.options.reasoning_effort)
        left = CancelToken()
        tokens = (*cancel_tokens(cancel), self._closing, left)
        return GenerationStream(
            self._pieces(prompt, options, tokens, streams=streams, is_last=is_last),
            stop=left.cancel,
        )

    def _pieces(
        self,
        prompt: Prompt,
        options: GenerationOptions,
        tokens: Sequence[CancelToken],
        *,
        streams: bool,
        is_last: bool,
    ) -> Generator[str, None, Generation]:
        terms, began_s = self._terms, time.monotonic()
        deadline = Deadline(terms.options.timeout_s)
        call = asked(
            terms,
            prompt,
            options,
            streams=streams,
            deadline=deadline,
            is_cancelled=any_of(tokens),
            began_s=began_s,
        )
        connection, talk = self._taken()
        with ExitStack() as stack:
            stack.callback(self._give_back, connection, talk)
            for token in tokens:
                stack.enter_context(token.calling(connection.cut))
            steps = answer_steps(terms, call, talk)
            stack.callback(steps.close)
            generation = yield from connection.run(steps, deadline)
        answer = structured(generation, options, model=terms.model)
        return required(answer) if is_last else answer  # what was shown cannot be mended

    def _taken(self) -> tuple[BlockingConnection, Talk]:
        """Take a connection that another call left, if the server has kept it too."""
        while True:
            with self._lock:
                kept = self._idle.pop() if self._idle else None
            if kept is None:
                return BlockingConnection(self._terms.server.tls), Talk()
            connection, talk = kept
            try:
                came = connection.arrived()
            except OSError:
                came = b""
            if came:
                talk.settle(came)
            if talk.is_open and came != b"":
                return kept
            connection.close()

    def _give_back(self, connection: BlockingConnection, talk: Talk) -> None:
        with self._lock:
            is_kept = talk.may_be_kept and len(self._idle) < _KEPT
            if is_kept and not (connection.is_cut or self._closing.cancelled):
                self._idle.append((connection, talk))
                return
        connection.close()


@final
class OpenAICompatiblePredictor(ServerPredictor):
    """
    A model that is asked by OpenAI's chat completions, which nearly every server speaks.

    They are vLLM, SGLang, TensorRT-LLM, llama.cpp, Ollama, LM Studio, and most providers. Its
    arguments are those of `ServerPredictor`.

    Example:
        >>> from vlmcore.errors import ModelServerError
        >>> from vlmcore.vlm.prompt import Prompt
        >>> with OpenAICompatiblePredictor("http://localhost:9/v1", model="any") as predictor:
        ...     try:
        ...         print(predictor.generate(Prompt(text="What is this?")).text)
        ...     except ModelServerError as error:
        ...         print(error)
        any: http://localhost:9: nothing listens there
    """

    _protocol = ServerProtocol.CHAT_COMPLETIONS


@final
class OpenAIResponsesPredictor(ServerPredictor):
    """
    A model that is asked by OpenAI's responses; OpenAI itself unless a *base_url* is given.

    Its arguments are those of `ServerPredictor`. Answers are not kept there. The protocol has no
    seed, and no stop texts: answers are cut at them here.
    """

    _protocol = ServerProtocol.RESPONSES
    _provider = "openai-responses"


@final
class AnthropicMessagesPredictor(ServerPredictor):
    """
    A model that is asked by Anthropic's messages; Anthropic itself unless a *base_url* is given.

    Its arguments are those of `ServerPredictor`. The protocol has no seed.
    """

    _protocol = ServerProtocol.MESSAGES
    _provider = "anthropic"
