"""Ports: a client, a server and the kit mean the same one where none is written."""

from __future__ import annotations

import inspect

import pytest

from vlmcore.contracts.presets import find_embodiment
from vlmcore_robotics.clients import HttpPolicy, WebSocketPolicy, ZmqPolicy
from vlmcore_robotics.servers import GrootServer, HttpPolicyServer, OpenPIServer
from vlmcore_robotics.testing import PolicyProtocol, check_server
from vlmcore_robotics.wire.layouts import plain_groot_layout, plain_layout
from vlmcore_robotics.wire.ports import GROOT_PORT, HTTP_PORT, OPENPI_PORT

ROBOT = find_embodiment("generic_7dof_joint_gripper")
KEYS = {"layout": plain_layout(ROBOT)}
MODALITIES = {"layout": plain_groot_layout(ROBOT)}


@pytest.mark.parametrize(
    ("protocol", "client", "server", "layout", "port"),
    [
        (PolicyProtocol.OPENPI, WebSocketPolicy, OpenPIServer, KEYS, OPENPI_PORT),
        (PolicyProtocol.HTTP, HttpPolicy, HttpPolicyServer, {}, HTTP_PORT),
        (PolicyProtocol.GROOT, ZmqPolicy, GrootServer, MODALITIES, GROOT_PORT),
    ],
)
def test_whoever_is_told_no_port_takes_that_of_the_protocol(
    protocol, client, server, layout, port
) -> None:
    """
    What listens where it is used to listen is reached by its host alone, by the kit, too.
    """
    report = check_server("localhost", protocol=protocol, embodiment=ROBOT, checks=(), **layout)
    assert port == inspect.signature(server).parameters["port"].default
    assert port == client("localhost", embodiment=ROBOT, **layout).endpoint.port
    assert report.url.endswith(f"//localhost:{port}")
