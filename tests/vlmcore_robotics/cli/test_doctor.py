"""``vlmcore policy doctor``, on our servers, on others, and on a dead port."""

from __future__ import annotations

import http.server
import itertools
import socket
import threading
from typing import Any

import attrs
import pytest

from client_cases import misbehaving
from openpi_cases import INFO
from vlmcore.errors import PolicyError
from vlmcore.testing import ScriptedPolicy

PROTOCOLS = ("openpi", "http", "groot")
SCHEMES = {"openpi": "ws", "http": "http", "groot": "tcp"}
STEPS = ["address", "port", "protocol", "handshake", "robot", "call", "gate"]


def works(done: Any) -> dict[str, bool | None]:
    """Tell what each step found."""
    return {step["step"]: step["works"] for step in done.document["steps"]}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_each_of_our_servers_is_sound(policy, serving, robot, protocol: str) -> None:
    """
    Step by step, to the word of the gate.
    """
    with serving(protocol) as url:
        done = policy("doctor", url, "--embodiment", robot, "--json")
    assert (0, STEPS) == (done.code, list(works(done)))
    assert all(found is not False for found in works(done).values())
    assert works(done)["protocol"] is True


def test_people_get_a_line_a_step(policy, serving, robot) -> None:
    """
    With what to do below it, where there is something to do.
    """
    with serving("openpi") as url:
        done = policy("doctor", url, "--embodiment", robot)
    lines = done.out.splitlines()
    assert lines[0] == f"ok    address: {url}, on this machine"
    assert any(line.startswith("note  gate: would refuse") for line in lines)


def test_a_dead_port_is_told_with_what_to_do(policy, robot) -> None:
    """
    And nothing after it is tried.
    """
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens
        url = f"ws://127.0.0.1:{taken.getsockname()[1]}"
        done = policy("doctor", url, "--embodiment", robot, "--json")
    assert (1, ["address", "port"]) == (done.code, list(works(done)))
    assert "start the server" in done.document["steps"][-1]["advice"]


@pytest.mark.parametrize(("spoken", "asked"), [*itertools.permutations(PROTOCOLS, 2)])
def test_another_protocol_is_recognised(policy, serving, robot, spoken: str, asked: str) -> None:
    """
    It says which address to ask instead.
    """
    with serving(spoken) as url:
        port = url.rpartition(":")[2].rstrip("/")
        other = f"{SCHEMES[asked]}://127.0.0.1:{port}"
        done = policy("doctor", other, "--embodiment", robot, "--json")
    assert (1, False) == (done.code, works(done)["protocol"])
    assert f"{SCHEMES[spoken]}://" in done.document["steps"][-1]["advice"]


@pytest.mark.parametrize(
    ("banner", "said"),
    [
        (b"SSH-2.0-OpenSSH_9.6\r\n", "seems to speak SSH"),
        (b"\x15\x03\x01\x00\x02\x02\x46", "seems to speak TLS"),
        (b"220 smtp.example.com ESMTP\r\n", "seems to speak something else"),
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "is no policy server"),
        (b"HTTP/1.1 abc\r\n\r\n", "is no policy server"),
        (b"HTTP/1.1", "is no policy server"),
    ],
)
def test_what_is_no_policy_server_is_told(policy, robot, banner: bytes, said: str) -> None:
    """
    As far as its first bytes say.
    """
    with misbehaving(lambda connection: connection.sendall(banner)) as url:
        done = policy("doctor", url, "--embodiment", robot, "--json", "--timeout-s", 1)
    assert done.code == 1
    assert said in done.out


def test_a_server_that_says_nothing_ends_within_the_timeout(policy, robot) -> None:
    """
    Silence may be a server that is busy, so the handshake is tried as well.
    """
    over = threading.Event()
    with misbehaving(lambda _connection: over.wait(30)) as url:
        done = policy("doctor", url, "--embodiment", robot, "--json", "--timeout-s", 0.2)
        over.set()
    assert (1, None, False) == (done.code, works(done)["protocol"], works(done)["handshake"])
    assert "--timeout-s" in done.document["steps"][-1]["advice"]


def test_a_web_server_is_none(policy, robot) -> None:
    """
    It answers in HTTP, and knows nothing of policies.
    """
    handler = http.server.BaseHTTPRequestHandler
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        url = f"ws://127.0.0.1:{server.server_port}"
        done = policy("doctor", url, "--embodiment", robot, "--json")
        server.shutdown()
        thread.join()
    assert (1, None, False) == (done.code, works(done)["protocol"], works(done)["handshake"])


def test_a_policy_of_another_robot_is_told_with_the_differences(policy, serving, robot) -> None:
    """
    All of them, before the first action.
    """
    other = attrs.evolve(INFO, action_names=("elbow", "shoulder"), rate_hz=50)
    wrong = ScriptedPolicy([[[0.0, 0.0]] * 2], info=other)
    with serving("openpi", wrong) as url:
        done = policy("doctor", url, "--embodiment", robot, "--json")
    assert (1, False) == (done.code, works(done)["handshake"])
    last = done.document["steps"][-1]
    assert "action_names is elbow, shoulder" in last["seen"]
    assert "rate_hz is 50" in last["seen"]
    assert "--embodiment" in last["advice"]


def test_a_policy_that_fails_is_told_with_its_words(policy, serving, robot) -> None:
    """
    And where to look.
    """
    failing = ScriptedPolicy([PolicyError("scripted", "it is dark")], info=INFO)
    with serving("http", failing) as url:
        done = policy("doctor", url, "--embodiment", robot, "--json")
    assert (1, False) == (done.code, works(done)["call"])
    assert "it is dark" in done.document["steps"][-1]["seen"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_token_that_is_missing_is_told(policy, serving, robot, protocol: str) -> None:
    """
    With the option that names its variable.
    """
    with serving(protocol, token="s3cr3t-t0ken") as url:
        done = policy("doctor", url, "--embodiment", robot, "--json")
    assert done.code == 1
    assert "--token-env" in done.document["steps"][-1]["advice"]


def test_what_a_policy_does_not_say_is_told_and_no_fault(policy, serving, robot) -> None:
    """
    Nobody can compare it.
    """
    quiet = attrs.evolve(INFO, rate_hz=None, horizon=None)
    with serving("openpi", ScriptedPolicy([[[0.0, 0.0]]], info=quiet)) as url:
        done = policy("doctor", url, "--embodiment", robot, "--json")
    assert (0, None) == (done.code, works(done)["robot"])
    assert "does not say its action_units, horizon, rate_hz" in done.out


@pytest.mark.parametrize(
    ("url", "advice"),
    [
        ("wss://example.com", "--allow-remote"),
        ("ws://example.com", "wss://"),
        ("ws://127.0.0.1:99999", "scheme://host:port"),
    ],
)
def test_an_address_that_may_not_be_dialled_is_told(policy, robot, url: str, advice: str) -> None:
    """
    Nothing is sent there.
    """
    done = policy("doctor", url, "--embodiment", robot, "--json")
    assert (1, {"address": False}) == (done.code, works(done))
    assert advice in done.document["steps"][0]["advice"]
