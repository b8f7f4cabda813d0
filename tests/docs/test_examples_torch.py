"""Every example in the README and the documentation runs as it is printed."""

from __future__ import annotations

import contextlib
import fnmatch
import itertools
import os
import re
import shlex
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest
from sybil import Example, Sybil
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser

from docs.warm_command import warm_command
from video_cases import clip

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SCENE = ROOT / "src/vlmcore/embedded/samples/scene-1.png"
OFTEN = 5  # runs of the command on one page
TO_DESCRIBE = (  # as the embedded model does, which the pages ask
    "transformers.models.idefics3.modeling_idefics3",
    "transformers.models.idefics3.processing_idefics3",
    "vlmcore.vlm.backends.transformers_chat",
)


def run_in_shell(example: Example) -> str | None:
    """
    Run the ``$`` lines of a console block and compare what they print; ``...`` stands for anything.
    """
    for command, expected in commands_of(str(example.parsed)):
        run_in_shell_and_expect(command, expected, folder=Path.cwd())
    return None


def run_in_shell_and_expect(command: str, expected: str | None, *, folder: Path = ROOT) -> None:
    """Run *command* in *folder*; what it prints is compared where given."""
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        cwd=folder,
        env=os.environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"$ {command}\n{done.stderr}"
    if expected is not None:
        assert matches(done.stdout, expected), f"$ {command}\n{done.stdout}\n{done.stderr}"


def commands_of(block: str) -> list[tuple[str, str | None]]:
    """
    Split a console block into commands and what they print; None where nothing is shown.

    What follows ``<<'END'`` belongs to the command, up to that line.
    """
    commands: list[tuple[str, str | None]] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            commands.append((line.removeprefix("$ "), None))
        elif commands and is_open(commands[-1][0]):
            commands[-1] = (f"{commands[-1][0]}\n{line}", None)
        elif commands:
            command, printed = commands[-1]
            commands[-1] = (command, line if printed is None else f"{printed}\n{line}")
    return commands


def is_open(command: str) -> bool:
    """Say whether the here-document of *command* has not ended yet."""
    return command.count("END") == 1 and command.partition("\n")[0].endswith("<<'END'")


def matches(printed: str, expected: str) -> bool:
    """Compare without trailing blanks; a line of ``...`` matches any lines."""
    literal = expected.rstrip().replace("[", "[[]").replace("?", "[?]").replace("*", "[*]")
    return fnmatch.fnmatchcase(printed.rstrip(), literal.replace("...", "*"))


@pytest.fixture
def shell_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Put the scripts of this environment first, and keep models and terminals out of it.
    """
    scripts = sysconfig.get_path("scripts")
    monkeypatch.setenv("PATH", f"{scripts}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("SCENE", shlex.quote(str(SCENE)))


SYBIL = Sybil(
    parsers=[PythonCodeBlockParser(), CodeBlockParser(language="console", evaluator=run_in_shell)]
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
@pytest.mark.usefixtures("shell_environment")
def test_the_examples_of_a_page_run(
    page: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """
    From the top to the bottom of a page, in one namespace and in one folder, where there is what a
    checkout has; ``SCENE`` is a picture that is there, and ``CLIP`` a video.
    """
    for name in ("README.md", "bench", "src"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    document = SYBIL.parse(page)
    document.namespace.update(SCENE=SCENE, CLIP=clip(40))
    examples = iter(document.examples())
    for example in itertools.islice(examples, 1):
        example.evaluate()
    with kept_warm(page, tmp_path) as path:
        monkeypatch.setenv("PATH", path)
        for example in examples:
            example.evaluate()


@contextlib.contextmanager
def kept_warm(page: Path, folder: Path) -> Iterator[str]:
    """
    Give a path for a page that runs the command often: from its second block on, a copy of a
    process that has imported what the command imports, instead of another start.
    """
    lines = re.findall(r"^\$ .*\bvlmcore .*", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    if len(lines) < OFTEN or not hasattr(os, "fork"):
        yield os.environ["PATH"]
        return
    describes = any("vlmcore describe" in line for line in lines)
    modules = ("vlmcore.cli", *(TO_DESCRIBE if describes else ()))
    with warm_command(*modules, folder=folder / ".warm") as warm:
        yield f"{warm}{os.pathsep}{os.environ['PATH']}"


@pytest.mark.usefixtures("shell_environment")
def test_the_readme_shows_what_its_first_command_says() -> None:
    """
    ``nox -s demo`` describes this picture, and a newcomer compares.
    """
    shown = block_of("text")
    command = f"vlmcore describe --quiet {SCENE.relative_to(ROOT)}"
    assert "src/vlmcore/embedded/samples/scene-1.png" in (ROOT / "noxfile.py").read_text("utf-8")
    run_in_shell_and_expect(command, shown)


def test_every_block_of_the_readme_is_one_that_runs_or_one_that_is_read() -> None:
    """
    A block in another language would be an example that nobody tries.
    """
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    languages = {line.removeprefix("```") for line in text.splitlines() if line.startswith("```")}
    assert languages <= {"", "python", "console", "sh", "text"}


def block_of(language: str) -> str:
    """Take the one block of *language* in the README."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    return str(block)
