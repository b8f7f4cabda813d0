"""HTTP in bytes, right and wrong, at both ends."""

from __future__ import annotations

from collections.abc import Mapping

from vlmcore_robotics.testing._streams import Stream
from vlmcore_robotics.wire.http_messages import HttpRequest, HttpResponse

__all__ = ["read_head", "read_request", "read_response", "request_bytes", "response_bytes"]


def request_bytes(
    request: HttpRequest, *, headers: Mapping[str, str], declared: int | None = None
) -> bytes:
    """
    Write a request.

    Args:
        request: What is asked.
        headers: Others, which win.
        declared: How large the body says that it is, whatever it is.
    """
    size = len(request.body) if declared is None else declared
    said = {**request.headers, "content-length": str(size), **headers}
    lines = [f"{request.method} {request.path} HTTP/1.1"]
    lines += [f"{name}: {text}" for name, text in said.items()]
    return "\r\n".join([*lines, "", ""]).encode() + request.body


def response_bytes(response: HttpResponse, *, declared: int | None = None) -> bytes:
    """Write an answer; *declared* is how large the body says that it is, whatever it is."""
    size = len(response.body) if declared is None else declared
    said = {**response.headers, "content-length": str(size)}
    lines = [f"HTTP/1.1 {response.status} Status"]
    lines += [f"{name}: {text}" for name, text in said.items()]
    return "\r\n".join([*lines, "", ""]).encode() + response.body


def read_head(stream: Stream) -> bytes:
    """Read the first line and the headers."""
    return stream.through(b"\r\n\r\n")


def read_request(stream: Stream) -> HttpRequest:
    """
    Read a request.

    Raises:
        ValueError: If it is none.
    """
    first, headers = _parted(read_head(stream))
    if "expect" in headers:
        stream.send(b"HTTP/1.1 100 Continue\r\n\r\n")
    method, path, _ = first.split(" ", 2)
    return HttpRequest(method=method, path=path, headers=headers, body=_body(stream, headers))


def read_response(stream: Stream) -> HttpResponse:
    """
    Read an answer.

    Raises:
        ValueError: If it is none.
    """
    status = 100
    while status == 100:
        first, headers = _parted(read_head(stream))
        status = int(first.split(" ")[1])
    return HttpResponse(status=status, headers=headers, body=_body(stream, headers, at_end=True))


def _parted(head: bytes) -> tuple[str, dict[str, str]]:
    first, *lines = head.decode("latin-1").split("\r\n")
    named = (line.partition(":") for line in lines if line)
    return first, {name.strip().lower(): text.strip() for name, _, text in named}


def _body(stream: Stream, headers: Mapping[str, str], *, at_end: bool = False) -> bytes:
    if headers.get("transfer-encoding", "").lower() == "chunked":
        parts = []
        while size := int(stream.through(b"\r\n").split(b";")[0], 16):
            parts.append(stream.exactly(size))
            stream.exactly(2)
        stream.through(b"\r\n")
        return b"".join(parts)
    if "content-length" in headers:
        return stream.exactly(int(headers["content-length"]))
    return stream.to_the_end() if at_end else b""
