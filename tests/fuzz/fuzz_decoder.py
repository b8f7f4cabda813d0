"""
Let atheris look for a message that a decoder does not survive.

``python tests/fuzz/fuzz_decoder.py NAME CORPUS [options of libFuzzer]``; without words it writes
the names. It starts from the real messages that the decoder reads, learns which bytes lead to lines
of code that none led to before, and keeps what it learned in the folder CORPUS. What it finds
becomes a test.
"""

from __future__ import annotations

import contextlib
import hashlib
import sys
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parents[1]))

OURS = ["vlmcore", "vlmcore_audio", "vlmcore_robotics"]
with atheris.instrument_imports(include=[*OURS, "h11", "websockets"]):
    from fuzz.decoders import DECODERS
    from vlmcore.errors import VlmcoreError


def main() -> None:
    if not sys.argv[1:]:
        sys.stdout.write("\n".join(DECODERS))
        return
    name, corpus, *options = sys.argv[1:]
    decoder = DECODERS[name]
    folder = Path(corpus)
    folder.mkdir(parents=True, exist_ok=True)
    for message in decoder.real:
        (folder / hashlib.sha256(message).hexdigest()[:16]).write_bytes(message)

    def show(message: bytes) -> None:
        with contextlib.suppress(VlmcoreError):
            decoder.decode(message)

    atheris.Setup([sys.argv[0], *options, str(folder)], show)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
