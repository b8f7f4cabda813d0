"""
Requests and answers of HTTP on one connection, without its socket: bytes go out, and parts come in.

The door to the h11 package, which reads and writes HTTP and does nothing else: no proxy, no
redirect, no second try, and a deadline that is the caller's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import h11

from vlmcore._net.http_parts import BrokenHttpError, Head, HttpStart, HungUpError

__all__ = ["HttpExchange"]

_CODING = re.compile(r"[A-Za-z-]{1,20}")  # whole, and as it is: anything else is not shown
_HUNG_UP = "it hung up before the answer was whole"


class HttpExchange:
    """
    A request and its answer, and after them others if the peer keeps the connection.

    Args:
        max_head_bytes: How long the head of an answer may be.
        most_pieces: Into how many pieces what is fed at once may be cut; any number if ``None``.
    """

    def __init__(self, *, max_head_bytes: int, most_pieces: int | None = None) -> None:
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=max_head_bytes)
        self._max_head_bytes = max_head_bytes
        self._most_pieces = most_pieces
        self._start = HttpStart()
        self.is_done = False

    @property
    def is_reusable(self) -> bool:
        """Whether the answer is whole, and another request may follow."""
        both_done = self._http.states == {h11.CLIENT: h11.DONE, h11.SERVER: h11.DONE}
        return both_done and not self.has_more

    @property
    def has_more(self) -> bool:
        """Whether something came after the answer, which nobody asked for."""
        return bool(self._http.trailing_data[0])

    def request(
        self,
        *,
        host: str,
        method: str,
        target: str,
        headers: Sequence[tuple[str, str]],
        body: bytes = b"",
    ) -> tuple[bytes, ...]:
        """Write a request, in parts, so that a long body is not copied."""
        if self._http.our_state is h11.DONE:
            self._http.start_next_cycle()
        self.is_done = False
        told = [("host", host), ("accept-encoding", "identity"), *headers]
        if method != "GET":
            told.append(("content-length", str(len(body))))
        head = h11.Request(method=method, target=target, headers=told)
        parts = [self._http.send(head) or b""]
        if body:  # as it is: joined to the head it would be there twice
            self._http.send_with_data_passthrough(h11.Data(data=body))
            parts.append(body)
        self._http.send(h11.EndOfMessage())
        return tuple(parts)

    def feed(self, data: bytes) -> Iterator[Head | bytes]:
        """
        Give what is there of the answer; nothing in *data* means that the peer sends no more.

        Raises:
            BrokenHttpError: If it is no answer; `HungUpError` if it ended too early.
        """
        try:
            self._start.feed(data)
            self._http.receive_data(data)
            yield from self._read(is_last=not data)
        except (h11.RemoteProtocolError, ValueError) as error:
            # ValueError: of a length of more digits than Python turns into a number.
            if data:  # not with what it sent, which follows in the words of h11
                why = str(error).partition(":")[0]
                raise BrokenHttpError(f"it broke the protocol: {why}") from None
            raise HungUpError(_HUNG_UP) from None

    def _read(self, *, is_last: bool) -> Iterator[Head | bytes]:
        pieces = 0
        while not self.is_done:
            match self._http.next_event():
                case h11.Response() as head:
                    yield self._head(head)
                case h11.Data(data=part):
                    pieces += 1
                    yield bytes(part)
                case h11.InformationalResponse():
                    pieces += 1  # the answer is still to come
                case h11.EndOfMessage():
                    self.is_done = True
                case h11.NEED_DATA if not is_last:
                    return
                case _:
                    raise HungUpError(_HUNG_UP)
            if self._most_pieces is not None and pieces > self._most_pieces:
                # Each takes time to read, however small it is.
                raise BrokenHttpError("it sends too many small pieces at once")

    def _head(self, head: h11.Response) -> Head:
        size = sum(len(b": \r\n") + len(name) + len(value) for name, value in head.headers)
        if size > self._max_head_bytes:
            raise BrokenHttpError(f"max_head_bytes: got {size}, limit is {self._max_head_bytes}")
        headers: dict[str, str] = {}
        contradicted = set()
        for name, value in ((n.decode("latin-1"), v.decode("latin-1")) for n, v in head.headers):
            if headers.setdefault(name, value) != value:
                contradicted.add(name)
            if name == "content-encoding" and value.lower() != "identity":
                got = repr(value) if _CODING.fullmatch(value) else "another one"
                raise BrokenHttpError(f"content-encoding: got {got}, expected none")
        if head.status_code > 599:
            raise BrokenHttpError(f"status: got {head.status_code}, expected at most 599")
        return Head(status=head.status_code, headers=headers, contradicted=frozenset(contradicted))
