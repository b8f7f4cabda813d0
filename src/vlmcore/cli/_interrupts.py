"""Ctrl-C while a model writes: stop it within a token, keep what it wrote."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from vlmcore.vlm.generation import CancelToken

__all__ = ["cancelled_by_interrupt"]


@contextmanager
def cancelled_by_interrupt() -> Iterator[CancelToken]:
    """
    Give a token that the first Ctrl-C cancels; the second one raises as usual.

    Python tells the main thread only, and a command in the background is told to ignore Ctrl-C:
    elsewhere, and there, the token is never cancelled.
    """
    token = CancelToken()
    in_main_thread = threading.current_thread() is threading.main_thread()
    if not in_main_thread or signal.getsignal(signal.SIGINT) in {signal.SIG_IGN, None}:
        yield token
        return

    def stop(_number: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, before)
        token.cancel()

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield token
    finally:
        signal.signal(signal.SIGINT, before)
