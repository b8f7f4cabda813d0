"""Policies behind a server of HTTP; `async_http` has the twin of asyncio."""

from __future__ import annotations

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
from vlmcore_robotics.clients._streams import StreamClient
from vlmcore_robotics.wire.http_frames import WireEncoding
from vlmcore_robotics.wire.http_messages import ContentType, HttpRequest, HttpResponse

if TYPE_CHECKING:
    from vlmcore_robotics.clients._http_line import HttpLine

__all__ = ["HttpPolicy"]


@final
class HttpPolicy(StreamClient[HttpRequest, HttpResponse]):
    """
    A `vlmcore.policy.interface.Policy` that asks a server of ``comfyui-vla-http-v1``.

    The first call asks the server what it is, compares that with the robot, and agrees on the best
    way to send frames that both know; the connection is kept. All of a call, from the wait for
    another one to the last byte of the answer, ends within *timeout_s*, and so does the lookup of
    the host's name. Whatever goes wrong, the connection is given up, so that a late answer is never
    taken for the next one; the next call makes another. A connection that the server closed between
    two calls is noticed before anything is sent. A call is not repeated by itself once a byte of
    its request was sent.

    Servers of the first version work: what they do not say is not compared, frames are sent as
    JPEG, and a server that closes the connection after each answer is dialled for each call.

    Safe for threads: one call at a time, and others wait for it, which is of their time; frames are
    encoded while they wait. `close` may come from any thread, and ends the call that is under way.
    No proxy is asked and no redirect followed.

    Args:
        endpoint: ``"host:port"``, ``"http://host:port/prefix"`` or ``"https://..."``; the port is
            8787 where none is written. The paths of the protocol come after the prefix.
        embodiment: The robot. What the server says about itself must fit it.
        name: What the policy is called in chunks and errors; the endpoint unless given.
        token: Is sent as ``Authorization: Bearer``, over loopback or TLS only; usually
            ``Secret.from_env("VLA_POLICY_TOKEN")``.
        timeout_s: How long a call may take, 0.1 to 600 seconds.
        allow_remote: Whether the server may be on another host, which takes ``https``.
        tls: How an ``https`` server proves who it is; as browsers do it unless given.
        encoding: How frames are sent. Unless given: plain pixels or PNG where the server knows
            them, JPEG elsewhere.
        content_type: How messages are written. Unless given: MessagePack where the server knows it,
            JSON elsewhere.
        session: The id of the session, for servers that keep their clients apart; one of its own
            unless given.
        limits: How large messages may be.

    Raises:
        ContractError: If an argument is not as described.
        EndpointError: If *endpoint* is no address, or not one that may be dialled.
        MissingDependencyError: If h11 is not installed.

    Example:
        >>> from vlmcore.contracts.presets import find_embodiment
        >>> from vlmcore.errors import PolicyUnavailableError
        >>> from vlmcore.testing import example_observation
        >>> robot = find_embodiment("lerobot_so100_so101_template")
        >>> policy = HttpPolicy("localhost:9", embodiment=robot)
        >>> try:
        ...     policy.infer(example_observation(robot))
        ... except PolicyUnavailableError as error:
        ...     print(error)
        http://localhost:9: nothing listens there
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

    def infer(self, observation: Observation, /) -> ActionChunk:
        """
        Ask for the next actions. All frames of the observation are sent.

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
        self._known(deadline)
        asked = self._words.question(observation)

        def ask() -> ActionChunk:
            info = self._connected(deadline)
            return self._words.chunk(self._asked(asked.request, deadline), asked, info)

        return self._alone(deadline, ask)

    def reset(self) -> None:
        """
        Tell the server that the episode of this session ends.

        A server that does not keep its clients apart, as those of old, is not told: nothing is
        forgotten there, or something of another client would be.

        Raises:
            PolicyError: If it cannot be reached, does not do it in time or refuses; or this policy
                is closed.
        """
        deadline = Deadline(self._terms.timeout_s)
        self._known(deadline)
        request = self._words.reset()
        if request is None:
            self._require_open()
            return

        def ask() -> None:
            self._connected(deadline)
            self._words.check_reset(self._asked(request, deadline))

        self._alone(deadline, ask)

    def _begin_anew(self) -> None:
        super()._begin_anew()
        self._words.begin_session()

    def _connected(self, deadline: Deadline) -> PolicyInfo:
        """
        Use the connection that is there, if it still is; else make one, and ask what answers there.

        It is not asked again after a server closed the connection as it had said it would.
        """
        line = self._line
        if self._info is not None and line is not None:
            if self._is_alive(line, deadline):
                return self._info
            if line.is_spent:
                self._redial(deadline)
                return self._info
        line = self._redial(deadline)
        self._stage = Stage.METADATA
        line.ask(self._words.metadata())
        self._flush(line, deadline)
        self._info = self._words.learned(self._next(line, deadline), self._info)
        if not line.is_usable:
            self._redial(deadline)
        return self._info

    def _redial(self, deadline: Deadline) -> HttpLine:
        line = self._words.new_line()
        self._dial(line, deadline)
        return line
