"""What all clients promise, whatever they speak, with our servers and nobody at the other end."""

from __future__ import annotations

import copy
import pickle
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest
import trustme

from client_cases import Remote, certified, remotes, trusting
from openpi_cases import INFO, LAYOUT, NAMES, PLAN, ROBOT, SEEN
from vlmcore.errors import PolicyError, PolicyProtocolError, PolicyUnavailableError
from vlmcore.secrets import Secret
from vlmcore.testing import ScriptedPolicy, check_policy
from vlmcore_robotics.clients import (
    AsyncHttpPolicy,
    AsyncWebSocketPolicy,
    AsyncZmqPolicy,
    HttpPolicy,
    WebSocketPolicy,
    ZmqPolicy,
)
from vlmcore_robotics.servers import (
    GrootServer,
    HttpPolicyServer,
    OpenPIServer,
    PolicyRuntime,
    serve_in_thread,
)
from vlmcore_robotics.wire.groot_layout import ActionStream, GrootLayout, StateSlice, VideoKey


class Protocol(NamedTuple):
    """What speaks a protocol."""

    scheme: str
    server: Any
    blocking: Any
    awaited: Any
    options: dict[str, Any]
    token: str  # what it calls a token

    def client(self, url: str, **more: Any) -> Any:
        return self.blocking(url, embodiment=ROBOT, **self.options, **more)

    def async_client(self, url: str, **more: Any) -> Any:
        return self.awaited(url, embodiment=ROBOT, **self.options, **more)


GROOT = GrootLayout(
    video=[VideoKey(key="front", camera="front")],
    state=[StateSlice(key="arm", start=0, end=2)],
    action=[ActionStream(key="arm", names=NAMES)],
    language="annotation.human.task_description",
)
HTTP = Protocol("http", HttpPolicyServer, HttpPolicy, AsyncHttpPolicy, {}, "token")
OPENPI = Protocol(
    "ws", OpenPIServer, WebSocketPolicy, AsyncWebSocketPolicy, {"layout": LAYOUT}, "api_key"
)
ZEROMQ = Protocol("tcp", GrootServer, ZmqPolicy, AsyncZmqPolicy, {"layout": GROOT}, "api_token")
every = pytest.mark.parametrize("protocol", [HTTP, OPENPI, ZEROMQ], ids=["http", "openpi", "groot"])
encrypted = pytest.mark.parametrize("protocol", [HTTP, OPENPI], ids=["http", "openpi"])
remote = remotes(
    lambda url, protocol, **options: protocol.client(url, **options),
    lambda url, protocol, **options: protocol.async_client(url, **options),
)
Make = Callable[..., Remote]


@contextmanager
def serving(protocol: Protocol, **options: Any) -> Iterator[str]:
    """Serve a policy that follows a plan."""
    with PolicyRuntime(ScriptedPolicy([PLAN], info=INFO)) as runtime:
        server = protocol.server(runtime, port=0, **protocol.options, **options)
        with serve_in_thread(server) as url:
            yield url


@every
def test_a_client_keeps_every_promise_of_a_policy(protocol: Protocol) -> None:
    """
    Asked by the kit that anybody's policy is asked by, with our server between.
    """
    with serving(protocol) as url:
        report = check_policy(
            lambda: protocol.client(url),
            SEEN,
            embodiment=ROBOT,
            deterministic=True,
            patience_s=30,
        )
    assert len(report.passed) > 15


@every
def test_an_async_client_keeps_every_promise_too(protocol: Protocol) -> None:
    """
    Once it is connected: a property cannot wait.
    """

    async def connected() -> Any:
        policy = protocol.async_client(url)
        await policy.connect()
        return policy

    with serving(protocol) as url:
        report = check_policy(connected, SEEN, embodiment=ROBOT, deterministic=True, patience_s=30)
    assert len(report.passed) > 15


@every
def test_closing_twice_or_unused_is_no_error_and_calls_are_refused_afterwards(
    remote: Make, protocol: Protocol
) -> None:
    """
    Also where there never was a connection.
    """
    policy = remote(f"{protocol.scheme}://127.0.0.1:1", protocol=protocol)
    policy.close()
    policy.close()
    for call in (lambda: policy.infer(SEEN), policy.connect, policy.reset):
        with pytest.raises(PolicyError, match="this policy is closed: make it again"):
            call()


@every
@pytest.mark.parametrize("taken", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_client_that_cannot_be_copied_says_what_to_do(
    remote: Make, protocol: Protocol, taken: Callable[[Any], object]
) -> None:
    """
    Processes that are not forked are sent their arguments so; a shallow copy shared the connection.
    """
    policy = remote(f"{protocol.scheme}://127.0.0.1:1", protocol=protocol)
    with pytest.raises(TypeError, match="make one in each process"):
        taken(policy.policy)


@every
def test_info_of_an_async_client_waits_for_nothing(protocol: Protocol) -> None:
    """
    It says that it has to be connected first.
    """
    with pytest.raises(PolicyUnavailableError, match=r"await connect\(\) first"):
        _ = protocol.async_client("localhost").info


@every
def test_a_port_where_nothing_listens_is_told_as_such(remote: Make, protocol: Protocol) -> None:
    """
    Trying again is for the caller to decide: nothing is tried for ever.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"{protocol.scheme}://127.0.0.1:{free.getsockname()[1]}"
        with pytest.raises(PolicyUnavailableError, match=f"^{url}: nothing listens there$"):
            remote(url, protocol=protocol).infer(SEEN)


@every
def test_a_token_is_never_logged(protocol: Protocol, caplog: pytest.LogCaptureFixture) -> None:
    """
    At its debug level, a package writes the headers of a handshake.
    """
    caplog.set_level(0)
    token = {protocol.token: Secret("Zk9-secret_token.42")}
    with serving(protocol, **token) as url, protocol.client(url, **token) as policy:
        policy.infer(SEEN)
    assert "Zk9-secret_token.42" not in caplog.text


@encrypted
@pytest.mark.parametrize("fault", ["another name", "nobody knows who signed it"])
def test_a_wrong_certificate_is_no_server(remote: Make, protocol: Protocol, fault: str) -> None:
    """
    Nothing is sent to it, the token least of all.
    """
    authority = trustme.CA()
    name = "10.0.0.1" if fault == "another name" else "127.0.0.1"
    trust = trusting(authority) if fault == "another name" else None
    token = {protocol.token: Secret("sk-123456")}
    with serving(protocol, tls=certified(authority, name)) as url:
        policy = remote(url, protocol=protocol, tls=trust, **token)
        with pytest.raises(PolicyProtocolError, match="its certificate is not trusted: "):
            policy.infer(SEEN)
