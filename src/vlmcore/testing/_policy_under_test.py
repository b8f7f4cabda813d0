"""A policy that is being tested, called in the same way whether it must be awaited or not."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.observation import Observation
from vlmcore.errors import VlmcoreError
from vlmcore.policy.interface import PolicyInfo
from vlmcore.testing._promises import BrokenPromiseError, require, said

__all__ = ["PolicyUnderTest", "opened"]


class PolicyUnderTest:
    """
    What a factory made, which may be anything.

    Attributes:
        is_async: Whether it is an `AsyncPolicy` by its methods.
    """

    def __init__(self, make_policy: Callable[[], Any]) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        try:
            self._made = self._awaited(make_policy())
        except (Exception, SystemExit) as error:
            raise BrokenPromiseError(f"making it {said(error)}") from error
        closes = _has(self._made, "close")
        awaits = inspect.iscoroutinefunction(getattr(self._made, "infer", None))
        self.is_async = _has(self._made, "aclose") and (awaits or not closes)

    @property
    def info(self) -> PolicyInfo:
        """What it says about itself."""
        try:
            info = self._made.info
        except Exception as error:
            raise BrokenPromiseError(f"info {said(error)}") from error
        if not isinstance(info, PolicyInfo):
            raise BrokenPromiseError(f"info is {info!r:.200}, expected a PolicyInfo")
        return info

    def check_methods(self, observation: Observation) -> None:
        """Find methods that are missing, and calls that are async where others are not."""
        closing = "aclose" if self.is_async else "close"
        for name in ("info", "infer", "reset", closing):
            require(_has(self._made, name), f"{type(self._made).__name__} has no {name}")
        wanted = "async, as in AsyncPolicy" if self.is_async else "plain, as in Policy"
        for name, arguments in (("reset", ()), ("infer", (observation,)), (closing, ())):
            is_async = self._is_async_call(getattr(self._made, name), arguments)
            said_so = f"{name} is {'async' if is_async else 'plain'}"
            require(is_async in (self.is_async, None), f"{said_so}, expected {wanted}")

    def answer(self, observation: Observation) -> ActionChunk:
        """Show it *observation*, and require a chunk."""
        outcome = self.outcome(observation)
        if isinstance(outcome, VlmcoreError):
            raise BrokenPromiseError(f"infer {said(outcome)}") from outcome
        return outcome

    def outcome(self, observation: Observation) -> ActionChunk | VlmcoreError:
        """Show it *observation*, and require a chunk or an error of vlmcore."""
        try:
            came = self._awaited(self._made.infer(observation))
        except VlmcoreError as error:
            return error
        except Exception as error:
            hint = ": copy what you change, observations cannot be written to"
            raise BrokenPromiseError(
                f"infer {said(error)}{hint if 'read-only' in str(error) else ''}"
            ) from error
        if not isinstance(came, ActionChunk):
            raise BrokenPromiseError(f"infer gave {type(came).__name__}, expected an ActionChunk")
        return came

    def reset(self) -> None:
        """Reset it, and require that nothing is raised."""
        try:
            self._awaited(self._made.reset())
        except Exception as error:
            raise BrokenPromiseError(f"reset {said(error)}") from error

    def close(self) -> None:
        """Close it, and require that nothing is raised."""
        name = "aclose" if self.is_async else "close"
        try:
            self._awaited(getattr(self._made, name)())
        except Exception as error:
            raise BrokenPromiseError(f"{name} {said(error)}") from error

    def end_loop(self) -> None:
        """End what still runs in the loop in which it was awaited."""
        if self._loop is not None:
            self._loop.run_until_complete(_wind_up())
            self._loop.close()

    def _awaited(self, value: Any) -> Any:
        if not inspect.isawaitable(value):
            return value
        if self._loop is None:  # only here: a plain policy may start a loop of its own
            self._loop = asyncio.new_event_loop()
        return self._loop.run_until_complete(_result(value))

    def _is_async_call(self, method: Callable[..., Any], arguments: tuple[Any, ...]) -> bool | None:
        """Say whether a call must be awaited; ``None`` if it fails, which is for other checks."""
        with suppress(Exception):
            came = method(*arguments)
            is_async = inspect.isawaitable(came)
            with suppress(Exception):
                self._awaited(came)
            return is_async
        return None


@contextmanager
def opened(make_policy: Callable[[], Any]) -> Iterator[PolicyUnderTest]:
    """Make a policy, and close it at the end; whether closing works is for a check to say."""
    policy = PolicyUnderTest(make_policy)
    try:
        yield policy
    finally:
        with suppress(BrokenPromiseError):
            policy.close()
        policy.end_loop()


def _has(made: Any, name: str) -> bool:
    with suppress(Exception):  # other errors than AttributeError: it is there, and broken
        return hasattr(made, name)
    return True


async def _result(awaitable: Any) -> Any:
    return await awaitable


async def _wind_up() -> None:
    loop = asyncio.get_running_loop()
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await loop.shutdown_asyncgens()
    await loop.shutdown_default_executor()
