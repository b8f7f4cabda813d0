"""
How much memory an answer of 100 MiB takes, measured in a process of its own.

What ``getrusage`` tells of a process counts its parent's from before it began.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from architecture.tree import ROOT
from music_cases import CDN, DONE, Asked, ScriptedMiniMax, document, says, stream_head

if not Path("/proc/self/status").exists():
    pytest.skip("there is no /proc", allow_module_level=True)

MIB = 1 << 20
SIZE = 100 * MIB
PIECE = bytes(MIB)
CHILD = """
import re, sys
from pathlib import Path
from music_cases import routed
from vlmcore_audio.containers import Container
from vlmcore_audio.minimax.client import MiniMaxMusic
from vlmcore_audio.minimax.wire import Delivery
from vlmcore_audio.music import AudioFormat, MusicRequest
audio = AudioFormat(container=Container.PCM)
with routed(int(sys.argv[1])), MiniMaxMusic(delivery=Delivery(sys.argv[2])) as music:
    clip = music.generate(MusicRequest(prompt="x", is_instrumental=True, audio=audio))
peak = re.search(r"VmHWM:\\s+([0-9]+) kB", Path("/proc/self/status").read_text())
print(len(clip.encoded), peak[1])
"""


def fragments(_: Asked) -> Iterable[bytes]:
    """A stream of fragments, and then all of it once more in one event."""
    yield stream_head()
    for _i in range(100):
        yield b'data: {"data": {"status": 1, "audio": "' + PIECE.hex().encode() + b'"}}\n\n'
    yield b'data: {"data": {"status": 2, "audio": "'
    for _i in range(100):
        yield PIECE.hex().encode()
    yield b'"}}\n\n' + DONE


def in_one(_: Asked) -> Iterable[bytes]:
    """One document."""
    yield b'HTTP/1.1 200 OK\r\n\r\n{"data": {"status": 2, "audio": "'
    for _i in range(100):
        yield PIECE.hex().encode()
    yield b'"}}'


def file(_: Asked) -> Iterable[bytes]:
    """A file."""
    yield f"HTTP/1.1 200 OK\r\ncontent-length: {SIZE}\r\n\r\n".encode()
    for _i in range(100):
        yield PIECE


@pytest.mark.slow
@pytest.mark.parametrize(
    ("delivery", "script"), [("stream", fragments), ("hex", in_one), ("url", file)]
)
def test_a_hundred_mebibytes_take_less_than_three_times_their_size(
    delivery: str, script: Callable[[Asked], Iterable[bytes]], minimax: ScriptedMiniMax
) -> None:
    """
    With Python and NumPy, 64 MiB more: in a stream that repeats it, in one piece, and as a file.
    """
    place = says(document(f"https://{CDN}/a.pcm"))
    minimax.scripts = [place, script] if delivery == "url" else [script]
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")])
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(minimax.port), delivery],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    size, peak_kib = map(int, done.stdout.split())
    assert size == SIZE
    assert 1024 * peak_kib < 3 * SIZE + 64 * MIB
