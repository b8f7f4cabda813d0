"""Policies behind an openpi server, over WebSocket, for ``asyncio``."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import TypeVar, final

from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.embodiment import Embodiment
from vlmcore.contracts.observation import Observation
from vlmcore.errors import PolicyUnavailableError
from vlmcore.limits import WireLimits
from vlmcore.policy.interface import PolicyInfo
from vlmcore.secrets import Secret
from vlmcore_robotics.clients._asyncio_tcp import AsyncTcpConnection
from vlmcore_robotics.clients._boundary import Stage
from vlmcore_robotics.clients._openpi_client import OpenPIClient
from vlmcore_robotics.wire.observation_layout import ObservationLayout

__all__ = ["AsyncWebSocketPolicy"]

_Result = TypeVar("_Result")
_FAREWELL_S = 1.0  # how long the peer has to answer a farewell


@final
class AsyncWebSocketPolicy(OpenPIClient):
    """
    A `WebSocketPolicy` for ``asyncio``, with the same arguments and promises.

    It belongs to the event loop that it is first used in. A call that is cancelled gives up the
    connection. Connect before `info` is read, since a property cannot be awaited.

    Example:
        >>> import asyncio
        >>> from vlmcore.contracts.presets import find_embodiment
        >>> from vlmcore.testing import example_observation
        >>> from vlmcore_robotics.wire.layouts import aloha_layout
        >>> robot = find_embodiment("aloha_bimanual_template")
        >>> policy = AsyncWebSocketPolicy("localhost:9", embodiment=robot, layout=aloha_layout())
        >>> asyncio.run(policy.infer(example_observation(robot)))
        Traceback (most recent call last):
        vlmcore.errors.PolicyUnavailableError: ws://localhost:9: nothing listens there
    """

    def __init__(
        self,
        endpoint: str,
        *,
        embodiment: Embodiment,
        layout: ObservationLayout,
        name: str | None = None,
        api_key: Secret | None = None,
        timeout_s: float = 10.0,
        allow_remote: bool = False,
        tls: ssl.SSLContext | None = None,
        limits: WireLimits | None = None,
    ) -> None:
        super().__init__(
            endpoint,
            embodiment=embodiment,
            layout=layout,
            name=name,
            api_key=api_key,
            timeout_s=timeout_s,
            allow_remote=allow_remote,
            tls=tls,
            limits=limits,
        )
        self._lock = asyncio.Lock()
        self._tcp: AsyncTcpConnection | None = None

    @property
    def info(self) -> PolicyInfo:
        """
        What the server says about itself, with what the robot and the layout say.

        Raises:
            PolicyUnavailableError: If it was not connected yet.
        """
        if self._info is None:
            raise PolicyUnavailableError(
                self._terms.codec.policy, "it was not connected yet: await connect() first"
            )
        return self._info

    async def connect(self) -> None:
        """
        Connect, unless connected, and compare what the server says with the robot.

        Raises:
            PolicyError: If the server cannot be reached, or does not fit the robot.
        """
        await self._alone(self._connected)

    async def infer(self, observation: Observation, /) -> ActionChunk:
        """
        Ask for the next actions, as `WebSocketPolicy.infer`.

        Raises:
            ContractError: If it is not an observation of the robot and of the layout.
            PolicyUnavailableError: If the server cannot be reached; nothing was asked.
            PolicyTimeoutError: If it did not answer in time.
            PolicyRefusedError: If it answered with an error.
            PolicyProtocolError: If it does not fit the robot, hung up, or answered what is none.
            PolicyError: If this policy is closed.
        """
        request = self._terms.request(observation)

        async def ask() -> ActionChunk:
            tcp, info = await self._connected()
            self._stage = Stage.REQUEST
            tcp.line.ask(request)
            tcp.flush()
            self._stage = Stage.ANSWER
            return self._terms.chunk(await tcp.message(), observation, info)

        return await self._alone(ask)

    async def reset(self) -> None:
        """
        Do nothing: openpi has no reset, and its policies keep nothing between calls.

        Raises:
            PolicyError: If it is closed.
        """
        self._require_open()

    async def aclose(self) -> None:
        """Hang up, also on a call that is under way. Closing twice is no error."""
        self._is_closed = True
        tcp, self._tcp = self._tcp, None
        if tcp is None:
            return
        if self._lock.locked():
            tcp.cut()
        else:
            tcp.leave()
        await tcp.gone(_FAREWELL_S)

    async def __aenter__(self) -> AsyncWebSocketPolicy:
        await self.connect()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def _alone(self, action: Callable[[], Awaitable[_Result]]) -> _Result:
        """Do *action* when it is our turn; give the connection up if it is not done whole."""
        self._require_open()
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
            return await asyncio.wait_for(do(), self._terms.timeout_s)
        except Exception as error:  # noqa: BLE001 - all of them: this is the boundary
            problem = self._problem(error, stage)
        raise problem

    async def _connected(self) -> tuple[AsyncTcpConnection, PolicyInfo]:
        """Use the connection that is there, if it still is; else make one."""
        if self._tcp is not None and self._info is not None and self._tcp.line.is_usable:
            return self._tcp, self._info
        await self._give_up()
        self._stage = Stage.CONNECTION
        self._tcp = tcp = AsyncTcpConnection(self._new_line())
        await tcp.open(self._terms.endpoint, self._terms.tls)
        self._stage = Stage.HANDSHAKE
        tcp.flush()
        self._info = self._terms.learned(await self._greeting(tcp), self._info)
        return tcp, self._info

    async def _greeting(self, tcp: AsyncTcpConnection) -> bytes | str:
        try:
            return await tcp.message()
        finally:
            self._stage = tcp.line.stage if self._stage is Stage.HANDSHAKE else self._stage

    async def _give_up(self) -> None:
        tcp, self._tcp = self._tcp, None
        if tcp is not None:
            tcp.cut()
            await tcp.gone(_FAREWELL_S)
