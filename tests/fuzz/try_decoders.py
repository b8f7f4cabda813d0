"""
Show every decoder random messages, in this process, and print what came of it as JSON.

A test runs it in a process of its own, so that its memory is that of the decoders, and so that what
hangs or crashes is found. ``python tests/fuzz/try_decoders.py COUNT [NAME ...]``
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from fuzz.decoders import DECODERS
from fuzz.messages import messages
from vlmcore.errors import VlmcoreError

LARGEST_BYTES = 4 << 30  # of addresses, NumPy and its threads included
STATUS = Path("/proc/self/status")


def peak_kib() -> int:
    """Say how much memory this process has had at most."""
    return int(STATUS.read_text().split("VmHWM:")[1].split()[0])


def tried(name: str, count: int) -> dict[str, Any]:
    """Show one decoder *count* messages."""
    decoder, slowest_s, wrong, read = DECODERS[name], 0.0, "", 0
    for real in decoder.real:  # what is imported at first use is none of the messages' memory
        try_once(decoder.decode, real)
    before_kib = peak_kib()
    for message in messages(decoder, count=count, seed=name):
        started_s = time.process_time()
        problem = try_once(decoder.decode, message)
        slowest_s = max(slowest_s, time.process_time() - started_s)
        read += problem is None
        wrong = wrong or problem or ""
    grown_mib = (peak_kib() - before_kib) / 1024
    return {"wrong": wrong, "slowest_s": slowest_s, "grown_mib": grown_mib, "read": read}


def try_once(decode: Any, message: bytes) -> str | None:
    """Say what is wrong; nothing where an error of ours came, and ``None`` where it is read."""
    try:
        decode(message)
    except VlmcoreError:
        return ""
    except BaseException as error:  # noqa: BLE001 - whatever it is
        return f"{type(error).__name__}: {error} at {message!r:.1000}"
    return None


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (LARGEST_BYTES, LARGEST_BYTES))
    count, names = int(sys.argv[1]), sys.argv[2:] or list(DECODERS)
    json.dump({name: tried(name, count) for name in names}, sys.stdout)


if __name__ == "__main__":
    main()
