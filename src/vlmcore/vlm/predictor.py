"""The interface of every model, wherever it runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from types import TracebackType
from typing import Protocol, runtime_checkable

import attrs

from vlmcore.vlm.generation import CancelToken, Generation, GenerationOptions
from vlmcore.vlm.prompt import Prompt

__all__ = ["GenerationStream", "Predictor", "PredictorInfo"]


@attrs.frozen(kw_only=True)
class PredictorInfo:
    """
    What a predictor is and how it runs, for reports.

    Attributes:
        model: The model as it was named when loaded.
        source: Where its weights came from: a folder, or a hub id.
        backend: The engine that runs it, with its version.
        device: Where it runs.
        dtype: What its weights are kept in, and why that was chosen.
        memory: The memory mode, as in `vlmcore.vlm.placement.MemoryMode`.
        attention: The attention implementation in use.
        supports_video: Whether frames reach the model as a video, not as single images.
        decoding: What its steps of one token read, as in `vlmcore.vlm.placement.Decoding`, and how
            close that is.
    """

    model: str
    source: str
    backend: str
    device: str
    dtype: str
    memory: str
    attention: str
    supports_video: bool
    decoding: str = "as_loaded"


class GenerationStream(Iterator[str]):
    """
    An answer as it is being written: iterate for its pieces, then read `result`.

    The pieces are whole characters, and together they are exactly the text of `result`. Leaving a
    ``with`` block, calling `close`, or dropping the stream stops the model within one token.
    ``yield from`` a stream gives its `Generation`, as from a generator. Threads may share a stream:
    each piece goes to one of them.

    Args:
        pieces: Gives out the pieces, and returns the whole.
        stop: Makes the model stop, from any thread.

    Example:
        >>> from vlmcore.testing import EchoPredictor
        >>> from vlmcore.vlm.prompt import Prompt
        >>> with EchoPredictor().stream(Prompt(text="two words")) as stream:
        ...     pieces = list(stream)
        >>> "".join(pieces) == stream.result.text
        True
    """

    def __init__(
        self,
        pieces: Generator[str, None, Generation],
        *,
        stop: Callable[[], None] = lambda: None,
    ) -> None:
        self._pieces = pieces
        self._stop = stop
        self._result: Generation | None = None
        self._reading = threading.Lock()  # a generator cannot be entered twice

    def __next__(self) -> str:
        with self._reading:
            if self._result is not None:
                raise StopIteration(self._result)
            try:
                return next(self._pieces)
            except StopIteration as end:
                self._result = end.value
                raise

    def __enter__(self) -> GenerationStream:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """
        Stop the model within one token and give back what the generation held.

        Any thread may call it, also while another one waits for the next piece: that one then sees
        the stream end.
        """
        self._stop()
        with self._reading:
            self._pieces.close()

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


@runtime_checkable
class Predictor(Protocol):
    """
    A loaded model. Threads may share one: their calls are served one after the other.

    Use it as a context manager, or call `close`, to give its memory back.
    """

    @property
    def info(self) -> PredictorInfo:
        """What it is and how it runs."""
        ...

    def generate(
        self,
        prompt: Prompt,
        options: GenerationOptions = ...,
        /,
        *,
        cancel: CancelToken | None = None,
    ) -> Generation:
        """Answer *prompt*, and return when the answer is whole."""
        ...

    def stream(
        self,
        prompt: Prompt,
        options: GenerationOptions = ...,
        /,
        *,
        cancel: CancelToken | None = None,
    ) -> GenerationStream:
        """Answer *prompt* piece by piece, as the model writes."""
        ...

    def generate_many(
        self,
        prompts: Sequence[Prompt],
        options: GenerationOptions = ...,
        /,
        *,
        cancel: CancelToken | None = None,
        batch_size: int = ...,
    ) -> list[Generation]:
        """
        Answer each of *prompts*, in their order; greedy answers are those of `generate`.

        At most *batch_size* of them are worked on at once.
        """
        ...

    def close(self) -> None:
        """Give the model's memory back; further calls are refused. Closing twice is no error."""
        ...

    def __enter__(self) -> Predictor: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...
