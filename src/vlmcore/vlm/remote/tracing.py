"""
Calls to a server with the time of everything that came, for whoever measures it.

Times are taken when bytes have come, before anything is made of them. Nothing is asked twice: a
request that failed has failed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import attrs

from vlmcore._net.blocking import BlockingConnection
from vlmcore._net.deadline import Deadline
from vlmcore._net.steps import Receive, Send, Steps
from vlmcore.errors import VlmcoreError
from vlmcore.secrets import Secret
from vlmcore.vlm.generation import CancelToken, Generation, GenerationOptions
from vlmcore.vlm.prompt import Prompt
from vlmcore.vlm.remote._calls import Asked, Talk, answer_steps, asked
from vlmcore.vlm.remote._codecs import Codec
from vlmcore.vlm.remote._draft import Draft
from vlmcore.vlm.remote._getting import get
from vlmcore.vlm.remote._making import make_terms
from vlmcore.vlm.remote._terms import Terms
from vlmcore.vlm.remote.pictures import PictureRules
from vlmcore.vlm.remote.providers import ServerProtocol
from vlmcore.vlm.remote.retrying import Retries

__all__ = ["Trace", "TracedPiece", "TracedServer"]

_LAST_WORDS_S = 1.0
_REDIRECTS = 300  # the first status that is no answer to what was asked


@attrs.frozen
class TracedPiece:
    """
    What one event of an answer held.

    Attributes:
        at_ns: When its bytes had come.
        text: Text of the answer, with thoughts in tags if there are; may be empty.
        thought: Reasoning that the server keeps apart; may be empty.
    """

    at_ns: int
    text: str
    thought: str


@attrs.define(kw_only=True)
class Trace:
    """
    What was seen of one call; ``None`` is what did not happen.

    Attributes:
        prepared_ns: When its pictures were encoded.
        sent_ns: When the whole request was handed to the network.
        headers_ns: When the head of the response had come.
        pieces: The events of the answer, in order.
        closed_ns: When it was over.
        sends: How often a request was sent.
        generation: What the answer is; ``None`` if it failed.
        error: Why it failed.
        finish_reason: Why the answer ended, in the word of the server.
    """

    prepared_ns: int | None = None
    sent_ns: int | None = None
    headers_ns: int | None = None
    pieces: list[TracedPiece] = attrs.field(factory=list)
    closed_ns: int = 0
    sends: int = 0
    generation: Generation | None = None
    error: VlmcoreError | None = None
    finish_reason: str | None = None


class TracedServer:
    """
    Asks a server by OpenAI's chat completions, and keeps when what came.

    Threads may share it: each has a connection of its own, which is kept for its next call.

    Args:
        base_url: Its address; ``None`` for that of a provider.
        model: The model, as the server calls it.
        provider: The name of a provider of chat completions.
        timeout_s: How long a call may take, all of it together.
        streaming: Whether answers come piece by piece.
        pictures: How pictures are sent.
        request_fields: More fields of the request.
        clock_ns: Gives the time, in nanoseconds.

    Raises:
        ContractError: If an argument is not as described.
        EndpointError: If *base_url* is no address, or not one that may be dialled.
        MissingDependencyError: If h11 is not installed.
    """

    def __init__(
        self,
        base_url: str | None,
        *,
        model: str,
        provider: str | None = None,
        timeout_s: float,
        streaming: bool = True,
        pictures: PictureRules | None = None,
        request_fields: Mapping[str, Any] | None = None,
        clock_ns: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        terms = make_terms(
            ServerProtocol.CHAT_COMPLETIONS,
            base_url,
            model=model,
            provider=provider,
            timeout_s=timeout_s,
            retries=Retries(times=0),
            streaming=streaming,
            reasoning_effort=None,
            pictures=pictures,
            request_fields=request_fields,
            allow_private_network=False,
            tls=None,
            limits=None,
        )
        self._terms = attrs.evolve(terms, codec=_CodecByEvents(terms.codec))
        self._clock_ns = clock_ns
        self._mine = threading.local()
        self._lock = threading.Lock()
        self._connections: list[BlockingConnection] = []

    def __repr__(self) -> str:
        return f"<TracedServer {self._terms.model!r} at {self._terms.server.endpoint.origin}>"

    @property
    def address(self) -> str:
        """Scheme, host, port and base path, without any secret."""
        return f"{self._terms.server.endpoint.origin}{self._terms.server.base}"

    @property
    def model(self) -> str:
        """The model, as the server calls it."""
        return self._terms.model

    @property
    def key(self) -> Secret | None:
        """The token that is sent."""
        return self._terms.server.key

    @property
    def pictures(self) -> PictureRules:
        """How pictures are sent."""
        return self._terms.pictures

    def ask(
        self, prompt: Prompt, options: GenerationOptions, *, cancel: CancelToken | None = None
    ) -> Trace:
        """
        Ask once. What goes wrong with the server is in the trace, and not raised.

        Args:
            prompt: What is asked.
            options: How it is to be answered.
            cancel: Ends the call.
        """
        trace, token = Trace(), cancel or CancelToken()
        draft: _TracedDraft | None = None
        connection, talk = self._connection()
        try:
            call = asked(
                self._terms,
                prompt,
                options,
                streams=self._terms.options.streaming,
                deadline=Deadline(self._terms.options.timeout_s),
                is_cancelled=lambda: token.cancelled,
                began_s=time.monotonic(),
            )
            draft = _TracedDraft(options, clock=self._terms.clock, began_s=call.began_s)
            traced = _TracedCall(**attrs.asdict(call, recurse=False), draft=draft)
            trace.prepared_ns = self._clock_ns()
            steps = self._timed(answer_steps(self._terms, traced, talk), draft, trace)
            with token.calling(connection.cut):
                trace.generation = connection.done(steps, call.deadline)
                with suppress(OSError):  # the answer is whole, and only its end is missing
                    connection.done(_ended(talk), call.deadline)
        except VlmcoreError as error:
            trace.error = error
        finally:
            trace.closed_ns = self._clock_ns()
            if draft is not None:
                trace.pieces, trace.finish_reason = draft.pieces, draft.finish_reason
            if trace.error is not None or not talk.is_open:
                self._leave(connection)
        return trace

    def tell(self, target: str, *, timeout_s: float = 10.0) -> str | None:
        """
        Ask what the server says at a path from its root, as ``"/version"``.

        Returns:
            What it said; ``None`` if it did not, whatever the reason.
        """

        def read(status: int, body: bytes) -> str | None:
            return body.decode(errors="replace") if status < _REDIRECTS else None

        try:
            return get(self._terms, target, read, timeout_s=timeout_s)
        except VlmcoreError:
            return None

    def close(self) -> None:
        """End every connection."""
        with self._lock:
            connections, self._connections = self._connections, []
        for connection in connections:
            connection.cut()
            connection.close()

    def _timed(
        self, steps: Steps[str, Generation], draft: _TracedDraft, trace: Trace
    ) -> Steps[str, Generation]:
        """Take the time of each step when it was done, before the call is told of it."""
        came: bytes | None = None
        lost: BaseException | None = None
        try:
            while True:
                try:
                    step = steps.send(came) if lost is None else steps.throw(lost)
                except StopIteration as end:
                    result: Generation = end.value
                    return result
                if draft.has_head and trace.headers_ns is None:
                    trace.headers_ns = draft.arrived_ns
                came = lost = None
                try:
                    came = yield step
                except OSError as error:
                    lost = error
                now = self._clock_ns()
                if isinstance(step, Send):
                    trace.sent_ns, trace.sends = now, trace.sends + 1
                elif isinstance(step, Receive) and lost is None:
                    draft.arrived_ns = now
        finally:
            steps.close()

    def _connection(self) -> tuple[BlockingConnection, Talk]:
        kept: tuple[BlockingConnection, Talk] | None = getattr(self._mine, "kept", None)
        if kept is not None and kept[1].is_open:
            return kept
        connection, talk = BlockingConnection(self._terms.server.tls), Talk()
        with self._lock:
            self._connections.append(connection)
        self._mine.kept = connection, talk
        return connection, talk

    def _leave(self, connection: BlockingConnection) -> None:
        connection.close()
        self._mine.kept = None
        with self._lock:
            if connection in self._connections:
                self._connections.remove(connection)


def _ended(talk: Talk) -> Steps[str, None]:
    """Wait for the end of an answer that is whole, so that the connection serves the next."""
    while talk.may_be_kept and not talk.is_open:
        came = yield Receive(longest_s=_LAST_WORDS_S)
        if not came:
            return
        talk.settle(came)


@attrs.frozen(kw_only=True, repr=False)
class _TracedCall(Asked):
    draft: Draft

    def new_draft(self, terms: Terms) -> Draft:  # noqa: ARG002 - as the other makes a new one
        """Give the one draft: nothing is asked again."""
        return self.draft


class _TracedDraft(Draft):
    """A draft that keeps what each event brought, and when its bytes had come."""

    def __init__(
        self, options: GenerationOptions, *, clock: Callable[[], float], began_s: float
    ) -> None:
        super().__init__(options, clock=clock, began_s=began_s)
        self.arrived_ns = 0
        self.pieces: list[TracedPiece] = []
        self._text = self._thought = ""

    def write(self, text: str) -> None:
        """Take more of the answer."""
        self._text += text
        super().write(text)

    def think(self, text: str) -> None:
        """Take more of the thoughts."""
        self._thought += text
        super().think(text)

    def end_event(self) -> None:
        """Keep what came since the last event."""
        self.pieces.append(TracedPiece(self.arrived_ns, self._text, self._thought))
        self._text = self._thought = ""


class _CodecByEvents:
    """Tells the draft where events end."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codec, name)

    def read_event(self, event: Mapping[str, Any], draft: Draft) -> None:
        self._codec.read_event(event, draft)
        assert isinstance(draft, _TracedDraft)
        draft.end_event()

    def read_whole(self, document: Mapping[str, Any], draft: Draft) -> None:
        self._codec.read_whole(document, draft)
        assert isinstance(draft, _TracedDraft)
        draft.end_event()
