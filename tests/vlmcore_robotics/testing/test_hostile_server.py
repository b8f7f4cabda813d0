"""Tests of `vlmcore_robotics.testing.hostile_server`, and of our own clients against it."""

from __future__ import annotations

import contextlib
import re
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from kit_cases import CLIENTS, LAYOUTS, NAMES, ROBOT, Caller, hostile
from vlmcore.errors import (
    ContractError,
    EndpointError,
    PolicyError,
    PolicyProtocolError,
    PolicyRefusedError,
    PolicyTimeoutError,
    PolicyUnavailableError,
)
from vlmcore_robotics.testing import Behaviour, HostileServer, PolicyProtocol, behaviours_of

B = Behaviour
LONG_S = 10.0
SHORT_S = 1.0
SLACK_S = 5.0  # of two busy cores
PROTOCOLS = pytest.mark.parametrize("protocol", PolicyProtocol)

ENDS: dict[Behaviour, type[PolicyError] | tuple[type[PolicyError], ...] | None] = {
    B.GOOD: None,
    B.SILENT_AT_ONCE: PolicyTimeoutError,
    B.SILENT_IN_THE_HANDSHAKE: PolicyTimeoutError,
    B.SILENT_ON_METADATA: PolicyTimeoutError,
    B.SILENT: PolicyTimeoutError,
    B.DRIPPING_METADATA: PolicyTimeoutError,
    B.DRIPPING: PolicyTimeoutError,
    B.LATE: PolicyTimeoutError,
    B.OVERTAKEN: PolicyTimeoutError,
    B.HANGS_UP_AT_ONCE: PolicyUnavailableError,
    B.HANGS_UP_IN_THE_HANDSHAKE: PolicyUnavailableError,
    B.HANGS_UP_BEFORE_METADATA: (PolicyUnavailableError, PolicyProtocolError),
    B.HANGS_UP_IN_METADATA: (PolicyUnavailableError, PolicyProtocolError),
    B.HANGS_UP_BEFORE_ANSWERING: PolicyProtocolError,
    B.HANGS_UP_IN_THE_ANSWER: PolicyProtocolError,
    B.HANGS_UP_AFTER_ANSWERING: None,
    B.DIES_BEFORE_ANSWERING: PolicyProtocolError,
    B.RESTARTS: None,
    B.ANOTHER_PROTOCOL: (PolicyProtocolError, PolicyTimeoutError),
    B.OTHER_METADATA: PolicyProtocolError,
    B.SENSELESS_METADATA: PolicyProtocolError,
    B.FAILS_ONCE: PolicyRefusedError,
    B.SENSELESS: PolicyProtocolError,
    B.CUT: PolicyProtocolError,
    B.TEXT: (PolicyRefusedError, PolicyProtocolError),
    B.WITHOUT_ACTIONS: PolicyProtocolError,
    B.NOT_FINITE: None,
    B.TOO_WIDE: PolicyProtocolError,
    B.TOO_LONG: PolicyProtocolError,
    B.WITHOUT_STEPS: PolicyProtocolError,
    B.OTHER_NAMES: PolicyProtocolError,
    B.OVERSIZED: (PolicyProtocolError, PolicyTimeoutError),
    B.DEEP: PolicyProtocolError,
    B.MANY: PolicyProtocolError,
    B.COUNTLESS: PolicyProtocolError,
    B.VAST: PolicyProtocolError,
    B.ENDLESS: (PolicyProtocolError, PolicyTimeoutError),
}
WAITING = {B.ANOTHER_PROTOCOL, B.OVERSIZED, B.ENDLESS} | {
    each for each, error in ENDS.items() if error is PolicyTimeoutError
}


def test_every_behaviour_is_tried() -> None:
    """
    Against each of our clients, below.
    """
    assert set(Behaviour) == ENDS.keys()


def try_on(client: str, behaviour: Behaviour) -> str:
    """Say what is wrong with a client's ways with a server; nothing if all is right."""
    protocol, _ = CLIENTS[client]
    if behaviour not in behaviours_of(protocol):
        return ""
    timeout_s = SHORT_S if behaviour in WAITING else LONG_S
    with (
        hostile(protocol, behaviour, late_s=1.3 * SHORT_S) as server,
        Caller(client, server.url, timeout_s=timeout_s) as policy,
    ):
        began_at_s = time.monotonic()
        first = outcome(policy)
        if time.monotonic() - began_at_s > timeout_s + SLACK_S:
            return f"the call took {time.monotonic() - began_at_s:.1f} s"
        if problem := unfit(behaviour, first):
            return problem
        server.become(B.GOOD)
        second = outcome(policy)
        if behaviour is B.HANGS_UP_AFTER_ANSWERING and isinstance(second, PolicyError):
            second = outcome(policy)  # it was asked before the farewell had come
        if isinstance(second, PolicyError):
            return f"the next call ended in {second!r}"
        right = [[server.asked / 1000] * 2] * 2
        return "" if abs(second - right).max() < 1e-6 else f"got {second}, expected {right}"


def outcome(policy: Caller) -> Any:
    try:
        return policy.infer().values
    except PolicyError as error:
        return error


def unfit(behaviour: Behaviour, outcome: Any) -> str:
    expected = ENDS[behaviour]
    if expected is not None:
        return "" if isinstance(outcome, expected) else f"got {outcome!r}, expected {expected}"
    if behaviour is B.NOT_FINITE:  # JSON cannot hold it, and the gate finds it
        is_good = isinstance(outcome, PolicyProtocolError) or not np.isfinite(outcome).any()
        return "" if is_good else f"got {outcome!r}"
    return f"got {outcome!r}" if isinstance(outcome, PolicyError) else ""


@pytest.mark.parametrize("behaviour", [each for each in B if each is not B.RESTARTS])
def test_whatever_a_server_does_our_clients_end_in_time_and_take_no_late_answer(
    behaviour: Behaviour,
) -> None:
    """
    In the error that says whose fault it is; and the next call, to a good server, is answered with
    what was asked then.
    """
    with ThreadPoolExecutor(len(CLIENTS)) as pool:
        found = dict(
            zip(CLIENTS, pool.map(lambda name: try_on(name, behaviour), CLIENTS), strict=True)
        )
    assert dict.fromkeys(CLIENTS, "") == found


@pytest.mark.parametrize("client", CLIENTS)
def test_a_restart_in_the_middle_of_an_episode_costs_one_call_at_the_most(client: str) -> None:
    """
    The official client of openpi raised for ever after it.
    """
    protocol, _ = CLIENTS[client]
    with (
        hostile(protocol, B.RESTARTS) as server,
        Caller(client, server.url, timeout_s=LONG_S) as policy,
    ):
        outcomes = []
        for _ in range(5):
            await_listening(server)
            outcomes.append(outcome(policy))
    failed = [each for each in outcomes if isinstance(each, PolicyError)]
    assert len(failed) <= 1
    assert not isinstance(outcomes[-1], PolicyError)
    assert not isinstance(outcomes[0], PolicyError)


def await_listening(server: HostileServer) -> None:
    """Wait until somebody listens there: on a busy machine nobody does for some calls."""
    host, _, port = server.url.rpartition("/")[2].partition(":")
    for _ in range(1000):
        with contextlib.suppress(ConnectionError):
            socket.create_connection((host, int(port)), LONG_S).close()
            return
        time.sleep(0.01)


def fall_silent_on(client: str) -> tuple[Any, ...]:
    """Ask thrice on what is one connection at first, whose other end is gone at the second call."""
    protocol, _ = CLIENTS[client]
    with (
        hostile(protocol, B.GOOD) as server,
        Caller(client, server.url, timeout_s=2 * SHORT_S) as policy,
    ):
        outcomes = []
        for behaviour in (B.GOOD, B.SILENT, B.GOOD):
            server.become(behaviour)
            outcomes.append(type(outcome(policy)))
        return tuple(outcomes)


def test_a_connection_that_is_half_open_costs_one_call_and_no_more_than_its_time() -> None:
    """
    The other end vanished between two calls and said nothing: nobody hangs up, nobody answers.
    """
    with ThreadPoolExecutor(len(CLIENTS)) as pool:
        found = dict(zip(CLIENTS, pool.map(fall_silent_on, CLIENTS), strict=True))
    assert dict.fromkeys(CLIENTS, (np.ndarray, PolicyTimeoutError, np.ndarray)) == found


@PROTOCOLS
def test_a_server_says_where_it_is_and_frees_its_port(protocol: PolicyProtocol) -> None:
    """
    The next one can listen there at once.
    """
    with hostile(protocol, B.GOOD) as server:
        port = int(server.url.rpartition(":")[2])
        assert re.fullmatch(rf"{protocol.schemes[0]}://127\.0\.0\.1:\d+", server.url)
        with (
            pytest.raises(EndpointError, match="cannot listen there"),
            hostile(protocol, B.GOOD, port=port),
        ):
            pass
    with hostile(protocol, B.SILENT, port=port) as again:
        assert server.url == again.url


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ((PolicyProtocol.HTTP, B.HANGS_UP_IN_THE_HANDSHAKE, {}), "behaviour"),
        ((PolicyProtocol.HTTP, "silent", {}), "behaviour"),
        (("http", B.GOOD, {}), "protocol"),
        ((PolicyProtocol.GROOT, B.GOOD, {"layout": None}), "layout"),
        ((PolicyProtocol.OPENPI, B.GOOD, {"layout": LAYOUTS[PolicyProtocol.GROOT]}), "layout"),
        ((PolicyProtocol.HTTP, B.GOOD, {"embodiment": NAMES}), "embodiment"),
        ((PolicyProtocol.HTTP, B.GOOD, {"horizon": 0}), "horizon"),
        ((PolicyProtocol.HTTP, B.GOOD, {"late_s": -1}), "late_s"),
    ],
)
def test_what_makes_no_server_is_refused(arguments: Any, field: str) -> None:
    """
    Before anything listens.
    """
    protocol, behaviour, options = arguments
    with pytest.raises(ContractError, match=f"^{field}"):
        HostileServer(protocol, behaviour, **{"embodiment": ROBOT, **options})


def test_a_server_cannot_become_what_its_protocol_has_not() -> None:
    """
    HTTP has no handshake of its own.
    """
    server = hostile(PolicyProtocol.HTTP, B.GOOD)
    with pytest.raises(ContractError, match="SILENT_IN_THE_HANDSHAKE"):
        server.become(B.SILENT_IN_THE_HANDSHAKE)
