"""
One event loop for the pack, on a thread of its own, that outlives every graph.

ComfyUI makes a new loop for each graph. A connection belongs to the loop that it was opened in, so
that one kept there would have to be opened again for every graph.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

__all__ = ["start_on_loop"]

_T = TypeVar("_T")

_starting = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None


def start_on_loop(coroutine: Coroutine[Any, Any, _T]) -> Future[_T]:
    """Start *coroutine* on the loop of the pack; cancelling the future cancels it there."""
    return asyncio.run_coroutine_threadsafe(coroutine, _running_loop())


def _running_loop() -> asyncio.AbstractEventLoop:
    global _loop  # noqa: PLW0603 - one for the process, made when first needed
    with _starting:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="vlmcore-comfy", daemon=True).start()
        return _loop
