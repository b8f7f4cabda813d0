"""How a promise is held to: in a thread of its own, within a time, and with what was found."""

from __future__ import annotations

import asyncio
import concurrent.futures
import importlib
import pkgutil
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

from vlmcore._arrays import require_positive

__all__ = ["BrokenPromiseError", "keep_within", "require", "said"]

_NOT_THEIRS = (
    str(Path(__file__).parents[1]),
    str(Path(asyncio.__file__).parent),
    str(Path(concurrent.futures.__file__).parent),
    str(Path(importlib.__file__).parent),
    pkgutil.__file__,
    "<frozen importlib",
)


class BrokenPromiseError(Exception):
    """What a check found; it does not know its own name."""


def require(kept: object, problem: str) -> None:
    """
    Require that a promise is kept.

    Raises:
        BrokenPromiseError: If it is not.
    """
    if not kept:
        raise BrokenPromiseError(problem)


def keep_within(patience_s: float, check: Callable[[], None]) -> None:
    """
    Run *check* in a thread of its own: what waits for ever fails it, and does not hang the tests.

    Raises:
        BrokenPromiseError: If the check finds something, raises something, or has no end within
            *patience_s*.
        ContractError: If *patience_s* is not a finite number above 0.
    """
    require_positive(patience_s=patience_s)
    outcome: Future[None] = Future()
    threading.Thread(target=_settle, args=(check, outcome), daemon=True).start()
    try:
        outcome.result(timeout=patience_s)
    except BrokenPromiseError:
        raise
    except (Exception, SystemExit) as error:
        if not outcome.done():  # what is tested may raise TimeoutError, too
            problem = f"no end within {patience_s:g} s: something is waited for that never comes"
            raise BrokenPromiseError(problem) from None
        raise BrokenPromiseError(said(error)) from error


def said(error: BaseException) -> str:
    """Say what *error* is and where it was raised, in the code that is tested."""
    words = f"{error!s:.300}"
    return f"raised {type(error).__name__}{': ' if words else ''}{words}{_place(error)}"


def _place(error: BaseException) -> str:
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(_NOT_THEIRS)
    ]
    if not frames:
        return ""
    # The deepest line of the first file: what a library raises is understood where it was called.
    file = frames[0].filename
    line = [frame.lineno for frame in frames if frame.filename == file][-1]
    return f" ({Path(file).name}:{line})"


def _settle(check: Callable[[], None], outcome: Future[None]) -> None:
    try:
        check()
    except BaseException as error:  # noqa: BLE001 - handed to the caller, whatever it is
        outcome.set_exception(error)
    else:
        outcome.set_result(None)
