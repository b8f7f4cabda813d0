"""How servers begin and end: the same for all of them, whatever they speak."""

from __future__ import annotations

import asyncio
import socket

import pytest

from vlmcore.contracts.presets import find_embodiment
from vlmcore.errors import (
    ContractError,
    EndpointError,
    PolicyError,
    PolicyProtocolError,
    PolicyTimeoutError,
    PolicyUnavailableError,
)
from vlmcore.policy.interface import PolicyInfo
from vlmcore.testing import ScriptedPolicy, example_observation
from vlmcore_robotics.clients import AsyncHttpPolicy, AsyncWebSocketPolicy, AsyncZmqPolicy
from vlmcore_robotics.servers import GrootServer, HttpPolicyServer, OpenPIServer, PolicyRuntime
from vlmcore_robotics.wire.layouts import plain_groot_layout, plain_layout

ROBOT = find_embodiment("generic_7dof_joint_gripper")
INFO = PolicyInfo(name="still", action_names=ROBOT.actions.names, horizon=1)
KEYS, MODALITIES = plain_layout(ROBOT), plain_groot_layout(ROBOT)
KINDS = {
    "openpi": (OpenPIServer, AsyncWebSocketPolicy, {"layout": KEYS}),
    "http": (HttpPolicyServer, AsyncHttpPolicy, {}),
    "groot": (GrootServer, AsyncZmqPolicy, {"layout": MODALITIES}),
}


@pytest.fixture(scope="module")
def runtime():
    with PolicyRuntime(ScriptedPolicy([[[0.0] * 8]], info=INFO)) as runtime:
        yield runtime


@pytest.fixture(params=KINDS)
def protocol(request):
    """Name one protocol after the other."""
    return request.param


@pytest.fixture
def make(protocol, runtime):
    """Give what makes a server of the protocol."""
    kind, _, layout = KINDS[protocol]
    return lambda port=0: kind(runtime, port=port, **layout)


@pytest.fixture
def answers(protocol):
    """Give what says whether a server of the protocol answers at an address."""
    _, client, layout = KINDS[protocol]

    async def asked(url):
        policy = client(url, embodiment=ROBOT, **layout)
        try:
            return (await policy.infer(example_observation(ROBOT))).horizon == 1
        finally:
            await policy.aclose()

    return asked


def test_a_server_is_started_once(make, answers) -> None:
    """
    A second start is refused, and takes nothing from the first one.
    """

    async def scene():
        async with make() as server:
            url = server.url
            with pytest.raises(EndpointError, match="was started or stopped before"):
                await server.start()
            assert url == server.url
            assert await answers(url)

    asyncio.run(scene())


def test_a_server_that_was_stopped_is_not_started_again(make) -> None:
    """
    It would answer nobody, or with an error of Python: the caller hears what to do instead.
    """

    async def scene(server):
        with pytest.raises(EndpointError, match=r"make another server$"):
            await server.start()

    async def whole():
        used = make()
        await used.start()
        await used.stop()
        await scene(used)
        unused = make()
        await unused.stop()
        await scene(unused)

    asyncio.run(whole())


def test_a_server_whose_port_was_taken_can_be_started_when_it_is_free(make, answers) -> None:
    """
    What could not listen is as new.
    """

    async def scene():
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            server = make(port=other.getsockname()[1])
            with pytest.raises(EndpointError, match="cannot listen there"):
                await server.start()
        async with server:
            assert await answers(server.url)

    asyncio.run(scene())


def test_stopping_twice_is_no_error(make) -> None:
    """
    A program that ends in two ways at once ends.
    """

    async def scene():
        server = make()
        await server.start()
        await asyncio.gather(server.stop(), server.stop())
        await server.stop()

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (PolicyUnavailableError("ws://far:1", "nothing listens there"), "nothing listens there"),
        (PolicyTimeoutError("ws://far:1", "reply", 2.0), "no reply within 2 s"),
        (PolicyProtocolError("ws://far:1", "it hung up", "theirs"), "it hung up"),
    ],
)
def test_a_proxy_says_who_behind_it_failed(protocol, error, said) -> None:
    """
    Its client would look for the fault on the way to the proxy.
    """
    kind, client, layout = KINDS[protocol]
    failing = ScriptedPolicy([error], info=INFO)

    async def ask() -> None:
        async with kind(runtime, port=0, **layout) as server:
            policy = client(server.url, embodiment=ROBOT, **layout)
            try:
                await policy.infer(example_observation(ROBOT))
            finally:
                await policy.aclose()

    words = f"behind this server, ws://far:1: {said}"
    with PolicyRuntime(failing) as runtime, pytest.raises(PolicyError, match=words):
        asyncio.run(ask())


@pytest.mark.parametrize("grace_s", [-1.0, float("nan"), 601.0, "5"])
def test_what_is_no_time_is_no_grace(make, grace_s) -> None:
    """
    The answers in hand are given up after a time that ends.
    """
    with pytest.raises(ContractError, match=r"^grace_s: got .*, expected a number from 0\.0"):
        asyncio.run(make().stop(grace_s=grace_s))
