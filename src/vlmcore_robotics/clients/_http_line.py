"""
One connection to a server of HTTP without its socket: bytes come in, bytes and answers go out.

The door to the h11 package, which reads and writes HTTP and does nothing else: so the sockets are
ours, with one deadline for all that happens on them, no proxy, no redirect, and no second try.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import h11

from vlmcore.endpoint import Endpoint
from vlmcore.errors import LimitExceededError, PolicyProtocolError
from vlmcore.limits import HttpLimits, require_at_most
from vlmcore_robotics.clients._boundary import HangUpError, Stage
from vlmcore_robotics.clients._line import HttpStart, NotHttpError
from vlmcore_robotics.wire._pieces import Pieces
from vlmcore_robotics.wire.http_messages import (
    REQUEST_ID,
    HttpEndpoint,
    HttpRequest,
    HttpResponse,
)
from vlmcore_robotics.wire.session import Session, Turn

__all__ = ["HttpLine"]
_CLOSED = "it closed the connection"
_READ = ("content-type", REQUEST_ID)  # headers that are looked at
# ValueError: of a length of more digits than Python turns into a number.
_NOT_READ = (NotHttpError, PolicyProtocolError, h11.RemoteProtocolError, ValueError)


class HttpLine:
    """
    The requests and answers of one connection, one after the other. Not safe for threads.

    Args:
        endpoint: Where the connection leads.
        prefix: What stands before the paths of requests, as ``"/arm"``.
        policy: The policy as the caller named it.
        limits: How large an answer may be.
    """

    def __init__(self, endpoint: Endpoint, *, prefix: str, policy: str, limits: HttpLimits) -> None:
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=limits.max_head_bytes)
        self._session = Session(policy, greeting=False)
        self._host = endpoint.host_header
        self._prefix = prefix
        self._policy = policy
        self._limits = limits
        self._bound = ""
        self._start = HttpStart()
        self._pieces = Pieces()
        self._unsent: list[bytes] = []
        self._head: h11.Response | None = None
        self._body: list[bytes] = []
        self._size = 0
        self._answer: HttpResponse | None = None
        self._ending: Exception | None = None
        self._is_last = False

    @property
    def stage(self) -> Stage:
        """What is waited for before an action is asked for."""
        return Stage.METADATA

    @property
    def is_usable(self) -> bool:
        """Whether something can be asked, now or after what is awaited."""
        return self._ending is None and not self._is_last and self._session.is_usable

    @property
    def is_spent(self) -> bool:
        """Whether the server answered all that was asked and said that it hangs up then."""
        return self._is_last and self._session.turn is Turn.OURS

    def ask(self, request: HttpRequest, /) -> None:
        """
        Put a request among what is to be sent.

        Raises:
            PolicyProtocolError: If it is not our turn.
        """
        self._session.asked()
        if self._http.our_state is h11.DONE:
            self._http.start_next_cycle()
        is_infer = request.path == HttpEndpoint.INFER.path
        self._bound = "max_response_bytes" if is_infer else "max_metadata_bytes"
        self._head, self._body, self._size = None, [], 0
        headers = [("host", self._host), ("accept-encoding", "identity"), *request.headers.items()]
        if request.method != "GET":
            headers.append(("content-length", str(len(request.body))))
        head = h11.Request(
            method=request.method, target=f"{self._prefix}{request.path}", headers=headers
        )
        self._unsent.append(self._http.send(head) or b"")
        if request.body:  # as it is: joined to the head it would be there twice
            self._http.send_with_data_passthrough(h11.Data(data=request.body))
            self._unsent.append(request.body)
        self._http.send(h11.EndOfMessage())

    def outgoing(self) -> Iterator[bytes]:
        """Take what is to be sent."""
        while self._unsent:
            yield self._unsent.pop(0)

    def feed(self, data: bytes) -> None:
        """Take what came; nothing means that the peer sends no more."""
        if self._ending is not None:
            return
        if self._session.turn is not Turn.THEIRS:
            self._end(HangUpError("it sent what nobody asked for" if data else _CLOSED))
            return
        self._pieces.begin()
        try:
            self._start.feed(data)
            self._http.receive_data(data)
            self._read()
        except _NOT_READ as error:
            self._end(error if data else HangUpError(_CLOSED))
        if not data and self._answer is None:
            self._end(HangUpError(_CLOSED))

    def lose(self, error: Exception | None) -> None:
        """Note that the connection is gone."""
        self._end(error or HangUpError(_CLOSED))

    def leave(self) -> None:
        """End the session; HTTP has no farewell."""
        self._session.close()

    def take(self) -> HttpResponse | None:
        """
        Take the answer that is awaited; ``None`` if it has not come yet.

        Raises:
            Exception: What ended the connection, in words of whoever ended it.
        """
        answer, self._answer = self._answer, None
        if answer is None and self._ending is not None:
            raise self._ending
        return answer

    def _read(self) -> None:
        """Take what h11 makes of what came, up to the end of one answer."""
        while self._session.turn is Turn.THEIRS:
            match self._http.next_event():
                case h11.Response() as head:
                    self._begin(head)
                case h11.Data(data=data):
                    self._count()
                    self._size += len(data)
                    self._require(self._bound, self._size)
                    self._body.append(bytes(data))
                case h11.EndOfMessage():
                    self._finish()
                case h11.InformationalResponse():
                    self._count()  # the answer is still to come
                case _:
                    return

    def _count(self) -> None:
        """Note a piece of an answer; a flood of small ones would hold the call for seconds."""
        if not self._pieces.take():
            problem = "it sends too many small pieces at once"
            raise PolicyProtocolError(self._policy, problem, "theirs")

    def _begin(self, head: h11.Response) -> None:
        """Look at the head of an answer, before its body is read."""
        size = sum(len(b": \r\n") + len(name) + len(value) for name, value in head.headers)
        self._require("max_head_bytes", size)
        for name, value in head.headers:
            if name == b"content-length":
                self._require(self._bound, int(value))
            elif name == b"content-encoding" and value.lower() != b"identity":
                problem = f"content-encoding: got {value[:40].decode('latin-1')!r}, expected none"
                raise PolicyProtocolError(self._policy, problem, "theirs")
        self._head = head

    def _finish(self) -> None:
        head, self._head = self._head, None
        assert head is not None
        headers: dict[str, str] = {}
        for name, value in ((n.decode("latin-1"), v.decode("latin-1")) for n, v in head.headers):
            if name in _READ and headers.setdefault(name, value) != value:
                raise PolicyProtocolError(self._policy, f"{name}: got two, expected one", "theirs")
        if head.status_code > 599:
            problem = f"status: got {head.status_code}, expected at most 599"
            raise PolicyProtocolError(self._policy, problem, "theirs")
        self._session.answered()
        self._answer = HttpResponse(
            status=head.status_code, headers=headers, body=b"".join(self._body)
        )
        self._body = []
        self._is_last = self._http.states != {h11.CLIENT: h11.DONE, h11.SERVER: h11.DONE}
        if self._http.trailing_data[0]:
            self._end(HangUpError("it sent what nobody asked for"))

    def _require(self, limit: str, size: int) -> None:
        allowed: Any = getattr(self._limits, limit)
        try:
            require_at_most(limit, size, allowed)
        except LimitExceededError as error:
            raise PolicyProtocolError(self._policy, str(error), "theirs") from None

    def _end(self, error: Exception) -> None:
        if self._ending is None:
            self._ending = error
