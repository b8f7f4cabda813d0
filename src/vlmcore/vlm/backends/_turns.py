"""Threads around a model: whose turn it is, and an answer that is written ahead of its reader."""

from __future__ import annotations

import contextvars
import queue
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

from vlmcore.vlm.generation import CancelToken, Generation

__all__ = ["RunAhead", "taken"]

_LOOK_AGAIN_S = 0.05  # how soon a call that waits for its turn sees that it was cancelled

_Arriving: TypeAlias = "queue.SimpleQueue[str | Generation | BaseException]"


@contextmanager
def taken(turn: threading.Lock, cancels: Sequence[CancelToken]) -> Iterator[bool]:
    """Wait for *turn*, and give whether it was taken before one of *cancels* was used."""
    is_ours = False
    while not is_ours and not _any_used(cancels):
        is_ours = turn.acquire(timeout=_LOOK_AGAIN_S)
    try:
        yield is_ours and not _any_used(cancels)
    finally:
        if is_ours:
            turn.release()


class RunAhead:
    """
    An answer that is written in a thread, ahead of its reader.

    The model does not wait for the reader, so a reader who pauses keeps nobody else waiting.

    Args:
        answer: Given a function that shows a piece, and a token that is used when the reader left.
        cancels: Tokens that *answer* obeys; once one is used, no more than one piece follows.
    """

    def __init__(
        self,
        answer: Callable[[Callable[[str], None], CancelToken], Generation],
        cancels: Sequence[CancelToken],
    ) -> None:
        self._answer = answer
        self._cancels = cancels
        self._left = CancelToken()
        self._thread: threading.Thread | None = None

    def pieces(self) -> Generator[str, None, Generation]:
        """Start the model, give out its pieces as they come, and return the whole."""
        arriving: _Arriving = queue.SimpleQueue()

        def work() -> None:
            try:
                arriving.put(self._answer(arriving.put, self._left))
            except BaseException as error:  # noqa: BLE001  # it is raised again where it is read
                arriving.put(error)

        # The reader's context holds what a host such as ComfyUI wants to know: which node this is.
        context = contextvars.copy_context()
        thread = threading.Thread(target=context.run, args=(work,), name="vlmcore-stream")
        self._thread = thread
        thread.start()
        try:
            end = yield from _arrived(arriving, self._cancels)
        except BaseException:
            # Not waited for: a dropped generator is closed by the garbage collector, in whatever
            # thread that runs and under whatever locks that thread holds.
            self._left.cancel()
            raise
        thread.join()
        if isinstance(end, BaseException):
            raise end
        return end

    def stop(self) -> None:
        """Stop the model within one token, and wait until it has stopped."""
        self._left.cancel()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()


def _arrived(
    arriving: _Arriving, cancels: Sequence[CancelToken]
) -> Generator[str, None, Generation | BaseException]:
    """Give out pieces as they arrive, and return what ended them."""
    while isinstance(item := arriving.get(), str):
        if _any_used(cancels):
            late = item  # what was written before the model saw that it was cancelled
            while isinstance(item := arriving.get(), str):
                late += item
            yield late
            break
        yield item
    return item


def _any_used(cancels: Sequence[CancelToken]) -> bool:
    return any(token.cancelled for token in cancels)
