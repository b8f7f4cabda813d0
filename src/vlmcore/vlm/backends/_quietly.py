"""What transformers is told while it works: no bars, no hints for its users, in parallel."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import transformers

__all__ = ["quietly"]

_logging: Any = transformers.utils.logging  # not typed
_PARALLEL = "HF_ENABLE_PARALLEL_LOADING"
_lock = threading.Lock()
_loads = 0
_undo: list[tuple[int, bool, bool]] = []


@contextmanager
def quietly() -> Iterator[None]:
    """
    Keep transformers quiet, and loading in parallel, during the block.

    What it is told belongs to the whole process. It is told when the first thread enters, and as it
    was before when the last one leaves. Somebody who raised the level of its messages, or decided
    about parallel loading in the environment, is left in charge.
    """
    global _loads  # noqa: PLW0603  # it counts the threads of the process
    with _lock:
        _loads += 1
        if _loads == 1:
            _undo.append(_tell())
    try:
        yield
    finally:
        with _lock:
            _loads -= 1
            if _loads == 0:
                _restore(*_undo.pop())


def _tell() -> tuple[int, bool, bool]:
    level, bars = _logging.get_verbosity(), _logging.is_progress_bar_enabled()
    if level == _logging.WARNING:
        _logging.set_verbosity_error()
    if bars:
        _logging.disable_progress_bar()
    # From version 5 on it loads in parallel by itself, unless HF_DEACTIVATE_ASYNC_LOAD is set.
    sets = transformers.__version__.startswith("4.") and _PARALLEL not in os.environ
    if sets:
        os.environ[_PARALLEL] = "true"
    return level, bars, sets


def _restore(level: int, bars: bool, sets: bool) -> None:  # noqa: FBT001  # what _tell gave
    _logging.set_verbosity(level)
    if bars:
        _logging.enable_progress_bar()
    if sets:
        os.environ.pop(_PARALLEL, None)
