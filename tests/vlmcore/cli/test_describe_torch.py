"""``vlmcore describe`` and ``vlmcore doctor`` as people run them: the embedded model, a process."""

import contextlib
import json
import os
import signal
import subprocess
import sys

import pytest

pytest.importorskip("transformers")
pty = pytest.importorskip("pty", reason="pseudo-terminals are POSIX's")

PATIENCE_S = 240  # loading PyTorch on a machine that is busy
OFFLINE = {**os.environ, "HF_HUB_OFFLINE": "1"}
VLMCORE = [sys.executable, "-m", "vlmcore"]


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*VLMCORE, *words],
        capture_output=True,
        text=True,
        check=False,
        env=OFFLINE,
        timeout=PATIENCE_S,
    )


def test_what_is_streamed_to_a_terminal_is_what_a_program_gets(pictures) -> None:
    """
    The pieces on the screen join to the text of the JSON; nothing of transformers is in between.
    """
    words = ("describe", pictures.red, "--max-new-tokens", "12", "--quiet")
    controller, terminal = pty.openpty()
    with subprocess.Popen(
        [*VLMCORE, *words], stdout=terminal, stderr=subprocess.PIPE, env=OFFLINE
    ) as process:
        os.close(terminal)
        shown = b""
        with contextlib.suppress(OSError):  # what Linux says when the last writer is gone
            while block := os.read(controller, 4096):
                shown += block
        complaints = process.stderr.read().decode()
    os.close(controller)
    document = run(*words, "--json")

    (answer,) = map(json.loads, document.stdout.splitlines())
    assert answer["text"]
    assert ("embedded", pictures.red) == (answer["model"], answer["source"])
    assert 1 <= answer["new_tokens"] <= 12
    assert document.stderr == complaints
    if answer["text"].isprintable():
        assert f"{answer['text']}\n" == shown.decode().replace("\r\n", "\n")


def test_ctrl_c_while_the_model_loads_leaves_no_traceback(pictures) -> None:
    """
    Importing PyTorch takes seconds, and that is when people change their minds.
    """
    program = (
        "import signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from vlmcore.cli import main\n"
        "print('begun', flush=True)\n"
        "sys.exit(main())\n"
    )
    words = [sys.executable, "-c", program, "describe", pictures.red]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=OFFLINE
    ) as process:
        process.stdout.readline()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(1.0)
        process.send_signal(signal.SIGINT)
        _, complaints = process.communicate(timeout=PATIENCE_S)

    assert 130 == process.returncode
    assert b"Traceback" not in complaints


def test_a_model_that_is_not_there_is_exit_code_3(pictures) -> None:
    """
    One line that names it, and no traceback.
    """
    done = run("describe", pictures.red, "--model", "./no-such-folder")

    assert (3, "") == (done.returncode, done.stdout)
    assert done.stderr.splitlines()[-1].startswith("vlmcore: ./no-such-folder: ")
    assert "Traceback" not in done.stderr


def test_the_doctor_finds_that_the_embedded_model_answers() -> None:
    """
    In an environment with the extra ``local``, everything that it needs is there.
    """
    done = run("doctor", "--json")

    found = json.loads(done.stdout)
    assert (0, True) == (done.returncode, found["sound"])
    assert found["embedded"]["works"] is True
    assert "cpu" == found["devices"][-1]["name"]
