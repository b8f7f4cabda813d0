"""Policies behind an openpi server, over WebSocket; `async_websocket` has the twin of asyncio."""

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
from vlmcore_robotics.clients._streams import StreamClient
from vlmcore_robotics.wire.observation_layout import ObservationLayout

__all__ = ["WebSocketPolicy"]


@final
class WebSocketPolicy(StreamClient[bytes, "bytes | str"]):
    """
    A `vlmcore.policy.interface.Policy` that asks an openpi server.

    The connection is made at the first call and kept. All of a call, from the wait for another one
    to the last byte of the answer, ends within *timeout_s*. Whatever goes wrong, the connection is
    given up, so that a late answer is never taken for the next one; the next call makes another. A
    call is not repeated by itself once a byte of its request was sent.

    Safe for threads: one call at a time, and others wait for it, which is of their time; `close`
    may come from any thread, and ends the call that is under way. There is no proxy, no
    compression, and no ping that would end a slow inference; pings of the server are answered.

    Args:
        endpoint: ``"host:port"``, ``"ws://host:port/path"`` or ``"wss://..."``; the port is 8000
            where none is written.
        embodiment: The robot. What the server says about itself must fit it.
        layout: Which key of a request holds which part of an observation.
        name: What the policy is called in chunks and errors; the endpoint unless given.
        api_key: Is sent as ``Authorization: Api-Key``, over loopback or TLS only; usually
            ``Secret.from_env("OPENPI_API_KEY")``.
        timeout_s: How long a call may take, 0.1 to 600 seconds.
        allow_remote: Whether the server may be on another host, which takes ``wss``.
        tls: How a ``wss`` server proves who it is; as browsers do it unless given.
        limits: How large messages may be.

    Raises:
        ContractError: If an argument is not as described.
        EndpointError: If *endpoint* is no address, or not one that may be dialled.
        MissingDependencyError: If websockets is not installed.

    Example:
        >>> from vlmcore.contracts.presets import find_embodiment
        >>> from vlmcore.errors import PolicyUnavailableError
        >>> from vlmcore.testing import example_observation
        >>> from vlmcore_robotics.wire.layouts import aloha_layout
        >>> robot = find_embodiment("aloha_bimanual_template")
        >>> policy = WebSocketPolicy("localhost:9", embodiment=robot, layout=aloha_layout())
        >>> try:
        ...     policy.infer(example_observation(robot))
        ... except PolicyUnavailableError as error:
        ...     print(error)
        ws://localhost:9: nothing listens there
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

    def infer(self, observation: Observation, /) -> ActionChunk:
        """
        Ask for the next actions.

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

        def ask() -> ActionChunk:
            info = self._connected(deadline)
            answer = self._asked(request, deadline)
            return self._words.chunk(answer, observation, info)

        return self._alone(deadline, ask)

    def reset(self) -> None:
        """
        Hang up, so that the next call begins anew: openpi has no other way to say it.

        A server that keeps something between calls keeps it for a connection.

        Raises:
            PolicyError: If it is closed.
        """
        self._alone(Deadline(self._terms.timeout_s), self._hang_up)

    def _connected(self, deadline: Deadline) -> PolicyInfo:
        line = self._line
        if line is not None and self._info is not None and self._is_alive(line, deadline):
            return self._info
        line = self._words.new_line()
        self._dial(line, deadline)
        self._stage = Stage.HANDSHAKE
        self._flush(line, deadline)
        self._info = self._words.learned(self._next(line, deadline), self._info)
        return self._info
