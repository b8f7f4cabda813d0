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

import numpy as np
import pytest
import soundfile

from architecture.tree import ROOT
from music_cases import CDN, DONE, Asked, ScriptedMiniMax, document, event, says, stream_head
from vlmcore_audio.containers import wav_of_pcm

if not Path("/proc/self/status").exists():
    pytest.skip("there is no /proc", allow_module_level=True)

MIB = 1 << 20
SIZE = 100 * MIB
PIECE = bytes(MIB)
CHILD = """
import re, sys
from pathlib import Path
from music_cases import routed
from vlmcore.errors import MusicError
from vlmcore_audio.containers import Container
from vlmcore_audio.minimax.client import MiniMaxMusic
from vlmcore_audio.minimax.wire import Delivery
from vlmcore_audio.music import AudioFormat, MusicRequest
audio = AudioFormat(container=Container.PCM)
with routed(int(sys.argv[1])), MiniMaxMusic(delivery=Delivery(sys.argv[2])) as music:
    try:
        clip = music.generate(MusicRequest(prompt="x", is_instrumental=True, audio=audio))
        said = len(clip.encoded)
    except MusicError as error:
        said = error
peak = re.search(r"VmHWM:\\s+([0-9]+) kB", Path("/proc/self/status").read_text())
print(peak[1], said)
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
    peak_bytes, said = tried(delivery, script, minimax)
    assert said == str(SIZE)
    assert peak_bytes < 3 * SIZE + 64 * MIB


SAVING = """
import re, sys
from pathlib import Path
from music_cases import routed
from vlmcore.cli import main
with routed(int(sys.argv[1])):
    code = main(["music", "generate", "-q", "--prompt", "x", "--instrumental", "-o", sys.argv[2]])
peak = re.search(r"VmHWM:\\s+([0-9]+) kB", Path("/proc/self/status").read_text())
print(peak[1], code)
"""


def noise(_: Asked) -> Iterable[bytes]:
    """A WAV of ten minutes that FLAC does not make much smaller, in fragments."""
    part = np.random.default_rng(7).integers(-8000, 8000, MIB // 2).astype("<i2").tobytes()
    yield stream_head() + event(
        wav_of_pcm(part * 100, sample_rate_hz=44_100, channels=2)[:44].hex(), status=1
    )
    for _i in range(100):
        yield b'data: {"data": {"status": 1, "audio": "' + part.hex().encode() + b'"}}\n\n'
    yield DONE


@pytest.mark.slow
def test_a_long_song_is_encoded_anew_in_the_same_memory(
    minimax: ScriptedMiniMax, tmp_path: Path
) -> None:
    """
    A part after the other, from the command line to the file.
    """
    minimax.scripts = [noise]
    path = tmp_path / "song.flac"
    peak_bytes, code = run(SAVING, str(minimax.port), str(path))
    assert code == "0"
    assert 100 * MIB // 4 == soundfile.info(path).frames
    assert path.stat().st_size > SIZE // 2
    assert peak_bytes < 3 * SIZE + 64 * MIB


def endless(_: Asked) -> Iterable[bytes]:
    """Twice as much, in a stream of fragments that does not end."""
    yield stream_head()
    for _i in range(200):
        yield b'data: {"data": {"status": 1, "audio": "' + PIECE.hex().encode() + b'"}}\n\n'


def huge(_: Asked) -> Iterable[bytes]:
    """Twice as much, in one document that does not end."""
    yield b'HTTP/1.1 200 OK\r\n\r\n{"data": {"status": 2, "audio": "'
    for _i in range(200):
        yield PIECE.hex().encode()


def long_file(_: Asked) -> Iterable[bytes]:
    """A file twice as long, which does not say how long it is."""
    yield b"HTTP/1.1 200 OK\r\n\r\n"
    for _i in range(200):
        yield PIECE


@pytest.mark.slow
@pytest.mark.parametrize(
    ("delivery", "script"), [("stream", endless), ("hex", huge), ("url", long_file)]
)
def test_two_hundred_mebibytes_are_refused_as_they_come(
    delivery: str, script: Callable[[Asked], Iterable[bytes]], minimax: ScriptedMiniMax
) -> None:
    """
    At 128 MiB, of which there is one copy.
    """
    peak_bytes, said = tried(delivery, script, minimax)
    assert "max_audio_bytes, 134,217,728" in said
    assert peak_bytes < 2 * 128 * MIB


def tried(
    delivery: str, script: Callable[[Asked], Iterable[bytes]], minimax: ScriptedMiniMax
) -> tuple[int, str]:
    """Ask in a process of its own; give the most memory that it had, and what came of it."""
    place = says(document(f"https://{CDN}/a.pcm"))
    minimax.scripts = [place, script] if delivery == "url" else [script]
    return run(CHILD, str(minimax.port), delivery)


def run(program: str, *words: str) -> tuple[int, str]:
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")])
    done = subprocess.run(
        [sys.executable, "-c", program, *words],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    peak_kib, said = done.stdout.strip().splitlines()[-1].split(" ", 1)
    return 1024 * int(peak_kib), said
