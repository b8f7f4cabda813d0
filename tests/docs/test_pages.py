"""The pages: made from the code where they can be, and without dead ends."""

from __future__ import annotations

import importlib.util
import re
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def generator() -> ModuleType:
    """Import ``docs/generate.py``."""
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs/generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def generated_pages() -> dict[str, str]:
    """Generate the pages once for all tests."""
    return dict(generator().pages())


GENERATED = [
    "errors.md",
    "limits.md",
    "models.md",
    "policies.md",
    "command.md",
    "comfyui-nodes.md",
    "robot-documents.md",
    "pictures/chunk.svg",
    "lab-report.html",
    "schemas/robot-embodiment.json",
    "schemas/robot-observation.json",
    "schemas/robot-actions.json",
    "schemas/robot-action-step.json",
    "schemas/robot-action-safety.json",
    "schemas/robot-action-replan.json",
    "schemas/robot-episode.json",
    "schemas/robot-open-loop.json",
    "schemas/robot-episode-step.json",
    "schemas/robot-episode-failure.json",
    "schemas/image-detections.json",
    "schemas/video-tracks.json",
    "schemas/weights-manifest.json",
    "schemas/benchmark-run.json",
    "schemas/benchmark-journal.json",
    "schemas/benchmark-journal-sample.json",
    "schemas/benchmark-journal-end.json",
    "schemas/lab-suite.json",
    "schemas/comfyui-vla-http-v1.json",
]


def test_each_generated_page_is_held_to_the_code() -> None:
    """
    One list for the parameters, so that a page is named that fell behind.
    """
    assert set(GENERATED) == set(generated_pages())


@pytest.mark.parametrize("name", GENERATED)
def test_a_generated_page_says_what_the_code_says(name: str) -> None:
    """
    ``nox -s regen`` rewrites it.
    """
    if name == "command.md" and sys.version_info >= (3, 13):
        pytest.skip("argparse writes its help in another form from Python 3.13 on")
    page = (ROOT / "docs/reference" / name).read_text(encoding="utf-8")
    assert f"{generated_pages()[name]}\n" == page


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_link_to_a_file_leads_to_a_file(page: Path) -> None:
    """
    Links of pages that are read in the repository, too, which Sphinx does not see.
    """
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text)
    assert [] == [link for link in links if "://" not in link and not (page.parent / link).exists()]


NEEDS = {  # what a page names in its Python, and the extras that bring it
    r"\bHttpPolicyServer\(": ("server",),
    r"\b(OpenPIServer|GrootServer|WebSocketPolicy|HttpPolicy|ZmqPolicy)\(": ("robotics", "server"),
    r"\bvlmcore_robotics\.datasets\b": ("dataset",),
    r"\bGenerationOptions\(output=": ("structure",),
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_names_the_extra_that_its_code_needs(page: Path) -> None:
    """
    To the letter, so that what follows it runs in an environment that has nothing else.
    """
    text = page.read_text(encoding="utf-8")
    code = "\n".join(re.findall(r"^```py(?:thon)?\n(.*?)^```", text, re.DOTALL | re.MULTILINE))
    said = set(re.findall(r"\bvlmcore\[(\w+)\]", text))
    missing = [one for need, one in NEEDS.items() if re.search(need, code) and not said & {*one}]
    assert [] == missing


def test_ci_runs_the_command_that_the_readme_gives() -> None:
    """
    To the letter: what a newcomer types is what is known to work.
    """
    commands = [
        line
        for line in (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
        if line.endswith("nox -s tests")
    ]
    assert 1 == len(commands)
    assert commands[0] in (ROOT / ".ci/run").read_text(encoding="utf-8").splitlines()
