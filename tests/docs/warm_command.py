"""
The command ``vlmcore`` without the seconds in which Python imports: where pages run it often.

``warm_command`` starts a process that imports, and gives a folder for the path in which a program
``vlmcore`` asks that process to fork. The fork takes the caller's words, folder, environment and
streams, and does what the installed script does; only what is imported is there already.
"""

from __future__ import annotations

import importlib
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CALL = """
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as call:
    call.connect(sys.argv[1])
    words = json.dumps([sys.argv[2:], os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(call, [words], [0, 1, 2])
    sys.exit(call.recv(1)[0])
"""
MOST_BYTES = 1 << 16  # words and environment; a message is one packet of this size at most


@contextmanager
def warm_command(*modules: str, folder: Path) -> Iterator[Path]:
    """Import *modules* in a process that runs the command; give the folder of ``vlmcore``."""
    folder.mkdir()
    address, program = str(folder / "calls"), folder / "vlmcore"
    words = [sys.executable, "-IS", "-c", CALL, address]
    program.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    with subprocess.Popen(
        [sys.executable, __file__, address, *modules], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"listening\n"
        try:
            yield folder
        finally:
            process.terminate()


def listen(address: str) -> None:
    """Fork for each call, until this process is terminated."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the forks but the callers
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        os.write(1, b"listening\n")
        while True:
            call, _ = listener.accept()
            with call:
                if os.fork() == 0:
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    call.send(bytes([run_for(call)]))
                    os._exit(0)


def run_for(call: socket.socket) -> int:
    """Run the command as the caller would; return its exit code."""
    words, streams, _, _ = socket.recv_fds(call, MOST_BYTES, 3)
    sys.argv[1:], folder, environment = json.loads(words)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for place, stream in enumerate(streams):
        os.dup2(stream, place)
        os.close(stream)
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
    from vlmcore.cli import main  # noqa: PLC0415 - the process itself needs nothing of it

    try:
        code = main()
    except SystemExit as leaves:
        code = leaves.code if isinstance(leaves.code, int) else 1
    sys.stdout.flush()
    sys.stderr.flush()
    return code


if __name__ == "__main__":
    for module in sys.argv[2:]:
        importlib.import_module(module)
    listen(sys.argv[1])
