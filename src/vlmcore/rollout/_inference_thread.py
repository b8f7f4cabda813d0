"""Inferences that are under way, on a thread that does not keep a program from ending."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from queue import SimpleQueue
from typing import Any, TypeVar

import attrs

from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.observation import Observation

__all__ = ["InferenceThread", "Request"]

_Result = TypeVar("_Result")


@attrs.frozen
class Request:
    """What the policy was asked, and at which step of the plan."""

    observation: Observation
    step: int
    answer: Future[ActionChunk]


class InferenceThread(Executor):
    """
    Runs one call after the other, on one thread, started when it is needed.

    That of ``concurrent.futures`` is waited for when Python ends. A policy that hangs must not keep
    a robot program from ending, so this one is not.

    Args:
        name: Of the thread.
    """

    def __init__(self, name: str) -> None:
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)

    def submit(self, fn: Callable[..., _Result], /, *args: Any, **kwargs: Any) -> Future[_Result]:
        """Have *fn* called; what it returns or raises is in the future."""
        future: Future[_Result] = Future()

        def call() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as error:  # noqa: BLE001 - it is raised where it is asked for
                future.set_exception(error)

        self._calls.put(call)
        if self._thread.ident is None:
            self._thread.start()
        return future

    def shutdown(self, wait: bool = False, *, cancel_futures: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002
        """End the thread after what it was given; nobody waits for it unless told."""
        self._calls.put(None)
        if wait and self._thread.ident is not None:
            self._thread.join()

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            call()
            del call  # or the last observation lives as long as the thread
