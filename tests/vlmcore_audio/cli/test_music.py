"""Tests of ``vlmcore music``, from the command line to a file, against a scripted MiniMax."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import soundfile

from architecture.tree import ROOT
from music_cases import (
    CDN,
    DONE,
    KEY,
    Asked,
    Script,
    ScriptedMiniMax,
    document,
    encoded,
    event,
    says,
    stream_head,
    streams,
    tone,
)
from vlmcore.cli import main
from vlmcore.cli.commands import ExitCode

SOFT = ("--prompt", "soft piano", "--instrumental")
CHILD = """
import os, signal, socket, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a runner in the background ignores it
from music_cases import routed
from vlmcore.cli import main
with routed(int(sys.argv[1])):
    code = main(sys.argv[2:])
sys.exit(code)
"""


def started(minimax: ScriptedMiniMax, *words: str, first: str = "") -> subprocess.Popen[bytes]:
    """Run the command in a process of its own, whose internet is *minimax*, after *first*."""
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")])
    program = CHILD.replace("with routed", f"{first}\nwith routed")
    return subprocess.Popen(
        [sys.executable, "-c", program, str(minimax.port), "music", *words],
        env={**os.environ, "PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


@pytest.mark.parametrize(("suffix", "kind"), [("mp3", "MP3"), ("wav", "WAV"), ("flac", "WAV")])
def test_a_song_from_the_command_line_plays_as_long_as_it_should(
    suffix: str, kind: str, minimax: ScriptedMiniMax, tmp_path: Path
) -> None:
    """
    End to end, in a process of its own: a file that plays, and what is going on meanwhile.
    """
    sent = encoded(kind)
    minimax.scripts = [streams(b": ping\n\n", event(sent.hex()[:999], status=1), event(sent.hex()))]
    path = tmp_path / f"song.{suffix}"

    process = started(minimax, "generate", *SOFT, "-o", str(path))
    out, err = process.communicate(timeout=60)

    assert process.returncode == 0, err
    assert f"{path}: 0.5 s, 44100 Hz\n" == out.decode()
    assert b"asking ...\nmaking ...\n" == err
    assert soundfile.info(path).duration == pytest.approx(0.5, abs=0.06)


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL")
def test_a_process_that_is_killed_leaves_no_half_song(
    minimax: ScriptedMiniMax, tmp_path: Path
) -> None:
    """
    In the middle of a download: what stood there stands there still.
    """
    downloading = threading.Event()

    def drip(_: Asked) -> Iterable[bytes]:
        yield b"HTTP/1.1 200 OK\r\n\r\n" + encoded("MP3")
        downloading.set()
        while not minimax.is_left.wait(0.01):
            yield b"\0"

    minimax.scripts = [says(document(f"https://{CDN}/song.mp3")), drip]
    path = tmp_path / "song.mp3"
    path.write_bytes(b"before")
    before = set(tmp_path.iterdir())

    process = started(minimax, "generate", *SOFT, "--delivery", "url", "-o", str(path))
    assert downloading.wait(60)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)

    assert path.read_bytes() == b"before"
    assert before == set(tmp_path.iterdir())


def test_a_cover_of_a_file_is_made(minimax: ScriptedMiniMax, tmp_path: Path) -> None:
    """
    The file goes with the request.
    """
    song, path = tmp_path / "song.wav", tmp_path / "cover.ogg"
    song.write_bytes(encoded("WAV", tone(6.0)))
    minimax.scripts = [streams(event(encoded("WAV").hex()), DONE)]
    words = ["cover", "--prompt", "slow bossa nova", "--file", str(song), "--seed", "7"]
    assert main(["music", *words, "-o", str(path)]) == 0
    assert soundfile.info(path).frames == len(tone())
    assert minimax.asked[0].document["seed"] == 7
    assert minimax.asked[0].document["audio_base64"].startswith("UklGR")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["generate", "--prompt", "x", "-o", "a.mp3"], "one of the arguments --lyrics"),
        (["generate", *SOFT, "--lyrics", "la", "-o", "a.mp3"], "argument --lyrics"),
        (["generate", *SOFT, "--lyrics-optimizer", "-o", "a.mp3"], "argument --lyrics-optimizer"),
        (["generate", "--lyrics", " ", "-o", "a.mp3"], "argument --lyrics"),
        (["generate", "--prompt", " ", "--instrumental", "-o", "a.mp3"], "--prompt"),
        (["generate", "--instrumental", "-o", "a.mp3"], "--prompt"),
        (["generate", *SOFT, "-o", "x" * 300 + ".mp3"], "--output"),
        (["generate", *SOFT, "-o", "x" * 300 + "/a.mp3"], "--output"),
        (["generate", *SOFT, "-o", "x" * 9000 + ".mp3"], "--output"),
        (["generate", *SOFT, "-o", "a\0.mp3"], "--output"),
        (["generate", *SOFT, "-o", "a.exe"], "--output"),
        (["generate", *SOFT, "-o", "no/such/folder/a.mp3"], "--output"),
        (["generate", *SOFT, "--bitrate", "7", "-o", "a.mp3"], "--bitrate"),
        (["generate", *SOFT, "--bitrate", "128", "-o", "a.wav"], "--bitrate"),
        (["generate", *SOFT, "--timeout", "0", "-o", "a.mp3"], "--timeout"),
        (["generate", *SOFT, "--watermark", "-o", "a.mp3"], "--watermark"),
        (["generate", *SOFT, "--model", "music-cover", "-o", "a.mp3"], "--model"),
        (["cover", "--prompt", "x" * 10, "-o", "a.mp3"], "one of the arguments --file"),
        (["cover", "--file", "a", "--feature", "f", "-o", "a.mp3"], "argument --feature"),
        (["cover", "--prompt", "x" * 9, "--feature", "f", "-o", "a.mp3"], "--lyrics"),
        (["cover", "--prompt", "x" * 10, "--file", "", "-o", "a.mp3"], "--file"),
        (["cover", "--prompt", "x" * 10, "--feature", "", "-o", "a.mp3"], "--feature"),
        (["cover", "--prompt", "x" * 10, "--url", "http://a.example/x", "-o", "a.mp3"], "--url"),
        (["cover", "--prompt", "x" * 10, "--file", "no.mp3", "-o", "a.mp3"], "--file"),
    ],
)
def test_a_wrong_command_line_is_told_before_anything_is_sent(
    words: list[str], said: str, minimax: ScriptedMiniMax, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    With the option that is wrong; also where the file could not be written in the end.
    """
    assert main(["music", *words]) == 2
    shown = capsys.readouterr().err
    assert f"error: {said}" in shown
    assert not re.search(
        r"lyrics_optimizer|is_instrumental|feature_id|base64|None|Traceback|x{300}",
        shown[shown.index("error:") :],
    )
    assert minimax.asked == []


def test_a_file_without_words_is_told_before_anything_is_sent(
    minimax: ScriptedMiniMax, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    White space is none.
    """
    (tmp_path / "words.txt").write_text("\n \n")
    words = ["generate", "--lyrics-file", str(tmp_path / "words.txt"), "-o", "a.mp3"]
    assert main(["music", *words]) == 2
    assert "error: --lyrics-file: got no words" in capsys.readouterr().err
    assert minimax.asked == []


def test_without_a_key_nothing_is_sent(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    The variable is named.
    """
    monkeypatch.delenv("MINIMAX_API_KEY", raising=False)
    assert main(["music", "generate", *SOFT, "-o", "a.mp3"]) == 2
    assert "MINIMAX_API_KEY: is not set" in capsys.readouterr().err


def test_what_the_service_refuses_is_told(
    minimax: ScriptedMiniMax, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    In one line, with what support asks for; nothing is written.
    """
    minimax.scripts = [says(document(None, code=1008, words="insufficient balance"))]
    assert main(["music", "generate", *SOFT, "-q", "-o", str(tmp_path / "a.mp3")]) == 1
    told = "vlmcore: MiniMax: insufficient balance (code 1008, trace t-1)\n"
    assert told == capsys.readouterr().err
    assert not (tmp_path / "a.mp3").exists()


def test_words_come_from_a_file_too(minimax: ScriptedMiniMax, tmp_path: Path) -> None:
    """
    Lyrics have many lines.
    """
    words = tmp_path / "words.txt"
    words.write_text("[Verse]\nla la\n", encoding="utf-8")
    minimax.scripts = [lambda _: [stream_head(), event(encoded("MP3").hex()), DONE]]
    out = str(tmp_path / "a.mp3")
    assert main(["music", "generate", "--lyrics-file", str(words), "-o", out]) == 0
    assert minimax.asked[0].document["lyrics"] == "[Verse]\nla la\n"


@pytest.mark.parametrize("name", ["song.mp3", "song.flac"])
def test_without_soundfile_no_money_is_spent(
    name: str, minimax: ScriptedMiniMax, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    It is needed at the end, and looked for at the beginning.
    """
    monkeypatch.setitem(sys.modules, "soundfile", None)
    monkeypatch.delitem(sys.modules, "vlmcore_audio._soundfile", raising=False)
    monkeypatch.delattr("vlmcore_audio._soundfile", raising=False)
    assert main(["music", "generate", *SOFT, "-o", str(tmp_path / name)]) == ExitCode.NO_PACKAGE
    assert minimax.asked == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
def test_what_cannot_be_written_costs_no_money(minimax: ScriptedMiniMax, tmp_path: Path) -> None:
    """
    A pipe would be replaced by a file.
    """
    path = tmp_path / "song.mp3"
    os.mkfifo(path)
    assert main(["music", "generate", *SOFT, "-o", str(path)]) == ExitCode.USAGE
    assert minimax.asked == []


def held(begin: bytes) -> tuple[threading.Event, Script]:
    """A script that sends *begin*, and then nothing until the client is gone."""
    begun = threading.Event()

    def script(_: Asked) -> Iterable[bytes]:
        yield begin
        begun.set()
        while True:
            yield b": ping\n\n" if begin.startswith(stream_head()) else b"\n"
            time.sleep(0.01)

    return begun, script


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGINT for one process")
@pytest.mark.parametrize(
    "phase", ["looking up", "asking", "making", "waiting", "downloading", "saving"]
)
def test_ctrl_c_ends_the_command_without_half_a_song(
    phase: str, minimax: ScriptedMiniMax, tmp_path: Path
) -> None:
    """
    Whatever it waits for: no traceback, nothing written, what stood there stands there still.
    """
    song = event(encoded("MP3").hex())
    place = says(document(f"https://{CDN}/song.mp3"))
    begun, script = {
        "asking": held(b"HTTP/1.1 200 OK\r\n"),
        "making": held(stream_head() + song[:2000]),
        "downloading": held(b"HTTP/1.1 200 OK\r\n\r\n" + encoded("MP3")),
    }.get(phase, (None, says(document(None, code=1002)) if phase == "waiting" else streams(song)))
    minimax.scripts = [place, script] if phase == "downloading" else [script]
    slow = "lambda *_, **__: sys.stderr.write('waiting ...\\n') and time.sleep(60)"
    first = {"looking up": f"socket.getaddrinfo = {slow}", "saving": f"os.fsync = {slow}"}
    path = tmp_path / "song.mp3"
    path.write_bytes(b"before")
    before = set(tmp_path.iterdir())

    words = ["--delivery", "url"] if phase == "downloading" else []
    process = started(
        minimax, "generate", *SOFT, *words, "-o", str(path), first=first.get(phase, "")
    )
    assert process.stderr is not None
    assert begun.wait(60) if begun else b"waiting ...\n" in iter(process.stderr.readline, b"")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)

    assert (ExitCode.INTERRUPTED, b"") == (process.returncode, out)
    assert b"Traceback" not in err
    assert (b"before", before) == (path.read_bytes(), set(tmp_path.iterdir()))


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="there is no /proc")
def test_the_key_is_in_no_list_of_processes_and_no_other_process_is_started(
    minimax: ScriptedMiniMax, tmp_path: Path
) -> None:
    """
    What it is started with can be read by everybody, and a child would inherit the environment.
    """
    begun, script = held(stream_head())
    minimax.scripts = [script]
    births = ("subprocess.Popen", "os.fork", "os.exec", "os.posix_spawn", "os.system")
    watch = f"sys.addaudithook(lambda event, _: event in {births} and os._exit(99))"
    process = started(minimax, "generate", *SOFT, "-o", str(tmp_path / "a.mp3"), first=watch)
    assert begun.wait(60)
    words = Path(f"/proc/{process.pid}/cmdline").read_bytes()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == ExitCode.INTERRUPTED
    assert b"generate" in words
    assert KEY.encode() not in words


class Broken(io.StringIO):
    """A stream whose reader has gone."""

    def write(self, _: str, /) -> int:
        raise BrokenPipeError

    def flush(self) -> None:
        raise BrokenPipeError


class BrokenTerminal(Broken):
    """A terminal that was closed."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("stream", [None, Broken(), BrokenTerminal()])
def test_a_song_is_written_though_nobody_reads_how_far_it_is(
    stream: Any, minimax: ScriptedMiniMax, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    It is paid for: ``2>&1 | head -1`` does not throw it away.
    """
    minimax.scripts = [streams(event(encoded("MP3").hex()), DONE)]
    monkeypatch.setattr(sys, "stderr", stream)
    path = tmp_path / "song.mp3"
    assert main(["music", "generate", *SOFT, "-o", str(path)]) == 0
    assert path.read_bytes() == encoded("MP3")


def test_the_line_of_progress_is_taken_away_at_the_end(
    minimax: ScriptedMiniMax, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    What is written next begins at the margin.
    """
    screen = io.StringIO()
    monkeypatch.setattr(screen, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", screen)
    minimax.scripts = [streams(event(encoded("MP3").hex()), event(None, code=1026, words="no"))]
    assert main(["music", "generate", *SOFT, "-o", str(tmp_path / "song.mp3")]) == 1
    *_, blank, told = screen.getvalue().split("\r")
    assert (" " * len(blank), "vlmcore: MiniMax: no (code 1026, trace t-1)\n") == (blank, told)
    assert screen.getvalue().startswith("\rasking ...\rmaking ...")
