"""Policies behind a server of Isaac-GR00T, over ZeroMQ; `async_zeromq` has the twin of asyncio."""

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
from vlmcore_robotics.clients._streams import StreamClient
from vlmcore_robotics.wire._blobs import Parts
from vlmcore_robotics.wire.groot_layout import GrootLayout
from vlmcore_robotics.wire.histories import MissingHistory

__all__ = ["ZmqPolicy"]


@final
class ZmqPolicy(StreamClient[Parts, bytes]):
    """
    A `vlmcore.policy.interface.Policy` that asks a server of GR00T: N1.5, N1.6 or N1.7.

    Which of them it is the server says itself, when it is asked for its modality configs before the
    first action. The connection is made at the first call and kept. All of a call, from the wait
    for another one to the last byte of the answer, ends within *timeout_s*. Whatever goes wrong,
    the connection is given up, so that a late answer is never taken for the next one; the next call
    makes another. A call is not repeated by itself. Each request has a number, which a server that
    follows ZeroMQ's rules gives back with its answer, as GR00T's does: an answer with another one,
    since the server answered twice, is refused.

    A policy that looks back is shown what was seen in the steps before, by the time of each
    observation; tell those of steps in which nothing is asked to `observe`, as the brokers of
    `vlmcore.rollout` do.

    Safe for threads: one call at a time, and others wait for it, which is of their time; `close`
    may come from any thread, and ends the call that is under way.

    Nothing is encrypted. Whoever is on the way reads frames and the token, and can answer: reach
    another host in a private network or through a tunnel only.

    Args:
        endpoint: ``"host:port"`` or ``"tcp://host:port"``; the port is 5555 where none is written.
        embodiment: The robot. What the server says about itself must fit it.
        layout: Which modality key holds which part of an observation and of an action. It must fit
            what the server says to the last key.
        name: What the policy is called in chunks and errors; the endpoint unless given.
        api_token: Is sent in each request, over loopback only; usually
            ``Secret.from_env("GROOT_API_TOKEN")``.
        timeout_s: How long a call may take, 0.1 to 600 seconds.
        allow_remote: Whether the server may be on another host.
        allow_readable_token: Whether *api_token* may be sent to another host, where others can read
            it on the way.
        flat: Whether keys are flat, as ``video.ego_view``, as servers of N1.6 and N1.7 take them
            that wrap the policy for a simulator; for N1.5 they always are.
        missing_history: What is done where the policy looks further back than anything was seen.
        max_steps_back: How many steps a policy may look back; so long observations are kept.
        limits: How large messages may be.

    Raises:
        ContractError: If an argument is not as described.
        EndpointError: If *endpoint* is no address, or not one that may be dialled.

    Example:
        >>> from vlmcore.contracts.presets import find_embodiment
        >>> from vlmcore.errors import PolicyUnavailableError
        >>> from vlmcore.testing import example_observation
        >>> from vlmcore_robotics.wire.groot_layout import ActionStream, StateSlice, VideoKey
        >>> robot = find_embodiment("generic_7dof_joint_gripper")
        >>> layout = GrootLayout(
        ...     video=[VideoKey(key=name, camera=name) for name in robot.camera_names],
        ...     state=[StateSlice(key="arm", start=0, end=len(robot.state_names))],
        ...     action=[ActionStream(key="arm", names=robot.actions.names)],
        ...     language="annotation.human.task_description",
        ... )
        >>> policy = ZmqPolicy("localhost:9", embodiment=robot, layout=layout)
        >>> try:
        ...     policy.infer(example_observation(robot))
        ... except PolicyUnavailableError as error:
        ...     print(error)
        tcp://localhost:9: nothing listens there
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

    def infer(self, observation: Observation, /) -> ActionChunk:
        """
        Ask for the next actions; what is seen is kept for those that look back.

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
        self._known(deadline)
        request = self._words.request(observation)

        def ask() -> ActionChunk:
            info = self._connected(deadline)
            return self._words.chunk(self._asked(request, deadline), observation, info)

        return self._alone(deadline, ask)

    def steps_back(self) -> int:
        """Say how many control steps before an observation the policy looks, as far as is known."""
        return self._words.history.steps

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

    def reset(self) -> None:
        """
        Forget what was seen, and have the server forget the episode; N1.5 keeps none.

        Raises:
            PolicyError: As `infer` does.
        """
        self._require_open()
        self._words.history.clear()
        deadline = Deadline(self._terms.timeout_s)
        self._known(deadline)
        request = self._words.reset_request
        if request is None:
            return

        def ask() -> None:
            self._connected(deadline)
            self._words.read_reset(self._asked(request, deadline))

        self._alone(deadline, ask)

    def _connected(self, deadline: Deadline) -> PolicyInfo:
        line = self._line
        if line is not None and self._info is not None and self._is_alive(line, deadline):
            return self._info
        line = self._words.new_line()
        self._dial(line, deadline)
        self._stage = line.stage
        answers = []
        for question in self._words.questions:
            line.ask(question)
            self._flush(line, deadline)
            answers.append(self._next(line, deadline))
        self._info = self._words.learned(line, tuple(answers), self._info)
        return self._info
