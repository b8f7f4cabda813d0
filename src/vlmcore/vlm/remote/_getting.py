"""A question to a server that is no prompt: something that it tells at a path."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import TypeVar

from vlmcore._net.blocking import BlockingConnection
from vlmcore._net.deadline import Deadline
from vlmcore._net.http_parts import Head
from vlmcore._net.steps import Dial, Receive, Send, Steps
from vlmcore.vlm.remote._reading import BadAnswerError
from vlmcore.vlm.remote._terms import Terms

__all__ = ["get"]

_Told = TypeVar("_Told")


def get(
    terms: Terms, target: str, read: Callable[[int, bytes], _Told], *, timeout_s: float
) -> _Told:
    """
    Ask for what is at *target*, on a connection of its own.

    Args:
        terms: Who is asked.
        target: The path, from the root of the server.
        read: Makes something of the status and the body.
        timeout_s: How long that may take.

    Raises:
        VlmcoreError: If there is no whole answer, or it is larger than an event may be, or for what
            *read* raises.
    """
    with closing(BlockingConnection(terms.server.tls)) as connection:
        return connection.done(_steps(terms, target, read), Deadline(timeout_s))


def _steps(terms: Terms, target: str, read: Callable[[int, bytes], _Told]) -> Steps[str, _Told]:
    server, is_asked = terms.server, False
    try:
        yield Dial(endpoint=server.endpoint, only_public=server.only_public)
        is_asked = True
        return read(*(yield from _asked(terms, target)))  # no frame keeps what a server said
    except Exception as error:  # noqa: BLE001 - all of them: this is the boundary
        problem = terms.translated(error, is_asked=is_asked)
    raise problem


def _asked(terms: Terms, target: str) -> Steps[str, tuple[int, bytes]]:
    http = terms.new_exchange()
    yield Send(
        http.request(
            host=terms.server.endpoint.host_header,
            method="GET",
            target=target,
            headers=terms.headers(),
        )
    )
    status, body = 200, bytearray()
    while not http.is_done:
        data = yield Receive()
        assert data is not None
        for part in http.feed(data):
            if isinstance(part, Head):
                status = part.status
            else:
                body += part
                _require_small(terms, len(body))
    return status, bytes(body)


def _require_small(terms: Terms, size: int) -> None:
    most = terms.limits.max_event_bytes
    if size > most:
        raise BadAnswerError(f"max_event_bytes: got {size}, limit is {most}")
