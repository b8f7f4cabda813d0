"""Tests of `vlmcore_robotics.servers._keepalive`, in each of the servers."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from kit_cases import CLIENTS, Caller, serving
from vlmcore_robotics.servers import _uvicorn_listener, _websocket_listener, _zmq_listener
from vlmcore_robotics.servers._keepalive import watch_peer
from vlmcore_robotics.testing import PolicyProtocol

LISTENERS = {
    PolicyProtocol.OPENPI: _websocket_listener,
    PolicyProtocol.HTTP: _uvicorn_listener,
    PolicyProtocol.GROOT: _zmq_listener,
}
FOUND_OUT_AFTER_S = 120


@pytest.mark.skipif(not hasattr(socket, "TCP_KEEPIDLE"), reason="the kernel takes other times")
@pytest.mark.parametrize("client", ["openpi", "http", "groot"])
def test_a_client_that_vanished_is_found_out(client: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    One that is idle is not hung up on, so one without power would keep its place for ever.
    """
    watched: list[tuple[bool, int]] = []

    def look(connection: Any) -> None:
        watch_peer(connection)
        idle_s, interval_s, count = (
            connection.getsockopt(socket.IPPROTO_TCP, option)
            for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
        )
        is_on = bool(connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE))
        watched.append((is_on, idle_s + count * interval_s))

    protocol, _ = CLIENTS[client]
    monkeypatch.setattr(LISTENERS[protocol], "watch_peer", look)
    with serving(protocol) as url, Caller(client, url) as policy:
        policy.infer()
    assert {(True, FOUND_OUT_AFTER_S)} == set(watched)
