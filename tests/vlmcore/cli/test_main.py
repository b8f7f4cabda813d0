"""The command as a whole: help, versions, slips of the finger, and what it costs to start."""

import subprocess
import sys

import pytest

import vlmcore
from vlmcore.cli import main


@pytest.mark.parametrize("words", [(), ("--help",), ("-h",)])
def test_alone_it_prints_its_help(command, words) -> None:
    """
    The commands and the exit codes, on standard output, as a success.
    """
    done = command(*words)

    assert (0, "") == (done.code, done.err)
    for expected in ("describe", "catalog", "doctor", "exit codes:", "130  stopped with Ctrl-C"):
        assert expected in done.out


def test_the_version_is_that_of_the_package(command) -> None:
    """
    One line that can be pasted into a report.
    """
    assert f"vlmcore {vlmcore.__version__}\n" == command("--version").out


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("descripe",), "did you mean 'describe'?"),
        (("docter",), "did you mean 'doctor'?"),
        (("translate",), "there are actions, caption, catalog, comfy, describe, detect, doctor"),
    ],
)
def test_a_slip_of_the_finger_is_told_what_is_near(command, words, hint) -> None:
    """
    The exit code is that of a wrong command line.
    """
    done = command(*words)

    assert (2, "") == (done.code, done.out)
    assert hint in done.err


def test_an_image_without_a_command_is_told_the_command(command, pictures) -> None:
    """
    ``vlmcore cat.png`` is what people type first.
    """
    done = command(pictures.red)

    assert f"did you mean 'vlmcore describe {pictures.red}'?" in done.err


def test_a_recorded_chunk_without_a_command_is_told_the_command(command, tmp_path) -> None:
    """
    A document or an array is no image.
    """
    file = tmp_path / "chunk.json"
    file.write_text("[[0]]")

    assert f"did you mean 'vlmcore actions check {file}'?" in command(str(file)).err


def test_a_wrong_word_cannot_control_the_terminal(command, pictures) -> None:
    """
    Complaints about the command line show control characters and do not obey them.
    """
    wrong = command("\x1b[2J")
    unknown = command("describe", pictures.red, "--\x1b[2J")

    assert 2 == wrong.code == unknown.code
    assert "\x1b" not in wrong.err + unknown.err
    assert "\\x1b[2J" in wrong.err


def test_starting_loads_no_framework() -> None:
    """
    Help, versions and the catalog are there at once: torch is loaded when a model is.
    """
    program = (
        "import sys; from vlmcore.cli import main; main(['--version']); main(['catalog', 'vlm'])\n"
        "print({'torch', 'transformers', 'PIL', 'httpx', 'vlmcore.testing'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )

    assert ("set()", "") == (done.stdout.splitlines()[-1], done.stderr)


def test_python_dash_m_is_the_same_command() -> None:
    """
    Where scripts are not on the path, ``python -m vlmcore`` works.
    """
    words = [sys.executable, "-m", "vlmcore", "--version"]
    done = subprocess.run(words, check=True, capture_output=True, text=True)

    assert f"vlmcore {vlmcore.__version__}\n" == done.stdout


def test_ctrl_c_while_python_still_imports_ends_like_any_other(monkeypatch) -> None:
    """
    The packages take a moment to load, and a person who mistyped does not wait for them.
    """

    class Interrupting:
        def find_spec(self, name, _path, _target=None):
            if name == "vlmcore.cli._main":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "vlmcore.cli._main", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Interrupting(), *sys.meta_path])

    assert 130 == main(["--version"])
