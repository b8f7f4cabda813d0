"""Policies behind a server of HTTP, for ``asyncio``."""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING, final

from vlmcore._net.deadline import Deadline
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.embodiment import Embodiment
from vlmcore.contracts.observation import Observation
from vlmcore.limits import HttpLimits
from vlmcore.policy.interface import PolicyInfo
from vlmcore.secrets import Secret
from vlmcore_robotics.clients._boundary import Stage
from vlmcore_robotics.clients._http_words import HttpWords
from vlmcore_robotics.clients._streams import AsyncStreamClient
from vlmcore_robotics.wire.http_frames import WireEncoding
from vlmcore_robotics.wire.http_messages import ContentType, HttpRequest, HttpResponse

if TYPE_CHECKING:
    from vlmcore_robotics.clients._http_line import HttpLine

__all__ = ["AsyncHttpPolicy"]


@final
class AsyncHttpPolicy(AsyncStreamClient[HttpRequest, HttpResponse]):
    """
    A `HttpPolicy` for ``asyncio``, with the same arguments and promises.

    It is of one event loop at a time: in the next one, as of another ``asyncio.run``, it connects
    anew. A call that is cancelled gives up the connection. Connect before `info` is read, since a
    property cannot be awaited.

    Example:
        >>> import asyncio
        >>> from vlmcore.contracts.presets import find_embodiment
        >>> from vlmcore.testing import example_observation
        >>> robot = find_embodiment("lerobot_so100_so101_template")
        >>> policy = AsyncHttpPolicy("localhost:9", embodiment=robot)
        >>> asyncio.run(policy.infer(example_observation(robot)))
        Traceback (most recent call last):
        vlmcore.errors.PolicyUnavailableError: http://localhost:9: nothing listens there
    """

    _line: HttpLine | None

    def __init__(
        self,
        endpoint: str,
        *,
        embodiment: Embodiment,
        name: str | None = None,
        token: Secret | None = None,
        timeout_s: float = 10.0,
        allow_remote: bool = False,
        tls: ssl.SSLContext | None = None,
        encoding: WireEncoding | None = None,
        content_type: ContentType | None = None,
        session: str | None = None,
        limits: HttpLimits | None = None,
    ) -> None:
        self._words = HttpWords(
            endpoint,
            embodiment=embodiment,
            name=name,
            token=token,
            timeout_s=timeout_s,
            allow_remote=allow_remote,
            tls=tls,
            encoding=encoding,
            content_type=content_type,
            session=session,
            limits=limits,
        )
        super().__init__(self._words.terms)

    async def infer(self, observation: Observation, /) -> ActionChunk:
        """
        Ask for the next actions, as `HttpPolicy.infer`. Frames are encoded on a thread.

        Raises:
            ContractError: If it is not an observation of the robot; or *encoding* or *content_type*
                is not known to the server.
            LimitExceededError: If the observation is too large to be sent.
            PolicyUnavailableError: If the server cannot be reached or is busy.
            PolicyTimeoutError: If it did not answer in time.
            PolicyStatusError: If it answered that it failed.
            PolicyRefusedError: If there is an error in its answer nevertheless.
            PolicyProtocolError: If it does not fit the robot, hung up, or answered what is none.
            PolicyError: If this policy is closed.
        """
        deadline = Deadline(self._terms.timeout_s)
        self._terms.require_fits(observation)
        await self._known(deadline)
        asked = await asyncio.to_thread(self._words.question, observation)

        async def ask() -> ActionChunk:
            info = await self._connected()
            return self._words.chunk(await self._asked(asked.request), asked, info)

        return await self._alone(deadline, ask)

    async def reset(self) -> None:
        """
        Tell the server that the episode of this session ends, as `HttpPolicy.reset`.

        Raises:
            PolicyError: If it cannot be reached, does not do it in time or refuses; or this policy
                is closed.
        """
        deadline = Deadline(self._terms.timeout_s)
        await self._known(deadline)
        request = self._words.reset()
        if request is None:
            self._require_open()
            return

        async def ask() -> None:
            await self._connected()
            self._words.check_reset(await self._asked(request))

        await self._alone(deadline, ask)

    def _begin_anew(self) -> None:
        super()._begin_anew()
        self._words.begin_session()

    async def _connected(self) -> PolicyInfo:
        line = self._line
        if self._info is not None and line is not None:
            if line.is_usable:
                return self._info
            if line.is_spent:
                await self._redial()
                return self._info
        line = await self._redial()
        self._stage = Stage.METADATA
        line.ask(self._words.metadata())
        self._tcp.flush()
        self._info = self._words.learned(await self._next(line), self._info)
        if not line.is_usable:
            await self._redial()
        return self._info

    async def _redial(self) -> HttpLine:
        line = self._words.new_line()
        await self._dial(line)
        return line
