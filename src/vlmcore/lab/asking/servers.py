"""A model behind an OpenAI-compatible server, asked and measured."""

from __future__ import annotations

from vlmcore.errors import (
    ModelServerProtocolError,
    ModelServerRefusedError,
    ModelServerTimeoutError,
    ModelServerUnavailableError,
    VlmcoreError,
)
from vlmcore.lab.asking.requests import Request
from vlmcore.lab.events import Channel, Chunk, Failure, FailureKind, Sample, TokenSource, Usage
from vlmcore.limits import SampleLimits
from vlmcore.secrets import redact
from vlmcore.vlm.generation import Generation
from vlmcore.vlm.remote.tracing import Trace, TracedPiece, TracedServer

__all__ = ["ServerAsker"]

_CLIENT_ERRORS, _SERVER_ERRORS = 400, 500  # where these statuses begin, RFC 9110, 15.5 and 15.6
_MOST = SampleLimits().max_message_characters


class ServerAsker:
    """
    Asks a server, with a connection for each thread; nothing is asked twice.

    Args:
        server: Who answers; its clock is that of the run. It is closed with this.
        streamed: Whether it is asked to answer piece by piece.
    """

    def __init__(self, server: TracedServer, *, streamed: bool = True) -> None:
        self._server = server
        self._streamed = streamed

    def ask(self, request: Request) -> Sample:
        """Ask once; see `vlmcore.lab.asking.requests.Asker`."""
        request_ns = request.clock_ns()
        try:
            trace = self._server.ask(request.prompt(), request.options)
        except VlmcoreError as error:  # of the image: the server was not asked
            trace = Trace(error=error, closed_ns=request.clock_ns())
        return Sample(
            case=request.case,
            target=request.target,
            phase=request.phase,
            block=request.block,
            leg=request.leg,
            request_ns=request_ns,
            prepared_ns=trace.prepared_ns,
            sent_ns=trace.sent_ns,
            headers_ns=trace.headers_ns,
            chunks=[chunk for piece in trace.pieces for chunk in _chunks(piece)],
            closed_ns=trace.closed_ns,
            streamed=self._streamed,
            text=_characters("".join(piece.text for piece in trace.pieces)),
            reasoning=_characters("".join(piece.thought for piece in trace.pieces)),
            finish_reason=trace.finish_reason or None,
            usage=_usage(trace.generation),
            failure=_failure(trace),
            attempts=max(1, trace.sends),
        )

    def close(self) -> None:
        """End every connection."""
        self._server.close()


def _chunks(piece: TracedPiece) -> list[Chunk]:
    if not (piece.text or piece.thought):
        return [Chunk(at_ns=piece.at_ns, channel=Channel.NONE, characters=0)]
    parts = ((Channel.REASONING, piece.thought), (Channel.TEXT, piece.text))
    return [
        Chunk(at_ns=piece.at_ns, channel=channel, characters=len(text))
        for channel, text in parts
        if text
    ]


def _usage(generation: Generation | None) -> Usage | None:
    if generation is None or (generation.prompt_tokens, generation.new_tokens) == (None, None):
        return None
    served = generation.served
    return Usage(
        source=TokenSource.SERVER,
        prompt_tokens=generation.prompt_tokens,
        cached_tokens=None if served is None else served.cached_tokens,
        generated_tokens=generation.new_tokens,
        reasoning_tokens=None if served is None else served.reasoning_tokens,
    )


def _failure(trace: Trace) -> Failure | None:
    error = trace.error
    if error is None:
        return None
    match error:
        case ModelServerUnavailableError():
            kind = FailureKind.UNREACHABLE
        case ModelServerTimeoutError():
            kind = FailureKind.TIMEOUT
        case ModelServerRefusedError() if _CLIENT_ERRORS <= error.status < _SERVER_ERRORS:
            kind = FailureKind.REFUSED
        case ModelServerRefusedError():
            kind = FailureKind.SERVER_ERROR
        case ModelServerProtocolError() if trace.pieces and not trace.finish_reason:
            kind = FailureKind.TRUNCATED_STREAM
        case ModelServerProtocolError():
            kind = FailureKind.PROTOCOL
        case _:
            kind = FailureKind.REFUSED
    return Failure(kind=kind, message=redact(str(error), max_characters=_MOST))


def _characters(text: str) -> str:
    """Join halves of characters, and mark those that are alone."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
