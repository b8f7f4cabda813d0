"""
Fork a process that has clients, and let both ask on; ``python forking_client.py CLIENT=URL ...``.

Writes, as JSON, what each of the two made of its calls, by client. It has no threads of its own, as
a process that is forked should not.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys

from kit_cases import Caller
from openpi_cases import seen_at
from vlmcore.errors import PolicyError

CALLS = 20


def asked(policy: Caller, mine: int) -> list[str]:
    """Ask with numbers that the other one does not ask with; say what went wrong."""
    wrong = []
    for i in range(CALLS):
        state = (2 * i + mine) / 1024  # which float32 holds
        try:
            came = policy.infer(seen_at(state)).values[0, 0]
        except PolicyError as error:
            wrong.append(str(error))
        else:
            wrong += [] if came == state else [f"got {came}, expected {state}"]
    return wrong


def forked(name: str, url: str) -> list[list[str]]:
    """Ask in two processes at once."""
    with Caller(name, url, timeout_s=20) as policy:
        policy.infer()
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            # Kept: a loop that goes away would stop listening for the other process, too.
            inherited, policy._loop = policy._loop, asyncio.new_event_loop()
            with os.fdopen(writing, "w") as pipe:
                json.dump(asked(policy, 1), pipe)
            policy.__exit__()
            assert not inherited.is_closed()
            os._exit(0)
        os.close(writing)
        wrong = asked(policy, 0)
        with os.fdopen(reading) as pipe:
            theirs = json.load(pipe)
        os.waitpid(child, 0)
        return [wrong, theirs, asked(policy, 0)]


def main() -> None:
    named = (word.split("=", 1) for word in sys.argv[1:])
    json.dump({name: forked(name, url) for name, url in named}, sys.stdout)


if __name__ == "__main__":
    main()
