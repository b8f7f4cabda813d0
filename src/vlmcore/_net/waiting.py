"""Waiting in ``asyncio`` for what must end in time, without forgetting that it was cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

__all__ = ["in_time"]

_Result = TypeVar("_Result")


async def in_time(
    action: Coroutine[Any, Any, _Result], timeout_s: float, *, unless: asyncio.Event | None = None
) -> _Result:
    """
    Await *action* for *timeout_s* at the most; whatever ends the wait, it has ended, too.

    ``asyncio.wait_for`` of Python before 3.12 gives the result to a task that was cancelled in the
    same moment, which then goes on as if it was not.

    Args:
        action: What to do.
        timeout_s: For how long.
        unless: Ends the wait, too.

    Raises:
        ConnectionAbortedError: If *unless* was set before.
        TimeoutError: If it takes longer.
        Exception: What *action* raises.
    """
    task = asyncio.ensure_future(action)
    others = set() if unless is None else {asyncio.ensure_future(unless.wait())}
    try:
        await asyncio.wait({task, *others}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        if unless is not None and unless.is_set():
            raise ConnectionAbortedError
        if not task.done():
            raise TimeoutError
        return task.result()
    finally:
        for each in (task, *others):
            each.cancel()
        await asyncio.gather(task, *others, return_exceptions=True)
