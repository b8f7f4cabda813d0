"""
One connection to an openpi server without its socket: bytes come in, bytes and messages go out.

The door to the websockets package, whose sans-I/O half is used: so the sockets are ours, with one
deadline for all that happens on them, no proxy, no pings that end a slow inference, and no thread.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator
from typing import Any

from websockets.client import ClientProtocol
from websockets.exceptions import InvalidStatus, ProtocolError
from websockets.frames import Frame, Opcode
from websockets.http11 import Response
from websockets.protocol import State
from websockets.uri import parse_uri

from vlmcore._net.http_parts import HttpStart, NotHttpError
from vlmcore.endpoint import Endpoint
from vlmcore.errors import PolicyProtocolError
from vlmcore.limits import WireLimits
from vlmcore.secrets import Secret
from vlmcore_robotics.clients._boundary import HangUpError, HttpStatusError, Stage
from vlmcore_robotics.wire._pieces import Pieces
from vlmcore_robotics.wire.session import Session, Turn

__all__ = ["WebSocketLine"]

_WORDS = 200  # characters of an HTTP answer that are kept
_AT_A_TIME = 1 << 17  # bytes of a request that are masked, which copies them twice
_MOST_UNSENT = 4 * _AT_A_TIME  # bytes: one part of a request, and answers to pings

# Writes nothing: at its debug level the package writes headers.
_QUIET = logging.getLogger(f"{__name__}.websockets")
_QUIET.disabled = True
_QUIET.setLevel(logging.CRITICAL)


class WebSocketLine:
    """
    The messages of one connection, and whose turn it is. Not safe for threads.

    Args:
        endpoint: Where the connection leads; it says the path and the name of the server.
        policy: The policy as the caller named it.
        api_key: Is sent with the handshake.
        limits: How large a message may be.
    """

    def __init__(
        self, endpoint: Endpoint, *, policy: str, api_key: Secret | None, limits: WireLimits
    ) -> None:
        self._protocol = _Protocol(
            parse_uri(endpoint.url),
            max_size=max(limits.max_response_bytes, limits.max_metadata_bytes),
            logger=_QUIET,
        )
        self._policy = policy
        self._session = Session(policy, greeting=True)
        self._message: bytes | str | None = None
        self._asking: memoryview | None = None
        self._unsent: deque[bytes] = deque()  # answers to pings may be many
        self._start = HttpStart()
        self._parts = bytearray()
        self._is_text = False
        self._ending: Exception | None = None
        request = self._protocol.connect()
        if api_key is not None:
            request.headers["Authorization"] = f"Api-Key {api_key.reveal()}"
        self._protocol.send_request(request)

    @property
    def stage(self) -> Stage:
        """What is waited for."""
        if self._protocol.state is State.CONNECTING:
            return Stage.HANDSHAKE
        return Stage.METADATA if self._session.turn is Turn.GREETING else Stage.ANSWER

    @property
    def is_usable(self) -> bool:
        """Whether something can be asked, now or after what is awaited."""
        return self._ending is None and self._session.is_usable

    def ask(self, frame: bytes) -> None:
        """
        Put a request among what is to be sent.

        Raises:
            PolicyProtocolError: If it is not our turn.
        """
        self._session.asked()
        self._asking = memoryview(frame)
        part = self._part()
        self._protocol.send_binary(part, fin=self._asking is None)

    def outgoing(self) -> Iterator[bytes]:
        """
        Take what is to be sent: the handshake, requests, and answers to pings.

        A large request is sent in parts, of which one is held at a time.
        """
        while True:
            self._collect()
            while self._unsent:
                yield self._unsent.popleft()
            if self._asking is None or self._protocol.state is not State.OPEN:
                return
            part = self._part()
            self._protocol.send_continuation(part, fin=self._asking is None)

    def _collect(self) -> None:
        """Take what the package would send, unless the peer takes nothing."""
        self._unsent += filter(None, self._protocol.data_to_send())
        if sum(map(len, self._unsent)) > _MOST_UNSENT:
            problem = "it pings and does not take the answers"
            self._end(PolicyProtocolError(self._policy, problem, "theirs"))

    def _part(self) -> memoryview:
        """Take the next part of the request."""
        asking = self._asking
        assert asking is not None
        self._asking = asking[_AT_A_TIME:] if len(asking) > _AT_A_TIME else None
        return asking[:_AT_A_TIME]

    def feed(self, data: bytes) -> None:
        """Take what came; nothing means that the peer sends no more."""
        if self._ending is not None:
            return
        try:
            self._start.feed(data)
        except NotHttpError as error:
            self._end(error)
            return
        if data:
            self._protocol.receive_data(data)
        else:
            self._protocol.receive_eof()
        self._collect()
        for event in self._protocol.events_received():
            if isinstance(event, Frame) and self._ending is None:
                self._take(event)
        if self._ending is None:
            self._notice_the_end(is_eof=not data)

    def lose(self, error: Exception | None) -> None:
        """Note that the connection is gone."""
        self._end(error or HangUpError("it closed the connection"))

    def leave(self) -> None:
        """Put a farewell among what is to be sent, if the peer can hear it."""
        self._session.close()
        if self._protocol.state is State.OPEN:
            self._protocol.send_close(1000)

    def take(self) -> bytes | str | None:
        """
        Take the message that is awaited; ``None`` if it has not come yet.

        Raises:
            Exception: What ended the connection, in words of whoever ended it.
        """
        message, self._message = self._message, None
        if message is None and self._ending is not None:
            raise self._ending
        return message

    def _take(self, frame: Frame) -> None:
        if frame.opcode not in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT):
            return
        if frame.opcode is not Opcode.CONT:
            self._is_text = frame.opcode is Opcode.TEXT
        if frame.fin and not self._parts:
            whole = bytes(frame.data)
        else:
            self._parts += frame.data
            if not frame.fin:
                return
            whole = bytes(self._parts)
            self._parts.clear()
        try:
            self._heard()
            self._message = whole.decode() if self._is_text else whole
        except (PolicyProtocolError, UnicodeDecodeError) as error:
            self._end(error)

    def _heard(self) -> None:
        """Note a whole message; one that nobody waits for breaks the session."""
        if self._session.turn is Turn.GREETING:
            self._session.greeted()
        else:
            self._session.answered()

    def _notice_the_end(self, *, is_eof: bool) -> None:
        protocol = self._protocol
        refusal = protocol.handshake_exc
        if isinstance(refusal, InvalidStatus):
            self._end(_status(refusal.response))
        elif refusal is not None:
            self._end(refusal if refusal.__cause__ is None else refusal.__cause__)
        elif protocol.parser_exc is not None and not isinstance(protocol.parser_exc, EOFError):
            self._end(protocol.parser_exc)
        elif protocol.close_rcvd is not None:
            self._end(HangUpError(str(protocol.close_rcvd)))
        elif is_eof or protocol.state is State.CLOSED:
            self._end(HangUpError("it closed the connection"))

    def _end(self, error: BaseException) -> None:
        if self._ending is None:
            self._ending = error if isinstance(error, Exception) else HangUpError(str(error))


def _status(response: Response) -> Exception:
    words = bytes(response.body or b"")[: 4 * _WORDS].decode("utf-8", "replace")
    return HttpStatusError(response.status_code, words[:_WORDS] or response.reason_phrase)


class _Protocol(ClientProtocol):
    """One that a flood of small frames does not keep busy for seconds."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._pieces = Pieces()

    def receive_data(self, data: bytes | bytearray) -> None:
        self._pieces.begin()
        super().receive_data(data)

    def recv_frame(self, frame: Frame) -> None:
        if not self._pieces.take():
            raise ProtocolError("too many small frames at once")
        super().recv_frame(frame)
