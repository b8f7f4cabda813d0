"""A model in this process, asked and measured."""

from __future__ import annotations

import threading

from vlmcore.errors import ModelMemoryError, VlmcoreError
from vlmcore.lab.asking.requests import Request
from vlmcore.lab.events import Chunk, Failure, FailureKind, Sample, TokenSource, Usage
from vlmcore.limits import SampleLimits
from vlmcore.secrets import redact
from vlmcore.vlm.generation import CancelToken, Generation, StopReason
from vlmcore.vlm.predictor import Predictor

__all__ = ["PredictorAsker"]

_MOST = SampleLimits().max_message_characters


class PredictorAsker:
    """
    Asks a predictor, piece by piece.

    Its first token is told by the model itself: text is held back until a character is whole. What
    lies between the request and the inputs of the model is input work, as far as it says so.

    Args:
        predictor: Who answers; it is closed with this.
    """

    def __init__(self, predictor: Predictor) -> None:
        self._predictor = predictor

    def ask(self, request: Request) -> Sample:
        """Ask once; see `vlmcore.lab.asking.requests.Asker`."""
        request_ns = began_ns = request.clock_ns()
        pieces: list[tuple[int, str]] = []
        generation: Generation | None = None
        failure: Failure | None = None
        token = CancelToken()
        timer = threading.Timer(request.deadline_s, token.cancel)
        timer.daemon = True
        timer.start()
        try:
            prompt = request.prompt()
            began_ns = request.clock_ns()
            with self._predictor.stream(prompt, request.options, cancel=token) as stream:
                pieces.extend((request.clock_ns(), piece) for piece in stream)
                generation = stream.result
            if generation.stop_reason is StopReason.CANCELLED:
                failure = Failure(
                    kind=FailureKind.TIMEOUT, message=f"no answer within {request.deadline_s:g} s"
                )
        except VlmcoreError as error:
            is_memory = isinstance(error, ModelMemoryError)
            kind = FailureKind.MEMORY if is_memory else FailureKind.GENERATION
            failure = Failure(kind=kind, message=redact(str(error), max_characters=_MOST))
        finally:
            closed_ns = request.clock_ns()
            timer.cancel()
        prepared_ns, first_ns = _marks(generation, began_ns, pieces, closed_ns)
        chunks = [Chunk(at_ns=at, characters=len(piece)) for at, piece in pieces]
        if first_ns is not None:
            chunks.insert(0, Chunk(at_ns=first_ns, characters=0, tokens=1))
        return Sample(
            case=request.case,
            target=request.target,
            phase=request.phase,
            block=request.block,
            leg=request.leg,
            request_ns=request_ns,
            prepared_ns=prepared_ns,
            chunks=chunks,
            closed_ns=closed_ns,
            text=generation.text if generation else "".join(piece for _, piece in pieces),
            reasoning=generation.reasoning if generation else "",
            finish_reason=generation.stop_reason.value if generation else None,
            usage=_usage(generation) if generation else None,
            failure=failure,
        )

    def close(self) -> None:
        """Close the predictor."""
        self._predictor.close()


def _marks(
    generation: Generation | None, began_ns: int, pieces: list[tuple[int, str]], closed_ns: int
) -> tuple[int | None, int | None]:
    """Place the marks that the model tells on the clock of the run."""
    timings = generation.timings if generation is not None else None
    if timings is None:
        return None, None
    latest = pieces[0][0] if pieces else closed_ns
    prepared_ns = min(began_ns + round(timings.prepare_s * 1e9), latest)
    if timings.first_token_s is None:
        return prepared_ns, None
    return prepared_ns, max(prepared_ns, min(began_ns + round(timings.first_token_s * 1e9), latest))


def _usage(generation: Generation) -> Usage:
    reused = generation.reused
    return Usage(
        source=TokenSource.MODEL,
        prompt_tokens=generation.prompt_tokens,
        cached_tokens=None if reused is None else reused.prefix_tokens,
        generated_tokens=generation.new_tokens,
    )
