"""
One connection to a GR00T server without its socket: bytes come in, bytes and answers go out.

It is what a REQ socket of ZeroMQ is to its peer, and connects once. ZeroMQ's own would connect
again by itself, and send a request to a server that does not know what went before; here that is up
to who asks.

GR00T has no request ids. But what stands before the empty frame of a request is given back with its
answer by every REP socket, and by whatever else follows ZeroMQ's rules: so a number stands there,
and an answer with another one, or with none, is no answer to what was asked.

Source: the envelopes of https://rfc.zeromq.org/spec/28/; libzmq does the same for REQ sockets that
are set to ``ZMQ_REQ_CORRELATE``.
"""

from __future__ import annotations

from collections.abc import Iterator

from vlmcore.errors import PolicyProtocolError, PolicyRefusedError
from vlmcore_robotics.clients._boundary import HangUpError, Stage
from vlmcore_robotics.wire._blobs import Part, Parts
from vlmcore_robotics.wire._zmtp_frames import MORE, body_at_the_end, frame_head
from vlmcore_robotics.wire.session import Session, Turn
from vlmcore_robotics.wire.zmtp import Message, SocketKind, ZmtpConnection

__all__ = ["ZmqLine"]

_CLOSED = "it closed the connection"
_MARK_BYTES = 8
_SMALL = 1 << 11  # bytes of a part that is copied rather than sent by itself


class ZmqLine:
    """
    The requests and answers of one connection, one after the other. Not safe for threads.

    Args:
        policy: The policy as the caller named it.
        max_bytes: How large an answer may be, until `allow` says otherwise; a larger one ends the
            connection.
    """

    def __init__(self, policy: str, *, max_bytes: int) -> None:
        self._zmtp = ZmtpConnection(SocketKind.REQ, policy=policy, max_bytes=max_bytes)
        self._zmtp.accept()
        self._policy = policy
        self._session = Session(policy, greeting=False)
        self._asking: Parts | None = None
        self._asked = 0
        self._start = b""  # of the answer that is awaited
        self._answer: bytes | None = None
        self._ending: Exception | None = None

    @property
    def stage(self) -> Stage:
        """What is waited for before an action is asked for."""
        return Stage.METADATA if self._zmtp.is_greeted else Stage.HANDSHAKE

    @property
    def is_usable(self) -> bool:
        """Whether something can be asked, now or after what is awaited."""
        return self._ending is None and self._session.is_usable

    def allow(self, max_bytes: int) -> None:
        """Say how large the answers may be that come from now on."""
        self._zmtp.max_bytes = max_bytes

    def ask(self, request: Parts, /) -> None:
        """
        Put a request among what is to be sent, which it is once the handshake is done.

        Its parts are not copied: they must not change before the answer came.

        Raises:
            PolicyProtocolError: If it is not our turn.
        """
        self._session.asked()
        self._asked += 1
        self._start = message_start(request_mark(self._asked))
        self._asking = request_message(request, self._start)

    def outgoing(self) -> Iterator[bytes | Parts]:
        """Take what is to be sent."""
        while True:
            if self._zmtp.unsent:
                yield self._zmtp.unsent.pop(0)
            elif self._asking is not None and self._zmtp.is_greeted:
                asking, self._asking = self._asking, None
                yield asking
            else:
                return

    def feed(self, data: bytes) -> None:
        """Take what came; nothing means that the peer sends no more."""
        if not data:
            self._end(HangUpError(_CLOSED))
        if self._took_at_once(data):
            return
        rest = memoryview(data)
        while rest and self._ending is None:
            part = rest[: len(self._zmtp.room())]
            rest = rest[len(part) :]
            self._zmtp.feed(part)
            self._read()

    def lose(self, error: Exception | None) -> None:
        """Note that the connection is gone."""
        self._end(error or HangUpError(_CLOSED))

    def leave(self) -> None:
        """End the session; ZeroMQ has no farewell."""
        self._session.close()
        self._asking = None

    def take(self) -> bytes | None:
        """
        Take the answer that is awaited; ``None`` if it has not come yet.

        Raises:
            Exception: What ended the connection, in words of whoever ended it.
        """
        answer, self._answer = self._answer, None
        if answer is None and self._ending is not None:
            raise self._ending
        return answer

    def _took_at_once(self, data: bytes) -> bool:
        """
        Take the answer that is awaited if it came alone and whole, as most do; return whether.

        Whatever else came is read frame by frame, and told what is wrong with it.
        """
        is_awaited = self._session.turn is Turn.THEIRS and self._asking is None
        if not is_awaited or self._ending is not None or not self._zmtp.is_at_rest:
            return False
        if not data.startswith(self._start):
            return False
        at = body_at_the_end(data, len(self._start))
        if at is None or len(data) - at > self._zmtp.max_bytes:
            return False
        self._session.answered()
        self._answer = data[at:]
        return True

    def _read(self) -> None:
        """Take all that came."""
        try:
            while self._ending is None and (message := self._zmtp.take()) is not None:
                self._answer = self._body(message)
        except PolicyRefusedError as error:  # of the connection, not of a request
            self._end(HangUpError(error.problem))
        except PolicyProtocolError as error:
            self._end(error)

    def _body(self, message: Message) -> bytes:
        """Take the one frame after the mark of the request and the empty one."""
        if self._asking is not None:
            raise self._fault("it answers before it was asked")
        self._session.answered()
        mark = request_mark(self._asked)
        if len(message) != 3 or message[1]:
            sizes = [*map(len, message)]
            raise self._fault(f"got an answer of the frames {sizes}, expected [8, 0, its bytes]")
        if message[0] != mark:
            raise self._fault(
                f"it answers {message[0].hex()!r:.40}, expected {mark.hex()!r}: "
                "an answer that came late, or twice"
            )
        return message[2]

    def _fault(self, problem: str) -> PolicyProtocolError:
        return PolicyProtocolError(self._policy, problem, "theirs")

    def _end(self, error: Exception) -> None:
        if self._ending is None:
            self._ending = error


def request_mark(number: int) -> bytes:
    """Write what stands before a request, the *number*-th of its connection, and its answer."""
    return number.to_bytes(_MARK_BYTES, "big")


def message_start(mark: bytes) -> bytes:
    """Write how a request with *mark* starts, and its answer: the mark and an empty frame."""
    return frame_head(len(mark), MORE) + mark + frame_head(0, MORE)


def request_message(request: Parts, start: bytes) -> Parts:
    """Write a request after its `message_start`, with parts that are small joined."""
    parts: list[Part] = []
    small: list[Part] = [start, frame_head(sum(map(len, request)))]
    for part in request:
        if len(part) <= _SMALL:
            small.append(part)
        else:
            parts += (b"".join(small), part)
            small = []
    return Parts((*parts, b"".join(small)))
