"""Ctrl-C while a model writes: stop it within a token, keep what it wrote."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType

from vlmcore.vlm.generation import CancelToken

__all__ = ["cancelled_by_interrupt", "stopped_by_interrupt"]


@contextmanager
def cancelled_by_interrupt() -> Iterator[CancelToken]:
    """
    Give a token that the first Ctrl-C cancels; the second one raises as usual.

    Python tells the main thread only, and a command in the background is told to ignore Ctrl-C:
    elsewhere, and there, the token is never cancelled.
    """
    token = CancelToken()
    with _first_of(signal.SIGINT, token.cancel):
        yield token


@contextmanager
def stopped_by_interrupt(tell: Callable[[], None]) -> Iterator[threading.Event]:
    """
    Give an event that the first Ctrl-C sets, or a scheduler that ends the process with SIGTERM.

    The second time is as usual. It is set nowhere else than `cancelled_by_interrupt` says.

    Args:
        tell: Is called then, to say what happens now.
    """
    event = threading.Event()

    def stop() -> None:
        event.set()
        tell()

    with ExitStack() as stack:
        for number in (signal.SIGINT, signal.SIGTERM):
            stack.enter_context(_first_of(number, stop))
        yield event


@contextmanager
def _first_of(number: signal.Signals, call: Callable[[], None]) -> Iterator[None]:
    """Call *call* for the first signal of a kind, and leave the others to whom they went before."""
    in_main_thread = threading.current_thread() is threading.main_thread()
    if not in_main_thread or signal.getsignal(number) in {signal.SIG_IGN, None}:
        yield
        return

    def stop(_number: int, _frame: FrameType | None) -> None:
        signal.signal(number, before)
        call()

    before = signal.signal(number, stop)
    try:
        yield
    finally:
        signal.signal(number, before)
