"""Our clients while the process of their server is killed and starts again, at random moments."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from hypothesis import settings

from kit_cases import CLIENTS, Caller
from openpi_cases import seen_at
from vlmcore.errors import PolicyError
from vlmcore_robotics.testing import PolicyProtocol

TESTS = Path(__file__).parents[2]
KILLS, MANY_KILLS = 2, 20
LONGEST_S = 30.0  # for a restart, on two busy cores
PAUSE_S = 0.005


class Killable:
    """A process that serves every protocol, and is started again when it is killed."""

    def __init__(self, process: subprocess.Popen[str], ports: list[int]) -> None:
        self._process = process
        self.urls = {
            protocol: f"{protocol.schemes[0]}://127.0.0.1:{port}"
            for protocol, port in zip(PolicyProtocol, ports, strict=True)
        }
        self.listen()

    def listen(self) -> None:
        """Wait until one serves."""
        assert self._process.stdout is not None
        self._pid = int(self._process.stdout.readline())

    def kill(self) -> None:
        os.kill(self._pid, signal.SIGKILL)


def free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


@pytest.fixture(scope="module")
def server() -> Iterator[Killable]:
    if not hasattr(os, "fork"):
        pytest.skip("the process is forked")
    ports = free_ports(len(PolicyProtocol))
    process = subprocess.Popen(
        [sys.executable, TESTS / "killable_server.py", *map(str, ports)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(TESTS), "OPENBLAS_NUM_THREADS": "1"},
    )
    try:
        yield Killable(process, ports)
    finally:
        with suppress(BrokenPipeError):
            process.communicate(timeout=LONGEST_S)


@pytest.mark.hypothesis
@pytest.mark.parametrize("client", CLIENTS)
def test_a_server_that_is_killed_costs_calls_and_never_a_wrong_answer(
    client: str, server: Killable
) -> None:
    """
    Each call ends in the answer to its own observation or in an error of ours, and once a server is
    there again, it is asked again without a new client.
    """
    protocol, _ = CLIENTS[client]
    chance, number = random.Random(client), 0
    kills = MANY_KILLS if settings().max_examples >= 1000 else KILLS
    with Caller(client, server.urls[protocol], timeout_s=LONGEST_S) as policy:

        def ask() -> bool:
            nonlocal number
            number += 1
            state = number / 1024  # which float32 holds
            try:
                chunk = policy.infer(seen_at(state))
            except PolicyError:
                return False
            assert ([state, 0.0], state) == (chunk.values[0].tolist(), chunk.observed_at_s)
            return True

        assert ask()
        for _ in range(kills):
            killer = threading.Timer(chance.uniform(0.0, 0.02), server.kill)
            killer.start()
            while killer.is_alive():
                ask()
            server.listen()
            ends_at_s = time.monotonic() + LONGEST_S
            while not ask():
                assert time.monotonic() < ends_at_s
                time.sleep(PAUSE_S)
