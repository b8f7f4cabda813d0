"""What comes slowly, taken in a thread, so that whoever waits for it can do other things."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Generator
from typing import TypeVar

__all__ = ["arriving"]

T = TypeVar("T")

_TICK_S = 0.2
_ENDS_S = 1.0


def arriving(
    values: Generator[T, None, None], *, meanwhile: Callable[[], None], is_over: Callable[[], bool]
) -> Generator[T, None, None]:
    """
    Give *values*, of which another thread takes one ahead.

    Args:
        values: What comes; it is closed at the end, in the thread that takes it.
        meanwhile: Is called a few times a second, in the thread of the caller.
        is_over: Whether no more is wanted; what is on its way is then left.
    """
    came: queue.SimpleQueue[tuple[T] | BaseException | None] = queue.SimpleQueue()
    room = threading.Semaphore(1)
    left = threading.Event()

    def take() -> None:
        try:
            with contextlib.closing(values):
                for value in values:
                    came.put((value,))
                    room.acquire()
                    if left.is_set():
                        return
            came.put(None)
        except BaseException as error:  # noqa: BLE001 - it is raised by who waits
            came.put(error)

    taking = threading.Thread(target=take, name="arrivals", daemon=True)
    taking.start()
    try:
        while not is_over():
            meanwhile()
            try:
                found = came.get(timeout=_TICK_S)
            except queue.Empty:
                continue
            if found is None:
                return
            if isinstance(found, BaseException):
                raise found
            room.release()
            yield found[0]
    finally:
        left.set()
        room.release()
        taking.join(_ENDS_S)  # not for longer: it may be waiting for what never comes
