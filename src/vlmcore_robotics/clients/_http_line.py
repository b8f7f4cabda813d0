"""One connection to a server of HTTP without its socket: bytes come in, bytes and answers go."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from vlmcore._net.http_parts import BrokenHttpError, Head, HungUpError
from vlmcore.endpoint import Endpoint
from vlmcore.errors import LimitExceededError, PolicyProtocolError
from vlmcore.limits import HttpLimits, require_at_most
from vlmcore_robotics.clients._boundary import HangUpError, Stage
from vlmcore_robotics.wire.http_messages import (
    REQUEST_ID,
    HttpEndpoint,
    HttpRequest,
    HttpResponse,
)
from vlmcore_robotics.wire.session import Session, Turn

if TYPE_CHECKING:
    from vlmcore._net.http_exchange import HttpExchange

__all__ = ["HttpLine"]
_CLOSED = "it closed the connection"
_READ = ("content-type", REQUEST_ID)  # headers that are looked at


class HttpLine:
    """
    The requests and answers of one connection, one after the other. Not safe for threads.

    Args:
        http: Reads and writes HTTP.
        endpoint: Where the connection leads.
        prefix: What stands before the paths of requests, as ``"/arm"``.
        policy: The policy as the caller named it.
        limits: How large an answer may be.
    """

    def __init__(
        self,
        http: HttpExchange,
        endpoint: Endpoint,
        *,
        prefix: str,
        policy: str,
        limits: HttpLimits,
    ) -> None:
        self._http = http
        self._session = Session(policy, greeting=False)
        self._host = endpoint.host_header
        self._prefix = prefix
        self._policy = policy
        self._limits = limits
        self._bound = ""
        self._unsent: list[bytes] = []
        self._head: Head | None = None
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
        is_infer = request.path == HttpEndpoint.INFER.path
        self._bound = "max_response_bytes" if is_infer else "max_metadata_bytes"
        self._head, self._body, self._size = None, [], 0
        self._unsent += self._http.request(
            host=self._host,
            method=request.method,
            target=f"{self._prefix}{request.path}",
            headers=tuple(request.headers.items()),
            body=request.body,
        )

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
        try:
            for part in self._http.feed(data):
                self._take(part)
            if self._http.is_done:
                self._finish()
        except HungUpError:
            self._end(HangUpError(_CLOSED))
        except BrokenHttpError as error:
            self._end(self._fault(str(error)))
        except PolicyProtocolError as error:
            self._end(error)
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

    def _take(self, part: Head | bytes) -> None:
        """Take a part of an answer, its head before its body is read."""
        if isinstance(part, Head):
            self._head = part
            self._require(int(part.headers.get("content-length", 0)))
            return
        self._size += len(part)
        self._require(self._size)
        self._body.append(part)

    def _finish(self) -> None:
        head, self._head = self._head, None
        assert head is not None
        for name in _READ:
            if name in head.contradicted:
                raise self._fault(f"{name}: got two, expected one")
        self._session.answered()
        self._answer = HttpResponse(
            status=head.status,
            headers={name: head.headers[name] for name in _READ if name in head.headers},
            body=b"".join(self._body),
        )
        self._body = []
        self._is_last = not self._http.is_reusable
        if self._http.has_more:
            self._end(HangUpError("it sent what nobody asked for"))

    def _require(self, size: int) -> None:
        allowed: Any = getattr(self._limits, self._bound)
        try:
            require_at_most(self._bound, size, allowed)
        except LimitExceededError as error:
            raise self._fault(str(error)) from None

    def _fault(self, problem: str) -> PolicyProtocolError:
        return PolicyProtocolError(self._policy, problem, "theirs")

    def _end(self, error: Exception) -> None:
        if self._ending is None:
            self._ending = error
