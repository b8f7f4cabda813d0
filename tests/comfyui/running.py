"""A real ComfyUI for tests: started on a port of its own, with the nodes in a folder of its own."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import attrs

from vlmcore_comfy.installing import install_pack

STAND_INS = Path(__file__).with_name("stand_ins")
_PATIENCE_S = 120


@attrs.frozen
class RunningComfyUI:
    """
    A ComfyUI that listens.

    Attributes:
        url: Where.
        base: The folder with its input, output and custom nodes.
        log: What it has written so far, in this file.
    """

    url: str
    base: Path
    log: Path


@contextmanager
def comfyui(
    checkout: Path, base: Path, pack: Path | None = None, **environment: str
) -> Iterator[RunningComfyUI]:
    """
    Start the ComfyUI of *checkout* on the processor, and stop it at the end.

    It has our nodes, or those of another *pack*.
    """
    (base / "custom_nodes").mkdir(parents=True)
    if pack is None:
        install_pack(base)
    else:
        (base / "custom_nodes" / pack.name).symlink_to(pack.resolve())
    port = _free_port()
    command = [
        *(os.environ.get("COMFYUI_PYTHON") or sys.executable, "main.py", "--cpu"),
        *("--listen", "127.0.0.1", "--port", str(port), "--disable-auto-launch"),
        *("--base-directory", str(base), "--database-url", "sqlite:///:memory:"),
    ]
    variables = {**os.environ, "PYTHONPATH": str(STAND_INS), **environment}
    log = base / "comfyui.log"
    with (
        log.open("w") as file,
        subprocess.Popen(
            command, cwd=checkout, env=variables, stdout=file, stderr=subprocess.STDOUT
        ) as process,
    ):
        try:
            running = RunningComfyUI(f"http://127.0.0.1:{port}", base, log)
            _wait(process, running)
            yield running
        finally:
            process.kill()


@contextmanager
def policy_server(protocol: str) -> Iterator[str]:
    """Serve a policy that always proposes the same, and give its address."""
    command = [
        *(sys.executable, "-m", "vlmcore", "policy", "serve"),
        "constant:0.05,0.05,0.05,0.05,0.05,0.05,0.05,0.5",
        *("--horizon", "16", "--embodiment", "generic_7dof_joint_gripper"),
        *("--protocol", protocol, "--port", "0"),
    ]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            assert process.stdout is not None
            said = ""
            while not (found := re.search(r"(\w+://\S+)", said)):
                line = process.stdout.readline()
                assert line, said
                said += line
            yield found[1]
        finally:
            process.kill()


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _wait(process: subprocess.Popen[bytes], running: RunningComfyUI) -> None:
    ends_s = time.monotonic() + _PATIENCE_S
    while time.monotonic() < ends_s:
        assert process.poll() is None, running.log.read_text()[-4000:]
        try:
            with urlopen(f"{running.url}/queue", timeout=5):
                return
        except (URLError, OSError):
            time.sleep(0.2)
    raise AssertionError(f"ComfyUI does not start:\n{running.log.read_text()[-4000:]}")
