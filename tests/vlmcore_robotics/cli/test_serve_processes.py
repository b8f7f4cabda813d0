"""``vlmcore policy serve`` in processes of its own, as a person starts and stops it."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from openpi_cases import ROBOT
from vlmcore.rollout.episode_reader import EpisodeReader

CHILD = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a runner in the background ignores it
from vlmcore.cli import main
sys.exit(main(sys.argv[1:]))
"""
MODULE = """
import os, threading
from openpi_cases import INFO
from vlmcore.testing import ScriptedPolicy

def slow():
    def answer(seen):
        with open(os.environ["BEGAN"], "w") as began:
            began.write("x")
        with open(os.environ["GO"]) as go:  # a pipe: waits for whoever writes to it
            go.read()
        return [[0.05, 0.05]] * 2
    return ScriptedPolicy(answer, info=INFO)
"""


@pytest.fixture
def serve(robot: Path) -> Iterator[Callable[..., Any]]:
    """Start to serve; give the process, and where it serves."""
    started: list[subprocess.Popen[str]] = []

    def start(*words: object, **environment: str) -> SimpleNamespace:
        command = [sys.executable, "-c", CHILD, "policy", "serve", *map(str, words)]
        process = subprocess.Popen(
            [*command, "--embodiment", str(robot), "--port", "0", "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )
        started.append(process)
        assert process.stdout is not None
        line = process.stdout.readline()
        said = json.loads(line) if line else {}
        return SimpleNamespace(process=process, url=said.get("url"), said=said)

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def ended(serving: SimpleNamespace, number: int) -> tuple[int, str]:
    """Send a signal; give the exit code and what was said on standard error."""
    serving.process.send_signal(number)
    _, err = serving.process.communicate(timeout=60)
    return serving.process.returncode, err


@pytest.mark.parametrize("protocol", ["openpi", "http", "groot"])
def test_it_serves_until_ctrl_c(policy, serve, robot, protocol: str) -> None:
    """
    Where, it says first; then it ends without a traceback, and the port is free.
    """
    serving = serve("constant:0.05,0.05", "--protocol", protocol, "--horizon", 4)
    assert {"protocol": protocol, "policy": "constant"}.items() <= serving.said.items()
    done = policy("call", serving.url, "--embodiment", robot, "--previous", "zero", "--json")
    assert (0, 4) == (done.code, len(done.document["chunk"]["actions"]))
    code, err = ended(serving, signal.SIGINT)
    assert (130, False) == (code, "Traceback" in err)
    port = int(serving.url.rpartition(":")[2].rstrip("/"))
    with socket.socket() as free, pytest.raises(ConnectionRefusedError):
        free.connect(("127.0.0.1", port))


def test_a_recording_is_served_to_clients_that_are_told_its_horizon(
    policy, serve, robot, tmp_path: Path
) -> None:
    """
    GR00T's ask for it before the first action.
    """
    path = tmp_path / "run.jsonl"
    words = ("--horizon", 4, "--embodiment", robot, "--calls", 2)
    assert 0 == policy("record", "constant:0.05,0.05", path, *words).code
    serving = serve(f"episode:{path}", "--protocol", "groot")
    done = policy("call", serving.url, "--embodiment", robot, "--previous", "zero", "--json")
    assert (0, 4) == (done.code, len(done.document["chunk"]["actions"]))


def test_a_proxy_records_what_goes_through_it(policy, serve, robot, tmp_path: Path) -> None:
    """
    From one protocol to another; what is recorded is on disk while it runs.
    """
    path = tmp_path / "run.jsonl"
    behind = serve("constant:0.05,0.05", "--protocol", "openpi")
    proxy = serve(behind.url, "--protocol", "http", "--record", path)
    done = policy("call", proxy.url, "--embodiment", robot, "--previous", "zero", "--json")
    assert [[0.05, 0.05]] == done.document["chunk"]["actions"]
    assert [[[0.05, 0.05]]] == [step.chunk.values.tolist() for step in EpisodeReader(path)]
    assert 0 == ended(proxy, signal.SIGTERM)[0]
    assert EpisodeReader(path).header.embodiment == ROBOT


def test_each_session_is_recorded_to_a_file_of_its_own(
    policy, serve, robot, tmp_path: Path
) -> None:
    """
    Whoever connects begins anew, and what is there already stays.
    """
    path = tmp_path / "run.jsonl"
    (tmp_path / "run-2.jsonl").write_text("mine")
    serving = serve("constant:0.05,0.05", "--protocol", "openpi", "--record", path)
    for calls in (1, 2):
        words = ("--previous", "zero", "--repeat", calls)
        assert 0 == policy("call", serving.url, "--embodiment", robot, *words).code
    assert 0 == ended(serving, signal.SIGTERM)[0]
    assert [1, 2] == [len(list(EpisodeReader(tmp_path / f"run{n}.jsonl"))) for n in ("", "-3")]
    assert "mine" == (tmp_path / "run-2.jsonl").read_text()


def test_what_is_in_hand_is_answered_before_it_ends(serve, robot, tmp_path: Path) -> None:
    """
    Ctrl-C asks it to stop; it does not break off an inference.
    """
    (tmp_path / "slow_policy.py").write_text(MODULE)
    began, go = tmp_path / "began", tmp_path / "go"
    os.mkfifo(began)
    os.mkfifo(go)
    listening = os.open(began, os.O_RDONLY | os.O_NONBLOCK)
    heard = select.poll()
    heard.register(listening, select.POLLIN)
    tests = Path(__file__).parents[2]
    path = os.pathsep.join([str(tmp_path), str(tests)])
    serving = serve(
        "slow_policy:slow",
        "--protocol",
        "http",
        PYTHONPATH=path,
        BEGAN=str(began),
        GO=str(go),
    )
    words = ["--embodiment", str(robot), "--previous", "zero", "--timeout-s", "60", "--json"]
    asking = subprocess.Popen(
        [sys.executable, "-m", "vlmcore", "policy", "call", serving.url, *words],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert heard.poll(60_000), "the inference has not begun"
    serving.process.send_signal(signal.SIGINT)
    with go.open("w") as pipe:
        pipe.write("go")
    os.close(listening)
    out, _ = asking.communicate(timeout=60)
    _, err = serving.process.communicate(timeout=60)
    assert (0, 2) == (asking.returncode, len(json.loads(out)["chunk"]["actions"]))
    assert (130, False) == (serving.process.returncode, "Traceback" in err)


def test_clients_show_the_token_of_the_environment(policy, serve, robot, monkeypatch) -> None:
    """
    It is in no argument, and in nothing that is said.
    """
    monkeypatch.setenv("ARM_TOKEN", "s3cr3t-t0ken")
    serving = serve("constant:zero", "--protocol", "http", "--token-env", "ARM_TOKEN")
    assert policy("call", serving.url, "--embodiment", robot).code == 1
    done = policy(
        "call", serving.url, "--embodiment", robot, "--previous", "zero", "--token-env", "ARM_TOKEN"
    )
    assert done.code == 0
    assert "s3cr3t" not in ended(serving, signal.SIGINT)[1] + done.out + done.err


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("constant:zero", "--protocol", "http", "--host", "0.0.0.0"), 2, "--host: got 0.0.0.0"),
        (("constant:zero", "--protocol", "http", "--max-waiting", "-1"), 2, "--max-waiting"),
        (("constant:zero", "--protocol", "grpc"), 2, "--protocol"),
        (("constant:zero", "--protocol", "openpi", "--layout", "droid"), 2, "--layout: got 8"),
        (("episode:none.jsonl", "--protocol", "http"), 1, "none.jsonl: does not exist"),
        (("ws://127.0.0.1:1", "--protocol", "http"), 1, "nothing listens there"),
        (("constant:zero", "--protocol", "http", "--record", "/"), 1, "exists already"),
    ],
)
def test_what_cannot_be_served_is_told(
    policy, robot, words: tuple[str, ...], code: int, said: str
) -> None:
    """
    In one line, and nothing listens.
    """
    done = policy("serve", *words, "--embodiment", robot)
    assert said in done.err
    assert code == done.code
    assert "Traceback" not in done.err


def test_a_port_that_is_taken_is_told(policy, robot) -> None:
    """
    With the address.
    """
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        words = ("constant:zero", "--protocol", "openpi", "--port", port)
        done = policy("serve", *words, "--embodiment", robot)
    assert done.code == 1
    assert f"ws://127.0.0.1:{port}: cannot listen there" in done.err
