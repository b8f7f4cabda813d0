"""
One call at a time: what every client does around a call, blocking or awaited.

A subclass says how a connection is made, cut and given up, and what a call is. All else is here:
the turn and its deadline, errors in words of ours, a connection that is given up unless a call was
done whole, and a client that can be closed from elsewhere while it waits.

A process that is forked has copies of all clients, but their connections are those of the other
one: two that ask on the same would take the answers of each other. So its clients begin anew.
"""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn, TypeVar

from vlmcore._closing import Closing
from vlmcore._net.deadline import Deadline
from vlmcore._net.waiting import in_time
from vlmcore.endpoint import Endpoint
from vlmcore.errors import PolicyError, PolicyUnavailableError, VlmcoreError
from vlmcore.policy.interface import PolicyInfo
from vlmcore_robotics.clients._boundary import Stage
from vlmcore_robotics.clients._terms import Terms

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["FAREWELL_S", "AsyncClient", "BlockingClient", "Client"]

_Result = TypeVar("_Result")

FAREWELL_S = 1.0  # how long closing waits for a call that it ended, or for the peer's farewell


_clients: weakref.WeakSet[Client] = weakref.WeakSet()


def _begin_anew() -> None:
    for client in tuple(_clients):
        client._begin_anew()  # noqa: SLF001 - it is one of these


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


class Client(ABC):
    """
    What a client knows: its terms, what the server said, and how far a call has come.

    Args:
        terms: What it was told when it was made.
    """

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._info: PolicyInfo | None = None  # set by a subclass, once it is connected
        self._stage = Stage.TURN  # set by a subclass, within a call
        self._is_closed = False
        _clients.add(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._terms.endpoint.origin!r})"

    def __reduce__(self) -> NoReturn:
        name = type(self).__name__
        raise TypeError(
            f"{name} has a connection, which cannot be copied: make one in each process or place"
        )

    @property
    def endpoint(self) -> Endpoint:
        """Where the server listens."""
        return self._terms.endpoint

    def _begin_anew(self) -> None:
        """Share nothing with the process that this one was forked from."""
        self._forget()

    @abstractmethod
    def _forget(self) -> None:
        """Let go of the connection without a word on it, and of whoever waits for a turn."""

    def _require_open(self) -> None:
        if self._is_closed:
            raise self._terms.closed()

    def _problem(self, error: Exception, stage: Stage) -> VlmcoreError:
        if self._is_closed:
            return PolicyError(self._terms.policy, "it was closed during the call")
        return self._terms.boundary.translated(error, stage)


class BlockingClient(Client, Closing):
    """
    A client whose calls block. Safe for threads: they take turns.

    Args:
        terms: What it was told when it was made.
    """

    def __init__(self, terms: Terms) -> None:
        super().__init__(terms)
        self._lock = threading.Lock()

    @property
    def info(self) -> PolicyInfo:
        """
        What the server says about itself, with what the robot says; connects first.

        Raises:
            PolicyError: If the server cannot be reached, or does not fit the robot.
        """
        return self._known(Deadline(self._terms.timeout_s))

    def connect(self) -> None:
        """
        Connect, unless connected, and compare what the server says with the robot.

        Raises:
            PolicyError: If the server cannot be reached, or does not fit the robot.
        """
        deadline = Deadline(self._terms.timeout_s)
        self._alone(deadline, lambda: self._connected(deadline))

    def close(self) -> None:
        """Hang up, also on a call that is under way. Closing twice is no error."""
        self._is_closed = True
        if not self._lock.acquire(blocking=False):
            self._cut()
            if not self._lock.acquire(timeout=FAREWELL_S):
                return  # the call ends by itself, and gives up the connection
        try:
            self._hang_up()
        finally:
            self._lock.release()

    def __enter__(self) -> Self:
        self.connect()
        return self

    @abstractmethod
    def _connected(self, deadline: Deadline) -> PolicyInfo:
        """
        Use the connection that is there, if it still is; else make one. Set and return `_info`.

        What was made before another thread closed the client must not stay: call `_require_open`
        after `_cut` has something to cut.
        """

    @abstractmethod
    def _cut(self) -> None:
        """End whatever the call under way waits for; the one method that any thread may call."""

    @abstractmethod
    def _give_up(self) -> None:
        """Drop the connection, if there is one, so that nothing that still comes is taken."""

    def _forget(self) -> None:
        self._lock = threading.Lock()  # a thread that had it is not here
        self._give_up()

    def _leave(self) -> None:
        """Say farewell on a connection that may be there, without waiting."""

    def _hang_up(self) -> None:
        self._leave()
        self._give_up()

    def _known(self, deadline: Deadline) -> PolicyInfo:
        """Take what the server said, and ask it only if it was never asked."""
        known = self._info
        return self._alone(deadline, lambda: self._connected(deadline)) if known is None else known

    def _alone(self, deadline: Deadline, action: Callable[[], _Result]) -> _Result:
        """Do *action* when it is our turn; give the connection up if it is not done whole."""
        self._require_open()
        if not self._lock.acquire(timeout=deadline.rest_s):
            raise self._terms.boundary.translated(TimeoutError(), Stage.TURN)
        is_done = False
        try:
            self._require_open()
            result = action()
            is_done = True
            return result  # noqa: TRY300 - what is raised below stands outside of the handler
        except Exception as error:  # noqa: BLE001 - all of them: this is the boundary
            problem = self._problem(error, self._stage)
        finally:
            if not is_done:
                self._give_up()
            self._lock.release()
        raise problem


class AsyncClient(Client):
    """
    A client for ``asyncio``, of one event loop at a time. Tasks take turns.

    Args:
        terms: What it was told when it was made.
    """

    def __init__(self, terms: Terms) -> None:
        super().__init__(terms)
        self._lock = asyncio.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def info(self) -> PolicyInfo:
        """
        What the server says about itself, with what the robot says.

        Raises:
            PolicyUnavailableError: If it was not connected yet.
        """
        if self._info is None:
            raise PolicyUnavailableError(
                self._terms.policy, "it was not connected yet: await connect() first"
            )
        return self._info

    async def connect(self) -> None:
        """
        Connect, unless connected, and compare what the server says with the robot.

        Raises:
            PolicyError: If the server cannot be reached, or does not fit the robot.
        """
        await self._alone(Deadline(self._terms.timeout_s), self._connected)

    async def aclose(self) -> None:
        """Hang up, also on a call that is under way. Closing twice is no error."""
        self._is_closed = True
        self._enter_loop()
        if self._lock.locked():
            self._cut()
        await self._leave()

    async def __aenter__(self) -> Self:
        await self.connect()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    def _forget(self) -> None:
        self._lock = asyncio.Lock()

    def _enter_loop(self) -> None:
        """Forget what belongs to an event loop that ran before this one."""
        before, self._loop = self._loop, asyncio.get_running_loop()
        if before in (None, self._loop):
            return
        if before.is_running():
            self._loop = before
            raise PolicyError(
                self._terms.policy,
                "it is used in another event loop, which still runs: make a client for each",
            )
        self._forget()

    @abstractmethod
    async def _connected(self) -> PolicyInfo:
        """Use the connection that is there, if it still is; else make one. Set `_info`."""

    @abstractmethod
    def _cut(self) -> None:
        """End whatever the call under way waits for."""

    @abstractmethod
    async def _leave(self) -> None:
        """Say farewell, unless the connection was cut, and drop it."""

    @abstractmethod
    async def _give_up(self) -> None:
        """Drop the connection, if there is one, so that nothing that still comes is taken."""

    async def _known(self, deadline: Deadline) -> PolicyInfo:
        """Take what the server said, and ask it only if it was never asked."""
        known = self._info
        return await self._alone(deadline, self._connected) if known is None else known

    async def _alone(self, deadline: Deadline, action: Callable[[], Awaitable[_Result]]) -> _Result:
        """Do *action* when it is our turn; give the connection up if it is not done whole."""
        self._require_open()
        self._enter_loop()
        stage = Stage.TURN

        async def do() -> _Result:
            nonlocal stage
            async with self._lock:
                is_done = False
                try:
                    self._require_open()
                    result = await action()
                    is_done = True
                    return result
                finally:
                    stage = self._stage
                    if not is_done:
                        await self._give_up()

        try:
            return await in_time(do(), deadline.rest_s)
        except Exception as error:  # noqa: BLE001 - all of them: this is the boundary
            problem = self._problem(error, stage)
        raise problem
