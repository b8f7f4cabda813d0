"""
Serves a policy in every protocol, in a process that may be killed, and starts another one then.

``python tests/killable_server.py PORT PORT PORT`` writes a line with the id of each process, once
it serves. It ends when its input does. What is imported is so once: a restart takes no time.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import ExitStack

from kit_cases import serving
from vlmcore_robotics.testing import PolicyProtocol


def serve(ports: list[int]) -> None:
    """Serve, in this process, until it is killed."""
    with ExitStack() as stack:
        for protocol, port in zip(PolicyProtocol, ports, strict=True):
            stack.enter_context(serving(protocol, port=port))
        sys.stdout.write(f"{os.getpid()}\n")
        sys.stdout.flush()
        threading.Event().wait()


def main() -> None:
    ports = [int(word) for word in sys.argv[1:]]
    children: list[int] = []

    def end() -> None:
        sys.stdin.read()
        os.kill(children[-1], signal.SIGKILL)
        os._exit(0)

    while True:
        child = os.fork()
        if not child:
            serve(ports)
        children.append(child)
        if len(children) == 1:
            threading.Thread(target=end, daemon=True).start()
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
