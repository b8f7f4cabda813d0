"""``vlmcore describe`` in a process of its own: terminals, pipes, Ctrl-C, readers that leave."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pty = pytest.importorskip("pty", reason="pseudo-terminals are POSIX's")

PATIENCE_S = 30
SLOW = "answer=lambda prompt: 'word ' * 40, delay_s=0.05"
ENDLESS = "answer=lambda prompt: 'word ' * 100_000, delay_s=0.02"


class Screen:
    """A pseudo-terminal, read as a person would: what is there so far."""

    def __init__(self) -> None:
        self.controller, self.terminal = pty.openpty()
        self.text = ""

    def read_until(self, wanted: str) -> str:
        deadline_s = time.monotonic() + PATIENCE_S
        while wanted not in self.text:
            assert time.monotonic() < deadline_s, f"{wanted!r} did not come: {self.text!r}"
            self.text += os.read(self.controller, 4096).decode()
        return self.text

    def read_rest(self) -> str:
        os.close(self.terminal)
        with contextlib.suppress(OSError):  # what Linux says when the last writer is gone
            while block := os.read(self.controller, 4096):
                self.text += block.decode()
        return self.text


@pytest.fixture
def screen() -> Iterator[Screen]:
    screen = Screen()
    yield screen
    for end in (screen.controller, screen.terminal):
        with contextlib.suppress(OSError):
            os.close(end)


def test_a_terminal_shows_each_word_as_it_is_written(child, pictures, screen) -> None:
    """
    The first words are on the screen while the model is still writing.
    """
    process = child("describe", pictures.red, made=SLOW, stdout=screen.terminal)

    early = screen.read_until("word word")
    still_running = process.poll() is None
    assert 0 == process.wait(PATIENCE_S)
    whole = screen.read_rest()

    assert still_running
    assert early.count("word") < 40
    assert ["word"] * 40 == whole.split()
    assert whole.endswith("word\r\n")


def test_a_terminal_has_a_heading_above_each_of_several_images(child, pictures, screen) -> None:
    """
    A person sees which answer is about which image; a new line parts them.
    """
    process = child("describe", pictures.red, pictures.blue, stdout=screen.terminal)

    assert 0 == process.wait(PATIENCE_S)
    lines = screen.read_rest().replace("\r", "").split("\n")

    assert [f"==> {pictures.red} <==", f"==> {pictures.blue} <=="] == [lines[0], lines[3]]
    assert "" == lines[2]


def test_a_terminal_has_a_heading_above_each_of_several_questions(child, pictures, screen) -> None:
    """
    With the question; one of two lines cannot forge another heading.
    """
    asked = ("--prompt", "Which colour?", "--prompt", "How\n==> large?")
    process = child("describe", pictures.red, *asked, stdout=screen.terminal)

    assert 0 == process.wait(PATIENCE_S)
    lines = screen.read_rest().replace("\r", "").split("\n")

    assert f"==> {pictures.red}: Which colour? <==" == lines[0]
    assert ["", f"==> {pictures.red}: How\\x0a==> large? <=="] == lines[2:4]


def test_without_streaming_a_terminal_shows_the_whole_answer_at_once(
    child, pictures, screen
) -> None:
    """
    ``--no-stream`` is for those whom moving text disturbs.
    """
    process = child("describe", pictures.red, "--no-stream", made=SLOW, stdout=screen.terminal)

    first = screen.read_until("word")

    assert 40 == first.count("word")
    assert 0 == process.wait(PATIENCE_S)


def test_ctrl_c_stops_the_model_and_keeps_what_it_wrote(child, pictures, screen) -> None:
    """
    Within a token, with no traceback, exit code 130; the images after it are not begun.
    """
    process = child("describe", pictures.red, pictures.blue, made=ENDLESS, stdout=screen.terminal)
    screen.read_until("word word")
    process.send_signal(signal.SIGINT)

    assert 130 == process.wait(PATIENCE_S)
    assert b"Traceback" not in process.stderr.read()
    whole = screen.read_rest()
    assert 2 <= whole.count("word") < 10_000
    assert whole.endswith("word\r\n")
    assert "blue.png" not in whole


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_ctrl_c_prints_what_was_done_into_a_pipe_too(child, pictures, form) -> None:
    """
    The answer so far is a line of text, or an object that says that it was cancelled.
    """
    process = child("describe", pictures.red, *form, made=ENDLESS)
    assert b"knows drawn scenes only" in process.stderr.readline()
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)

    out, err = process.communicate(timeout=PATIENCE_S)

    assert 130 == process.returncode
    assert b"Traceback" not in err
    assert b"word word" in out
    assert 1 == out.count(b"\n")
    assert (b'"stop_reason": "cancelled"' in out) is bool(form)


def test_ctrl_c_before_the_model_writes_ends_it_too(pictures) -> None:
    """
    While a model is loading there is nothing to print: only the exit code, no traceback.
    """
    program = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from vlmcore.cli import main\n"
        "sys.exit(main(load=lambda *_, **__: print('loading', flush=True) or time.sleep(60)))\n"
    )
    words = [sys.executable, "-c", program, "describe", pictures.red]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE_S)

    assert (130, b"") == (process.returncode, err)


def test_a_reader_that_leaves_ends_it_quietly(child, pictures) -> None:
    """
    ``vlmcore describe ... | head -1`` stops, and says nothing about a broken pipe.
    """
    process = child("describe", *[pictures.red] * 500, "--quiet", made="delay_s=0.01")
    process.stdout.readline()
    process.stdout.close()

    assert 141 == process.wait(PATIENCE_S)
    assert b"" == process.stderr.read()


def test_help_into_a_reader_that_leaves_is_quiet_too(child) -> None:
    """
    Nothing is written to a pipe that is closed already, and no exception is ignored aloud.
    """
    reader, writer = os.pipe()
    os.close(reader)
    process = child("--help", stdout=writer)
    os.close(writer)

    process.wait(PATIENCE_S)

    assert b"" == process.stderr.read()


def test_an_image_is_piped_in_and_an_answer_piped_out(child, pictures) -> None:
    """
    ``cat red.png | vlmcore describe - > answer.txt`` works, and the answer is all that is in it.
    """
    process = child("describe", "-", stdin=subprocess.PIPE)
    out, _ = process.communicate(Path(pictures.red).read_bytes(), timeout=PATIENCE_S)

    assert (0, 1) == (process.returncode, out.count(b"\n"))
    assert out.endswith(b"[image 6x4 #ff0000]\n")


def test_a_locale_without_a_character_shows_its_escape(child, pictures) -> None:
    """
    Under an ASCII locale an answer with a cat in Japanese does not end the command.
    """
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    process = child("describe", pictures.red, made=r"answer=lambda _: '\u732b'", env=environment)

    out, _ = process.communicate(timeout=PATIENCE_S)

    assert (0, b"\\u732b\n") == (process.returncode, out)
