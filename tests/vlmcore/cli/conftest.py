"""Images on disk, and the command run in this process or in one of its own, with an echo."""

import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from vlmcore.cli import main
from vlmcore.testing import EchoPredictor

CHILD = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a runner in the background ignores it
from vlmcore.cli import main
from vlmcore.testing import EchoPredictor
sys.exit(main(load=lambda model, **placement: EchoPredictor({made})))
"""


@pytest.fixture
def pictures(tmp_path: Path) -> SimpleNamespace:
    """A red and a blue picture, a file that is none, and a path with nothing at it."""
    image = pytest.importorskip("PIL.Image")
    made = SimpleNamespace(
        folder=tmp_path,
        red=str(tmp_path / "red.png"),
        blue=str(tmp_path / "blue.png"),
        text=str(tmp_path / "notes.txt"),
        nothing=str(tmp_path / "nothing.png"),
    )
    image.fromarray(np.full((4, 6, 3), (255, 0, 0), np.uint8)).save(made.red)
    image.fromarray(np.full((5, 7, 3), (0, 0, 255), np.uint8)).save(made.blue)
    Path(made.text).write_text("not an image")
    return made


@pytest.fixture
def command(capsys):
    """Run the command in this process; give its exit code, output and complaints."""

    def run(*words: str, load=None, **made):
        loaded = []

        def load_echo(model: str, **placement):
            loaded.append((model, placement))
            return EchoPredictor(model=model, **made)

        code = main([str(word) for word in words], load=load or load_echo)
        captured = capsys.readouterr()
        return SimpleNamespace(code=code, out=captured.out, err=captured.err, loaded=loaded)

    return run


@pytest.fixture
def child():
    """Start the command in a process of its own, with an echo made as the text says."""
    started = []

    def start(*words: str, made: str = "", **streams):
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
        process = subprocess.Popen(
            [sys.executable, "-c", CHILD.format(made=made), *words], **streams
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.wait()
        for stream in (process.stdout, process.stderr, process.stdin):
            if stream is not None:
                stream.close()
