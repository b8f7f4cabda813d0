"""The command ``policy`` in this process, a robot in a file, and servers of each protocol."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from openpi_cases import INFO, NAMES, PLAN, ROBOT
from vlmcore.cli import main
from vlmcore.contracts.documents import embodiment_to_json
from vlmcore.secrets import Secret
from vlmcore.testing import ScriptedPolicy
from vlmcore_robotics.servers.http import HttpPolicyServer
from vlmcore_robotics.servers.runtime import PolicyRuntime
from vlmcore_robotics.servers.threads import serve_in_thread
from vlmcore_robotics.servers.websocket import OpenPIServer
from vlmcore_robotics.servers.zeromq import GrootServer
from vlmcore_robotics.wire.groot_layout import ActionStream, GrootLayout, StateSlice, VideoKey
from vlmcore_robotics.wire.observation_layout import CameraKey, ObservationLayout, StateKey

PLAIN = ObservationLayout(
    cameras=[CameraKey(camera="front", key="observation/front")],
    state=[StateKey(key="observation/state", count=2)],
)
PLAIN_GROOT = GrootLayout(
    video=[VideoKey(key="front", camera="front")],
    state=[StateSlice(key="state", start=0, end=2)],
    action=[ActionStream(key="action", names=NAMES)],
    language="annotation.human.task_description",
)


@pytest.fixture
def robot(tmp_path: Path) -> Path:
    """The two-joint arm, in a file."""
    path = tmp_path / "robot.json"
    path.write_text(embodiment_to_json(ROBOT))
    return path


@pytest.fixture
def policy(capsys: pytest.CaptureFixture[str]) -> Callable[..., SimpleNamespace]:
    """Run the command in this process; give its exit code, output and complaints."""

    def run(*words: object) -> SimpleNamespace:
        code = main(["policy", *map(str, words)])
        captured = capsys.readouterr()
        document = json.loads(captured.out) if "--json" in words and code in {0, 1, 5} else None
        return SimpleNamespace(code=code, out=captured.out, err=captured.err, document=document)

    return run


@pytest.fixture
def serving() -> Callable[..., Any]:
    """Serve a policy in a protocol, as a context; by default one that follows a plan."""

    @contextmanager
    def serve(
        protocol: str, policy: Any = None, token: str | None = None, tls: Any = None
    ) -> Iterator[str]:
        key = None if token is None else Secret(token)
        with PolicyRuntime(policy or ScriptedPolicy([PLAN], info=INFO)) as runtime:
            server: Any
            if protocol == "openpi":
                server = OpenPIServer(runtime, layout=PLAIN, port=0, api_key=key, tls=tls)
            elif protocol == "http":
                server = HttpPolicyServer(runtime, port=0, token=key, tls=tls)
            else:
                server = GrootServer(runtime, layout=PLAIN_GROOT, port=0, api_token=key)
            with serve_in_thread(server) as url:
                yield url

    return serve
