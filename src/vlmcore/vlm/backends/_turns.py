"""Threads around a model: whose turn it is, and an answer that is written ahead of its reader."""

from __future__ import annotations

import contextvars
import queue
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

from vlmcore.vlm.generation import CancelToken, Generation

__all__ = ["run_ahead", "taken"]

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


def run_ahead(
    answer: Callable[[Callable[[str], None], CancelToken], Generation],
    cancels: Sequence[CancelToken],
) -> Generator[str, None, Generation]:
    """
    Run *answer* in a thread and give out its pieces as they come; return what it returns.

    The model does not wait for the reader, so a reader who pauses keeps nobody else waiting. A
    reader who leaves stops the model within one token: the thread has ended when this returns.

    Args:
        answer: Given a function that shows a piece, and a token that is used when the reader left.
        cancels: Tokens that *answer* obeys; once one is used, no more than one piece follows.
    """
    left = CancelToken()
    arriving: _Arriving = queue.SimpleQueue()

    def work() -> None:
        try:
            arriving.put(answer(arriving.put, left))
        except BaseException as error:  # noqa: BLE001  # it is raised again where it is read
            arriving.put(error)

    # The reader's context holds what a host such as ComfyUI wants to know: which node this is.
    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(work,), name="vlmcore-stream")
    thread.start()
    try:
        end = yield from _arrived(arriving, cancels)
    finally:
        left.cancel()
        thread.join()
    if isinstance(end, BaseException):
        raise end
    return end


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
