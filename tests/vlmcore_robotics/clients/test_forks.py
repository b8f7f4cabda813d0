"""Our clients in a process that is forked, as workers of data loaders and of web servers are."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from kit_cases import CLIENTS, serving
from vlmcore_robotics.testing import PolicyProtocol

TESTS = Path(__file__).parents[2]
LONGEST_S = 60.0


@pytest.fixture(scope="module")
def wrong() -> dict[str, list[list[str]]]:
    if not hasattr(os, "fork"):
        pytest.skip("the process is forked")
    with ExitStack() as stack:
        urls = {protocol: stack.enter_context(serving(protocol)) for protocol in PolicyProtocol}
        done = subprocess.run(
            [
                sys.executable,
                TESTS / "forking_client.py",
                *(f"{name}={urls[protocol]}" for name, (protocol, _) in CLIENTS.items()),
            ],
            capture_output=True,
            check=True,
            text=True,
            timeout=LONGEST_S,
            env={**os.environ, "PYTHONPATH": str(TESTS), "OPENBLAS_NUM_THREADS": "1"},
        )
    found: dict[str, list[list[str]]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("client", CLIENTS)
def test_a_forked_process_does_not_take_the_answers_of_the_other(
    client: str, wrong: dict[str, list[list[str]]]
) -> None:
    """
    Both asked on one connection, and each was given actions for what the other one saw; closing
    one hung up on both.
    """
    assert [[], [], []] == wrong[client]
