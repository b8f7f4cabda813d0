"""Tests of where music is written that was paid for."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import soundfile

from architecture.tree import ROOT
from music_cases import (
    DONE,
    MP3,
    PLACE,
    Asked,
    ScriptedMiniMax,
    document,
    event,
    http,
    says,
    stream_head,
    streams,
    tone,
)
from vlmcore.cli import main
from vlmcore.cli.commands import ExitCode

WORDS = ("music", "generate", "-q", "--prompt", "soft piano", "--instrumental", "-o")


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_a_song_whose_folder_is_gone_is_kept_elsewhere(
    minimax: ScriptedMiniMax, elsewhere: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    Somebody removed it while the music was made: it is not thrown away, and the user is told.
    """
    folder = tmp_path / "gone"
    folder.mkdir()

    def script(_: Asked) -> Iterable[bytes]:
        shutil.rmtree(folder)
        return [stream_head(), event(MP3.hex()), DONE]

    minimax.scripts = [script]
    assert main([*WORDS, str(folder / "song.mp3")]) == ExitCode.INCOMPLETE
    (kept,) = elsewhere.iterdir()
    assert MP3 == kept.read_bytes()
    assert "vlmcore-music-" in kept.name
    told = capsys.readouterr().err
    assert "does not exist" in told
    assert f"vlmcore: the music is in {kept}\n" in told


def test_a_song_that_cannot_be_encoded_anew_is_kept_as_it_came(
    minimax: ScriptedMiniMax, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    Beside where it should be, in a file of its own.
    """
    samples = tone().astype(np.float32)
    samples[0, 0] = np.nan
    out = io.BytesIO()
    soundfile.write(out, samples, 44_100, format="WAV", subtype="FLOAT")
    minimax.scripts = [streams(event(out.getvalue().hex()), DONE)]
    assert main([*WORDS, str(tmp_path / "song.flac")]) == ExitCode.INCOMPLETE
    (kept,) = tmp_path.glob("*.wav")
    assert out.getvalue() == kept.read_bytes()
    assert f"the music is in {kept}\n" in capsys.readouterr().err
    assert not (tmp_path / "song.flac").exists()


def test_a_song_that_this_side_cannot_decode_is_written(
    minimax: ScriptedMiniMax, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    As it came, since a player may; that it may not is told.
    """
    broken = b"ID3\4" + bytes(400)
    minimax.scripts = [streams(event(broken.hex()), DONE)]
    path = tmp_path / "song.mp3"
    assert main([*WORDS, str(path)]) == ExitCode.INCOMPLETE
    assert broken == path.read_bytes()
    assert f"{path} is written, as it came; music: it cannot be" in capsys.readouterr().err


CHILD = """
import resource, sys
from music_cases import routed
from vlmcore.cli import main
with routed(int(sys.argv[1])):
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
    code = main(sys.argv[2:])
sys.exit(code)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="there is no limit for the size of a file")
def test_a_disk_that_is_full_everywhere_is_told_and_keeps_what_was_there(
    minimax: ScriptedMiniMax, tmp_path: Path
) -> None:
    """
    No half of a song under any name.
    """
    path, elsewhere, home = (tmp_path / name for name in ("song.mp3", "elsewhere", "home"))
    path.write_bytes(b"before")
    for folder in (elsewhere, home):
        folder.mkdir()
    minimax.scripts = [streams(event(MP3.hex()), DONE)]
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")])
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(minimax.port), *WORDS, str(path)],
        env={**os.environ, "PYTHONPATH": paths, "TMPDIR": str(elsewhere), "HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == ExitCode.INCOMPLETE
    assert f"vlmcore: {path}: File too large\n" in done.stderr
    assert "it is lost" in done.stderr
    assert b"before" == path.read_bytes()
    assert [] == [*elsewhere.iterdir(), *home.iterdir()]
    assert [] == list(tmp_path.glob("*.part"))


def test_the_address_of_a_song_that_did_not_come_is_kept(
    minimax: ScriptedMiniMax, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    In a file that others cannot read, and on no screen: who has it can fetch the song.
    """
    minimax.scripts = [says(document(PLACE)), says(b"", status=404), says(MP3)]
    path = tmp_path / "song.mp3"
    words = [*WORDS, str(path), "--delivery", "url"]
    with mock.patch("vlmcore_audio.minimax._terms.Retries.wait_s", return_value=0.0):
        assert main(words) == ExitCode.DONE
        minimax.scripts = [says(document(PLACE)), says(b"", status=404)]
        assert main(words) == ExitCode.INCOMPLETE
    (kept,) = tmp_path.glob("vlmcore-music-*.url.txt")
    assert f"{PLACE}\n" == kept.read_text("utf-8")
    assert 0o600 == kept.stat().st_mode & 0o777 or os.name == "nt"
    told = capsys.readouterr().err
    assert "made, and cannot be fetched: where it lies, the answer is HTTP 404" in told
    assert f"vlmcore: its address is in {kept}; " in told
    assert "sign=1" not in told
    assert MP3 == path.read_bytes()


def test_an_address_whose_folder_is_gone_is_kept_elsewhere(
    minimax: ScriptedMiniMax, elsewhere: Path, tmp_path: Path
) -> None:
    """
    As a song would be.
    """
    folder = tmp_path / "gone"
    folder.mkdir()

    def script(_: Asked) -> Iterable[bytes]:
        shutil.rmtree(folder, ignore_errors=True)
        return [http(b"", status=404)]

    minimax.scripts = [says(document(PLACE)), script]
    with mock.patch("vlmcore_audio.minimax._terms.Retries.wait_s", return_value=0.0):
        words = [*WORDS, str(folder / "song.mp3"), "--delivery", "url"]
        assert main(words) == ExitCode.INCOMPLETE
    (kept,) = elsewhere.iterdir()
    assert f"{PLACE}\n" == kept.read_text("utf-8")
