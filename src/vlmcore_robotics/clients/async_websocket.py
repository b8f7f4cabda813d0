"""Policies behind an openpi server, over WebSocket, for ``asyncio``."""

from __future__ import annotations

import ssl
from typing import final

from vlmcore._net.deadline import Deadline
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.embodiment import Embodiment
from vlmcore.contracts.observation import Observation
from vlmcore.limits import WireLimits
from vlmcore.policy.interface import PolicyInfo
from vlmcore.secrets import Secret
from vlmcore_robotics.clients._boundary import Stage
from vlmcore_robotics.clients._openpi_words import OpenPIWords
from vlmcore_robotics.clients._streams import AsyncStreamClient
from vlmcore_robotics.wire.observation_layout import ObservationLayout

__all__ = ["AsyncWebSocketPolicy"]


@final
class AsyncWebSocketPolicy(AsyncStreamClient[bytes, "bytes | str"]):
    """
    A `WebSocketPolicy` for ``asyncio``, with the same arguments and promises.

    It is of one event loop at a time: in the next one, as of another ``asyncio.run``, it connects
    anew. A call that is cancelled gives up the connection. Connect before `info` is read, since a
    property cannot be awaited.

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
        self._words = OpenPIWords(
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
        super().__init__(self._words.terms)

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
        deadline = Deadline(self._terms.timeout_s)
        request = self._words.request(observation)

        async def ask() -> ActionChunk:
            info = await self._connected()
            answer = await self._asked(request)
            return self._words.chunk(answer, observation, info)

        return await self._alone(deadline, ask)

    async def reset(self) -> None:
        """
        Hang up, so that the next call begins anew, as `WebSocketPolicy.reset`.

        Raises:
            PolicyError: If it is closed.
        """
        await self._alone(Deadline(self._terms.timeout_s), self._leave)

    async def _connected(self) -> PolicyInfo:
        if self._line is not None and self._info is not None and self._line.is_usable:
            return self._info
        line = self._words.new_line()
        await self._dial(line)
        self._stage = Stage.HANDSHAKE
        self._tcp.flush()
        self._info = self._words.learned(await self._next(line), self._info)
        return self._info
