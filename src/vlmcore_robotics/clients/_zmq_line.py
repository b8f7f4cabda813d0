"""
The door to the ZeroMQ of clients: one connection, on which requests and answers take turns.

A line has a context of its own, so that nobody else can end it, and nothing of it is left once it
is closed: no socket, no thread. It connects once. ZeroMQ would connect again by itself, and send a
request to a server that does not know what went before; here that is up to who asks. ZeroMQ is told
to wait with that for as long as it can, and not to leave it: then it would throw away an answer
that the end of the connection comes right after.
"""

from __future__ import annotations

import math
import socket
from contextlib import suppress
from typing import Any

import zmq
from zmq.utils.monitor import parse_monitor_message

from vlmcore._net.deadline import Deadline
from vlmcore.errors import PolicyProtocolError
from vlmcore_robotics.clients._boundary import HangUpError, Stage
from vlmcore_robotics.wire.session import Session

__all__ = ["ZmqLine"]

_REFUSED = (zmq.EVENT_HANDSHAKE_FAILED_AUTH, zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL)
_NEVER_MS = 1 << 30  # twelve days before it would connect again: the line is closed long before
_QUIET_S, _BETWEEN_S, _PROBES = 60, 10, 6  # how the kernel finds out that a silent peer is gone


class NotZmqError(Exception):
    """The peer speaks another protocol."""


class ZmqLine:
    """
    One connection to a server with a REP socket. Only `cut` may be called from another thread.

    Args:
        policy: The policy as the caller named it.
        host: The address to dial, in numbers.
        port: Its port.
        max_bytes: How large an answer may be; a larger one ends the connection.

    Raises:
        OSError: If there is no socket to be had.
    """

    def __init__(self, policy: str, host: str, port: int, *, max_bytes: int) -> None:
        self._policy = policy
        self._session = Session(policy, greeting=False)
        self._max_bytes = max_bytes
        self._stage = Stage.CONNECTION
        self._ending: Exception | None = None
        self._waking, self._woken = socket.socketpair()
        self._waking.settimeout(0.0)
        self._woken.settimeout(0.0)
        self._context = zmq.Context()
        try:
            self._open(host, port)
        except zmq.ZMQError as error:
            problem = OSError(error.errno, error.strerror)
            self.close()
            raise problem from None

    @property
    def stage(self) -> Stage:
        """What is waited for before anything is asked."""
        return self._stage

    @property
    def is_usable(self) -> bool:
        """Whether something can be asked, now or after what is awaited."""
        self._hear()
        return self._ending is None and self._session.is_usable

    @property
    def files(self) -> tuple[int, ...]:
        """What becomes readable when there is news, and is so until it was asked for."""
        return (int(self._socket.FD), int(self._monitor.FD), self._woken.fileno())

    def is_open(self) -> bool:
        """
        Say whether the handshake is done.

        Raises:
            Exception: What ended the connection.
        """
        self._hear()
        if self._ending is not None:
            raise self._ending
        return self._stage is Stage.ANSWER

    def ask(self, frame: bytes) -> None:
        """
        Send a request, without copying it.

        Raises:
            PolicyProtocolError: If it is not our turn.
            Exception: What ended the connection.
        """
        self._session.asked()
        try:
            self._socket.send(frame, zmq.NOBLOCK, copy=False)
        except zmq.ZMQError as error:
            self._hear()
            raise self._ending or HangUpError(error.strerror) from None

    def take(self) -> bytes | None:
        """
        Take the answer; ``None`` if it has not come yet.

        Raises:
            PolicyProtocolError: If it is more than one frame.
            Exception: What ended the connection.
        """
        frame = self._received()
        if frame is None:
            self._hear()
            frame = self._received()  # it may have come just before the end
        if frame is None and self._ending is not None:
            raise self._ending
        return frame

    def wait(self, deadline: Deadline) -> None:
        """
        Wait for news.

        Raises:
            TimeoutError: If there are none until the deadline.
        """
        self._poller.poll(math.ceil(1000.0 * deadline.left_s()))

    def cut(self) -> None:
        """End whatever is waited for, from any thread."""
        with suppress(OSError):
            self._waking.send(b"!")

    def close(self) -> None:
        """Give everything back; what was not sent is not sent any more."""
        self._session.close()
        self._ending = self._ending or ConnectionAbortedError("this side ended it")
        self._context.destroy(linger=0)
        self._waking.close()
        self._woken.close()

    def _open(self, host: str, port: int) -> None:
        self._socket = asking = self._context.socket(zmq.REQ)
        is_ipv6 = ":" in host
        for option, value in (
            (zmq.LINGER, 0),
            (zmq.RECONNECT_IVL, _NEVER_MS),
            (zmq.HANDSHAKE_IVL, 0),  # the deadline of the call says how long it may take
            (zmq.IPV6, int(is_ipv6)),
            (zmq.MAXMSGSIZE, self._max_bytes),
            (zmq.TCP_KEEPALIVE, 1),
            (zmq.TCP_KEEPALIVE_IDLE, _QUIET_S),
            (zmq.TCP_KEEPALIVE_INTVL, _BETWEEN_S),
            (zmq.TCP_KEEPALIVE_CNT, _PROBES),
        ):
            asking.setsockopt(option, value)
        self._monitor = asking.get_monitor_socket()
        self._poller = zmq.Poller()
        for each in (asking, self._monitor, self._woken.fileno()):
            self._poller.register(each, zmq.POLLIN)
        asking.connect(f"tcp://{f'[{host}]' if is_ipv6 else host}:{port}")

    def _received(self) -> bytes | None:
        try:
            events: Any = self._socket.getsockopt(zmq.EVENTS)
            if not events & zmq.POLLIN:
                return None
            frame: bytes = self._socket.recv(zmq.NOBLOCK)
        except zmq.ZMQError:  # nothing asked
            return None
        self._session.answered()
        if self._socket.rcvmore:
            self._session.close()
            raise PolicyProtocolError(
                self._policy, "got an answer of many frames, expected one", "theirs"
            )
        return frame

    def _hear(self) -> None:
        """Note what became of the connection."""
        if self._ending is not None:
            return
        news = dict(self._poller.poll(0))  # takes note, or the files stay readable for ever
        if self._woken.fileno() in news:
            self._end(ConnectionAbortedError("this side ended it"))
        with suppress(zmq.Again):
            while self._monitor in news and self._ending is None:
                event = parse_monitor_message(self._monitor.recv_multipart(zmq.NOBLOCK))
                self._note(event["event"])

    def _note(self, event: int) -> None:
        if event == zmq.EVENT_CONNECTED:
            self._stage = Stage.HANDSHAKE
        elif event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
            self._stage = Stage.ANSWER
        elif event == zmq.EVENT_CLOSED:
            self._end(ConnectionRefusedError())
        elif event in _REFUSED:
            self._end(NotZmqError("expected the handshake of ZeroMQ"))
        elif event == zmq.EVENT_DISCONNECTED:
            self._end(HangUpError(f"or it sent more than {self._max_bytes} bytes"))

    def _end(self, error: Exception) -> None:
        if self._ending is None:
            self._ending = error
