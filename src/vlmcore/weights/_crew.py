"""Parts of one piece of work, done by several threads, with progress and a way to stop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, as_completed
from typing import Protocol, TypeAlias, TypeVar

from vlmcore.errors import WeightsCancelledError

__all__ = ["Cancelling", "Progress", "stop_if", "work_off"]

_Part = TypeVar("_Part")

Progress: TypeAlias = Callable[[int, int], None]
"""What is told the bytes that are done and those that there are, in the thread that loads."""


class Cancelling(Protocol):
    """What stops a load from another thread, as a `vlmcore.CancelToken` does."""

    @property
    def cancelled(self) -> bool:
        """Whether to stop."""
        ...


def work_off(
    pool: Executor,
    work: Callable[[_Part], object],
    parts: Sequence[tuple[_Part, int]],
    *,
    path: str,
    progress: Progress | None = None,
    cancel: Cancelling | None = None,
) -> None:
    """
    Call *work* with each of *parts*, which come with their sizes in bytes, and wait for all.

    Whatever ends it early, no thread is at work on a part any more when this returns.

    Raises:
        WeightsCancelledError: If *cancel* says so, which is asked after each part.
    """
    done, total = 0, sum(size for _, size in parts)
    stop_if(cancel, path, done, total)
    sizes: dict[Future[object], int] = {}
    try:
        for part, size in parts:
            sizes[pool.submit(work, part)] = size
        for future in as_completed(sizes):
            future.result()
            done += sizes[future]
            if progress is not None:
                progress(done, total)
            stop_if(cancel, path, done, total)
    except BaseException:
        at_work = [future for future in sizes if not future.cancel()]
        for future in at_work:
            future.exception()
        raise


def stop_if(cancel: Cancelling | None, path: str, done: int, total: int) -> None:
    """
    End a load that was cancelled.

    Raises:
        WeightsCancelledError: If *cancel* says so.
    """
    if cancel is not None and cancel.cancelled:
        raise WeightsCancelledError(path, done, total)
