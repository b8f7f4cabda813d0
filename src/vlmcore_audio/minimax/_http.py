"""
One request and its answer in HTTP, without the socket: bytes go out, and parts come in.

The door to the h11 package, which reads and writes HTTP and does nothing else: no proxy, no
redirect, no second try, and a deadline that is the caller's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import h11

from vlmcore.endpoint import Endpoint
from vlmcore_audio.minimax._http_parts import BrokenHttpError, Head

__all__ = ["Exchange"]


class Exchange:
    """
    A request and its answer.

    Args:
        max_head_bytes: How long the head of the answer may be.
    """

    def __init__(self, *, max_head_bytes: int) -> None:
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=max_head_bytes)
        self.is_done = False

    def request(
        self,
        endpoint: Endpoint,
        *,
        method: str,
        target: str,
        headers: Sequence[tuple[str, str]],
        body: bytes = b"",
    ) -> tuple[bytes, ...]:
        """Write a request, in parts, so that a long body is not copied."""
        told = [("host", endpoint.host_header), ("accept-encoding", "identity"), *headers]
        if method != "GET":
            told.append(("content-length", str(len(body))))
        parts = [
            self._http.send(
                h11.Request(method=method, target=target, headers=[*told, ("connection", "close")])
            )
            or b""
        ]
        if body:
            self._http.send_with_data_passthrough(h11.Data(data=body))
            parts.append(body)
        self._http.send(h11.EndOfMessage())
        return tuple(parts)

    def feed(self, data: bytes) -> Iterator[Head | bytes]:
        """
        Give what is there of the answer; nothing in *data* means that the peer sends no more.

        Raises:
            BrokenHttpError: If it is no answer, or ended too early.
        """
        try:
            self._http.receive_data(data)
            while not self.is_done:
                match self._http.next_event():
                    case h11.Response() as head:
                        yield _head_of(head)
                    case h11.Data(data=part):
                        yield bytes(part)
                    case h11.EndOfMessage():
                        self.is_done = True
                    case h11.InformationalResponse():
                        pass  # the answer is still to come
                    case h11.NEED_DATA if data:
                        return
                    case _:
                        raise BrokenHttpError("it hung up before the answer was whole")
        except (h11.RemoteProtocolError, ValueError) as error:
            if data:
                raise BrokenHttpError(f"it broke HTTP: {error}") from None
            raise BrokenHttpError("it hung up before the answer was whole") from None


def _head_of(head: h11.Response) -> Head:
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers}
    encoding = headers.get("content-encoding", "identity").lower()
    if encoding != "identity":
        raise BrokenHttpError(f"content-encoding: got {encoding[:40]!r}, expected none")
    return Head(status=head.status_code, headers=headers)
