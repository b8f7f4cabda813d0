"""Policies behind an openpi server, over WebSocket; `async_websocket` has the twin of asyncio."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar, final

from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.embodiment import Embodiment
from vlmcore.contracts.observation import Observation
from vlmcore.limits import WireLimits
from vlmcore.policy.interface import PolicyInfo
from vlmcore.secrets import Secret
from vlmcore_robotics.clients._boundary import Stage
from vlmcore_robotics.clients._openpi_client import OpenPIClient
from vlmcore_robotics.clients._tcp import Deadline, TcpConnection
from vlmcore_robotics.wire.observation_layout import ObservationLayout

if TYPE_CHECKING:
    from vlmcore_robotics.clients._websocket_line import Line

__all__ = ["WebSocketPolicy"]

_Result = TypeVar("_Result")
_FAREWELL_S = 1.0  # how long closing waits for a call that it ended


@final
class WebSocketPolicy(OpenPIClient):
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
        self._lock = threading.Lock()
        self._line: Line | None = None
        self._tcp = TcpConnection()

    @property
    def info(self) -> PolicyInfo:
        """
        What the server says about itself, with what the robot and the layout say; connects first.

        Raises:
            PolicyError: If the server cannot be reached, or does not fit the robot.
        """
        if self._info is None:
            self.connect()
        assert self._info is not None
        return self._info

    def connect(self) -> None:
        """
        Connect, unless connected, and compare what the server says with the robot.

        Raises:
            PolicyError: If the server cannot be reached, or does not fit the robot.
        """
        deadline = Deadline(self._terms.timeout_s)
        self._alone(deadline, lambda: self._connected(deadline))

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
        request = self._terms.request(observation)

        def ask() -> ActionChunk:
            line, info = self._connected(deadline)
            answer = self._answer(line, request, deadline)
            return self._terms.chunk(answer, observation, info)

        return self._alone(deadline, ask)

    def reset(self) -> None:
        """
        Do nothing: openpi has no reset, and its policies keep nothing between calls.

        Raises:
            PolicyError: If it is closed.
        """
        self._require_open()

    def close(self) -> None:
        """Hang up, also on a call that is under way. Closing twice is no error."""
        self._is_closed = True
        if not self._lock.acquire(blocking=False):
            self._tcp.cut()
            if not self._lock.acquire(timeout=_FAREWELL_S):
                return  # the call ends by itself, and gives up the connection
        try:
            if self._line is not None:
                self._line.leave()
                for data in self._line.outgoing():
                    self._tcp.send_at_once(data)
            self._give_up()
        finally:
            self._lock.release()

    def __enter__(self) -> WebSocketPolicy:
        self.connect()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

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

    def _connected(self, deadline: Deadline) -> tuple[Line, PolicyInfo]:
        """Use the connection that is there, if it still is; else make one."""
        if (
            self._line is not None
            and self._info is not None
            and self._is_alive(self._line, deadline)
        ):
            return self._line, self._info
        self._give_up()
        self._stage = Stage.CONNECTION
        self._tcp = TcpConnection()
        self._require_open()  # it may have been closed before there was something to cut
        self._tcp.open(self._terms.endpoint, self._terms.tls, deadline)
        self._stage = Stage.HANDSHAKE
        line = self._new_line()
        self._flush(line, deadline)
        self._info = self._terms.learned(self._next(line, deadline), self._info)
        self._line = line
        return line, self._info

    def _is_alive(self, line: Line, deadline: Deadline) -> bool:
        """Hear what came since the last call: pings, a farewell, or what nobody asked for."""
        try:
            while line.is_usable and (data := self._tcp.arrived()) is not None:
                line.feed(data)
                deadline.left_s()
            self._flush(line, deadline)
        except OSError as error:
            line.lose(error)
        return line.is_usable

    def _answer(self, line: Line, request: bytes, deadline: Deadline) -> bytes | str:
        self._stage = Stage.REQUEST
        line.ask(request)
        try:
            self._flush(line, deadline)
        except ConnectionError:
            self._is_alive(
                line, deadline
            )  # what the peer said last tells more than that it is gone
            line.take()
            raise
        self._stage = Stage.ANSWER
        return self._next(line, deadline)

    def _next(self, line: Line, deadline: Deadline) -> bytes | str:
        while (message := line.take()) is None:
            if not self._stage.is_asked:
                self._stage = line.stage
            line.feed(self._tcp.receive(deadline))
            self._flush(line, deadline)
        return message

    def _flush(self, line: Line, deadline: Deadline) -> None:
        for data in line.outgoing():
            self._tcp.send(data, deadline)

    def _give_up(self) -> None:
        self._line = None
        self._tcp.close()
