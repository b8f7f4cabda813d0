"""Policies behind a server of Isaac-GR00T, over ZeroMQ, for ``asyncio``."""

from __future__ import annotations

from typing import final

from vlmcore._net.deadline import Deadline
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.embodiment import Embodiment
from vlmcore.contracts.observation import Observation
from vlmcore.limits import WireLimits
from vlmcore.policy.interface import PolicyInfo
from vlmcore.secrets import Secret
from vlmcore_robotics.clients._groot_words import GrootWords
from vlmcore_robotics.clients._streams import AsyncStreamClient
from vlmcore_robotics.wire._blobs import Parts
from vlmcore_robotics.wire.groot_layout import GrootLayout
from vlmcore_robotics.wire.histories import MissingHistory

__all__ = ["AsyncZmqPolicy"]


@final
class AsyncZmqPolicy(AsyncStreamClient[Parts, bytes]):
    """
    A `ZmqPolicy` for ``asyncio``, with the same arguments and promises.

    It is of one event loop at a time: in the next one, as of another ``asyncio.run``, it connects
    anew. A call that is cancelled gives up the connection. Connect before `info` is read, since a
    property cannot be awaited.

    Example:
        >>> import asyncio
        >>> from vlmcore.contracts.presets import find_embodiment
        >>> from vlmcore.testing import example_observation
        >>> from vlmcore_robotics.wire.groot_layout import ActionStream, StateSlice, VideoKey
        >>> robot = find_embodiment("generic_7dof_joint_gripper")
        >>> layout = GrootLayout(
        ...     video=[VideoKey(key=name, camera=name) for name in robot.camera_names],
        ...     state=[StateSlice(key="arm", start=0, end=len(robot.state_names))],
        ...     action=[ActionStream(key="arm", names=robot.actions.names)],
        ...     language="annotation.human.task_description",
        ... )
        >>> policy = AsyncZmqPolicy("localhost:9", embodiment=robot, layout=layout)
        >>> asyncio.run(policy.infer(example_observation(robot)))
        Traceback (most recent call last):
        vlmcore.errors.PolicyUnavailableError: tcp://localhost:9: nothing listens there
    """

    def __init__(
        self,
        endpoint: str,
        *,
        embodiment: Embodiment,
        layout: GrootLayout,
        name: str | None = None,
        api_token: Secret | None = None,
        timeout_s: float = 10.0,
        allow_remote: bool = False,
        allow_readable_token: bool = False,
        flat: bool = False,
        missing_history: MissingHistory = MissingHistory.REFUSE,
        max_steps_back: int = 64,
        limits: WireLimits | None = None,
    ) -> None:
        self._words = GrootWords(
            endpoint,
            embodiment=embodiment,
            layout=layout,
            name=name,
            api_token=api_token,
            timeout_s=timeout_s,
            allow_remote=allow_remote,
            allow_readable_token=allow_readable_token,
            flat=flat,
            missing_history=missing_history,
            max_steps_back=max_steps_back,
            limits=limits,
        )
        super().__init__(self._words.terms)

    async def infer(self, observation: Observation, /) -> ActionChunk:
        """
        Ask for the next actions, as `ZmqPolicy.infer`.

        Raises:
            ContractError: If it is not an observation of the robot and of the layout, or the policy
                looks further back than anything was seen.
            PolicyUnavailableError: If the server cannot be reached; nothing was asked.
            PolicyTimeoutError: If it did not answer in time.
            PolicyRefusedError: If it answered with an error.
            PolicyProtocolError: If it does not fit the robot, hung up, or answered what is none.
            PolicyError: If this policy is closed.
        """
        deadline = Deadline(self._terms.timeout_s)
        self.observe(observation)
        await self._known(deadline)
        request = self._words.request(observation)

        async def ask() -> ActionChunk:
            info = await self._connected()
            return self._words.chunk(await self._asked(request), observation, info)

        return await self._alone(deadline, ask)

    def observe(self, observation: Observation, /) -> None:
        """
        Keep what is seen in a step in which nothing is asked, for policies that look back.

        Raises:
            ContractError: If it is not an observation of the robot.
            PolicyError: If this policy is closed.
        """
        self._require_open()
        self._terms.require_fits(observation)
        self._words.history.add(observation)

    async def reset(self) -> None:
        """
        Forget what was seen, and have the server forget the episode; N1.5 keeps none.

        Raises:
            PolicyError: As `infer` does.
        """
        self._require_open()
        self._words.history.clear()
        deadline = Deadline(self._terms.timeout_s)
        await self._known(deadline)
        request = self._words.reset_request
        if request is None:
            return

        async def ask() -> None:
            await self._connected()
            self._words.read_reset(await self._asked(request))

        await self._alone(deadline, ask)

    async def _connected(self) -> PolicyInfo:
        if self._line is not None and self._info is not None and self._line.is_usable:
            return self._info
        line = self._words.new_line()
        await self._dial(line)
        self._stage = line.stage
        answers = []
        for question in self._words.questions:
            line.ask(question)
            self._tcp.flush()
            answers.append(await self._next(line))
        self._info = self._words.learned(line, tuple(answers), self._info)
        return self._info
