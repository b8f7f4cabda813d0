"""Calls of ``asyncio``, and the connections that they leave to each other."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import ExitStack, aclosing, suppress

from vlmcore._arrays import require_count
from vlmcore._net.awaiting import AwaitedConnection, Done
from vlmcore._net.deadline import Deadline
from vlmcore.errors import ModelError
from vlmcore.vlm._requirements import require_call
from vlmcore.vlm.generation import CancelToken, Generation, GenerationOptions
from vlmcore.vlm.prompt import Prompt
from vlmcore.vlm.remote._calls import Asked, Talk, answer_steps, any_of, asked
from vlmcore.vlm.remote._many import answered_in_a_window
from vlmcore.vlm.remote._terms import Terms
from vlmcore.vlm.structure import mended, required, structured

__all__ = ["AwaitedCalls"]

_KEPT = 256  # connections that nobody uses


class AwaitedCalls:
    """
    Asks one server, within one event loop.

    Args:
        terms: Who is asked, for which model, and how.
    """

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._idle: list[tuple[AwaitedConnection, Talk]] = []
        self._closing = CancelToken()

    def require(self, prompts: Sequence[Prompt], options: GenerationOptions) -> None:
        """
        Refuse what cannot be asked.

        Raises:
            ContractError: If an argument is not as described, or the server has no field for it.
            ModelError: If the calls were closed.
        """
        if self._closing.cancelled:
            raise ModelError(self._terms.model, "this predictor is closed: make it again")
        require_call(prompts, options)
        self._terms.codec.check(options, self._terms.options.reasoning_effort)

    async def answer_many(
        self,
        prompts: Sequence[Prompt],
        options: GenerationOptions,
        tokens: Sequence[CancelToken],
        batch_size: int,
    ) -> list[Generation]:
        """Answer *prompts*, *batch_size* at a time, until one of *tokens* is used."""
        require_count(batch_size=batch_size)
        self.require(prompts, options)
        return await answered_in_a_window(
            prompts,
            lambda prompt: self.answer(prompt, options, tokens),
            model=self._terms.model,
            window=batch_size,
        )

    async def answer(
        self, prompt: Prompt, options: GenerationOptions, tokens: Sequence[CancelToken]
    ) -> Generation:
        """Answer *prompt*, mended and required as *options* say, until one of *tokens* is used."""
        answer = await self._once(prompt, options, tokens)
        again: list[Prompt] = []

        def note(repair: Prompt) -> Generation:
            again.append(repair)
            return answer

        mended(answer, prompt, options, note)
        for repair in again:
            answer = await self._once(repair, options, tokens)
        return required(answer)

    async def _once(
        self, prompt: Prompt, options: GenerationOptions, tokens: Sequence[CancelToken]
    ) -> Generation:
        streams = self._terms.options.streaming
        async with aclosing(self.pieces(prompt, options, tokens, streams=streams)) as pieces:
            async for each in pieces:
                if isinstance(each, Generation):
                    return each
        raise AssertionError  # pieces end with the answer, or an error

    async def pieces(
        self,
        prompt: Prompt,
        options: GenerationOptions,
        tokens: Sequence[CancelToken],
        *,
        streams: bool,
    ) -> AsyncGenerator[str | Generation, None]:
        """Give the pieces of an answer, and at last the answer."""
        tokens = (*tokens, self._closing)
        terms, loop, began_s = self._terms, asyncio.get_running_loop(), time.monotonic()
        deadline = Deadline(terms.options.timeout_s)

        def put_together() -> Asked:
            return asked(
                terms,
                prompt,
                options,
                streams=streams,
                deadline=deadline,
                is_cancelled=any_of(tokens),
                began_s=began_s,
            )

        has_pictures = bool(prompt.images) or prompt.video is not None
        call = await asyncio.to_thread(put_together) if has_pictures else put_together()
        connection, talk = await self._taken()
        try:
            with ExitStack() as stack:
                for token in tokens:
                    stack.enter_context(token.calling(_from_any_thread(loop, connection.cut)))
                steps = answer_steps(terms, call, talk)
                stack.callback(steps.close)
                async with aclosing(connection.run(steps, deadline)) as parts:
                    async for each in parts:
                        if isinstance(each, Done):
                            yield structured(each.result, options, model=terms.model)
                        else:
                            yield each
        finally:
            await self._give_back(connection, talk)

    async def aclose(self) -> None:
        """End what is under way, and every connection."""
        self._closing.cancel()
        idle, self._idle = self._idle, []
        for connection, _ in idle:
            await connection.close()

    async def _taken(self) -> tuple[AwaitedConnection, Talk]:
        """Take a connection that another call left, if the server has kept it too."""
        while self._idle:
            connection, talk = self._idle.pop()
            try:
                came = await connection.arrived()
            except OSError:
                came = b""
            if came:
                talk.settle(came)
            if talk.is_open and came != b"":
                return connection, talk
            await connection.close()
        return AwaitedConnection(self._terms.server.tls), Talk()

    async def _give_back(self, connection: AwaitedConnection, talk: Talk) -> None:
        is_kept = talk.may_be_kept and not connection.is_cut and len(self._idle) < _KEPT
        if is_kept and not self._closing.cancelled:
            self._idle.append((connection, talk))
            return
        await connection.close()


def _from_any_thread(
    loop: asyncio.AbstractEventLoop, cut: Callable[[], None]
) -> Callable[[], None]:
    def tell() -> None:
        with suppress(RuntimeError):  # it has ended
            loop.call_soon_threadsafe(cut)

    return tell
