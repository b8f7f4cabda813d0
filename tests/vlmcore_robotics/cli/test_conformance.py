"""``vlmcore policy conformance``, on real servers of each protocol."""

from __future__ import annotations

import pytest

from openpi_cases import NAMES, ROBOT
from vlmcore_robotics.testing import (
    SERVER_CHECKS,
    Behaviour,
    HostileServer,
    PolicyProtocol,
)

PROTOCOLS = ("openpi", "http", "groot")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_our_servers_conform(policy, serving, robot, protocol: str) -> None:
    """
    Strictly, and as a good client alone they are called in the same way.
    """
    with serving(protocol) as url:
        done = policy(
            "conformance", url, "--embodiment", robot, "--strict", "--deterministic", "--good-only"
        )
    assert 0 == done.code
    assert "passed   it answers a call with actions\n" in done.out
    assert f"{url} ({protocol}): " in done.out.splitlines()[-1]
    assert "garbage" not in done.out


def test_all_of_it_as_json(policy, serving, robot) -> None:
    """
    For machines: each check by its name, what was found, and why.
    """
    with serving("groot") as url:
        done = policy("conformance", url, "--embodiment", robot, "--json")
    assert (0, 0, "groot") == (done.code, done.document["failed"], done.document["protocol"])
    assert [each.name for each in SERVER_CHECKS] == [
        each["name"] for each in done.document["checks"]
    ]


def test_a_server_that_does_not_conform_ends_in_another_exit_code(policy, robot) -> None:
    """
    And the line of the check says why.
    """
    with HostileServer(PolicyProtocol.HTTP, Behaviour.TOO_WIDE, embodiment=ROBOT) as server:
        done = policy("conformance", server.url, "--embodiment", robot)
    assert 1 == done.code
    assert "failed   it answers a call with actions: PolicyProtocolError: " in done.out
    assert f"with {len(NAMES)} dimensions" in done.out


def test_a_risk_is_a_failure_where_it_is_asked_for_only(policy, robot) -> None:
    """
    Numbers that are not finite break no client.
    """
    words = "--embodiment", robot, "--good-only"
    with HostileServer(PolicyProtocol.OPENPI, Behaviour.NOT_FINITE, embodiment=ROBOT) as server:
        lenient = policy("conformance", server.url, *words)
        strict = policy("conformance", server.url, *words, "--strict")
    assert (0, 1) == (lenient.code, strict.code)
    assert "risk     its actions are finite: " in lenient.out


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("gopher://localhost",), "expected an address"),
        (("ws://localhost:9", "--timeout-s", "0"), "--timeout-s: got 0"),
        (("ws://localhost:9", "--token-env", "NOT_THERE"), "--token-env"),
        (("wss://policies.example",), "--allow-remote"),
    ],
)
def test_what_is_wrong_on_the_command_line_is_said(policy, robot, words, complaint: str) -> None:
    """
    Before anything is called.
    """
    done = policy("conformance", *words, "--embodiment", robot)
    assert done.code in (1, 2)
    assert complaint in done.err
