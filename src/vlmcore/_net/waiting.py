"""Waiting in ``asyncio`` for what must end in time, without forgetting that it was cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

__all__ = ["in_time"]

_Result = TypeVar("_Result")


async def in_time(action: Coroutine[Any, Any, _Result], timeout_s: float) -> _Result:
    """
    Await *action* for *timeout_s* at the most; whatever ends the wait, it has ended, too.

    ``asyncio.wait_for`` of Python before 3.12 gives the result to a task that was cancelled in the
    same moment, which then goes on as if it was not.

    Raises:
        TimeoutError: If it takes longer.
        Exception: What *action* raises.
    """
    task = asyncio.ensure_future(action)
    try:
        await asyncio.wait({task}, timeout=timeout_s)
        if not task.done():
            raise TimeoutError
        return task.result()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
