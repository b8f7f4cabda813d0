"""The HTTP server with a policy of two joints, and ways to ask it that no good client has."""

from __future__ import annotations

import http.client
import json
import re
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import attrs

from openpi_cases import INFO, NAMES, PLAN, SEEN, echoing
from vlmcore.secrets import Secret
from vlmcore.testing import ScriptedPolicy
from vlmcore_robotics.servers.http import HttpPolicyServer
from vlmcore_robotics.servers.runtime import PolicyRuntime
from vlmcore_robotics.servers.threads import serve_in_thread
from vlmcore_robotics.wire.http_messages import HttpEndpoint, HttpRequest, HttpResponse
from vlmcore_robotics.wire.http_v1 import HttpCodec

CODEC = HttpCodec(policy="scripted", action_names=NAMES)
INFER = CODEC.encode_request(SEEN)
RESET = CODEC.encode_reset()
KEY = Secret("sk-123456")


class Slow:
    """A policy that answers when it is let."""

    info = INFO

    def __init__(self) -> None:
        self.go = threading.Event()
        self.busy = threading.Event()
        self.asked = 0
        self.resets = 0

    def infer(self, observation: Any, /) -> Any:
        self.asked += 1
        self.busy.set()
        assert self.go.wait(20)
        return ScriptedPolicy([PLAN], info=INFO).infer(observation)

    def reset(self) -> None:
        self.resets += 1

    def close(self) -> None:
        self.go.set()


@contextmanager
def serving(
    policy: Any = None, *, runtime: Mapping[str, Any] | None = None, **options: Any
) -> Iterator[str]:
    """Serve *policy*, by default one that echoes; yield where."""
    with (
        PolicyRuntime(policy or echoing(), **(runtime or {})) as served,
        serve_in_thread(HttpPolicyServer(served, **{"port": 0, **options})) as url,
    ):
        yield url


def address(url: str) -> tuple[str, int]:
    """Take a URL apart."""
    host, port = re.findall(r"//\[?([^]]*)\]?:(\d+)", url)[0]
    return host, int(port)


@contextmanager
def connected(url: str) -> Iterator[http.client.HTTPConnection]:
    """Connect; one connection for as many requests as are sent."""
    connection = http.client.HTTPConnection(*address(url), timeout=10)
    try:
        yield connection
    finally:
        connection.close()


def ask(where: str | http.client.HTTPConnection, request: HttpRequest) -> HttpResponse:
    """Send a request, and read the answer."""
    if isinstance(where, str):
        with connected(where) as connection:
            return ask(connection, request)
    where.request(request.method, request.path, request.body, dict(request.headers))
    answer = where.getresponse()
    return HttpResponse(
        status=answer.status,
        headers={name: value for name, value in answer.getheaders() if name != "date"},
        body=answer.read(),
    )


def changed(request: HttpRequest, **headers: str | None) -> HttpRequest:
    """Make the same request with other headers; ``None`` takes one away."""
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    kept = {
        name: value for name, value in {**request.headers, **given}.items() if value is not None
    }
    return attrs.evolve(request, headers=kept)


def failure(response: HttpResponse) -> tuple[int, str]:
    """Read what an answer says that failed."""
    assert "application/json" == response.headers["content-type"]
    return response.status, json.loads(response.body)["error"]


def dial(url: str) -> socket.socket:
    """Connect without a client."""
    return socket.create_connection(address(url), timeout=10)


def rest_of(peer: socket.socket) -> bytes:
    """Read until the server hangs up."""
    heard = b""
    try:
        while data := peer.recv(65536):
            heard += data
    except ConnectionError:
        pass
    return heard


def head(path: str, *lines: str, method: str = "POST", version: str = "1.1") -> bytes:
    """Write a request up to its body."""
    text = "\r\n".join((f"{method} {path} HTTP/{version}", "Host: localhost", *lines, "", ""))
    return text.encode("latin-1")


def numbers(response: HttpResponse) -> list[list[float]]:
    """Read the actions of an answer."""
    values: list[list[float]] = CODEC.decode_answer(response, observed_at_s=0.0).values.tolist()
    return values


def is_well(url: str) -> bool:
    """Ask whether all is well; who is hung up on meanwhile is not."""
    try:
        return ask(url, CODEC.ask(HttpEndpoint.HEALTH)).status == 200
    except (OSError, http.client.HTTPException):
        return False


def until(is_so: Callable[[], bool]) -> None:
    """Wait until something is so."""
    waiting = threading.Event()
    for _ in range(2000):
        if is_so():
            return
        waiting.wait(0.01)
    raise AssertionError("it never was so")
