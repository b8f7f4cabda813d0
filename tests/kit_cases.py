"""What the tests of the kit share: one robot, and clients and servers of it in every protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from openpi_cases import LAYOUT, NAMES, ROBOT, SEEN, echoing
from vlmcore.contracts.actions import ActionChunk
from vlmcore_robotics.clients.async_http import AsyncHttpPolicy
from vlmcore_robotics.clients.async_websocket import AsyncWebSocketPolicy
from vlmcore_robotics.clients.async_zeromq import AsyncZmqPolicy
from vlmcore_robotics.clients.http import HttpPolicy
from vlmcore_robotics.clients.websocket import WebSocketPolicy
from vlmcore_robotics.clients.zeromq import ZmqPolicy
from vlmcore_robotics.servers.http import HttpPolicyServer
from vlmcore_robotics.servers.runtime import PolicyRuntime
from vlmcore_robotics.servers.threads import serve_in_thread
from vlmcore_robotics.servers.websocket import OpenPIServer
from vlmcore_robotics.servers.zeromq import GrootServer
from vlmcore_robotics.testing import Behaviour, HostileServer, PolicyProtocol
from vlmcore_robotics.wire.groot_layout import ActionStream, GrootLayout, StateSlice, VideoKey

__all__ = ["CLIENTS", "LAYOUTS", "NAMES", "ROBOT", "SEEN", "Caller", "hostile", "serving"]

GROOT_LAYOUT = GrootLayout(
    video=[VideoKey(key="ego_view", camera="front")],
    state=[StateSlice(key="arm", start=0, end=2)],
    action=[
        ActionStream(key="upper", names=NAMES[:1]),
        ActionStream(key="lower", names=NAMES[1:]),
    ],
    language="annotation.human.task_description",
)
LAYOUTS: dict[PolicyProtocol, Any] = {
    PolicyProtocol.OPENPI: LAYOUT,
    PolicyProtocol.HTTP: None,
    PolicyProtocol.GROOT: GROOT_LAYOUT,
}
CLIENTS: dict[str, tuple[PolicyProtocol, Callable[..., Any]]] = {
    "openpi": (PolicyProtocol.OPENPI, WebSocketPolicy),
    "openpi-async": (PolicyProtocol.OPENPI, AsyncWebSocketPolicy),
    "http": (PolicyProtocol.HTTP, HttpPolicy),
    "http-async": (PolicyProtocol.HTTP, AsyncHttpPolicy),
    "groot": (PolicyProtocol.GROOT, ZmqPolicy),
    "groot-async": (PolicyProtocol.GROOT, AsyncZmqPolicy),
}


class Caller:
    """One of our clients, called the same way whether it must be awaited or not."""

    def __init__(self, name: str, url: str, **options: Any) -> None:
        self.protocol, make = CLIENTS[name]
        layout = LAYOUTS[self.protocol]
        keys = {} if layout is None else {"layout": layout}
        self._loop = asyncio.new_event_loop()
        self._policy = make(url, embodiment=ROBOT, **{**keys, "name": "arm", **options})

    def infer(self, seen: Any = SEEN) -> ActionChunk:
        chunk: ActionChunk = self._done(self._policy.infer(seen))
        return chunk

    def __enter__(self) -> Caller:
        return self

    def __exit__(self, *_: object) -> None:
        closes = "close" if hasattr(self._policy, "close") else "aclose"
        self._done(getattr(self._policy, closes)())
        self._loop.close()

    def _done(self, value: Any) -> Any:
        return self._loop.run_until_complete(value) if asyncio.iscoroutine(value) else value


def hostile(protocol: PolicyProtocol, behaviour: Behaviour, **options: Any) -> HostileServer:
    """Make a server that misbehaves."""
    if protocol is PolicyProtocol.GROOT:
        options = {"layout": GROOT_LAYOUT, **options}
    return HostileServer(protocol, behaviour, embodiment=ROBOT, **options)


@contextmanager
def serving(protocol: PolicyProtocol, policy: Any = None, **options: Any) -> Iterator[str]:
    """Serve *policy*, by default one that answers with the state; yield where."""
    options = {"port": 0, **options}
    with PolicyRuntime(policy or echoing(), max_waiting=32) as runtime:
        server: Any
        match protocol:
            case PolicyProtocol.OPENPI:
                server = OpenPIServer(runtime, layout=LAYOUT, **options)
            case PolicyProtocol.HTTP:
                server = HttpPolicyServer(runtime, **options)
            case PolicyProtocol.GROOT:
                server = GrootServer(runtime, layout=GROOT_LAYOUT, **options)
        with serve_in_thread(server) as url:
            yield url
