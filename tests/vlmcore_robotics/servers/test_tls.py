"""Tests of `vlmcore_robotics.servers._tls`, with the servers that use it."""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
import trustme

from client_cases import certified, trusting
from http_server_cases import address, serving
from openpi_cases import echoing
from vlmcore_robotics.servers import HttpPolicyServer, OpenPIServer, PolicyRuntime, _tls
from vlmcore_robotics.servers.threads import serve_in_thread
from vlmcore_robotics.wire.observation_layout import CameraKey, ObservationLayout, StateKey

AUTHORITY = trustme.CA()
LAYOUT = ObservationLayout(
    cameras=[CameraKey(camera="front", key="image")], state=[StateKey(key="state", count=2)]
)
HEALTH = b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n"
KINDS = {"http": (HttpPolicyServer, {}), "openpi": (OpenPIServer, {"layout": LAYOUT})}


@pytest.fixture(params=KINDS)
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    """Serve with a certificate, in one protocol after the other."""
    kind, options = KINDS[request.param]
    tls = certified(AUTHORITY, "127.0.0.1")
    with PolicyRuntime(echoing()) as runtime:
        server: Any = kind(runtime, port=0, tls=tls, **options)
        with serve_in_thread(server) as url:
            yield url


def shaken(url: str) -> ssl.SSLSocket:
    """Connect as a good client does."""
    raw = socket.create_connection(address(url), timeout=20)
    return trusting(AUTHORITY).wrap_socket(raw, server_hostname="127.0.0.1")


def health(url: str) -> bytes:
    """Ask right behind the handshake."""
    answer = b""
    with shaken(url) as connection:
        connection.sendall(HEALTH)
        with contextlib.suppress(ssl.SSLEOFError):
            while piece := connection.recv(4096):
                answer += piece
    return answer


def is_over(connection: socket.socket) -> bool:
    """Wait until the server hangs up."""
    try:
        return not connection.recv(1)
    except ConnectionError:
        return True


def test_what_comes_right_behind_a_handshake_is_answered(url: str) -> None:
    """
    As everything after it.
    """
    assert all(b" 200 OK" in health(url) for _ in range(5))


def test_handshakes_that_are_not_finished_keep_nobody_out(url: str) -> None:
    """
    They were not counted, and waited for a minute each: the oldest gives way.
    """
    with ExitStack() as stack:
        silent = [
            stack.enter_context(socket.create_connection(address(url), timeout=20))
            for _ in range(_tls._MOST)
        ]
        assert b" 200 OK" in health(url)
        assert is_over(silent[0])
        silent[-1].settimeout(0)
        with pytest.raises(BlockingIOError):
            silent[-1].recv(1)


def test_a_client_that_says_nothing_is_hung_up_on() -> None:
    """
    Within the patience of the server, and not after a minute.
    """
    tls = certified(AUTHORITY, "127.0.0.1")
    with (
        serving(tls=tls, patience_s=0.1) as url,
        socket.create_connection(address(url), timeout=20) as silent,
    ):
        assert is_over(silent)


@pytest.mark.parametrize("said", [b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01", b"\x00" * 600])
def test_what_is_no_handshake_is_hung_up_on(url: str, said: bytes) -> None:
    """
    At once where it cannot be one, and in any case where the client leaves.
    """
    with socket.create_connection(address(url), timeout=20) as connection:
        connection.sendall(said)
        connection.shutdown(socket.SHUT_WR)
        while not is_over(connection):
            pass  # an alert of TLS
    assert b" 200 OK" in health(url)
